//! Read back: what was sealed is read from its place before any row names it.
//!
//! P6: each byte passed the checksum of its block. Of a content that was stored already its object is
//! read.

use std::ops::Range;

use super::fetch::{FileCache, fetch_range};
use super::seal::{Part, SealedSet};
use crate::error::{Error, Result};
use crate::format::framed;
use crate::sealed::{Expect, Reader};

impl SealedSet {
    /// The length of each content.
    pub(crate) fn lens(&self) -> &[u64] {
        &self.lens
    }

    /// Bytes `range` of content number `index`, as the disk gives them back.
    ///
    /// # Errors
    /// `Damage` where they do not read; `Invalid` for a range beyond its end.
    pub(crate) fn read_back(&self, index: usize, range: Range<u64>) -> Result<Vec<u8>> {
        let (Some(part), Some(len)) = (self.parts.get(index), self.lens.get(index)) else {
            return Err(Error::invalid("read", format!("content {index}"), "there are fewer"));
        };
        if range.start > range.end || range.end > *len {
            let cause = format!("bytes {}..{} of {len} were asked for", range.start, range.end);
            return Err(Error::invalid("read", format!("content {index}"), cause));
        }
        match part {
            Part::Same(earlier) => self.read_back(*earlier, range),
            Part::Known { object, .. } => {
                fetch_range(&self.core, &FileCache::default(), *object, range)
            }
            Part::Inline => {
                let bytes = self.contents.get(index).map(|content| content.bytes.as_slice());
                let held = bytes.and_then(|b| b.get(range.start as usize..range.end as usize));
                Ok(held.unwrap_or_default().to_vec())
            }
            Part::Extent { file, offset, stored_len, codec } => {
                let reader = self.reader_of(*file)?;
                let mut read = |range| reader.read_range(*offset, *stored_len, range);
                match *codec {
                    framed::CODEC => framed::read_range(*stored_len, *len, &range, &mut read),
                    _ => read(range),
                }
            }
        }
    }

    /// The file number `file`, opened once.
    fn reader_of(&self, file: usize) -> Result<std::sync::Arc<Reader>> {
        if let Some(open) = self.readers.lock().get(&file) {
            return Ok(open.clone());
        }
        let (Some(path), Some(built)) = (self.path_of(file), self.files.get(file)) else {
            return Err(Error::invalid("read", format!("file {file}"), "there are fewer"));
        };
        let store = Some(self.core.manifest.meta().store);
        let expect = Expect { len: Some(built.len), digest: Some(built.digest), store };
        let reader = std::sync::Arc::new(Reader::open(&self.core.disk, &path, &expect)?);
        self.readers.lock().insert(file, reader.clone());
        Ok(reader)
    }
}
