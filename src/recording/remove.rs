//! Removing a recording: its rows and its streams' go in one transaction.

use crate::engine::{Retired, Store, Thing};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Ordinal;
use crate::manifest::{ChunkRow, Reading, RecordingNameRow, RecordingRow, StreamRow};
use crate::vfs::Step;

impl Store {
    /// Retires the recording called `name` with everything in it; `why` goes into the receipt.
    ///
    /// # Errors
    /// `NotFound`; any error leaves every table as it was.
    ///
    /// # Durability
    /// *Durable* when it returns; bytes are given back by [`Store::reclaim`].
    pub fn retire_recording(&self, name: &str, why: &str) -> Result<Retired> {
        remove(self, name, why)
    }
}

pub(super) fn remove(store: &Store, name: &str, why: &str) -> Result<Retired> {
    let key = name.to_owned();
    // P4: rows, chunks and edges of the whole recording go in one transaction.
    let committed = store.transact(Step::RetireCommit, |w| {
        let Some(RecordingNameRow { recording }) = w.remove(&key)? else {
            let cause = "there is no recording of this name";
            return Err(Error::new(ErrorKind::NotFound, "retire", format!("{name:?}"), cause));
        };
        let streams = w.remove::<RecordingRow>(&recording)?.map_or(Vec::new(), |row| row.streams);
        for stream in &streams {
            let range = (*stream, Ordinal(0))..=(*stream, Ordinal(u64::MAX));
            while let Some((key, _)) = w.last::<ChunkRow>(range.clone())? {
                w.remove::<ChunkRow>(&key)?;
            }
            w.remove::<StreamRow>(stream)?;
        }
        Ok(streams)
    })?;
    let settled = committed.settled;
    let things: Vec<Thing> = committed.value.into_iter().map(Thing::Stream).collect();
    // The rows are gone; this forgets what memory and journals still hold of the streams.
    store.retire(&things, why)?;
    let things = things.len() as u64 + 1;
    Ok(Retired { things, unknown: Vec::new(), objects: settled.objects, bytes: settled.bytes })
}
