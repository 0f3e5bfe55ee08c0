//! A recording written step by step through the engine, so that a test decides what is written,
//! synced, sealed, moved back and killed, and when; and what a follower of it saw.

use std::path::Path;
use std::sync::Arc;

use sealstone::engine::{Append, ChunkBuild, Options, Store};
use sealstone::format::column::{ChunkBuilder, row_payload};
use sealstone::ids::{Sequence, StreamId};
use sealstone::journal::Ticket;
use sealstone::manifest::Cursor;
use sealstone::recording::{Field, FieldType, Followed, Schema, Value};

pub const NAME: &str = "run";
pub const STREAMS: [&str; 2] = ["fine", "coarse"];

pub fn schema() -> Schema {
    Schema::new(vec![Field::new("x", FieldType::F64)]).unwrap()
}

/// The writer's side, with what the recording should hold.
#[derive(Debug)]
pub struct Run {
    pub store: Store,
    pub streams: Vec<StreamId>,
    /// Iteration and value of each record of each stream.
    pub model: Vec<Vec<(i64, f64)>>,
    /// How many of them are sealed.
    pub sealed: Vec<u64>,
    /// Raised by each rewind, and part of each value: no record of one history is like another's.
    pub history: u32,
}

impl Run {
    pub fn create(options: &Options, root: &Path) -> Self {
        let store = options.clone().create(root).unwrap();
        let mut draft = store.record(NAME, &schema());
        for name in STREAMS {
            draft = draft.stream(name, ["x"]);
        }
        drop(draft.start().unwrap());
        Self::of(store, vec![Vec::new(); STREAMS.len()], vec![0; STREAMS.len()], 0)
    }

    fn of(store: Store, model: Vec<Vec<(i64, f64)>>, sealed: Vec<u64>, history: u32) -> Self {
        let recording = store.recording(NAME).unwrap();
        let streams = STREAMS.map(|name| recording.stream(name).unwrap().id()).to_vec();
        Self { store, streams, model, sealed, history }
    }

    /// Goes on in another opening of the store.
    pub fn on(self, store: Store) -> Self {
        let Self { model, sealed, history, .. } = self;
        Self::of(store, model, sealed, history)
    }

    fn payload(&self, iteration: i64) -> (f64, Vec<u8>) {
        let value = f64::from(self.history) + iteration as f64 * 1e-6;
        (value, row_payload::encode(&schema(), iteration, None, &[Value::F64(value)]))
    }

    /// One observation of the streams in `which`.
    pub fn put(&mut self, which: &[usize]) -> Ticket {
        let last = self.model.iter().filter_map(|stream| stream.last()).map(|last| last.0).max();
        let iteration = last.map_or(0, |last| last + 1);
        let (value, payload) = self.payload(iteration);
        let streams = which.iter().map(|at| self.streams[*at]);
        let group = streams.map(|stream| Append { stream, payload: payload.clone() }).collect();
        which.iter().for_each(|at| self.model[*at].push((iteration, value)));
        self.store.append(group).unwrap().ticket
    }

    /// Seals the next `records` records of a stream.
    pub fn seal(&mut self, at: usize, records: u64) {
        let first = self.sealed[at];
        let mut builder = ChunkBuilder::new(schema());
        for (iteration, value) in &self.model[at][first as usize..][..records as usize] {
            builder.push(*iteration, None, &[Value::F64(*value)]).unwrap();
        }
        let chunk = builder.finish().unwrap();
        let build = ChunkBuild {
            stream: self.streams[at],
            first: Sequence(first),
            records,
            content: chunk.content,
            about: b"test".to_vec(),
            raw_len: chunk.raw_len,
            iterations: Some(chunk.iterations),
            times: None,
            payloads: Vec::new(),
        };
        self.store.publish_chunks(vec![build]).unwrap();
        self.sealed[at] += records;
    }

    pub fn unsealed(&self, at: usize) -> u64 {
        self.model[at].len() as u64 - self.sealed[at]
    }

    /// Moves every stream back to before the first record of `iteration`.
    pub fn rewind(&mut self, iteration: i64) {
        let mut cursors = Vec::new();
        for (at, records) in self.model.iter_mut().enumerate() {
            records.retain(|(i, _)| *i < iteration);
            let end = records.len() as u64;
            self.sealed[at] = self.sealed[at].min(end);
            let stream = self.streams[at];
            let generation = self.store.view(stream).unwrap().row.generation;
            cursors.push(Cursor { stream, generation, end: Sequence(end) });
        }
        self.store.rewind(&cursors).unwrap();
        self.history += 1;
    }
}

/// The follower's side: what it was told, checked as it comes.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    pub records: [Vec<(i64, f64)>; STREAMS.len()],
    pub sealed: [u64; STREAMS.len()],
    pub rewound: usize,
    pub ended: usize,
    pub events: Vec<String>,
}

impl Seen {
    /// Takes in what a follower was told; fails when a record came twice, or not in its turn.
    pub fn take(&mut self, told: &Followed) -> Result<(), String> {
        let place = |name: &Arc<str>| STREAMS.iter().position(|known| **known == **name).unwrap();
        if self.ended > 0 {
            return Err(format!("{told:?} behind the end"));
        }
        match told {
            Followed::Appended { stream, record } => {
                let records = &mut self.records[place(stream)];
                if record.sequence() != records.len() as u64 {
                    let at = records.len();
                    return Err(format!("{stream}: record {} at {at}", record.sequence()));
                }
                let Some(Value::F64(value)) = record.value("x") else {
                    return Err(format!("{stream}: {record:?}"));
                };
                records.push((record.iteration(), value));
            }
            Followed::Rewound { stream, to } => {
                let at = place(stream);
                if *to >= self.records[at].len() as u64 {
                    return Err(format!("{stream}: moved back to {to}, which takes nothing back"));
                }
                self.records[at].truncate(*to as usize);
                self.sealed[at] = self.sealed[at].min(*to);
                self.rewound += 1;
            }
            Followed::Sealed { stream, upto } => {
                let at = place(stream);
                let told = self.records[at].len() as u64;
                if *upto <= self.sealed[at] || *upto > told {
                    return Err(format!("{stream}: sealed up to {upto} of {told}"));
                }
                self.sealed[at] = *upto;
            }
            Followed::Event(event) => self.events.push(event.kind().to_owned()),
            Followed::Ended(_) => self.ended += 1,
            other => return Err(format!("{other:?}")),
        }
        Ok(())
    }
}
