//! A peer that knows no fields: the twenty doubles are one record, and all of each record is read.

use std::ops::Range;
use std::path::Path;

use super::{FIELDS, Wide, value};
use crate::Outcome;
use crate::payload::Source;
use crate::peers::{self, Peer, Promise, Setup};

const RECORD_BYTES: usize = 8 * FIELDS;

pub struct Rows(Box<dyn Peer>);

struct Records([u8; RECORD_BYTES]);

impl Source for Records {
    fn record(&mut self, number: u64) -> &[u8] {
        for (field, cell) in self.0.chunks_exact_mut(8).enumerate() {
            cell.copy_from_slice(&value(number, field).to_le_bytes());
        }
        &self.0
    }
}

impl Rows {
    pub fn open(peer: &str, dir: &Path, records: u64) -> Outcome<Self> {
        let record_bytes = RECORD_BYTES as u64;
        let setup = Setup { promise: Promise::Durable, record_bytes, records };
        Ok(Self(peers::open(peer, dir, &setup)?))
    }
}

impl Wide for Rows {
    fn append(&mut self, numbers: Range<u64>) -> Outcome<()> {
        self.0.append(numbers, &mut Records([0; RECORD_BYTES]))
    }

    fn finish(&mut self) -> Outcome<()> {
        self.0.finish()
    }

    fn project(&mut self, field: usize, numbers: Range<u64>) -> Outcome<Vec<f64>> {
        let mut values = Vec::with_capacity((numbers.end - numbers.start) as usize);
        self.0.scan(numbers, &mut |_, record| {
            let cell = record.get(8 * field..).and_then(<[u8]>::first_chunk);
            values.push(f64::from_le_bytes(*cell.ok_or("a record came back too short")?));
            Ok(())
        })?;
        Ok(values)
    }
}
