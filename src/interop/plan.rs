//! The columns of an input: name, type, how a missing value is spelled, and what a conflict says.

use std::borrow::Cow;

use super::options::ReadOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Field, FieldType, Schema, Shape};

/// One column of the input.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: FieldType,
    /// Its axes; none for a single value in each row.
    pub shape: Shape,
    /// Whether the caller gave the type.
    pub given: bool,
    /// How a missing value is spelled in it: the first spelling met, or none yet.
    pub missing: Option<Missing>,
    /// Missing values spelled otherwise; an export spells them all alike.
    pub spelled_otherwise: u64,
}

/// How a missing value is spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// As this text.
    Text(String),
    /// As JSON's null.
    Null,
    /// By leaving the key out.
    Absent,
}

/// Where a row stands in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlace {
    /// Rows before it.
    pub row: u64,
    /// The line on which it begins, from 1.
    pub line: u64,
}

impl Plan {
    /// A column of which `given` is known, and else that it may be of type `ty`.
    pub(super) fn new(name: String, given: Option<&Field>, ty: FieldType) -> Self {
        Self {
            name,
            ty: given.map_or(ty, |field| field.ty),
            shape: given.map(|field| field.shape.clone()).unwrap_or_default(),
            given: given.is_some(),
            missing: None,
            spelled_otherwise: 0,
        }
    }

    fn field(&self) -> Field {
        Field::new(self.name.as_str(), self.ty).axes(self.shape.axes().iter().copied()).nullable()
    }

    pub(super) fn met(&mut self, spelling: &Missing) {
        match &self.missing {
            None => self.missing = Some(spelling.clone()),
            Some(known) if known != spelling => self.spelled_otherwise += 1,
            Some(_) => {}
        }
    }
}

/// The schema of such columns. Any value may be missing, since a later row may lack it.
pub fn schema(plans: &[Plan]) -> Result<Schema> {
    Schema::new(plans.iter().map(Plan::field).collect())
        .map_err(|e| Error::new(ErrorKind::Input, "import", "columns", &e).with_source(e))
}

/// An input error at a row.
pub fn wrong(options: &ReadOptions, at: RowPlace, cause: impl std::fmt::Display) -> Error {
    let place = format!("{} line {} (row {})", options.source, at.line, at.row);
    Error::new(ErrorKind::Input, "import", place, cause)
}

/// An input error at a row and a column.
pub fn wrong_at(
    options: &ReadOptions,
    at: RowPlace,
    column: &str,
    cause: impl std::fmt::Display,
) -> Error {
    let place = format!("{} line {} (row {}) column {column:?}", options.source, at.line, at.row);
    Error::new(ErrorKind::Input, "import", place, cause)
}

/// A value that is not of its column's type.
pub fn conflict(options: &ReadOptions, at: RowPlace, plan: &Plan, text: &str) -> Error {
    let wanted = plan.field().kind();
    let origin = if plan.given {
        "as was given".to_owned()
    } else {
        format!("as the first {} rows were", options.infer_rows)
    };
    let way_out = match plan.ty {
        FieldType::I64 if super::number::parse_f64(text).is_some() => "f64",
        _ if text.starts_with(['{', '[', '"']) => "json",
        _ => "string",
    };
    let cause = format!(
        "{:?} is not {wanted}, {origin}; to accept it: --type {}={way_out}",
        shortened(text),
        word(&plan.name)
    );
    wrong_at(options, at, &plan.name, cause)
}

/// A name as a word of a command line: quoted unless it is plain.
pub fn word(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.chars().all(is_plain) { name.into() } else { format!("{name:?}").into() }
}

/// A text short enough for a message.
pub fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Fails when a column has a type and is not there.
pub fn check_given(options: &ReadOptions, plans: &[Plan]) -> Result<()> {
    for column in options.types.iter().map(|field| &field.name) {
        if !plans.iter().any(|plan| plan.name == *column) {
            let names = plans.iter().map(|plan| plan.name.as_str()).collect::<Vec<_>>().join(", ");
            let cause = format!("there is no such column; there are {:?}", shortened(&names));
            return Err(Error::invalid("import", format!("--type {column:?}"), cause));
        }
    }
    Ok(())
}
