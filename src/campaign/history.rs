//! Histories: a line of text says what is done to a store, operation by operation.
//!
//! `7:tiny:!NNAB|PV` is seed 7, tiny limits, a prefix that is not cut, and after the bar what is.
//! What an operation picks (streams, lengths) follows from the seed and its place in the line.

use std::fmt;
use std::str::FromStr;

pub use super::shapes::Shape;
use super::shapes::{is_paired, is_shape};
use crate::engine::Layout;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::vfs::sim::Rng;

/// Bounds of a history's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limited {
    /// As small as may be: every path is taken within a few records.
    Tiny,
    /// The same with the 256 folders of real stores.
    Wide,
    /// The same on a disk that is soon full.
    Scarce,
    /// As `Tiny`, in one file.
    File,
    /// As `Scarce`, in one file.
    ScarceFile,
}

impl Limited {
    const ALL: [Self; 5] = [Self::Tiny, Self::Wide, Self::Scarce, Self::File, Self::ScarceFile];

    fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Wide => "wide",
            Self::Scarce => "scarce",
            Self::File => "file",
            Self::ScarceFile => "scarce-file",
        }
    }

    /// How the store lies on disk.
    pub fn layout(self) -> Layout {
        match self {
            Self::File | Self::ScarceFile => Layout::SingleFile,
            Self::Tiny | Self::Wide | Self::Scarce => Layout::Directory,
        }
    }

    /// The limits of the store.
    pub fn limits(self) -> Limits {
        let mut limits = Limits {
            queue_bytes: 32 << 10,
            journal_file_bytes: 2 << 10,
            journal_budget_bytes: 4 << 10,
            journal_prewrite_bytes: 1 << 10,
            frame_bytes_max: 16 << 10,
            payload_inline_bytes_max: 600,
            object_inline_bytes_max: 64,
            block_bytes: 512,
            sealed_file_bytes: 2 << 10,
            compact_dead_percent: 25,
            sealed_folders: 2,
            manifest_cache_bytes: 1 << 20,
            ballast_bytes: 8 << 10,
            low_water_bytes: 16 << 10,
            head_commits: 3,
            history_max: super::play::names::HISTORY_MAX,
            receipts_max: 2,
            owners_max: 6,
            background: false,
            ..Limits::default()
        };
        if self == Self::Wide {
            limits.sealed_folders = 256;
        }
        if matches!(self, Self::Scarce | Self::ScarceFile) {
            limits.ballast_bytes = 128 << 10;
            limits.low_water_bytes = 256 << 10;
        }
        limits
    }
}

/// What is done to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// What the picks follow from.
    pub seed: u64,
    /// The bounds.
    pub limited: Limited,
    /// Done first, and not cut.
    pub prefix: Vec<Shape>,
    /// Done after it, and cut at every event.
    pub cut: Vec<Shape>,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |shapes: &[Shape]| shapes.iter().map(|s| s.code()).collect::<String>();
        let (prefix, cut) = (text(&self.prefix), text(&self.cut));
        write!(f, "{}:{}:{prefix}|{cut}", self.seed, self.limited.name())
    }
}

impl FromStr for History {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse =
            || Error::invalid("parse", "history", format!("'{text}' is not seed:limits:ops|ops"));
        let (seed, rest) = text.split_once(':').ok_or_else(refuse)?;
        let (limited, ops) = rest.split_once(':').ok_or_else(refuse)?;
        let (prefix, cut) = ops.split_once('|').ok_or_else(refuse)?;
        let shapes = |text: &str| {
            text.chars().map(|c| Shape::of_code(c).ok_or_else(refuse)).collect::<Result<Vec<_>>>()
        };
        Ok(Self {
            seed: seed.parse().map_err(|_| refuse())?,
            limited: Limited::ALL.into_iter().find(|l| l.name() == limited).ok_or_else(refuse)?,
            prefix: shapes(prefix)?,
            cut: shapes(cut)?,
        })
    }
}

impl History {
    /// A history with tiny limits.
    ///
    /// # Errors
    /// `Invalid` for a letter that no shape has.
    pub fn tiny(seed: u64, ops: &str) -> Result<Self> {
        format!("{seed}:tiny:{ops}").parse()
    }
}

/// A store with something of everything, and records that are not durable yet.
const PREFIX: &str = "!NNAGBLPCOEnHAG";

/// What the picks of a pair may miss: journals that go, a file of two streams that is compacted.
const SURE: [&str; 2] = ["!N1|kP", "!NNGGGGQ|UV"];

/// What is done to a whole store, before and after what changes it.
const WHOLE: [&str; 8] = [
    "!NNAGBPOF|MV",
    "!NNAGBLPC|kM",
    "!NNABPU|MM",
    "!NNAGBPOAb|GPb",
    "!NNABPObF|Vb",
    "!NNAGBO|m",
    "!NNA1b|Rb",
    "!NLABb|kb",
];

fn prefix() -> Vec<Shape> {
    PREFIX.chars().filter_map(Shape::of_code).collect()
}

/// Every operation alone after the prefix, and the births.
pub fn singles(seed: u64) -> Vec<History> {
    let mut all = Vec::new();
    for (limited, cut) in [
        (Limited::Tiny, "!NAB"),
        (Limited::Wide, "!"),
        (Limited::Scarce, "!NAOdV"),
        (Limited::File, "!NAB"),
        (Limited::ScarceFile, "!NAOdV"),
    ] {
        let cut = cut.chars().filter_map(Shape::of_code).collect();
        all.push(History { seed, limited, prefix: Vec::new(), cut });
    }
    all.extend(SURE.iter().filter_map(|ops| History::tiny(seed, ops).ok()));
    for shape in Shape::ALL.iter().filter(|shape| is_shape(**shape)) {
        for limited in [Limited::Tiny, Limited::File] {
            all.push(History { seed, limited, prefix: prefix(), cut: vec![*shape] });
        }
    }
    all
}

/// One pair of operations in `one_in`, after the prefix, in the two layouts by turns: what one seed does
/// in one of them, the next seed does in the other. The seed also says which pairs.
pub fn pairs(seed: u64, one_in: u64) -> Vec<History> {
    let shapes = || Shape::ALL.iter().filter(|shape| is_paired(**shape)).zip(0u64..);
    let pair = |(first, one): (&Shape, u64), (second, other): (&Shape, u64)| {
        let cut = vec![*first, *second];
        History { seed, limited: in_turn(seed.wrapping_add(one + other)), prefix: prefix(), cut }
    };
    // Each shape stays first in some pairs and second in others, in both layouts.
    let is_taken =
        |one: u64, other: u64| seed.wrapping_add(one * 3 + other).is_multiple_of(one_in.max(1));
    let mut all: Vec<History> = shapes()
        .flat_map(|first| shapes().map(move |second| (first, second)))
        .filter(|((_, one), (_, other))| is_taken(*one, *other))
        .map(|(first, second)| pair(first, second))
        .collect();
    for (ops, at) in WHOLE.iter().zip(0..) {
        let limited = match ops.contains(['b', 'm']) {
            true => Limited::Tiny,
            false => in_turn(seed.wrapping_add(at)),
        };
        all.extend(History::tiny(seed, ops).map(|history| History { limited, ..history }).ok());
    }
    all
}

fn in_turn(at: u64) -> Limited {
    if at.is_multiple_of(2) { Limited::File } else { Limited::Tiny }
}

/// A longer history, from a seed.
pub fn random(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let shapes: Vec<Shape> = Shape::ALL.iter().copied().filter(|s| is_shape(*s)).collect();
    let mut pick = |n: u64| -> Vec<Shape> {
        (0..n)
            .map(|_| match rng.below(5) {
                0 => Shape::Append,
                1 => Shape::Group,
                _ => shapes[rng.index(shapes.len())],
            })
            .collect()
    };
    let mut prefix = vec![Shape::Birth, Shape::Stream, Shape::Stream];
    prefix.extend(pick(12));
    History { seed, limited: in_turn(seed / 2), prefix, cut: pick(6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do histories read back as what was written?
    #[test]
    fn histories_round_trip_as_text() {
        let all = singles(3).into_iter().chain(pairs(3, 1)).chain([random(9)]);
        for history in all {
            assert_eq!(history.to_string().parse::<History>().unwrap(), history);
        }
        for text in ["", "1:tiny:!", "x:tiny:!|", "1:huge:!|", "1:tiny:~|"] {
            assert!(text.parse::<History>().is_err(), "{text}");
        }
    }
}
