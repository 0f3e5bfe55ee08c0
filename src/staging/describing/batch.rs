//! Batch: rows for one key, as bytes of a form.

use crate::format::staged::Form;

/// Rows for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    form: Form,
    rows: u64,
    bytes: Vec<u8>,
}

impl Batch {
    /// Bytes that are `rows` rows, as the caller counts them.
    pub fn opaque(bytes: impl Into<Vec<u8>>, rows: u64) -> Self {
        Self::of(Form::Opaque, bytes.into(), rows)
    }

    /// Bytes of `form`, whose rows were counted.
    pub(crate) fn of(form: Form, bytes: Vec<u8>, rows: u64) -> Self {
        Self { form, rows, bytes }
    }

    /// What its bytes are.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Its rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes, taken out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
