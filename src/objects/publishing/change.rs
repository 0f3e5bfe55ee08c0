//! What a publication changes, what it expects, and what it tells.

use std::collections::BTreeSet;
use std::fmt;

use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, NameGeneration, ObjectId};
use crate::manifest::{NameRow, Reading, ValueForm, Write};
use crate::objects::describing::{Name, NameView};
use crate::protection::Protection;

/// The most names of one publication: it is one transaction.
pub const PUBLISH_NAMES_MAX: usize = 1 << 16;

/// What has to stand under a name for it to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Whatever stands there.
    Any,
    /// Nothing.
    Nothing,
    /// An object of this digest, in whichever generation.
    Digest(Digest),
    /// This generation of the name.
    Generation(NameGeneration),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Nothing => f.write_str("nothing"),
            Self::Digest(digest) => write!(f, "digest {digest}"),
            Self::Generation(generation) => write!(f, "generation {generation}"),
        }
    }
}

/// One name that is to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// The name.
    pub name: Name,
    /// What has to stand there.
    pub expected: Expected,
    /// What it is to stand for: the digest of something that was put.
    pub digest: Digest,
}

impl Publish {
    /// `name` is to stand for `digest`, if `expected` stands there.
    pub fn new(name: Name, expected: Expected, digest: Digest) -> Self {
        Self { name, expected, digest }
    }
}

/// What a publication did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The commit that changed all names.
    pub commit: CommitSeq,
    /// What stands under each name now, in the order in which they were given.
    pub names: Vec<NameView>,
    /// Names that stood for something else before.
    pub replaced: u64,
    /// Objects that nothing refers to any more.
    pub objects: u64,
    /// Their stored bytes, given back by reclaim.
    pub bytes: u64,
}

/// What stands under a name where something else was expected: the source of a `Conflict`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Present {
    /// The name.
    pub name: Name,
    /// What stands there; `None` for nothing.
    pub stands: Option<NameView>,
}

impl fmt::Display for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stands {
            Some(view) => {
                write!(f, "generation {}, digest {} stands", view.generation, view.digest)
            }
            None => f.write_str("nothing stands there"),
        }
    }
}

impl std::error::Error for Present {}

impl Present {
    /// What stands there, from the `Conflict` of a publication; `None` for another error.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

/// Refuses what no publication may be, whatever stands.
pub(super) fn check_names<'n>(
    operation: &'static str,
    names: impl ExactSizeIterator<Item = &'n Name>,
    names_max: usize,
) -> Result<()> {
    if names.len() == 0 {
        return Err(Error::invalid(operation, "names", "there are none"));
    }
    if names.len() > names_max {
        let cause = format!("{} of them, {names_max} allowed at once", names.len());
        return Err(Error::new(ErrorKind::LimitExceeded, operation, "names", cause));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::invalid(operation, name, "it is there twice"));
        }
    }
    Ok(())
}

/// Refuses a change whose expectation does not hold in `rows`; what stands under its name.
pub(super) fn check_expected(
    operation: &'static str,
    rows: &impl Reading,
    name: &Name,
    expected: Expected,
) -> Result<Option<NameRow>> {
    let row = rows.get::<NameRow>(&name.key())?;
    let holds = match (expected, &row) {
        (Expected::Any, _) | (Expected::Nothing, None) => true,
        (Expected::Generation(expected), Some(row)) => row.generation == expected,
        (Expected::Digest(expected), Some(row)) => {
            NameView::of(rows, name.clone(), row)?.digest == expected
        }
        (Expected::Nothing, Some(_)) => false,
        (Expected::Digest(_) | Expected::Generation(_), None) => false,
    };
    if holds || !Protection::ExpectedCompared.is_on() {
        return Ok(row);
    }
    let present = Present { name: name.clone(), stands: NameView::find(rows, name)? };
    let cause = format!("{expected} was expected, and {present}");
    let e = Error::new(ErrorKind::Conflict, operation, name, cause);
    Err(e.with_source(present))
}

/// Lets `name` stand for `object`, in a generation that it never had; what it was before is `old`.
pub(super) fn set_name(
    w: &mut Write<'_>,
    name: &Name,
    old: Option<&NameRow>,
    (object, digest, len): (ObjectId, Digest, u64),
) -> Result<NameView> {
    let commit = w.commit_seq();
    // Commits are numbered upwards for ever: a name that was released and published again does not begin at
    // a generation that it had.
    let after = old.map_or(0, |old| old.generation.0.saturating_add(1));
    let first = if Protection::NameNeverAgain.is_on() { commit.0 } else { 1 };
    let generation = NameGeneration(after.max(first));
    w.put(&name.key(), &NameRow { generation, object, len, commit, form: ValueForm::Bytes })?;
    Ok(NameView { name: name.clone(), digest, len, generation, commit })
}
