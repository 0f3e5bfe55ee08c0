//! A copy-on-write view of the manifest file: redb recovers and checks it in memory, and the file
//! is only read. What it may keep in memory and what it may read are bounded.

use parking_lot::Mutex;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::examine::Served;
use super::halt::Halt;
use crate::error::{Error, ErrorKind};
use crate::vfs::{File, read_exact_at};

const PAGE_BYTES: u64 = 4096;

/// The most that a recovery in memory may change: a header, and allocator pages when redb has to
/// rebuild them.
pub(super) const COPY_BYTES_MAX: u64 = 64 << 20;

/// What an examination may read: so many times the length of the file, and so much besides. Sound
/// files need three passes; a tree whose branches share children would need passes without end.
pub(super) const READ_FACTOR: u64 = 16;
const READ_BYTES_MIN: u64 = 16 << 20;

// The flags of redb's header, as its design document has them.
const FLAGS_AT: u64 = 9;
const PRIMARY_SLOT: u8 = 1;
const PRIMARY_UNFLUSHED: u8 = 8;

/// The file as redb would leave it.
#[derive(Debug)]
pub(super) struct Copy {
    file: Arc<dyn File>,
    halt: Arc<Halt>,
    reads_left: AtomicU64,
    changed: Mutex<Changed>,
}

#[derive(Debug)]
struct Changed {
    len: u64,
    /// The bytes of the file below this are still its own.
    own: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl Copy {
    /// A view of `file`. With `bounded_reads` a budget that follows from its length ends a
    /// traversal that does not end by itself.
    pub(super) fn new(
        file: Arc<dyn File>,
        halt: Arc<Halt>,
        bounded_reads: bool,
        served: Served,
    ) -> io::Result<Self> {
        let len = file.len()?;
        let budget = len.saturating_mul(READ_FACTOR).saturating_add(READ_BYTES_MIN);
        let reads_left = AtomicU64::new(if bounded_reads { budget } else { u64::MAX });
        let changed = Mutex::new(Changed { len, own: len, pages: BTreeMap::new() });
        let copy = Self { file, halt, reads_left, changed };
        if served == Served::Durable {
            copy.serve_durable()?;
        }
        Ok(copy)
    }

    /// Makes the commit before the last the current one, if the last was not flushed: it may still
    /// be lost, and must not be shown. Readers beside a live writer are served the same.
    fn serve_durable(&self) -> io::Result<()> {
        let mut flags = [0];
        self.read(FLAGS_AT, &mut flags)?;
        if flags[0] & PRIMARY_UNFLUSHED != 0 {
            self.write(FLAGS_AT, &[(flags[0] ^ PRIMARY_SLOT) & !PRIMARY_UNFLUSHED])?;
        }
        Ok(())
    }

    fn spend(&self, bytes: u64) -> io::Result<()> {
        let left = self.reads_left.load(Ordering::Relaxed);
        if left == u64::MAX {
            return Ok(());
        }
        let Some(left) = left.checked_sub(bytes) else {
            let cause = "its pages refer to each other without end";
            let error = Error::damage("read", self.halt.path().display(), cause);
            return Err(io::Error::other(error));
        };
        self.reads_left.store(left, Ordering::Relaxed);
        Ok(())
    }

    fn read_page(&self, changed: &Changed, page: u64, into: &mut [u8]) -> io::Result<()> {
        if let Some(bytes) = changed.pages.get(&page) {
            into.copy_from_slice(bytes);
            return Ok(());
        }
        let start = page.saturating_mul(PAGE_BYTES);
        let own = changed.own.saturating_sub(start).min(PAGE_BYTES);
        let (own, zeros) = into.split_at_mut(usize::try_from(own).map_err(io::Error::other)?);
        zeros.fill(0);
        read_exact_at(&*self.file, own, start)
    }

    fn full(&self) -> io::Error {
        let cause = format!("its recovery would change more than {COPY_BYTES_MAX} bytes in memory");
        let place = self.halt.path().display();
        io::Error::other(Error::new(ErrorKind::LimitExceeded, "open", place, cause))
    }
}

/// The part of `offset..offset + len` in each page: page, start in the page, start in the part,
/// length.
fn parts(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let end = offset.saturating_add(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
        let part = (PAGE_BYTES - within).min(end - at);
        let piece = (page, within as usize, (at - offset) as usize, part as usize);
        at += part;
        Some(piece)
    })
}

impl StorageBackend for Copy {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.halt.may_read()?;
        let len = out.len() as u64;
        self.spend(len.max(64))?;
        let changed = self.changed.lock();
        let end = offset.checked_add(len).filter(|end| *end <= changed.len);
        let Some(end) = end else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let untouched =
            changed.pages.range(offset / PAGE_BYTES..=end / PAGE_BYTES).next().is_none();
        if untouched && end <= changed.own {
            drop(changed);
            return read_exact_at(&*self.file, out, offset);
        }
        let mut whole = vec![0; PAGE_BYTES as usize];
        for (page, within, at, part) in parts(offset, len) {
            self.read_page(&changed, page, &mut whole)?;
            out[at..at + part].copy_from_slice(&whole[within..within + part]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.halt.may_write()?;
        let mut changed = self.changed.lock();
        if len < changed.len {
            changed.pages.split_off(&len.div_ceil(PAGE_BYTES));
            let (page, kept) = (len / PAGE_BYTES, (len % PAGE_BYTES) as usize);
            if let Some(last) = changed.pages.get_mut(&page) {
                last[kept..].fill(0);
            }
            changed.own = changed.own.min(len);
        }
        changed.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.halt.may_write()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.halt.may_write()?;
        let len = data.len() as u64;
        let mut changed = self.changed.lock();
        if offset.checked_add(len).is_none_or(|end| end > changed.len) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (page, within, at, part) in parts(offset, len) {
            if !changed.pages.contains_key(&page) {
                if (changed.pages.len() as u64 + 1) * PAGE_BYTES > COPY_BYTES_MAX {
                    return Err(self.full());
                }
                let mut whole = vec![0; PAGE_BYTES as usize].into_boxed_slice();
                self.read_page(&changed, page, &mut whole)?;
                changed.pages.insert(page, whole);
            }
            if let Some(whole) = changed.pages.get_mut(&page) {
                whole[within..within + part].copy_from_slice(&data[at..at + part]);
            }
        }
        Ok(())
    }
}
