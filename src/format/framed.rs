//! Codec 1 of objects: zstd in frames that are read one by one, with a table of their lengths behind them.
//!
//! ```text
//!   | frame | frame | .. | frame |  stored length u32, one per frame  | end |
//!   '- 1 MiB raw each, the last -'------------- table --------------------'
//!        one what is left
//! ```
//! How many frames there are follows from the raw length, which whoever reads knows; so the table is
//! found from the end, and a range costs the table and the frames that hold it.
//!
//! - P9: nothing is set up that stored bytes of that length could not ask for: a table is no longer than
//!   they are, and each frame gives at most 1 MiB.
//! - Equal raw bytes, equal stored bytes: level and frame length are pinned.

use std::fmt;
use std::ops::Range;

use super::compressed::PUBLISHED_LEVEL;
use super::sealed::{agree, damage, fields, u32_at, u64_at};
use crate::digest::checksum;
use crate::error::{Error, ErrorKind, Result};

/// The number of this codec in rows and footers.
pub const CODEC: u8 = 1;
/// Raw bytes in a frame, but for the last.
pub const FRAME_BYTES: u64 = 1 << 20;
/// Length of the end, behind the lengths of the frames.
pub const END_BYTES: usize = 16;
/// Length of one frame's length.
const ENTRY_BYTES: u64 = 4;
/// What is looked at to tell whether compressing pays: so many slices, spread evenly, of so many bytes.
const SLICES: usize = 4;
const SLICE_BYTES: usize = 32 << 10;
/// Shorter content is not worth its table.
const PAYS_FROM: usize = 1 << 10;

fields! {
    /// The end of the table: field, offset, width.
    END_LAYOUT:
    END_RAW_LEN 0..8;
    END_FRAMES 8..12;
    END_CRC 12..16;
}

/// Whether compressing content of which `sample` is all or the beginning pays: four slices of 32 KiB,
/// spread evenly over it, become shorter by an eighth or more; content below 1 KiB never does.
pub fn pays(sample: &[u8]) -> bool {
    if sample.len() < PAYS_FROM {
        return false;
    }
    let Ok(mut compressor) = zstd::bulk::Compressor::new(PUBLISHED_LEVEL) else { return false };
    let slice = SLICE_BYTES.min(sample.len());
    let step = (sample.len() - slice) / (SLICES - 1);
    let count = if step == 0 { 1 } else { SLICES };
    let (mut raw, mut stored) = (0, 0);
    for part in (0..count).filter_map(|at| sample.get(at * step..at * step + slice)) {
        raw += part.len();
        stored += compressor.compress(part).map_or(part.len(), |bytes| bytes.len());
    }
    stored <= raw / 8 * 7
}

/// Compresses what is pushed, and hands it on. Memory: two frames.
pub struct Encoder {
    compressor: zstd::bulk::Compressor<'static>,
    /// Raw bytes of the frame that is being filled.
    held: Vec<u8>,
    table: Vec<u8>,
    raw_len: u64,
    frames: u32,
}

impl Encoder {
    /// Sets the working memory up: a few MiB.
    ///
    /// # Errors
    /// `LimitExceeded` when it cannot be had.
    pub fn new() -> Result<Self> {
        let mut compressor = zstd::bulk::Compressor::new(PUBLISHED_LEVEL).map_err(refused)?;
        compressor.include_checksum(true).map_err(refused)?;
        Ok(Self { compressor, held: Vec::new(), table: Vec::new(), raw_len: 0, frames: 0 })
    }

    /// Takes `raw` in. Frames that are full by now go to `out`.
    ///
    /// # Errors
    /// Those of `out`; `LimitExceeded` when memory cannot be had, or for more frames than a table counts.
    pub fn push(&mut self, mut raw: &[u8], out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while !raw.is_empty() {
            let room = FRAME_BYTES as usize - self.held.len();
            let (now, later) = raw.split_at(room.min(raw.len()));
            if self.held.is_empty() && now.len() == FRAME_BYTES as usize {
                self.frame(now, out)?;
            } else {
                self.held.extend_from_slice(now);
                if self.held.len() == FRAME_BYTES as usize {
                    self.flush(out)?;
                }
            }
            raw = later;
        }
        Ok(())
    }

    /// Ends the stored bytes: what is left of a frame, and the table.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if !self.held.is_empty() {
            self.flush(out)?;
        }
        let mut table = std::mem::take(&mut self.table);
        table.extend_from_slice(&self.raw_len.to_le_bytes());
        table.extend_from_slice(&self.frames.to_le_bytes());
        table.extend_from_slice(&checksum(&table).to_le_bytes());
        out(&table)
    }

    fn flush(&mut self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut held = std::mem::take(&mut self.held);
        self.frame(&held, out)?;
        held.clear();
        self.held = held;
        Ok(())
    }

    fn frame(&mut self, raw: &[u8], out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let stored = self.compressor.compress(raw).map_err(refused)?;
        let full = || Error::new(ErrorKind::LimitExceeded, "compress", "an object", "too long");
        let len = u32::try_from(stored.len()).map_err(|_| full())?;
        self.frames = self.frames.checked_add(1).ok_or_else(full)?;
        self.raw_len += raw.len() as u64;
        self.table.extend_from_slice(&len.to_le_bytes());
        out(&stored)
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("raw_len", &self.raw_len).finish_non_exhaustive()
    }
}

fn refused(source: std::io::Error) -> Error {
    let kind = ErrorKind::LimitExceeded;
    Error::new(kind, "compress", "an object", "zstd refused").with_source(source)
}

/// Compresses the whole of `raw`.
///
/// # Errors
/// As [`Encoder::push`].
pub fn encode(raw: &[u8]) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    let mut out = |bytes: &[u8]| {
        stored.extend_from_slice(bytes);
        Ok(())
    };
    let mut encoder = Encoder::new()?;
    encoder.push(raw, &mut out)?;
    encoder.finish(&mut out)?;
    Ok(stored)
}

/// Where the frames of stored bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    raw_len: u64,
    /// Where each frame ends.
    ends: Vec<u64>,
}

impl Frames {
    /// Where the table of `stored_len` stored bytes of `raw_len` raw ones lies, at the end of them.
    ///
    /// # Errors
    /// `Damage` when so few stored bytes cannot hold it.
    pub fn table_of(stored_len: u64, raw_len: u64) -> Result<Range<u64>> {
        let table = raw_len.div_ceil(FRAME_BYTES).checked_mul(ENTRY_BYTES);
        let table = table.and_then(|table| table.checked_add(END_BYTES as u64));
        let start = table.and_then(|table| stored_len.checked_sub(table));
        start.map(|start| start..stored_len).ok_or_else(|| {
            damage("table of frames", format!("{stored_len} bytes hold no {raw_len} raw ones"))
        })
    }

    /// Reads the table that lies where [`table_of`](Self::table_of) says.
    ///
    /// # Errors
    /// `Damage` when it does not read, or is of bytes of other lengths.
    pub fn read(table: &[u8], stored_len: u64, raw_len: u64) -> Result<Self> {
        let range = Self::table_of(stored_len, raw_len)?;
        let (Some((lens, end)), true) =
            (table.split_last_chunk::<END_BYTES>(), table.len() as u64 == range.end - range.start)
        else {
            return Err(damage("table of frames", format!("{} bytes are another", table.len())));
        };
        agree(
            "table of frames",
            checksum(&table[..lens.len() + END_CRC.start]),
            u32_at(end, END_CRC),
        )?;
        let (said, frames) = (u64_at(end, END_RAW_LEN), u64::from(u32_at(end, END_FRAMES)));
        if said != raw_len || frames * ENTRY_BYTES != lens.len() as u64 {
            let cause = format!("it is of {frames} frames of {said} bytes, not of {raw_len}");
            return Err(damage("table of frames", cause));
        }
        let (lens, _) = lens.as_chunks::<{ ENTRY_BYTES as usize }>();
        let mut end = 0u64;
        let ends: Vec<u64> = lens
            .iter()
            .map(|len| {
                end = end.saturating_add(u64::from(u32::from_le_bytes(*len)));
                end
            })
            .collect();
        if end != range.start {
            let cause = format!("its frames take {end} bytes, {} lie before it", range.start);
            return Err(damage("table of frames", cause));
        }
        Ok(Self { raw_len, ends })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The frames that hold the raw bytes `range`; none for an empty one.
    pub fn over(&self, range: &Range<u64>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let frame = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.count());
        frame(range.start / FRAME_BYTES)..frame(range.end.div_ceil(FRAME_BYTES))
    }

    /// The stored bytes that frame number `frame` takes.
    pub fn stored(&self, frame: usize) -> Range<u64> {
        let start = frame.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(frame).copied().unwrap_or_default();
        start.unwrap_or_default()..end
    }

    /// The raw bytes that frame number `frame` holds.
    pub fn raw(&self, frame: usize) -> Range<u64> {
        let start = (frame as u64).saturating_mul(FRAME_BYTES).min(self.raw_len);
        start..start.saturating_add(FRAME_BYTES).min(self.raw_len)
    }

    /// The raw bytes of frame number `frame`, from its stored ones.
    ///
    /// # Errors
    /// `Damage` when they are no frame of that many bytes.
    pub fn decode(&self, frame: usize, stored: &[u8]) -> Result<Vec<u8>> {
        let Range { start, end } = self.raw(frame);
        let cause = || format!("it gives no {} bytes from byte {start} on", end - start);
        let raw = zstd::bulk::decompress(stored, (end - start) as usize)
            .map_err(|e| damage("frame", cause()).with_source(e))?;
        match raw.len() as u64 == end - start {
            true => Ok(raw),
            false => Err(damage("frame", cause())),
        }
    }
}

/// The raw bytes `range` of an object of `stored_len` stored and `raw_len` raw bytes. `read` gives its stored
/// bytes; it is asked for the table and for the frames that hold the range, one by one.
///
/// # Errors
/// `Invalid` for a range beyond its end; `Damage`; those of `read`.
pub fn read_range(
    stored_len: u64,
    raw_len: u64,
    range: &Range<u64>,
    read: &mut dyn FnMut(Range<u64>) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    if range.start > range.end || range.end > raw_len {
        let cause = format!("bytes {range:?} of {raw_len} were asked for");
        return Err(Error::invalid("read", "an object", cause));
    }
    let table = read(Frames::table_of(stored_len, raw_len)?)?;
    let frames = Frames::read(&table, stored_len, raw_len)?;
    let mut bytes = Vec::new();
    for frame in frames.over(range) {
        let stored = read(frames.stored(frame))?;
        let raw = frames.decode(frame, &stored)?;
        let at = frames.raw(frame).start;
        let from = range.start.saturating_sub(at).min(raw.len() as u64) as usize;
        let to = range.end.saturating_sub(at).min(raw.len() as u64) as usize;
        if bytes.is_empty() && (from, to) == (0, raw.len()) {
            bytes = raw;
        } else {
            bytes.extend_from_slice(raw.get(from..to).unwrap_or_default());
        }
    }
    Ok(bytes)
}

/// All raw bytes of `stored`, which are `raw_len`.
///
/// # Errors
/// `Damage` when they are not.
pub fn decode_all(stored: &[u8], raw_len: u64) -> Result<Vec<u8>> {
    read_range(stored.len() as u64, raw_len, &(0..raw_len), &mut |range| {
        let bytes = stored.get(range.start as usize..range.end as usize).map(<[u8]>::to_vec);
        bytes.ok_or_else(|| damage("frame", format!("bytes {range:?} of it are not there")))
    })
}
