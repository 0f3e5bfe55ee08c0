//! The model: what was acknowledged, in memory, without any of the store's own ideas.
//!
//! A stream is a list of records. Records that are not durable yet lie in frames, in the order in
//! which they were accepted; a crash keeps a first part of those frames, each whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::content::{Content, SavedState};
use crate::ids::Epoch;
use crate::manifest::CountersRow;

/// The bytes of one record or object.
pub type Bytes = Arc<[u8]>;

/// A stream of the model.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// Every record accepted.
    pub records: Vec<Bytes>,
    /// So many of them are in chunks.
    pub sealed: usize,
    /// So many of them are durable.
    pub durable: usize,
}

/// One atomic group: (stream, position of the record).
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// What is in it.
    pub items: Vec<(u64, usize)>,
    /// Whether it was acknowledged as *Written*.
    pub written: bool,
}

/// What a store may be asked to show.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Whether the store was acknowledged as created.
    pub exists: bool,
    /// Streams by number.
    pub streams: BTreeMap<u64, Stream>,
    /// Frames that are not acknowledged as durable, in order.
    pub pending: Vec<Frame>,
    /// Leases by number: the objects under each, in order.
    pub leases: BTreeMap<u64, Vec<Bytes>>,
    /// Checkpoints by scope and number.
    pub checkpoints: BTreeMap<(u64, u64), SavedState>,
    /// Values of names, newest first, with their generations.
    pub names: BTreeMap<String, Vec<(u64, Bytes)>>,
    /// The highest generation that each name ever had.
    pub generations: BTreeMap<String, u64>,
    /// Resources claimed by the opening that lives.
    pub claims: BTreeSet<Vec<u8>>,
    /// The highest epoch shown.
    pub epoch: Epoch,
    /// The counters as they were last seen.
    pub counters: CountersRow,
    /// What the backup shows that was acknowledged last.
    pub backup: Option<Arc<Model>>,
    /// The commit that the newest snapshot of the rows covers; 0 for none.
    pub covered: u64,
    /// The payload of every lease the journal holds is not modelled; their number at most is.
    pub large: u64,
}

/// How sure a surviving record has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// What was acknowledged as *Durable*.
    OfPower,
    /// What was acknowledged as *Written*.
    OfKill,
}

impl Model {
    /// Everything accepted is durable.
    pub fn settle_all(&mut self) {
        self.pending.clear();
        for stream in self.streams.values_mut() {
            stream.durable = stream.records.len();
        }
    }

    /// The first `count` pending frames are durable.
    pub fn settle_frames(&mut self, count: usize) {
        for frame in self.pending.drain(..count) {
            for (stream, at) in frame.items {
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.durable = stream.durable.max(at + 1);
                }
            }
        }
    }

    /// Chunks cover the first `upto` records of each named stream. Groups of which a part is covered
    /// are durable first, with all that came before them.
    pub fn seal(&mut self, upto: &BTreeMap<u64, usize>) {
        self.settle_mixed(upto);
        for (id, upto) in upto {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.sealed = *upto;
                stream.durable = stream.durable.max(*upto);
            }
        }
        self.drop_settled();
    }

    /// Groups of which a part lies below `upto` are durable, with all that came before them.
    pub fn settle_mixed(&mut self, upto: &BTreeMap<u64, usize>) {
        let covered = |(stream, at): &(u64, usize)| upto.get(stream).is_some_and(|upto| at < upto);
        let mixed = self.pending.iter().rposition(|frame| {
            let count = frame.items.iter().filter(|item| covered(item)).count();
            count > 0 && count < frame.items.len()
        });
        if let Some(mixed) = mixed {
            self.settle_frames(mixed + 1);
        }
    }

    fn drop_settled(&mut self) {
        let streams = &self.streams;
        for frame in &mut self.pending {
            frame.items.retain(|(stream, at)| {
                streams.get(stream).is_some_and(|stream| *at >= stream.sealed)
            });
        }
    }

    /// Moves the end of a stream back.
    pub fn rewind(&mut self, id: u64, end: usize) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.records.truncate(end);
            stream.sealed = stream.sealed.min(end);
            stream.durable = stream.durable.min(end);
        }
        for frame in &mut self.pending {
            frame.items.retain(|(stream, at)| *stream != id || *at < end);
        }
    }

    /// Retires a stream.
    pub fn retire(&mut self, id: u64) {
        self.streams.remove(&id);
        for frame in &mut self.pending {
            frame.items.retain(|(stream, _)| *stream != id);
        }
    }

    /// Takes over what a recovery showed: it is durable, and the rest is gone.
    pub fn adopt(&mut self, content: &Content) {
        self.pending.clear();
        for (id, stream) in &mut self.streams {
            if let Some((_, records)) = content.streams.get(id) {
                stream.records.truncate(records.len());
                stream.durable = records.len();
            }
        }
        self.claims.clear();
    }

    /// The lengths of all streams when the first `kept` pending frames survive.
    fn lengths(&self, kept: usize) -> BTreeMap<u64, usize> {
        let mut lengths: BTreeMap<u64, usize> =
            self.streams.iter().map(|(id, s)| (*id, s.durable.max(s.sealed))).collect();
        for (stream, at) in self.pending[..kept].iter().flat_map(|frame| &frame.items) {
            if let Some(len) = lengths.get_mut(stream) {
                *len = (*len).max(at + 1);
            }
        }
        lengths
    }

    /// Whether `content` is what this model allows: the number of pending frames lost, or why not.
    ///
    /// # Errors
    /// In words, what differs.
    pub fn explains(&self, content: &Content, survivors: Survivors) -> Result<usize, String> {
        if content.leases != self.leases {
            return Err(format!(
                "leases {} are there, {} are expected",
                told(&content.leases),
                told(&self.leases)
            ));
        }
        if content.checkpoints != self.checkpoints {
            let (seen, expected) = (content.checkpoints.keys(), self.checkpoints.keys());
            return Err(format!(
                "checkpoints {:?} are there, {:?} are expected, or one differs",
                seen.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>()
            ));
        }
        if content.names != self.names {
            return Err(format!(
                "names {} are there, {} are expected",
                values_of(&content.names),
                values_of(&self.names)
            ));
        }
        let (seen, expected) = (content.streams.keys(), self.streams.keys());
        if !seen.clone().eq(expected.clone()) {
            return Err(format!(
                "streams {:?} are there, {:?} are expected",
                seen.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>()
            ));
        }
        for (id, (name, records)) in &content.streams {
            let stream = &self.streams[id];
            if *name != stream.name {
                return Err(format!("stream {id} is called {name:?}, not {:?}", stream.name));
            }
            if !stream.records.starts_with(records) {
                let at = records.iter().zip(&stream.records).take_while(|(a, b)| a == b).count();
                return Err(format!(
                    "stream {id} differs from record {at} on: {} are there, {} are expected",
                    records.len(),
                    stream.records.len()
                ));
            }
        }
        self.lost_frames(content, survivors)
    }

    fn lost_frames(&self, content: &Content, survivors: Survivors) -> Result<usize, String> {
        let lengths: BTreeMap<u64, usize> =
            content.streams.iter().map(|(id, (_, records))| (*id, records.len())).collect();
        let least = match survivors {
            Survivors::OfPower => 0,
            Survivors::OfKill => {
                self.pending.iter().rposition(|f| f.written).map_or(0, |at| at + 1)
            }
        };
        let kept = (least..=self.pending.len()).rev().find(|kept| self.lengths(*kept) == lengths);
        kept.map(|kept| self.pending.len() - kept).ok_or_else(|| {
            format!(
                "the streams have {lengths:?} records, between {:?} and {:?} are expected, groups \
                 whole and in order",
                self.lengths(least),
                self.lengths(self.pending.len())
            )
        })
    }
}

fn told(leases: &BTreeMap<u64, Vec<Bytes>>) -> String {
    let one = |(id, objects): (&u64, &Vec<Bytes>)| {
        format!("{id}:{:?}", objects.iter().map(|bytes| bytes.len()).collect::<Vec<_>>())
    };
    format!("[{}]", leases.iter().map(one).collect::<Vec<_>>().join(" "))
}

fn values_of(names: &BTreeMap<String, Vec<(u64, Bytes)>>) -> String {
    let one = |(name, values): (&String, &Vec<(u64, Bytes)>)| {
        format!("{name}:{:?}", values.iter().map(|(at, b)| (at, b.len())).collect::<Vec<_>>())
    };
    format!("[{}]", names.iter().map(one).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(byte: u8) -> Bytes {
        Arc::from([byte])
    }

    /// Is a group half there refused, and a lost last one allowed after a power cut only?
    #[test]
    fn groups_are_whole_and_in_order() {
        let mut model = Model::default();
        for id in [1, 2] {
            let records = vec![bytes(1), bytes(2)];
            model.streams.insert(id, Stream { records, ..Stream::default() });
        }
        let group = |at| Frame { items: vec![(1, at), (2, at)], written: true };
        model.pending = vec![group(0), group(1)];
        let shown = |one: usize, two: usize| {
            let records = |n| (String::new(), (1..=n as u8).map(bytes).collect::<Vec<_>>());
            let streams = BTreeMap::from([(1, records(one)), (2, records(two))]);
            Content { streams, ..Content::default() }
        };
        assert_eq!(model.explains(&shown(2, 2), Survivors::OfPower), Ok(0));
        assert_eq!(model.explains(&shown(1, 1), Survivors::OfPower), Ok(1));
        assert!(model.explains(&shown(2, 1), Survivors::OfPower).is_err());
        assert!(model.explains(&shown(1, 1), Survivors::OfKill).is_err());
        model.seal(&BTreeMap::from([(1, 1)]));
        assert!(model.explains(&shown(0, 0), Survivors::OfPower).is_err());
        assert_eq!(model.explains(&shown(1, 1), Survivors::OfPower), Ok(1));
    }
}
