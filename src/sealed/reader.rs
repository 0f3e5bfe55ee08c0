//! Reads a sealed file. Only verified bytes leave it; damage names the file, the place, and what the
//! place held.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::{Digest, checksum_more};
use crate::error::{Error, ErrorKind, Result};
use crate::format::sealed::{BLOCK_CRC_BYTES, Blocks, Framing, HEADER_BYTES, show};
use crate::format::trailer::TRAILER_BYTES;
use crate::ids::StoreId;
use crate::vfs::{Access, Disk, File, read_exact_at};

/// Bytes read at a time where blocks are small, or where all content is read.
pub(super) const RUN_BYTES: u64 = 256 << 10;

/// What a row says about a file; what it does not say is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expect {
    /// Length of the file.
    pub len: Option<u64>,
    /// Digest of its content. Compared with the label, which costs one small read; only where that
    /// is damaged all of the content is read.
    pub digest: Option<Digest>,
    /// The store that asks: tells a file of another store from damage.
    pub store: Option<StoreId>,
}

/// An open sealed file.
#[derive(Debug)]
pub struct Reader {
    pub(super) file: Arc<dyn File>,
    pub(super) path: PathBuf,
    pub(super) len: u64,
    pub(super) framing: Framing,
}

impl Reader {
    /// Opens the file at `path` and reads its header; of a file with a damaged header, its trailer.
    ///
    /// # Errors
    /// `NotFound` when the path names nothing; `Damage` when it is no sealed file, or not the
    /// expected one; `Foreign` when it is one of another store; `NewerFormat`; `Io`.
    pub fn open(disk: &Arc<dyn Disk>, path: &Path, expect: &Expect) -> Result<Self> {
        let refused = |e| Error::io("open", path.display(), e);
        let file = disk.open(path, Access::Read).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, "open", path.display(), "there is no such file")
                    .with_source(e)
            }
            _ => refused(e),
        })?;
        let len = file.len().map_err(refused)?;
        if let Some(said) = expect.len
            && said != len
        {
            let which = if len < said { "cut short" } else { "too long" };
            let cause = format!("{which}: it has {len} bytes, its row says {said}");
            return Err(Error::damage("open", path.display(), cause));
        }
        let framing = Framing { block_bytes: 1, seed: 0 };
        let mut reader = Self { file, path: path.to_owned(), len, framing };
        reader.framing = reader.read_framing()?;
        if let Some(digest) = &expect.digest {
            reader.identify(digest, expect.store)?;
        }
        Ok(reader)
    }

    /// The length of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no byte: never, once it is open.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it stands.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stored bytes of the extent at `offset`, every block verified.
    ///
    /// # Errors
    /// `Damage`, also when the file cannot hold such an extent; `Io`.
    pub fn read(&self, offset: u64, stored_len: u64) -> Result<Vec<u8>> {
        self.read_range(offset, stored_len, 0..stored_len)
    }

    /// The stored bytes `range` of the extent at `offset`. Reads and verifies the blocks that hold
    /// them and no other.
    ///
    /// # Errors
    /// `Invalid` when the range passes the extent; `Damage`; `Io`.
    pub fn read_range(&self, offset: u64, stored_len: u64, range: Range<u64>) -> Result<Vec<u8>> {
        let blocks = self.blocks_of(offset, stored_len, &range)?;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = blocks.over(&range);
        let from = blocks.holds(wanted.start).start;
        let bytes = self.read_blocks(&blocks, wanted)?;
        let part = (range.start - from) as usize..(range.end - from) as usize;
        // A small part does not keep the memory of its whole block.
        Ok(if part == (0..bytes.len()) { bytes } else { bytes[part].to_vec() })
    }

    /// The stored bytes `range` of the extent at `offset`, and nothing else is read but the checksums
    /// between them, which are not looked at: for content that checks itself.
    ///
    /// # Errors
    /// `Invalid` when the range passes the extent; `Damage` when the file cannot hold it; `Io`.
    pub(crate) fn read_unchecked(
        &self,
        offset: u64,
        stored_len: u64,
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        let blocks = self.blocks_of(offset, stored_len, &range)?;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = blocks.over(&range);
        let part = |block: u64| {
            let held = blocks.holds(block);
            held.start.max(range.start)..held.end.min(range.end)
        };
        let at = |block: u64, byte: u64| blocks.at(block) + byte - blocks.holds(block).start;
        let last = wanted.end - 1;
        let from = at(wanted.start, range.start);
        let mut bytes = vec![0; (at(last, part(last).end) - from) as usize];
        self.fill(&mut bytes, from)?;
        let mut to = 0;
        for block in wanted {
            let part = part(block);
            let (begin, len) = ((at(block, part.start) - from) as usize, (part.end - part.start));
            bytes.copy_within(begin..begin + len as usize, to);
            to += len as usize;
        }
        bytes.truncate(to);
        Ok(bytes)
    }

    /// The blocks of an extent of which `range` is wanted.
    fn blocks_of(&self, offset: u64, stored_len: u64, range: &Range<u64>) -> Result<Blocks> {
        if range.start > range.end || range.end > stored_len {
            let cause = format!("bytes {range:?} of an extent of {stored_len} bytes");
            return Err(Error::invalid("read", self.at(offset), cause));
        }
        // P9: whoever told the place, an extent that the file cannot hold allocates nothing.
        let ends = self.len.saturating_sub(TRAILER_BYTES as u64);
        Blocks::new(offset, stored_len, self.framing.block_bytes)
            .filter(|blocks| offset >= HEADER_BYTES as u64 && blocks.end() <= ends)
            .ok_or_else(|| {
                let len = self.len;
                let cause = format!("{len} bytes of file hold no extent of {stored_len} bytes");
                Error::damage("read", self.at(offset), cause)
            })
    }

    /// Syncs the file and drops what the page cache holds of it, so that what is read next comes from
    /// the medium.
    ///
    /// # Durability
    /// The bytes are durable; the name is not touched.
    ///
    /// # Errors
    /// `Io`, after which nothing about the file is known.
    pub fn sync(&self) -> Result<()> {
        let refused = |e| Error::io("sync", self.path.display(), e);
        self.file.sync_data().map_err(refused)?;
        self.file.evict().map_err(refused)
    }

    /// Reads `wanted` blocks, at least one, one behind the other without their checksums.
    fn read_blocks(&self, blocks: &Blocks, wanted: Range<u64>) -> Result<Vec<u8>> {
        let from = blocks.holds(wanted.start).start;
        let stored = (blocks.holds(wanted.end - 1).end - from) as usize;
        let at_a_time = self.blocks_at_a_time().min(wanted.end - wanted.start);
        let mut bytes = vec![0; stored + (at_a_time * BLOCK_CRC_BYTES) as usize];
        let mut filled = 0;
        let mut next = wanted.start;
        while next < wanted.end {
            let run = next..(next + at_a_time).min(wanted.end);
            next = run.end;
            filled += self.read_run(blocks, run, &mut bytes[filled..])?;
        }
        bytes.truncate(stored);
        Ok(bytes)
    }

    /// Reads one run of blocks and closes the gaps that their checksums leave; how many stored bytes.
    fn read_run(&self, blocks: &Blocks, run: Range<u64>, into: &mut [u8]) -> Result<usize> {
        let held = |block: u64| blocks.holds(block).end - blocks.holds(block).start;
        let last = run.end - 1;
        let span = blocks.at(last) - blocks.at(run.start) + held(last) + BLOCK_CRC_BYTES;
        self.fill(&mut into[..span as usize], blocks.at(run.start))?;
        let (mut from, mut to) = (0, 0);
        for block in run {
            let len = held(block) as usize;
            // P6: no byte leaves whose checksum does not fit.
            self.check_block(blocks, block, &into[from..from + len + BLOCK_CRC_BYTES as usize])?;
            if from != to {
                into.copy_within(from..from + len, to);
            }
            from += len + BLOCK_CRC_BYTES as usize;
            to += len;
        }
        Ok(to)
    }

    fn check_block(&self, blocks: &Blocks, block: u64, bytes: &[u8]) -> Result<()> {
        let at = blocks.at(block);
        let (stored, recorded) = bytes.split_at(bytes.len() - BLOCK_CRC_BYTES as usize);
        let computed = checksum_more(self.framing.block_checksum(at), stored);
        if computed.to_le_bytes() == recorded {
            return Ok(());
        }
        let (extent, range, found) = (blocks.at(0), blocks.holds(block), show(stored));
        let cause = format!(
            "a block of {} bytes, which are bytes {range:?} of the extent at {extent}, does not fit \
             its checksum; it begins with {found}",
            stored.len()
        );
        Err(Error::damage("read", self.at(at), cause))
    }

    /// Verifies an extent's blocks and shows them, without holding more of it than a run of them.
    pub(super) fn read_through(
        &self,
        offset: u64,
        stored_len: u64,
        show: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let step = self.blocks_at_a_time() * u64::from(self.framing.block_bytes);
        let mut from = 0;
        while from < stored_len {
            let to = from.saturating_add(step).min(stored_len);
            show(&self.read_range(offset, stored_len, from..to)?);
            from = to;
        }
        Ok(())
    }

    fn blocks_at_a_time(&self) -> u64 {
        (RUN_BYTES / (u64::from(self.framing.block_bytes) + BLOCK_CRC_BYTES)).max(1)
    }

    pub(super) fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>> {
        // P9: no more than the file has.
        let within = range.start.min(self.len)..range.end.min(self.len);
        let mut bytes = vec![0; (within.end - within.start) as usize];
        self.fill(&mut bytes, within.start)?;
        Ok(bytes)
    }

    pub(super) fn fill(&self, into: &mut [u8], at: u64) -> Result<()> {
        read_exact_at(&*self.file, into, at).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let cause = format!("cut short: {} bytes were wanted here", into.len());
                Error::damage("read", self.at(at), cause)
            }
            _ => Error::io("read", self.at(at), e),
        })
    }

    pub(super) fn at(&self, offset: u64) -> String {
        format!("{} at {offset}", self.path.display())
    }

    /// The same error, with the file and the place in it.
    pub(super) fn placed(&self, at: u64, e: Error) -> Error {
        Error::new(e.kind(), e.operation(), format!("{}, {}", self.at(at), e.place()), e.cause())
    }
}
