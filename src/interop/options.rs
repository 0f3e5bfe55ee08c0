//! How input is read.

use crate::error::{Error, Result};
use crate::format::column::{Field, FieldType};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values with a header line (RFC 4180).
    Csv,
    /// One JSON object on each line.
    Jsonl,
}

impl Format {
    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
        }
    }

    /// The format that a file's name promises.
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

/// How input is read. Memory follows `infer_bytes` and `record_bytes_max`, never the input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// What errors call the input: a file's name.
    pub source: String,
    /// Types of columns that are given, not inferred.
    pub types: Vec<Field>,
    /// Texts that stand for a missing value in CSV; an earlier one wins where several occur.
    pub missing: Vec<String>,
    /// Types are inferred from so many first rows.
    pub infer_rows: usize,
    /// And from at most so many bytes of them.
    pub infer_bytes: usize,
    /// A row above this is refused.
    pub record_bytes_max: usize,
    /// Separates the values of a CSV row.
    pub delimiter: u8,
}

impl ReadOptions {
    /// The defaults, for an input called `source`: 10,000 rows or 8 MiB to infer from, rows up to
    /// 16 MiB, `NA` and the empty text for missing values, commas.
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            types: Vec::new(),
            missing: vec!["NA".into(), String::new()],
            infer_rows: 10_000,
            infer_bytes: 8 << 20,
            record_bytes_max: 16 << 20,
            delimiter: b',',
        }
    }

    /// Gives a column its type.
    #[must_use]
    pub fn column_type(mut self, column: impl Into<String>, ty: FieldType) -> Self {
        self.types.push(Field::new(column, ty));
        self
    }

    /// Gives the column of the field's name its type and axes. Arrays are read as JSON.
    #[must_use]
    pub fn column_field(mut self, field: Field) -> Self {
        self.types.push(field);
        self
    }

    /// Checks what is checkable without the input.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    pub fn check(&self) -> Result<()> {
        let mut seen = std::collections::HashSet::new();
        if let Some(field) = self.types.iter().find(|field| !seen.insert(&field.name)) {
            return Err(Error::invalid(
                "import",
                format!("--type {:?}", field.name),
                "it is given twice",
            ));
        }
        if self.infer_rows == 0 {
            return Err(Error::invalid("import", "--infer-rows", "give at least 1"));
        }
        if self.delimiter == b'"' || self.delimiter == b'\n' || self.delimiter == b'\r' {
            return Err(Error::invalid("import", "--delimiter", "it has a meaning of its own"));
        }
        Ok(())
    }

    pub(super) fn given(&self, column: &str) -> Option<&Field> {
        self.types.iter().find(|field| field.name == column)
    }
}
