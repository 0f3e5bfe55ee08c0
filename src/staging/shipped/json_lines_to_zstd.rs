//! JSON lines to JSON lines, through zstd.

use std::io::Read;

use super::lines::{Counter, rows_of};
use crate::error::{Error, ErrorKind, Result};
use crate::format::compressed::{Decoder, Encoder};
use crate::format::staged::Form;
use crate::staging::converting::{
    Converter, Input, Merger, OutputReader, OutputView, OutputWriter,
};
use crate::staging::describing::GroupView;

/// Bytes decompressed at a time.
const STEP_BYTES: usize = 128 << 10;
/// The form of its outputs.
pub(in crate::staging) const FORM: &str = "jsonl.zst";

/// Writes the lines of JSON batches one behind the other, as one frame of zstd at level 3 with its checksum.
/// A line is kept byte for byte, without the blanks around it; lines that are blank are left out.
///
/// As a [`Merger`] it does the same with its own outputs.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonLinesToZstd;

impl JsonLinesToZstd {
    /// The converter: it has nothing to set.
    pub fn new() -> Self {
        Self
    }
}

impl Converter for JsonLinesToZstd {
    fn form(&self) -> &str {
        FORM
    }

    fn convert(
        &self,
        _group: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        let mut encoder = Encoder::new()?;
        let (mut rows, mut text) = (0, Vec::new());
        for batch in input {
            let batch = batch?;
            if batch.form() != Form::JsonLines {
                let cause = format!("a batch is {}: only JSON lines become {FORM}", batch.form());
                return Err(Error::new(ErrorKind::TypeMismatch, "convert", "group", cause));
            }
            text.clear();
            for line in rows_of(batch.bytes()) {
                text.extend_from_slice(line);
                text.push(b'\n');
                rows += 1;
            }
            encoder.push(&text, &mut |piece| out.put(piece))?;
        }
        // STG23: no row, no byte.
        if rows > 0 {
            encoder.finish(&mut |piece| out.put(piece))?;
        }
        Ok(rows)
    }

    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        let mut counter = Counter::default();
        decompressed(output, &mut |piece| {
            counter.push(piece);
            Ok(())
        })?;
        Ok(counter.finish())
    }
}

impl Merger for JsonLinesToZstd {
    fn form(&self) -> &str {
        FORM
    }

    fn merge(
        &self,
        inputs: &[(OutputView, OutputReader)],
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        let mut encoder = Encoder::new()?;
        let mut rows = 0;
        for (_, reader) in inputs {
            let mut counter = Counter::default();
            decompressed(&mut reader.clone(), &mut |piece| {
                counter.push(piece);
                encoder.push(piece, &mut |compressed| out.put(compressed))
            })?;
            rows += counter.finish();
        }
        encoder.finish(&mut |piece| out.put(piece))?;
        Ok(rows)
    }

    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        Converter::count_rows(self, output)
    }
}

/// All of an output, piece by piece.
fn decompressed(
    output: &mut OutputReader,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut decoder = Decoder::new(output)?;
    let mut piece = vec![0; STEP_BYTES];
    loop {
        let read = decoder.read(&mut piece).map_err(damaged)?;
        match piece.get(..read) {
            Some([]) | None => return Ok(()),
            Some(found) => each(found)?,
        }
    }
}

fn damaged(source: std::io::Error) -> Error {
    if let Some(ours) = source.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return ours.clone();
    }
    Error::damage("decompress", "output", "it is no frame of zstd").with_source(source)
}
