//! sealstone as a record store, beside the peers: through a recording, or chunks that the engine holds
//! without knowing what is in them (`sealstone-chunks`). A record's number is its iteration.

use std::ops::Range;
use std::path::{Path, PathBuf};

use sealstone::Store;
use sealstone::engine::{Sealer, StreamView};
use sealstone::ids::StreamId;
use sealstone::recording::{Bulk, Field, FieldType, Schema, Stream, Value};

use super::bulk::chunk;
use super::ours::Ours;
use crate::Outcome;
use crate::payload::Source;
use crate::peers::{self, Each, Peer, Setup};

const CHUNK_BYTES: u64 = 8 << 20;
const NAME: &str = "r";
const FIELD: &str = "v";

/// Opens whatever `arm` names: ours, or a peer.
pub fn open(arm: &str, dir: &Path, setup: &Setup) -> Outcome<Box<dyn Peer>> {
    Ok(match arm {
        "sealstone" => Box::new(Recorded::open(dir, false)?),
        "sealstone-each" => Box::new(Recorded::open(dir, true)?),
        "sealstone-chunks" => Box::new(Chunked::open(dir, setup.record_bytes)?),
        _ => peers::open(arm, dir, setup)?,
    })
}

/// A recording of one stream with one field.
pub struct Recorded {
    dir: PathBuf,
    state: State<Bulk, Stream>,
    /// Whether each append waits until it is durable.
    waits: bool,
    syncs: f64,
}

enum State<W, R> {
    Writing(Ours, W),
    Reading(Store, R),
    Nothing,
}

impl Recorded {
    pub fn open(dir: &Path, waits: bool) -> Outcome<Self> {
        let state = if dir.join("run.stone").exists() { read(dir)? } else { write(dir)? };
        Ok(Self { dir: dir.to_owned(), state, waits, syncs: 0.0 })
    }

    fn stream(&self) -> Outcome<&Stream> {
        match &self.state {
            State::Reading(_, stream) => Ok(stream),
            _ => Err("it is being written".into()),
        }
    }
}

fn write(dir: &Path) -> Outcome<State<Bulk, Stream>> {
    let mut ours = Ours::create(dir)?;
    let schema = Schema::new(vec![Field::new(FIELD, FieldType::Bytes)])?;
    let recording = ours.store.record(NAME, &schema).stream(NAME, [FIELD]);
    let bulk = recording.chunk_bytes(CHUNK_BYTES).start_bulk()?;
    ours.begin();
    Ok(State::Writing(ours, bulk))
}

fn read(dir: &Path) -> Outcome<State<Bulk, Stream>> {
    let store = Store::open(dir.join("run.stone"))?;
    let stream = store.recording(NAME)?.stream(NAME)?;
    Ok(State::Reading(store, stream))
}

impl Peer for Recorded {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        let State::Writing(ours, bulk) = &mut self.state else { return Err("it is over".into()) };
        for number in numbers {
            bulk.push(0, number as i64, &[Value::Bytes(source.record(number))])?;
        }
        if self.waits {
            bulk.flush()?;
        }
        self.syncs = ours.syncs();
        Ok(())
    }

    fn finish(&mut self) -> Outcome<()> {
        if let State::Writing(ours, bulk) = std::mem::replace(&mut self.state, State::Nothing) {
            bulk.complete(&[])?;
            self.syncs = ours.syncs();
            ours.store.close()?;
            self.state = read(&self.dir)?;
        }
        Ok(())
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let number = number as i64;
        let field = self.stream()?.field(FIELD)?.iterations(number..number + 1);
        let mut found = field.to_vec::<Vec<u8>>()?;
        Ok(found.pop().ok_or_else(|| format!("record {number} is missing"))?)
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        let iterations = numbers.start as i64..numbers.end as i64;
        let mut number = numbers.start;
        for column in self.stream()?.field(FIELD)?.iterations(iterations).columns()? {
            for value in column?.iter() {
                let Value::Bytes(record) = value else { return Err("no bytes".into()) };
                each(number, record)?;
                number += 1;
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.stream()?.record_count())
    }

    fn syncs(&self) -> Option<u64> {
        Some(self.syncs as u64)
    }
}

/// A stream whose chunks are records of one length, one behind the other.
pub struct Chunked {
    dir: PathBuf,
    state: State<(StreamId, Sealer), StreamView>,
    record_bytes: u64,
    syncs: f64,
}

impl Chunked {
    pub fn open(dir: &Path, record_bytes: u64) -> Outcome<Self> {
        let state = if dir.join("run.stone").exists() {
            view(dir)?
        } else {
            let mut ours = Ours::create(dir)?;
            let stream = ours.store.create_stream(NAME)?;
            let sealer = ours.store.sealer()?;
            ours.begin();
            State::Writing(ours, (stream, sealer))
        };
        Ok(Self { dir: dir.to_owned(), state, record_bytes, syncs: 0.0 })
    }

    fn reading(&self) -> Outcome<(&Store, &StreamView)> {
        match &self.state {
            State::Reading(store, view) => Ok((store, view)),
            _ => Err("it is being written".into()),
        }
    }
}

fn view(dir: &Path) -> Outcome<State<(StreamId, Sealer), StreamView>> {
    let store = Store::open(dir.join("run.stone"))?;
    let view = store.view(StreamId(1))?;
    Ok(State::Reading(store, view))
}

impl Peer for Chunked {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        let State::Writing(_, (stream, sealer)) = &mut self.state else {
            return Err("it is over".into());
        };
        let count = numbers.end - numbers.start;
        let mut content = Vec::with_capacity((count * self.record_bytes) as usize);
        numbers.clone().for_each(|number| content.extend_from_slice(source.record(number)));
        Ok(sealer.push(chunk(*stream, numbers.start, count, content))?)
    }

    fn finish(&mut self) -> Outcome<()> {
        if let State::Writing(ours, (_, sealer)) =
            std::mem::replace(&mut self.state, State::Nothing)
        {
            sealer.finish()?;
            self.syncs = ours.syncs();
            ours.store.close()?;
            self.state = view(&self.dir)?;
        }
        Ok(())
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let (store, view) = self.reading()?;
        let at = view.chunks.partition_point(|(_, row)| row.first.0 + row.records <= number);
        let row = &view.chunks.get(at).ok_or("a chunk is missing")?.1;
        let start = (number - row.first.0) * self.record_bytes;
        Ok(store.fetch_range(row.object, start..start + self.record_bytes)?)
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        let (store, view) = self.reading()?;
        let at = view.chunks.partition_point(|(_, row)| row.first.0 + row.records <= numbers.start);
        for (_, row) in &view.chunks[at..] {
            let of = row.first.0.max(numbers.start)..(row.first.0 + row.records).min(numbers.end);
            if of.is_empty() {
                break;
            }
            let place = |number: u64| (number - row.first.0) * self.record_bytes;
            let bytes = store.fetch_range(row.object, place(of.start)..place(of.end))?;
            for (number, record) in of.zip(bytes.chunks_exact(self.record_bytes as usize)) {
                each(number, record)?;
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.reading()?.1.record_count())
    }

    fn syncs(&self) -> Option<u64> {
        Some(self.syncs as u64)
    }
}
