//! Slabs: so many lines of the input, as one batch for each key.
//!
//! A slab is a range of bytes, and its batches follow from these bytes alone, in the order in which their
//! keys come first. So a producer that was stopped between two batches of a slab finds the rest again.

use std::collections::HashMap;

use sealstone::staging::Key;
use sealstone::{Error, ErrorKind, Result};
use serde_json::{Value, json};

/// Where a producer's input stands behind a batch: kept with the batch, in the same record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Where the slab of the batch begins, in bytes.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// Lines of the input before that end.
    pub lines: u64,
    /// Which of its batches, from 0.
    pub batch: u64,
    /// How many it has.
    pub batches: u64,
}

impl Position {
    /// As it is stored: one JSON object.
    pub fn to_bytes(self) -> Vec<u8> {
        let Self { from, to, lines, batch, batches } = self;
        let text = json!({
            "from": from, "to": to, "lines": lines, "batch": batch, "batches": batches
        });
        text.to_string().into_bytes()
    }

    /// From what is stored.
    ///
    /// # Errors
    /// `Conflict` for the position of a producer that is no `sealstone stage append`.
    pub fn from_bytes(producer: &str, bytes: &[u8]) -> Result<Self> {
        let json: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let number = |name: &str| json.get(name).and_then(Value::as_u64);
        let read = || {
            let (from, to, lines) = (number("from")?, number("to")?, number("lines")?);
            let (batch, batches) = (number("batch")?, number("batches")?);
            let fits = from <= to && batch < batches;
            fits.then_some(Self { from, to, lines, batch, batches })
        };
        read().ok_or_else(|| {
            let cause = "its position is none of this command: another program is this producer";
            Error::new(ErrorKind::Conflict, "append", format!("producer {producer:?}"), cause)
        })
    }
}

/// The lines of a slab, by key.
#[derive(Debug, Default)]
pub struct Slab {
    /// Keys with their bytes and rows, in the order in which they came.
    pub batches: Vec<(Key, Vec<u8>, u64)>,
    by_key: HashMap<Key, usize>,
    /// Lines, those that were passed over as well.
    pub lines: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes of rows.
    pub len: u64,
}

impl Slab {
    /// Takes a line; its end is added where it has none.
    pub fn take(&mut self, key: Key, line: &[u8]) {
        let at = *self.by_key.entry(key).or_insert_with_key(|key| {
            self.batches.push((key.clone(), Vec::new(), 0));
            self.batches.len() - 1
        });
        let Some((_, bytes, rows)) = self.batches.get_mut(at) else { return };
        bytes.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        *rows += 1;
        self.rows += 1;
        self.len += line.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealstone::staging::KeyPart;

    /// Do batches keep the order in which their keys came, and does a position read back?
    #[test]
    fn batches_follow_from_lines() {
        let key = |n| Key::new([KeyPart::Integer(n)]);
        let mut slab = Slab::default();
        for (n, line) in [(2, "a\n"), (1, "b\n"), (2, "c")] {
            slab.take(key(n), line.as_bytes());
        }
        let batches = [(key(2), b"a\nc\n".to_vec(), 2), (key(1), b"b\n".to_vec(), 1)];
        assert_eq!((slab.batches.as_slice(), slab.rows, slab.len), (&batches[..], 3, 5));
        let position = Position { from: 1, to: 9, lines: 2, batch: 1, batches: 2 };
        assert_eq!(Position::from_bytes("p", &position.to_bytes()).unwrap(), position);
        for wrong in ["", "{}", "[1]", r#"{"from":3,"to":1,"lines":0,"batch":0,"batches":1}"#] {
            assert!(Position::from_bytes("p", wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
