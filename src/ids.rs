//! Names of things: newtypes, so that a stream's number is never taken for a file's.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number after this one, or `None` at the end of the range.
            pub fn next(self) -> Option<Self> {
                self.0.checked_add(1).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

number! {
    /// The number of one opening of a store, +1 each time, never used twice.
    Epoch(u64);
    /// An owner's own count of its commits, by which an unknown outcome is learnt.
    CommitCount(u64);
    /// The store's count of all commits.
    CommitSeq(u64);
    /// One object: immutable bytes named by their digest.
    ObjectId(u64);
    /// One sealed file.
    FileId(u64);
    /// One lease.
    LeaseId(u64);
    /// One recording.
    RecordingId(u64);
    /// One stream.
    StreamId(u64);
    /// Raised whenever a stream is moved back; frames of an older one beyond the cut are dropped.
    Generation(u32);
    /// Position of a record in its stream, from 0.
    Sequence(u64);
    /// Dense position of a chunk in its stream, from 0.
    Ordinal(u64);
    /// One value of a name: rises with each, never used twice for the name.
    NameGeneration(u64);
    /// One checkpoint.
    CheckpointId(u64);
    /// One event of a recording, from 0.
    EventId(u64);
    /// One receipt.
    ReceiptId(u64);
    /// One stage, for ever: one that is made again under a name has another.
    StageId(u64);
    /// One group of a stage, and its generation: of two groups of a key the later one is higher.
    GroupId(u64);
    /// One part of a group.
    PartId(u64);
    /// One output of a stage.
    OutputId(u64);
    /// One thing in quarantine.
    QuarantineId(u64);
    /// One publication to an outside system.
    HandoffId(u64);
    /// One snapshot of names.
    ObjectSnapshotId(u64);
}

macro_rules! universal {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// Builds an id from a wall-clock time in milliseconds since 1970 and 10 random bytes.
            pub fn from_parts(unix_millis: u64, random: [u8; 10]) -> Self {
                let mut wide = [0; 16];
                wide[6..].copy_from_slice(&random);
                Self(ulid::Ulid::from_parts(unix_millis, u128::from_be_bytes(wide)).to_bytes())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                ulid::Ulid::from_bytes(self.0).fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                ulid::Ulid::from_string(text)
                    .map(|id| Self(id.to_bytes()))
                    .map_err(|e| Error::invalid("parse", stringify!($name), format!("not a ULID ({e})")))
            }
        }
    )*};
}

/// When `owner` was opened, by its clock then: milliseconds since 1970. For people, not for
/// decisions.
pub fn unix_millis(owner: &OwnerId) -> u64 {
    ulid::Ulid::from_bytes(owner.0).timestamp_ms()
}

universal! {
    /// One store, for ever.
    StoreId;
    /// One opening of a store by a process.
    OwnerId;
    /// Makes a path unique, so that a late unlink can never hit a newer file.
    UniqueId;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do ids survive their text form, and is any other text refused?
    #[test]
    fn ulids_round_trip_as_text() {
        let id = OwnerId::from_parts(1_700_000_000_000, [7; 10]);
        assert_eq!(id.to_string().parse::<OwnerId>().unwrap(), id);
        assert!("not an id".parse::<OwnerId>().is_err());
        assert!("".parse::<StoreId>().is_err());
    }
}
