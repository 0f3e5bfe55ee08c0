//! What two owners were told: of each stream the records accepted, and how many of them must be
//! there.

use std::collections::BTreeMap;

use crate::campaign::content::Content;
use crate::campaign::model::{Bytes, Survivors};

/// A stream as its holders know it.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    /// Every record accepted, or on its way.
    pub(super) records: Vec<Bytes>,
    /// So many survive a killed process.
    pub(super) written: usize,
    /// So many survive a power cut.
    pub(super) durable: usize,
    /// So many are in chunks.
    pub(super) sealed: usize,
    /// Who holds its claim, and lives.
    pub(super) holder: Option<usize>,
}

/// What the store may show.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) streams: BTreeMap<u64, Stream>,
    /// Objects under leases; `true` while a lease may be gone.
    pub(super) leases: BTreeMap<u64, (Vec<Bytes>, bool)>,
}

impl Model {
    /// Whether `content` is what was told.
    pub(super) fn explains(&self, content: &Content, survivors: Survivors) -> Result<(), String> {
        for (id, stream) in &self.streams {
            let Some((_, found)) = content.streams.get(id) else {
                return Err(format!("stream {id} is gone"));
            };
            self.explains_stream(*id, stream, found, survivors)?;
        }
        for (id, (objects, may_be_gone)) in &self.leases {
            match content.leases.get(id) {
                Some(found) if found == objects => {}
                None if *may_be_gone => {}
                found => return Err(format!("lease {id} keeps {found:?}, not {objects:?}")),
            }
        }
        Ok(())
    }

    fn explains_stream(
        &self,
        id: u64,
        stream: &Stream,
        found: &[Bytes],
        survivors: Survivors,
    ) -> Result<(), String> {
        let least = match survivors {
            Survivors::OfPower => stream.durable,
            Survivors::OfKill => stream.durable.max(stream.written),
        };
        if !stream.records.starts_with(found) {
            let at = found.iter().zip(&stream.records).take_while(|(a, b)| a == b).count();
            return Err(format!("stream {id} differs from record {at} on"));
        }
        if found.len() < least {
            let seen = found.len();
            return Err(format!("stream {id} has {seen} records, {least} were acknowledged"));
        }
        Ok(())
    }

    /// `who` claimed a stream and found it `found` records long.
    pub(super) fn claimed(&mut self, id: u64, who: usize, found: &[Bytes]) -> Result<(), String> {
        let Some(stream) = self.streams.get(&id).cloned() else { return Ok(()) };
        self.explains_stream(id, &stream, found, Survivors::OfKill)?;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.records.truncate(found.len());
            (stream.written, stream.durable) = (found.len(), found.len());
            stream.holder = Some(who);
        }
        Ok(())
    }

    /// All that `who` accepted is durable.
    pub(super) fn settle(&mut self, who: usize) {
        for stream in self.streams.values_mut().filter(|stream| stream.holder == Some(who)) {
            (stream.written, stream.durable) = (stream.records.len(), stream.records.len());
        }
    }

    /// `who` holds nothing any more.
    pub(super) fn ended(&mut self, who: usize) {
        for stream in self.streams.values_mut().filter(|stream| stream.holder == Some(who)) {
            stream.holder = None;
        }
    }
}
