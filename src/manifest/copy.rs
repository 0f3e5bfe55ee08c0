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
/// files need two passes; a tree whose branches share children would need passes without end.
const READ_FACTOR: u64 = 8;
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
        if served == Served::Flushed {
            let flags = copy.flags()?;
            copy.write(FLAGS_AT, &[(flags ^ PRIMARY_SLOT) & !PRIMARY_UNFLUSHED])?;
        }
        Ok(copy)
    }

    fn flags(&self) -> io::Result<u8> {
        let mut flags = [0];
        self.read(FLAGS_AT, &mut flags)?;
        Ok(flags[0])
    }

    /// Whether the writer had written its last commit, and not yet that it was flushed.
    pub(super) fn is_unflushed(&self) -> io::Result<bool> {
        Ok(self.flags()? & PRIMARY_UNFLUSHED != 0)
    }

    /// Reads the file once from end to end: then its pages, which will be read in the order of the
    /// tree, are at hand.
    pub(super) fn read_ahead(&self) -> io::Result<()> {
        const PIECE_BYTES: u64 = 1 << 20;
        let (len, mut at) = (self.file.len()?, 0);
        let mut piece = vec![0; PIECE_BYTES.min(len) as usize];
        while at < len {
            let part = PIECE_BYTES.min(len - at);
            read_exact_at(&*self.file, &mut piece[..part as usize], at)?;
            at += part;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{Access, Disk, RealDisk, read_whole, write_all_at};

    /// A file of `len` counted bytes, and a view of it.
    fn view(len: usize, bounded: bool) -> (tempfile::TempDir, Vec<u8>, Copy) {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = RealDisk::new();
        let path = dir.path().join("manifest.redb");
        let bytes: Vec<u8> = (0..len).map(|n| (n / 7) as u8).collect();
        let file = disk.open(&path, Access::CreateNew).unwrap();
        write_all_at(&*file, &bytes, 0).unwrap();
        let file = disk.open(&path, Access::Read).unwrap();
        let halt = Halt::new(&disk, path);
        (dir, bytes, Copy::new(file, halt, bounded, Served::Written).unwrap())
    }

    fn ours(error: io::Error) -> ErrorKind {
        error.get_ref().unwrap().downcast_ref::<Error>().unwrap().kind()
    }

    /// Does the view behave as the file itself would, through writes, cuts and growth in every
    /// order, while the file stays as it was?
    #[test]
    fn a_view_is_the_file_as_it_would_be() {
        let (_dir, original, copy) = view(50_000, false);
        let mut model = original.clone();
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % bound.max(1)
        };
        for round in 0..2_000 {
            match below(4) {
                0 => {
                    let len = below(70_000);
                    model.resize(len, 0);
                    copy.set_len(len as u64).unwrap();
                }
                1 | 2 if !model.is_empty() => {
                    let at = below(model.len());
                    let part = below((model.len() - at).min(9_000)) + 1;
                    let data = vec![round as u8; part.min(model.len() - at)];
                    model[at..at + data.len()].copy_from_slice(&data);
                    copy.write(at as u64, &data).unwrap();
                }
                _ => {}
            }
            let at = below(model.len());
            let part = below((model.len() - at).min(20_000));
            let mut read = vec![1; part];
            copy.read(at as u64, &mut read).unwrap();
            assert!(read == model[at..at + part], "round {round}");
            assert_eq!(copy.len().unwrap(), model.len() as u64);
        }
        let past = copy.read(model.len() as u64, &mut [0]).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
        assert!(copy.write(model.len() as u64, &[0]).is_err());
        assert!(read_whole(&*copy.file, 1 << 20).unwrap() == original);
    }

    /// Do the bounds hold? A hostile file must not fill the memory, nor be read for ever.
    #[test]
    fn memory_and_reads_are_bounded() {
        let (_dir, _, copy) = view(4096, true);
        copy.set_len(2 * COPY_BYTES_MAX).unwrap();
        let page = [1; PAGE_BYTES as usize];
        let mut pages = 0;
        let full = loop {
            match copy.write(pages * PAGE_BYTES, &page) {
                Ok(()) => pages += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(pages, COPY_BYTES_MAX / PAGE_BYTES);
        assert_eq!(ours(full), ErrorKind::LimitExceeded);
        let mut reads = 0;
        let spent = loop {
            match copy.read(0, &mut [0; 4096]) {
                Ok(()) => reads += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(ours(spent), ErrorKind::Damage);
        assert!(reads < 2 * READ_BYTES_MIN / PAGE_BYTES, "{reads}");
    }
}
