//! What every part of a check holds: the store opened for reading, the report so far, and who is
//! told of progress.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use super::report::{Finding, Report, Severity};
use super::run::Progress;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{MetaRow, Row};
use crate::vfs::Disk;

pub(super) struct Look<'p> {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) root: PathBuf,
    pub(super) store: Store,
    pub(super) meta: MetaRow,
    pub(super) fast: bool,
    pub(super) report: Report,
    pub(super) progress: &'p mut dyn FnMut(Progress) -> ControlFlow<()>,
    pub(super) at: Progress,
}

impl Look<'_> {
    pub(super) fn find(
        &mut self,
        severity: Severity,
        place: impl Display,
        what: impl Into<String>,
        means: impl Into<String>,
    ) {
        self.report.push(finding(severity, place, what, means));
    }

    /// Something did not read.
    pub(super) fn failed(&mut self, error: &Error, means: impl Into<String>) {
        self.report.push(failure(Severity::Damage, error, means));
    }

    /// Begins a part of the check with so much to do.
    pub(super) fn begin(&mut self, part: &'static str, total: u64) -> Result<()> {
        self.at = Progress { part, done: 0, total };
        self.tell()
    }

    /// So much more is done.
    pub(super) fn did(&mut self, more: u64) -> Result<()> {
        self.at.done = self.at.done.saturating_add(more);
        self.tell()
    }

    fn tell(&mut self) -> Result<()> {
        match (self.progress)(self.at) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                let cause = "the caller ended it; nothing was changed";
                Err(Error::new(ErrorKind::Cancelled, "check", self.root.display(), cause))
            }
        }
    }
}

pub(super) fn finding(
    severity: Severity,
    place: impl Display,
    what: impl Into<String>,
    means: impl Into<String>,
) -> Finding {
    Finding { severity, place: place.to_string(), what: what.into(), means: means.into() }
}

pub(super) fn failure(severity: Severity, error: &Error, means: impl Into<String>) -> Finding {
    let mut what = error.cause().to_owned();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        what.push_str(": ");
        what.push_str(&source.to_string());
        next = source.source();
    }
    finding(severity, error.place(), what, means)
}

/// Names a row in a finding.
pub(super) fn place_of<R: Row>(key: &R::Key) -> String {
    format!("{} {key:?}", R::TABLE.name())
}
