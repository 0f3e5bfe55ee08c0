//! Reading on in a journal file that somebody may still be writing: from where the last look ended,
//! the frames that are whole by now, and no byte more than a probe behind them.
//!
//! ```text
//!   header | frame | frame | frame | half a frame
//!                          ^ next time from here: an incomplete frame means *not yet*
//! ```
//! What is damage and what a tear is not decided here. Whoever follows knows the file's row, and asks
//! again where it says that more must be there.

use std::ops::ControlFlow;
use std::path::Path;

use super::reader::Reader;
use super::scan::{Expect, FrameAt};
use crate::error::{Error, Result};
use crate::format::frame::{FRAME_HEADER_BYTES, FrameKind, HEADER_BYTES};
use crate::format::record::{Record, decode_body};
use crate::vfs::Disk;

/// How far a journal file has been read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadOn {
    /// Where the next frame begins; 0 before the first look.
    pub(crate) offset: u64,
    /// All below this is known to be durable.
    pub(crate) synced_up_to: u64,
}

/// Why a look ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It was told to.
    Told,
    /// At the end that the file's row states.
    AtEnd,
    /// No whole frame stands there yet.
    NotYet,
    /// No whole frame stands there although the file's row says that it does.
    Unreadable,
}

/// What is called for each frame.
pub(crate) type OnNewFrame<'a> = &'a mut dyn FnMut(FrameAt, Vec<Record>) -> Result<ControlFlow<()>>;

impl ReadOn {
    /// Hands the frames that are whole and were not handed out before to `on_frame`, in order.
    ///
    /// # Errors
    /// `NotFound` when there is no file; `Foreign`; `NewerFormat`; `Io`; `Damage` for bytes that no
    /// accident makes of a frame; what `on_frame` returns.
    pub(crate) fn read_on(
        &mut self,
        disk: &dyn Disk,
        path: &Path,
        expect: &Expect,
        on_frame: OnNewFrame<'_>,
    ) -> Result<Stopped> {
        self.synced_up_to = self.synced_up_to.max(expect.end.unwrap_or(0));
        // A fenced owner may have gone on behind the end that its journal was adopted with.
        if expect.end.is_some_and(|end| end <= self.offset) {
            return Ok(Stopped::AtEnd);
        }
        let mut reader = Reader::open_again(disk, path, expect)?;
        if self.offset == 0 {
            // Its row stands, so its header was durable before.
            let Ok(header) = reader.header()? else { return Ok(Stopped::Unreadable) };
            debug_assert!(expect.salt.is_none_or(|salt| salt == header.salt));
            self.offset = HEADER_BYTES as u64;
        }
        let salt = expect.salt.unwrap_or_default();
        while expect.end != Some(self.offset) {
            let offset = self.offset;
            let missing = match expect.end {
                Some(_) => Stopped::Unreadable,
                None => Stopped::NotYet,
            };
            let Some(frame) = reader.frame(&salt, offset)? else { return Ok(missing) };
            self.synced_up_to = self.synced_up_to.max(frame.synced_up_to);
            match frame.kind {
                FrameKind::Records => {}
                // The next frame takes its place.
                FrameKind::Synced => return Ok(missing),
                FrameKind::Unknown(kind) => {
                    let cause = format!("frame kind {kind} at {offset} is not known to this build");
                    let kind = crate::error::ErrorKind::NewerFormat;
                    return Err(Error::new(kind, "follow", path.display(), cause));
                }
            }
            let end = offset + frame.padded_len() as u64;
            if expect.end.is_some_and(|last| end > last) {
                return Ok(Stopped::Unreadable);
            }
            let body = reader.at(offset + FRAME_HEADER_BYTES as u64, frame.body_len())?;
            let records = decode_body(body).map_err(|e| {
                let cause = format!("the frame at {offset} is whole and no group of records");
                Error::damage("follow", path.display(), cause).with_source(e)
            })?;
            self.offset = end;
            let at = FrameAt { offset, end, synced_up_to: frame.synced_up_to };
            if on_frame(at, records)?.is_break() {
                return Ok(Stopped::Told);
            }
        }
        Ok(Stopped::AtEnd)
    }
}
