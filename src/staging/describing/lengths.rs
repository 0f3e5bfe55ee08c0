//! Lengths: how long what a caller's code says may be. It goes into rows, and from there into every snapshot of
//! them: what is longer is refused before anything is written.

use crate::error::{Error, ErrorKind, Result};

/// What a caller's code says, and how long it may be in bytes.
#[derive(Debug, Clone, Copy)]
pub(in crate::staging) enum Said {
    /// The name of what outputs are.
    Form,
    /// The schema of an output, or of a stage.
    Schema,
    /// The name of an outside system. It may be a path.
    Target,
    /// What a target says that is to be there.
    Intent,
    /// What a target read back.
    Evidence,
}

/// So much of why something failed is kept, in bytes.
const FAILURE_BYTES_MAX: usize = 1024;

impl Said {
    const fn describe(self) -> (&'static str, usize) {
        match self {
            Self::Form => ("the name of a form", 256),
            Self::Schema => ("a schema", 1 << 20),
            Self::Target => ("the name of a target", 4 << 10),
            Self::Intent => ("an intent", 64 << 10),
            Self::Evidence => ("evidence", 64 << 10),
        }
    }

    /// # Errors
    /// `LimitExceeded` above its longest.
    pub(in crate::staging) fn check(self, operation: &'static str, len: usize) -> Result<()> {
        let (what, max) = self.describe();
        if len <= max {
            return Ok(());
        }
        let cause = format!("{what} of {len} bytes; it has at most {max}");
        Err(Error::new(ErrorKind::LimitExceeded, operation, what, cause))
    }
}

/// The beginning of why something failed, as rows keep it.
pub(in crate::staging) fn shortened(mut text: String) -> String {
    let mut end = FAILURE_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
