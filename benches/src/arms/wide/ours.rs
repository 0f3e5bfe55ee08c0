//! sealstone: a recording of twenty fields, its chunks as long as they are by default.

use std::ops::Range;
use std::path::{Path, PathBuf};

use sealstone::Store;
use sealstone::recording::{Bulk, Field, FieldType, Schema, Stream, Value};

use super::{FIELDS, Wide, name, value};
use crate::Outcome;

const NAME: &str = "w";

pub struct Ours {
    path: PathBuf,
    store: Store,
    writing: Option<Bulk>,
    reading: Option<Stream>,
}

impl Ours {
    pub fn open(dir: &Path) -> Outcome<Self> {
        let path = dir.join("run.stone");
        if path.exists() {
            let store = Store::open(&path)?;
            let reading = Some(store.recording(NAME)?.stream(NAME)?);
            return Ok(Self { path, store, writing: None, reading });
        }
        let store = Store::create(&path)?;
        let fields = (0..FIELDS).map(|field| Field::new(name(field), FieldType::F64));
        let schema = Schema::new(fields.collect())?;
        let recording = store.record(NAME, &schema).stream(NAME, (0..FIELDS).map(name));
        let writing = Some(recording.start_bulk()?);
        Ok(Self { path, store, writing, reading: None })
    }
}

impl Wide for Ours {
    fn append(&mut self, numbers: Range<u64>) -> Outcome<()> {
        let bulk = self.writing.as_mut().ok_or("it is over")?;
        for number in numbers {
            let values: [Value<'_>; FIELDS] =
                std::array::from_fn(|field| Value::F64(value(number, field)));
            bulk.push(0, number as i64, &values)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Outcome<()> {
        if let Some(bulk) = self.writing.take() {
            bulk.complete(&[])?;
            self.store.clone().close()?;
            self.store = Store::open(&self.path)?;
            self.reading = Some(self.store.recording(NAME)?.stream(NAME)?);
        }
        Ok(())
    }

    fn project(&mut self, field: usize, numbers: Range<u64>) -> Outcome<Vec<f64>> {
        let stream = self.reading.as_ref().ok_or("it is being written")?;
        let iterations = numbers.start as i64..numbers.end as i64;
        Ok(stream.field(&name(field))?.iterations(iterations).to_vec::<f64>()?)
    }
}
