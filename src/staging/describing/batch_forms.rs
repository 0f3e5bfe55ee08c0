//! Batches of a form that the crate knows: their rows are counted here, and what is in them is looked at
//! before it is accepted, not when it is converted.

use super::batch::Batch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::Form;
#[cfg(feature = "arrow")]
use crate::interop::arrow;
use crate::interop::check_json;
#[cfg(test)]
use crate::staging::shipped::rows_of;

impl Batch {
    /// JSON lines: each line that is not blank is one JSON value, and one row.
    ///
    /// # Errors
    /// `Input`, by the number of the line, for one that is no JSON value or that no converter could read: a
    /// number that no float64 comes near to, half of a surrogate pair, a key twice in one object, more than
    /// 128 levels.
    pub fn json_lines(text: impl Into<Vec<u8>>) -> Result<Self> {
        let text = text.into();
        let mut rows = 0;
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if !line.is_empty() {
                check_json(line).map_err(|e| {
                    let cause = format!("line {} is no JSON value that can be read", at + 1);
                    Error::new(ErrorKind::Input, "append", "JSON lines", cause).with_source(e)
                })?;
                rows += 1;
            }
        }
        Ok(Self::of(Form::JsonLines, text, rows))
    }

    /// A batch of Arrow: its schema and its columns, as an IPC stream.
    ///
    /// # Errors
    /// `Invalid` for one that has no column, that has two of one name, or that IPC has no form for;
    /// `LimitExceeded` for one whose rows its bytes do not justify: of columns that hold nothing, or of a
    /// dictionary whose values would fill memory if each row had its own.
    #[cfg(feature = "arrow")]
    pub fn arrow(batch: &arrow::RecordBatch) -> Result<Self> {
        let rows = batch.num_rows() as u64;
        Ok(Self::of(Form::Arrow, arrow::batch_to_bytes(batch)?, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are rows the lines that are not blank, and is a line that is no JSON refused by its number?
    #[test]
    fn lines_are_counted_and_looked_at() {
        let batch = Batch::json_lines("{\"a\":1}\r\n\n [1, \"x\"]\n7").unwrap();
        assert_eq!((batch.form(), batch.rows()), (Form::JsonLines, 3));
        assert_eq!(rows_of(batch.bytes()).count(), 3);
        for bad in [
            "{\"a\":1}\n{\"a\"",
            "1\n2 3",
            "1\n\u{1}",
            "1\nnul",
            "1\n1e999",
            "1\n{\"a\":1,\"a\":2}",
        ] {
            let error = Batch::json_lines(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.to_string().contains("line 2"), "{error}");
        }
        assert_eq!(
            Batch::json_lines(b"1\n\"\xff\"".to_vec()).unwrap_err().kind(),
            ErrorKind::Input
        );
    }
}
