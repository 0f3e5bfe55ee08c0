//! Rows of a view as batches of Arrow.

use super::batches::ReadBatch;
use crate::error::{Error, ErrorKind, Result};
use crate::interop::arrow::{JsonColumns, RecordBatch, batches_from_bytes};
use crate::staging::Form;
use crate::staging::shipped::rows_of;

impl ReadBatch {
    /// Its rows as columns: those of an Arrow batch as they were given, those of JSON lines as a converter
    /// would see them, those of an output that is Parquet.
    ///
    /// # Errors
    /// `TypeMismatch` for another form; `Damage` for bytes that are not what they should be; `Input` for
    /// JSON lines that are no objects.
    pub fn record_batches(&self) -> Result<Vec<RecordBatch>> {
        match self.form.as_str() {
            form if form == Form::Arrow.name() => {
                batches_from_bytes(self.bytes.clone(), self.rows).map(|(_, batches)| batches)
            }
            form if form == Form::JsonLines.name() => {
                let mut columns = JsonColumns::new();
                rows_of(&self.bytes).try_for_each(|line| columns.push(line))?;
                Ok(vec![columns.take()?])
            }
            #[cfg(feature = "parquet")]
            "parquet" => self.of_parquet(),
            other => {
                let cause = format!("it is {other}, which has no columns that are known");
                Err(Error::new(ErrorKind::TypeMismatch, "read", "batch", cause))
            }
        }
    }

    #[cfg(feature = "parquet")]
    fn of_parquet(&self) -> Result<Vec<RecordBatch>> {
        let mut fetch = |range: std::ops::Range<u64>| {
            let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
            let found =
                start.ok().zip(end.ok()).and_then(|(start, end)| self.bytes.get(start..end));
            let cause = "its footer names bytes beyond its end";
            found.map(<[u8]>::to_vec).ok_or_else(|| Error::damage("read", "Parquet", cause))
        };
        let len = self.bytes.len() as u64;
        let mut reader = crate::interop::arrow::ParquetReader::open(len, &mut fetch)?;
        std::iter::from_fn(|| reader.next_batch(&mut fetch).transpose()).collect()
    }
}
