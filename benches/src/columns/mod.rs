//! Columns of typed values in memory, and what each arm makes of them: bytes, and columns again.

pub mod hdf5;
pub mod ours;
pub mod parquet;
pub mod plain;

use crate::Outcome;

/// Values of one type. Where one is missing there stands a zero or an empty text.
#[derive(Debug, Clone)]
pub enum Data {
    F64(Vec<f64>),
    I64(Vec<i64>),
    Text(Texts),
}

/// Texts, one behind the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
}

impl Texts {
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    pub fn get(&self, at: usize) -> &[u8] {
        &self.bytes[if at == 0 { 0 } else { self.ends[at - 1] }..self.ends[at]]
    }
}

/// One column of records.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub data: Data,
    /// Which records have a value; `None` when all do.
    pub present: Option<Vec<bool>>,
    /// Lengths of the axes of each record's array; none for a single value.
    pub axes: Vec<usize>,
}

/// Equally many records in each column.
#[derive(Debug, Clone)]
pub struct Table {
    pub columns: Vec<Column>,
}

impl Data {
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Text(texts) => texts.ends.len(),
        }
    }

    /// Bytes of the values alone: 8 for each number, a length of 4 and the bytes for each text.
    fn raw_len(&self) -> usize {
        match self {
            Self::Text(texts) => 4 * texts.ends.len() + texts.bytes.len(),
            _ => 8 * self.len(),
        }
    }

    /// Bit for bit.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(a), Self::F64(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Self::I64(a), Self::I64(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Column {
    pub fn new(name: impl Into<String>, data: Data) -> Self {
        Self { name: name.into(), data, present: None, axes: Vec::new() }
    }

    /// How many values a record has.
    pub fn width(&self) -> usize {
        self.axes.iter().product()
    }

    pub fn rows(&self) -> usize {
        self.data.len() / self.width()
    }

    pub fn is_present(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present[row])
    }

    /// Bytes of the values alone, and of the flags where some are missing.
    fn raw_len(&self) -> usize {
        self.data.raw_len() + self.present.as_ref().map_or(0, |flags| flags.len().div_ceil(8))
    }
}

impl Table {
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::rows)
    }

    /// What every arm's size is compared with.
    pub fn raw_len(&self) -> usize {
        self.columns.iter().map(Column::raw_len).sum()
    }

    /// Fails unless `found` holds the same values, bit for bit.
    pub fn check(&self, found: &Self) -> Outcome<()> {
        if self.columns.len() != found.columns.len() {
            return Err(format!("{} columns came back", found.columns.len()).into());
        }
        for (column, other) in self.columns.iter().zip(&found.columns) {
            if !column.data.is_same(&other.data) || column.present != other.present {
                return Err(format!("column {} came back otherwise", column.name).into());
            }
        }
        Ok(())
    }
}
