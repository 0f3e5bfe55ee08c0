//! What was sealed before a recording was resumed. Resuming does not read it; before the recording is
//! *complete* it is looked at, so that damage is told while the run that could be done again is at hand.
//!
//! Looked at are, for each chunk: that its row follows the one before; that the object and the file that
//! it names are there, the file with its length and the name of its content; that the chunk's footer
//! reads, with schema and count as the rows say. The blocks of values are read only when asked for.

use super::chunks::CHUNKS_HELD_MAX;
use super::stream::Stream;
use crate::engine::Store;
use crate::error::{Error, Result};
use crate::ids::{Sequence, StreamId};

/// The history of a resumed recording; of one that was not, nothing.
#[derive(Debug, Clone, Default)]
pub(in crate::recording) struct History {
    /// Each stream, and up to which record it was sealed.
    sealed: Vec<(StreamId, Sequence)>,
    reads_all: bool,
}

impl History {
    /// Of streams that were `sealed` up to these records; `reads_all` looks at values as well.
    pub fn of(sealed: Vec<(StreamId, Sequence)>, reads_all: bool) -> Self {
        Self { sealed, reads_all }
    }

    /// Looks at all of it.
    ///
    /// # Errors
    /// `Damage`, with stream, chunk and file.
    pub fn check(&self, store: &Store, name: &str) -> Result<()> {
        for (id, upto) in self.sealed.iter().filter(|(_, upto)| upto.0 > 0) {
            self.check_stream(store, *id, *upto).map_err(|e| {
                let cause = "what was sealed before it was resumed does not read; it stays running, \
                             and can be failed, or resumed from before that";
                Error::new(e.kind(), "complete", format!("{name:?}"), cause).with_source(e)
            })?;
        }
        Ok(())
    }

    fn check_stream(&self, store: &Store, id: StreamId, upto: Sequence) -> Result<()> {
        let mut views = store.views_within(&[id], CHUNKS_HELD_MAX)?;
        let Some(view) = views.pop() else { return Ok(()) };
        let stream = Stream::of_view(store, view)?;
        for at in 0..stream.chunks.len() {
            let row = stream.chunks.get(at)?;
            if row.first >= upto {
                break;
            }
            stream.open_chunk(at)?;
            if self.reads_all {
                store.fetch(row.object)?;
            }
        }
        Ok(())
    }
}
