//! What a check found wrong: which rule, and in which words.

use std::fmt;

use crate::error::Error;

macro_rules! rules {
    ($($variant:ident = $name:literal: $doc:literal,)*) => {
        /// A rule of the checker.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $doc] $variant,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant,)*];

            /// Its name in tables.
            pub fn name(self) -> &'static str {
                match self {
                    $(Rule::$variant => $name,)*
                }
            }
        }
    };
}

rules! {
    Opens = "opens": "P2: a store opens unaided after a crash anywhere.",
    Steps = "opens in bounded steps": "P2: opening takes a bounded number of calls to the disk.",
    State = "state k or k+1": "G1, G3, G5: what is there is what was acknowledged, or one step more.",
    Digests = "every digest verifies": "G6: each object's bytes are there and are what its digest says.",
    Leases = "no leaked payload": "G8: each payload that a journal keeps is named by a record.",
    Books = "closed books": "P10: the classes of bytes add up to what the disk holds.",
    Orphans = "no orphan": "G8: after reclaim nothing is left that no row names.",
    Kept = "reclaim keeps": "G8: nothing that is referred to goes with reclaim.",
    Claims = "claims": "G9: claims stand as committed, and those of the dead are free.",
    Counters = "counters grow": "G9: epochs and counters never fall.",
    Again = "opens the same again": "G10: another opening shows the same.",
    Opened = "Opened is kept": "G10: what one recovery showed, no later one takes back.",
    ReadOnly = "read-only": "G20: a read-only opening changes nothing and shows an allowed state.",
    Acted = "an operation that must succeed": "An operation of a history failed without a cause.",
    Fenced = "fence": "P5: a fenced owner changes nothing.",
    TraceCommit = "trace: synced before commit": "P3: no commit while a sealed file or its name is dirty.",
    TraceSealed = "trace: sealed bytes": "G7: no write to a sealed name.",
    TraceUnlink = "trace: commit before unlink": "P3: no sealed file goes before the commit that marks it.",
    TraceSync = "trace: no sync retried": "G14: a sync that failed is not tried again.",
    Damage = "damage is told": "G12: bytes that were durable and do not read are an error.",
    RolledBack = "rolled back is told": "G13: an older manifest is an error.",
    Stale = "stale bytes are no records": "P9: bytes of another journal are not taken for records.",
    Halts = "halts": "P8: after a failed sync or commit the store says so until reopened.",
    Outcome = "outcome": "P8: an unknown outcome is learnt truly.",
    Baseline = "handles and locks": "G19: after an error handles and locks are back at their baseline.",
    Space = "space is bounded": "G8: crash loops do not grow the disk.",
    Backup = "a backup is whole": "P1, P3: a backup cut anywhere is the earlier one or the new one.",
    Salvage = "salvage": "G25: what salvage brings back is a state that was, and what it lists.",
    Replay = "the same again": "G4: equal seeds and equal calls give equal runs.",
}

/// A rule that did not hold.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Which.
    pub rule: Rule,
    /// What was seen.
    pub seen: String,
}

impl Finding {
    /// What broke `rule`.
    pub fn new(rule: Rule, seen: impl fmt::Display) -> Self {
        Self { rule, seen: seen.to_string() }
    }

    /// An error that broke `rule`.
    pub fn error(rule: Rule, doing: &str, error: &Error) -> Self {
        Self::new(rule, format!("{doing}: {:?} {}", error.kind(), error.chain()))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.rule.name(), self.seen)
    }
}
