//! What turns batches into an output, and many outputs into one: the caller's own code, or one of those
//! that ship.

use super::input::Input;
use super::output_reader::OutputReader;
use super::output_writer::OutputWriter;
use super::outputs::OutputView;
use crate::error::{Error, ErrorKind, Result};
use crate::staging::GroupView;

/// Turns the batches of a group into an output.
///
/// Nothing of it runs inside a transaction. What it returns as an error, and a panic, is an error of
/// that one group: its inputs stay, it is free again, and the next plan takes it up.
pub trait Converter: Send + Sync {
    /// The name of what the outputs are, say `parquet`: outputs are listed with it. At
    /// most 256 bytes.
    fn form(&self) -> &str;

    /// Reads batches from `input`, all or as many as it wants, and writes the output. Returns the rows
    /// written, which must be those of the batches that it took: batches that it did not take stay. No
    /// rows written publishes nothing, and everything stays. A batch that can never be converted it
    /// refuses ([`Input::refuse`]): that one goes to quarantine, and the others are published.
    ///
    /// # Errors
    /// What went wrong, in any kind.
    fn convert(
        &self,
        group: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> Result<u64>;

    /// The rows of an output that was written, sealed and opened again: counted in its bytes, not
    /// remembered.
    ///
    /// # Errors
    /// What keeps it from being read.
    fn count_rows(&self, output: &mut OutputReader) -> Result<u64>;

    /// The schema of that output, as bytes, at most 1 MiB; none by default.
    ///
    /// # Errors
    /// What keeps it from being read.
    fn schema(&self, output: &mut OutputReader) -> Result<Vec<u8>> {
        let _ = output;
        Ok(Vec::new())
    }

    /// The union of the schema of the stage, none at first, and that of a group's output. It is asked
    /// only of outputs that have a schema, and may be asked again when the stage's moved on meanwhile.
    /// By default two that differ have none.
    ///
    /// # Errors
    /// Why there is none: that group is not published, and the schema of the stage stays as it was.
    fn merge_schema(&self, stage: &[u8], output: &[u8]) -> Result<Vec<u8>> {
        same_schema(stage, output)
    }
}

/// Turns several outputs into one.
///
/// As a [`Converter`] it never runs inside a transaction, and its failure changes nothing.
pub trait Merger: Send + Sync {
    /// The form of the outputs that it reads, and of those that it writes.
    fn form(&self) -> &str;

    /// Reads all of `inputs` and writes one output. Returns its rows, which must be those of the inputs.
    ///
    /// # Errors
    /// What went wrong, in any kind.
    fn merge(
        &self,
        inputs: &[(OutputView, OutputReader)],
        out: &mut OutputWriter<'_>,
    ) -> Result<u64>;

    /// As [`Converter::count_rows`].
    ///
    /// # Errors
    /// As there.
    fn count_rows(&self, output: &mut OutputReader) -> Result<u64>;

    /// As [`Converter::schema`].
    ///
    /// # Errors
    /// As there.
    fn schema(&self, output: &mut OutputReader) -> Result<Vec<u8>> {
        let _ = output;
        Ok(Vec::new())
    }
}

fn same_schema(stage: &[u8], output: &[u8]) -> Result<Vec<u8>> {
    if stage.is_empty() || stage == output {
        return Ok(output.to_vec());
    }
    let cause = "it differs from the stage's, and the converter does not say how they merge";
    Err(Error::new(ErrorKind::Conflict, "merge", "schema", cause))
}
