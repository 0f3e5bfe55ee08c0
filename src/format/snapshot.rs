//! A snapshot of the manifest's rows as bytes: a base holds all rows, a delta those that changed
//! since the snapshot before it. It is the content of one object in a sealed file.
//!
//! ```text
//!   | header | block | block | ..      block: raw_len u32 | stored_len u32 | stored bytes
//!   raw bytes of all blocks: entry after entry, in order of table and key
//!   entry: table u8 | op u8 (1 a row, 0 a row that went) | key_len u32 | value_len u32 | key | value
//! ```
//! A block is compressed by zstd, or stored as it is where that saves nothing or too much: no block
//! grows more than [`RATIO_MAX`] times, so that what reading allocates follows from the input.

use super::sealed::{agree, damage, fields, show, u32_at, u64_at};
use crate::digest::{Digest, checksum};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, StoreId};

/// The first bytes of a snapshot.
pub const SNAPSHOT_MAGIC: [u8; 8] = *b"\x89SNAPS.\n";
/// The version of this format.
pub const SNAPSHOT_VERSION: u32 = 1;
/// Length of the header; the extent's description in the sealed file's footer repeats it.
pub const SNAPSHOT_HEADER_BYTES: usize = 100;
/// Raw bytes in a block, but for the last.
pub const SNAPSHOT_BLOCK_BYTES: usize = 256 << 10;
/// A block never grows more than this when it is read.
pub const RATIO_MAX: usize = 64;
/// Length of an entry without key and value.
const ENTRY_BYTES: usize = 10;
const ZSTD_LEVEL: i32 = 3;

fields! {
    /// The header: field, offset, width.
    SNAPSHOT_HEADER_LAYOUT:
    SNAPSHOT_HEADER_MAGIC 0..8;
    SNAPSHOT_HEADER_VERSION 8..12;
    SNAPSHOT_KIND 12..16;
    SNAPSHOT_STORE 16..32;
    SNAPSHOT_COVERS 32..40;
    SNAPSHOT_PREVIOUS 40..72;
    SNAPSHOT_ROWS 72..80;
    SNAPSHOT_RAW_LEN 80..88;
    SNAPSHOT_BODY_LEN 88..96;
    SNAPSHOT_CRC 96..100;
}

/// The beginning of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The store.
    pub store: StoreId,
    /// The commit whose rows these are.
    pub covers: CommitSeq,
    /// The digest of the snapshot that a delta is onto; `None` for a base.
    pub onto: Option<Digest>,
    /// Entries.
    pub rows: u64,
    /// Bytes of all blocks, before compression.
    pub raw_len: u64,
    /// Bytes of all blocks, as stored.
    pub body_len: u64,
}

impl SnapshotHeader {
    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; SNAPSHOT_HEADER_BYTES] {
        let mut bytes = [0; SNAPSHOT_HEADER_BYTES];
        bytes[SNAPSHOT_HEADER_MAGIC].copy_from_slice(&SNAPSHOT_MAGIC);
        bytes[SNAPSHOT_HEADER_VERSION].copy_from_slice(&SNAPSHOT_VERSION.to_le_bytes());
        bytes[SNAPSHOT_KIND].copy_from_slice(&u32::from(self.onto.is_some()).to_le_bytes());
        bytes[SNAPSHOT_STORE].copy_from_slice(&self.store.0);
        bytes[SNAPSHOT_COVERS].copy_from_slice(&self.covers.0.to_le_bytes());
        if let Some(previous) = &self.onto {
            bytes[SNAPSHOT_PREVIOUS].copy_from_slice(&previous.0);
        }
        bytes[SNAPSHOT_ROWS].copy_from_slice(&self.rows.to_le_bytes());
        bytes[SNAPSHOT_RAW_LEN].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[SNAPSHOT_BODY_LEN].copy_from_slice(&self.body_len.to_le_bytes());
        let crc = checksum(&bytes[..SNAPSHOT_CRC.start]);
        bytes[SNAPSHOT_CRC].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header, the first bytes of a snapshot or the description of its extent.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat` when it is whole and of a version that this release does not know.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let Some(bytes) = bytes.first_chunk::<SNAPSHOT_HEADER_BYTES>() else {
            return Err(damage("snapshot", format!("{} bytes hold no header", bytes.len())));
        };
        if bytes[SNAPSHOT_HEADER_MAGIC] != SNAPSHOT_MAGIC {
            return Err(damage("snapshot", format!("none begins with {}", show(bytes))));
        }
        agree("snapshot", checksum(&bytes[..SNAPSHOT_CRC.start]), u32_at(bytes, SNAPSHOT_CRC))?;
        let version = u32_at(bytes, SNAPSHOT_HEADER_VERSION);
        if version != SNAPSHOT_VERSION {
            let cause = format!("version {version}, this release knows {SNAPSHOT_VERSION}");
            return Err(Error::new(ErrorKind::NewerFormat, "read", "snapshot", cause));
        }
        let mut previous = Digest([0; 32]);
        previous.0.copy_from_slice(&bytes[SNAPSHOT_PREVIOUS]);
        let onto = match u32_at(bytes, SNAPSHOT_KIND) {
            0 => None,
            1 => Some(previous),
            kind => return Err(damage("snapshot", format!("kind {kind} is neither of the two"))),
        };
        let mut store = StoreId([0; 16]);
        store.0.copy_from_slice(&bytes[SNAPSHOT_STORE]);
        Ok(Self {
            store,
            covers: CommitSeq(u64_at(bytes, SNAPSHOT_COVERS)),
            onto,
            rows: u64_at(bytes, SNAPSHOT_ROWS),
            raw_len: u64_at(bytes, SNAPSHOT_RAW_LEN),
            body_len: u64_at(bytes, SNAPSHOT_BODY_LEN),
        })
    }
}

/// Collects entries. Memory: what is compressed and not taken, and one block.
#[derive(Debug, Default)]
pub struct SnapshotWriter {
    body: Vec<u8>,
    block: Vec<u8>,
    rows: u64,
    raw_len: u64,
    body_len: u64,
}

impl SnapshotWriter {
    /// The next bytes behind the header, as far as they are known.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.body)
    }

    /// Adds a row, or with no value that it went. Give them in order of table and key.
    ///
    /// # Errors
    /// `LimitExceeded` for a key or value of 4 GiB, or when memory cannot be had.
    pub fn push(&mut self, table: u8, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let long = |_| {
            let cause = "a key or a value is too long";
            Error::new(ErrorKind::LimitExceeded, "encode", "snapshot", cause)
        };
        let stored = value.unwrap_or_default();
        let key_len = u32::try_from(key.len()).map_err(long)?;
        let value_len = u32::try_from(stored.len()).map_err(long)?;
        self.block.extend([table, u8::from(value.is_some())]);
        self.block.extend(key_len.to_le_bytes());
        self.block.extend(value_len.to_le_bytes());
        self.block.extend(key);
        self.block.extend(stored);
        self.rows += 1;
        while self.block.len() >= SNAPSHOT_BLOCK_BYTES {
            let rest = self.block.split_off(SNAPSHOT_BLOCK_BYTES);
            self.end_block()?;
            self.block = rest;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        let raw = std::mem::take(&mut self.block);
        if raw.is_empty() {
            return Ok(());
        }
        let compressed = zstd::bulk::compress(&raw, ZSTD_LEVEL).map_err(|e| {
            let kind = ErrorKind::LimitExceeded;
            Error::new(kind, "compress", "snapshot", "zstd refused").with_source(e)
        })?;
        let pays = compressed.len() < raw.len() && compressed.len() * RATIO_MAX >= raw.len();
        let stored = if pays { &compressed } else { &raw };
        // Blocks are shorter than 4 GiB: SNAPSHOT_BLOCK_BYTES at most.
        self.body.extend((raw.len() as u32).to_le_bytes());
        self.body.extend((stored.len() as u32).to_le_bytes());
        self.body.extend(stored);
        self.body_len += 8 + stored.len() as u64;
        self.raw_len += raw.len() as u64;
        Ok(())
    }

    /// The header of a snapshot of the rows as of commit `covers`, and its last bytes: those that were
    /// not [taken](Self::take). Equal entries give equal bytes, so that the header may be found in one
    /// round, and what stands behind it be written in another.
    ///
    /// # Errors
    /// As [`SnapshotWriter::push`].
    pub fn finish(
        mut self,
        store: StoreId,
        covers: CommitSeq,
        onto: Option<Digest>,
    ) -> Result<(SnapshotHeader, Vec<u8>)> {
        self.end_block()?;
        let Self { rows, raw_len, body_len, body, .. } = self;
        Ok((SnapshotHeader { store, covers, onto, rows, raw_len, body_len }, body))
    }
}

/// What reading calls with each entry: table, key, and the value or that the row went.
pub type OnEntry<'a> = &'a mut dyn FnMut(u8, &[u8], Option<&[u8]>) -> Result<()>;

/// Reads a whole snapshot. Allocates at most [`RATIO_MAX`] times its length and a block more.
///
/// # Errors
/// `Damage`, `NewerFormat`; what `on_entry` returns.
pub fn read_snapshot(bytes: &[u8], on_entry: OnEntry<'_>) -> Result<SnapshotHeader> {
    let header = SnapshotHeader::from_bytes(bytes)?;
    let mut rest = &bytes[SNAPSHOT_HEADER_BYTES..];
    if rest.len() as u64 != header.body_len {
        let cause = format!("{} bytes follow, {} were written", rest.len(), header.body_len);
        return Err(damage("snapshot", cause));
    }
    let (mut raw, mut rows, mut raw_len) = (Vec::new(), 0, 0);
    while !rest.is_empty() {
        raw_len += take_block(&mut rest, &mut raw)?;
        let used = take_entries(&raw, &mut rows, on_entry)?;
        raw.drain(..used);
    }
    if !raw.is_empty() || rows != header.rows || raw_len != header.raw_len {
        let cause = format!("{rows} rows of {raw_len} bytes were read, others were written");
        return Err(damage("snapshot", cause));
    }
    Ok(header)
}

/// Appends the raw bytes of the next block; how many.
fn take_block(rest: &mut &[u8], raw: &mut Vec<u8>) -> Result<u64> {
    let short = || damage("snapshot", "it ends inside a block".to_owned());
    let (lengths, behind) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    let (raw_len, stored_len) = (u32_at(lengths, 0..4) as usize, u32_at(lengths, 4..8) as usize);
    let (stored, behind) = behind.split_at_checked(stored_len).ok_or_else(short)?;
    *rest = behind;
    // P9: what is allocated follows from the bytes that are there.
    let is_bounded = raw_len <= SNAPSHOT_BLOCK_BYTES && raw_len <= stored_len * RATIO_MAX;
    if raw_len == 0 || stored_len > raw_len || !is_bounded {
        let cause = format!("a block of {stored_len} bytes does not become {raw_len}");
        return Err(damage("snapshot", cause));
    }
    if stored_len == raw_len {
        raw.extend_from_slice(stored);
        return Ok(raw_len as u64);
    }
    let block = zstd::bulk::decompress(stored, raw_len)
        .map_err(|e| damage("snapshot", "zstd refused a block".to_owned()).with_source(e))?;
    if block.len() != raw_len {
        let cause = format!("a block has {} bytes instead of {raw_len}", block.len());
        return Err(damage("snapshot", cause));
    }
    raw.extend_from_slice(&block);
    Ok(raw_len as u64)
}

/// Hands out every whole entry at the beginning of `raw`; how many bytes they take.
fn take_entries(raw: &[u8], rows: &mut u64, on_entry: OnEntry<'_>) -> Result<usize> {
    let mut used = 0;
    while let Some(head) = raw[used..].first_chunk::<ENTRY_BYTES>() {
        let key_len = u32_at(head, 2..6) as usize;
        let value_len = u32_at(head, 6..10) as usize;
        let behind = &raw[used + ENTRY_BYTES..];
        let Some((body, _)) = behind.split_at_checked(key_len.saturating_add(value_len)) else {
            break;
        };
        let (key, value) = body.split_at(key_len);
        match head[1] {
            1 => on_entry(head[0], key, Some(value))?,
            0 if value.is_empty() => on_entry(head[0], key, None)?,
            op => return Err(damage("snapshot", format!("an entry says {op}"))),
        }
        *rows += 1;
        used += ENTRY_BYTES + body.len();
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Entry = (u8, Vec<u8>, Option<Vec<u8>>);

    fn sample() -> (Vec<Entry>, Vec<u8>) {
        let mut writer = SnapshotWriter::default();
        let mut entries = Vec::new();
        for n in 0..3000u32 {
            let value = (n % 7 != 0).then(|| Digest::of(&n.to_le_bytes()).0.repeat(n as usize % 9));
            let entry = ((n / 1000) as u8, n.to_be_bytes().to_vec(), value);
            writer.push(entry.0, &entry.1, entry.2.as_deref()).unwrap();
            entries.push(entry);
        }
        writer.push(9, b"zeros", Some(&vec![0; 400 << 10])).unwrap();
        entries.push((9, b"zeros".to_vec(), Some(vec![0; 400 << 10])));
        let onto = Some(Digest::of(b"before"));
        let taken = writer.take();
        assert!(!taken.is_empty(), "blocks can be taken on the way");
        let (header, rest) = writer.finish(StoreId([3; 16]), CommitSeq(77), onto).unwrap();
        let bytes = [&header.to_bytes()[..], &taken, &rest].concat();
        assert_eq!(SnapshotHeader::from_bytes(&bytes).unwrap(), header);
        (entries, bytes)
    }

    /// Does a snapshot give back what went in, whatever compresses well or not at all?
    #[test]
    fn snapshots_round_trip() {
        let (entries, bytes) = sample();
        let mut seen = Vec::new();
        let header = read_snapshot(&bytes, &mut |table, key, value| {
            seen.push((table, key.to_vec(), value.map(<[u8]>::to_vec)));
            Ok(())
        });
        assert_eq!(header.unwrap().rows, entries.len() as u64);
        assert!(seen == entries);
    }

    /// Can hostile bytes make reading panic, or take more than a multiple of their length? (P9)
    #[test]
    fn p9_hostile_snapshots_are_damage() {
        let (_, bytes) = sample();
        for cut in (0..bytes.len()).step_by(997).chain(0..200) {
            assert!(read_snapshot(&bytes[..cut], &mut |_, _, _| Ok(())).is_err(), "cut at {cut}");
        }
        for at in (0..bytes.len()).step_by(313).chain(0..200) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x41;
            let mut taken = 0;
            let _ = read_snapshot(&flipped, &mut |_, key, value| {
                taken += key.len() + value.map_or(0, <[u8]>::len);
                Ok(())
            });
            assert!(taken <= RATIO_MAX * bytes.len());
        }
    }
}
