//! The one error type: what failed, where, why, and what its kind asks of the caller.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The result of every fallible call in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What an [`Error`] asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The disk refused an operation. The store may have halted: see [`ErrorKind::Halted`].
    Io,
    /// No space is left. Retire and reclaim, or enlarge the disk; earlier state is intact.
    DiskFull,
    /// Another process owns the store. Wait for it, or end the process that the message names.
    InUse,
    /// The path holds no store. Check the path, or create one.
    NoStore,
    /// The thing to create is there already, and was left as it is. Choose another name.
    Exists,
    /// No row names the thing asked for.
    NotFound,
    /// The recording has no checkpoint to go on from. Resume from its tail, or start anew.
    NoCheckpoint,
    /// The store stands but its manifest is gone. Put it back, or salvage.
    ManifestLost,
    /// A file belongs to another store. Put this store's own file back, or salvage.
    Foreign,
    /// A newer release wrote this, or it needs a feature this build lacks. Upgrade; nothing is damaged.
    NewerFormat,
    /// The manifest is older than what was acknowledged. Restore the newer file, or salvage.
    RolledBack,
    /// Bytes contradict what a committed row says of them. Everything else stays readable: run `check`.
    Damage,
    /// The value was stored as another type. Read it as that type, or as bytes.
    TypeMismatch,
    /// An argument is not acceptable. Nothing was changed; correct it and call again.
    Invalid,
    /// Input from outside is not acceptable; the message names row and column.
    Input,
    /// Someone else holds what this call needs, or an expected value was not there. Look again, then retry.
    Conflict,
    /// This owner's row was ended by another process. Reopen the store.
    Fenced,
    /// An earlier failure halted the store. Reopen it; the message carries the first cause.
    Halted,
    /// It is not known whether the change took place. Reopen the store and ask for the outcome.
    OutcomeUnknown,
    /// The handle was closed or consumed.
    Closed,
    /// The store was opened read-only. Open it for writing.
    ReadOnly,
    /// The handle was carried into a forked child. Open the store in the child.
    Forked,
    /// A stated bound would be passed. Make the thing smaller, or raise the limit.
    LimitExceeded,
    /// The queue has no room now, and the caller asked not to wait. Nothing was accepted; try again.
    QueueFull,
    /// The platform or file system lacks something that safety needs.
    Unsupported,
    /// The caller's cancellation was honoured.
    Cancelled,
    /// A wait ended at its deadline. The thing waited for may still happen.
    TimedOut,
    /// Code handed in by the caller panicked. Nothing accepted was lost.
    CallerPanicked,
}

impl ErrorKind {
    /// A stable lower-case name, as printed by `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::DiskFull => "disk_full",
            Self::InUse => "in_use",
            Self::NoStore => "no_store",
            Self::Exists => "exists",
            Self::NotFound => "not_found",
            Self::NoCheckpoint => "no_checkpoint",
            Self::ManifestLost => "manifest_lost",
            Self::Foreign => "foreign",
            Self::NewerFormat => "newer_format",
            Self::RolledBack => "rolled_back",
            Self::Damage => "damage",
            Self::TypeMismatch => "type_mismatch",
            Self::Invalid => "invalid",
            Self::Input => "input",
            Self::Conflict => "conflict",
            Self::Fenced => "fenced",
            Self::Halted => "halted",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Closed => "closed",
            Self::ReadOnly => "read_only",
            Self::Forked => "forked",
            Self::LimitExceeded => "limit_exceeded",
            Self::QueueFull => "queue_full",
            Self::Unsupported => "unsupported",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::CallerPanicked => "caller_panicked",
        }
    }
}

/// An error of this crate: `<operation> <place>: <cause>`.
///
/// Cloning is cheap, so that one failure can be told to every caller that it stops. The chain of
/// causes is behind [`source`](StdError::source); the text does not repeat it.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    place: String,
    cause: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Makes an error of `kind` met by `operation` at `place`, with the cause in words.
    pub fn new(
        kind: ErrorKind,
        operation: &'static str,
        place: impl fmt::Display,
        cause: impl fmt::Display,
    ) -> Self {
        Self(Box::new(Inner {
            kind,
            operation,
            place: place.to_string(),
            cause: cause.to_string(),
            source: None,
        }))
    }

    /// Wraps an error of the disk; a full disk gets its own kind. A file that lies in the manifest
    /// fails with an error of this type, whose kind stays.
    pub fn io(operation: &'static str, place: impl fmt::Display, source: io::Error) -> Self {
        if let Some(ours) = source.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
            return Self::new(ours.kind(), operation, place, ours.cause()).with_source(source);
        }
        let full = matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        let (kind, cause) = if full {
            (ErrorKind::DiskFull, "no space is left")
        } else {
            (ErrorKind::Io, "the disk refused")
        };
        Self::new(kind, operation, place, cause).with_source(source)
    }

    /// Bytes at `place` contradict what is known of them.
    pub fn damage(
        operation: &'static str,
        place: impl fmt::Display,
        cause: impl fmt::Display,
    ) -> Self {
        Self::new(ErrorKind::Damage, operation, place, cause)
    }

    /// An argument is not acceptable.
    pub fn invalid(
        operation: &'static str,
        place: impl fmt::Display,
        cause: impl fmt::Display,
    ) -> Self {
        Self::new(ErrorKind::Invalid, operation, place, cause)
    }

    /// Hangs the error that caused this one behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The same failure, told of the place that its caller knows; its source stays.
    #[must_use]
    pub(crate) fn told_of(mut self, operation: &'static str, place: impl fmt::Display) -> Self {
        self.0.operation = operation;
        self.0.place = place.to_string();
        self
    }

    /// The same failure seen from a store that it stopped.
    #[must_use]
    pub fn as_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// What the caller should do next.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The verb that failed.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The file, row or name at which it failed.
    pub fn place(&self) -> &str {
        &self.0.place
    }

    /// The cause in words, without the operation, the place or the chain.
    pub fn cause(&self) -> &str {
        &self.0.cause
    }

    /// The whole chain on one line, for a log or a terminal.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut next = self.source();
        while let Some(source) = next {
            text.push_str(": ");
            text.push_str(&source.to_string());
            next = source.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.0.operation, self.0.place, self.0.cause)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.0.kind, self.chain())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the text leave the cause's own words to the chain?
    #[test]
    fn display_does_not_repeat_the_source() {
        let error = Error::io("sync", "a.journal", io::Error::other("flaky cable"));
        assert_eq!(error.to_string(), "sync a.journal: the disk refused");
        assert_eq!(error.chain(), "sync a.journal: the disk refused: flaky cable");
    }

    /// Is damage still damage when it came through a disk, as a single file's own files do?
    #[test]
    fn an_error_of_ours_keeps_its_kind_through_a_disk() {
        let inner = Error::damage("read", "pages (1, 2)", "the row's checksum does not fit");
        let error = Error::io("read", "sealed/00/x", io::Error::other(inner));
        assert_eq!(error.kind(), ErrorKind::Damage);
        assert_eq!(error.to_string(), "read sealed/00/x: the row's checksum does not fit");
    }

    /// Is a full disk told apart, quota and file limits included?
    #[test]
    fn a_full_disk_has_its_own_kind() {
        for kind in
            [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge]
        {
            assert_eq!(Error::io("write", "x", kind.into()).kind(), ErrorKind::DiskFull);
        }
    }
}
