//! What a check found, for people and for programs.

use std::fmt;

use crate::engine::Accounts;
use crate::ids::{CommitSeq, StoreId};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Expected after a crash, or not ours: nothing is wrong.
    Note,
    /// Something is not as it should be, and nothing that was stored is lost.
    Warning,
    /// Bytes contradict what a committed row says of them.
    Damage,
}

impl Severity {
    /// A stable lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Damage => "damage",
        }
    }
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file, with the offset where one is known, or the row.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What that means: what is lost, or what will be done about it.
    pub means: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, place, what, means } = self;
        write!(f, "{}: {place}: {what}; {means}", severity.name())
    }
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookedAt {
    /// Rows of the manifest.
    pub rows: u64,
    /// Rows of the manifest that say which row refers to which object.
    pub edges: u64,
    /// Objects.
    pub objects: u64,
    /// Sealed files.
    pub files: u64,
    /// Journals.
    pub journals: u64,
    /// Unsealed records in them.
    pub records: u64,
    /// Streams.
    pub streams: u64,
    /// Their chunks.
    pub chunks: u64,
}

/// The result of a check.
#[derive(Debug, Clone)]
pub struct Report {
    /// The store.
    pub store: StoreId,
    /// Its newest commit when the check began.
    pub commit: CommitSeq,
    /// Whether only lengths and labels were looked at.
    pub is_fast: bool,
    /// What was found, in the order of looking; at most [`Report::FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Findings beyond that bound.
    pub left_out: u64,
    /// Contradictions between bytes and rows, those left out included.
    pub damages: u64,
    /// Other things amiss.
    pub warnings: u64,
    /// Things that are well, and worth knowing.
    pub notes: u64,
    /// How much was looked at.
    pub looked_at: LookedAt,
    /// Bytes read from manifest, sealed files and journals.
    pub bytes_read: u64,
    /// Bytes by class; `None` when a row that they need does not read.
    pub accounts: Option<Accounts>,
}

impl Report {
    /// Findings kept.
    pub const FINDINGS_MAX: usize = 10_000;

    pub(super) fn new(store: StoreId, commit: CommitSeq, is_fast: bool) -> Self {
        Self {
            store,
            commit,
            is_fast,
            findings: Vec::new(),
            left_out: 0,
            damages: 0,
            warnings: 0,
            notes: 0,
            looked_at: LookedAt::default(),
            bytes_read: 0,
            accounts: None,
        }
    }

    /// Whether nothing is damaged and nothing is amiss. Notes do not count.
    pub fn is_good(&self) -> bool {
        self.damages == 0 && self.warnings == 0
    }

    pub(super) fn push(&mut self, finding: Finding) {
        match finding.severity {
            Severity::Damage => self.damages += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => self.notes += 1,
        }
        if self.findings.len() < Self::FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.left_out += 1;
        }
    }
}
