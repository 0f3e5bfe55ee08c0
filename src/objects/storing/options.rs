//! How to prepare and how to put, and what became of it.

use crate::digest::Digest;
use crate::error::{Error, Result};

/// The longest content that is stored as one object in a sealed file that it shares: 1 MiB.
pub const WHOLE_BYTES_MAX: u64 = 1 << 20;

/// How to begin a preparation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrepareOptions {
    /// What it is for, for people; its name where this is empty.
    pub purpose: String,
    /// Wall-clock nanoseconds since 1970 after which it is told to be late. Nothing goes for that.
    pub deadline: Option<i64>,
}

/// Whether content is cut into pieces, each an object of its own that other files may have as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pieces {
    /// Above 1 MiB, into pieces of 8 KiB to 128 KiB, about 32 KiB in the mean.
    #[default]
    Auto,
    /// Never: above 1 MiB it has a sealed file of its own.
    Never,
    /// Whatever its length, into pieces of these lengths in bytes. Each is even, and they do not fall;
    /// `min` is from 64 to 1 MiB, `avg` from 256 to 4 MiB, `max` from 1 KiB to 16 MiB.
    Of {
        /// No piece but the last one is shorter.
        min: u32,
        /// About the mean length.
        avg: u32,
        /// No piece is longer.
        max: u32,
    },
}

/// Whether content is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compress {
    /// Where a sample of it says that it pays.
    #[default]
    Auto,
    /// Never.
    Never,
}

/// How to put.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// Whether it is cut into pieces.
    pub pieces: Pieces,
    /// Whether it is compressed.
    pub compress: Compress,
}

/// What was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Names the content.
    pub digest: Digest,
    /// Its length.
    pub len: u64,
    /// Of how many pieces it consists; 0 where it is one object.
    pub pieces: u64,
    /// Bytes of it that were neither stored nor put before, as far as could be seen when they came by.
    pub new_bytes: u64,
    /// Whether the content as a whole was neither stored nor put before, as far as could be seen.
    pub is_new: bool,
}

/// Lengths of pieces in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) min: usize,
    pub(super) avg: usize,
    pub(super) max: usize,
}

impl Pieces {
    /// The lengths, where it says to cut.
    pub(super) fn lengths(self) -> Result<Option<Lengths>> {
        let (min, avg, max) = match self {
            Self::Never => return Ok(None),
            Self::Auto => (8 << 10, 32 << 10, 128 << 10),
            Self::Of { min, avg, max } => (min as usize, avg as usize, max as usize),
        };
        let are_even = [min, avg, max].iter().all(|len| len.is_multiple_of(2));
        let are_bounded = (64..=1 << 20).contains(&min)
            && (256..=4 << 20).contains(&avg)
            && (1 << 10..=16 << 20).contains(&max);
        if !are_even || !are_bounded || min > avg || avg > max {
            let cause = "give even lengths that do not fall: min of 64 to 1 MiB, avg of 256 to 4 MiB, \
                         max of 1 KiB to 16 MiB";
            return Err(Error::invalid("put", "lengths of pieces", cause));
        }
        Ok(Some(Lengths { min, avg, max }))
    }

    /// Up to which length content is not cut.
    pub(super) fn whole_upto(self) -> u64 {
        if matches!(self, Self::Of { .. }) { 0 } else { WHOLE_BYTES_MAX }
    }
}
