//! Form: what the bytes of a batch are.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// What the bytes of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Form {
    /// Whatever the caller says they are.
    Opaque,
    /// Text: each line is one JSON value, and one row.
    JsonLines,
    /// A stream of Arrow IPC messages: a schema, then record batches.
    Arrow,
}

impl Form {
    /// Its name, as told to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opaque => "opaque",
            Self::JsonLines => "json lines",
            Self::Arrow => "arrow",
        }
    }

    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Opaque => 1,
            Self::JsonLines => 2,
            Self::Arrow => 3,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Result<Self> {
        match byte {
            1 => Ok(Self::Opaque),
            2 => Ok(Self::JsonLines),
            3 => Ok(Self::Arrow),
            other => {
                let cause = format!("this release does not know form {other} of a batch");
                Err(Error::new(ErrorKind::NewerFormat, "decode", "batch", cause))
            }
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
