//! A converter that writes rows as they came: what goes in is what must come out.

use sealstone::staging::{
    Batch, Converter, GroupView, Input, Merger, OutputId, OutputReader, OutputView, OutputWriter,
    Stage,
};

use crate::lives::source::ROW_BYTES;

/// Rows of equal length, one behind the other.
#[derive(Debug, Clone, Copy)]
pub struct RowsAsTheyAre;

impl Converter for RowsAsTheyAre {
    fn form(&self) -> &str {
        "rows"
    }

    fn convert(
        &self,
        _group: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> sealstone::Result<u64> {
        write_rows(input, out)
    }

    fn count_rows(&self, output: &mut OutputReader) -> sealstone::Result<u64> {
        Ok(output.len() / ROW_BYTES as u64)
    }
}

/// The same, of at most so many batches: the rest of the group stays for the next pass.
#[derive(Debug, Clone, Copy)]
pub struct RowsAtMost(pub usize);

impl Converter for RowsAtMost {
    fn form(&self) -> &str {
        Converter::form(&RowsAsTheyAre)
    }

    fn convert(
        &self,
        _group: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> sealstone::Result<u64> {
        write_rows(input.take(self.0), out)
    }

    fn count_rows(&self, output: &mut OutputReader) -> sealstone::Result<u64> {
        Converter::count_rows(&RowsAsTheyAre, output)
    }
}

impl Merger for RowsAsTheyAre {
    fn form(&self) -> &str {
        Converter::form(self)
    }

    fn merge(
        &self,
        inputs: &[(OutputView, OutputReader)],
        out: &mut OutputWriter<'_>,
    ) -> sealstone::Result<u64> {
        for (_, reader) in inputs {
            std::io::copy(&mut reader.clone(), out)
                .map_err(|e| sealstone::Error::io("merge", "output", e))?;
        }
        Ok(inputs.iter().map(|(view, _)| view.rows).sum())
    }

    fn count_rows(&self, output: &mut OutputReader) -> sealstone::Result<u64> {
        Converter::count_rows(self, output)
    }
}

/// One that takes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Refusing;

impl Converter for Refusing {
    fn form(&self) -> &str {
        Converter::form(&RowsAsTheyAre)
    }

    fn convert(
        &self,
        _group: &GroupView,
        _input: &mut Input<'_>,
        _out: &mut OutputWriter<'_>,
    ) -> sealstone::Result<u64> {
        let cause = "the test says so";
        Err(sealstone::Error::new(sealstone::ErrorKind::Input, "convert", "rows", cause))
    }

    fn count_rows(&self, output: &mut OutputReader) -> sealstone::Result<u64> {
        Converter::count_rows(&RowsAsTheyAre, output)
    }
}

fn write_rows(
    batches: impl Iterator<Item = sealstone::Result<Batch>>,
    out: &mut OutputWriter<'_>,
) -> sealstone::Result<u64> {
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        out.put(batch.bytes())?;
        rows += batch.rows();
    }
    Ok(rows)
}

/// The bytes of an output.
pub fn read_output(stage: &Stage, output: OutputId) -> Vec<u8> {
    let mut bytes = Vec::new();
    stage.copy_output(output, &mut bytes).unwrap();
    bytes
}
