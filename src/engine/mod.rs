//! engine: open, recover, publish, fetch, retire, reclaim, claim, lease.
//!
//! ```text
//!        append            seal -> publish           retire -> reclaim
//!          |                 |        |                 |         |
//!     journal (bytes     sealed    manifest          manifest   unlink,
//!     acknowledged)      (bytes)   (rows)            (rows)     compact
//!          \                 |        |                 |         /
//!           +------ core: disk, manifest, who we are, condition -+
//! ```
//!
//! One record's way: `append` (in memory) -> journal (written, durable) -> `seal` (a chunk, durable,
//! invisible) -> `publish` (a row names it) -> its journal is forgotten.
//!
//! - P1: *Durable* is told after the sync, and after the commit where there is one.
//! - P2: recovery reads the unsealed journals and nothing else of that size (`recover`).
//! - P3: rows name durable bytes only (`publish`); files go after the rows that named them
//!   (`reclaim`).
//! - P4: one transaction for everything that belongs together (`publish`, `retire`, `compact`).
//! - P5, P8: every change goes through `core`, which checks condition and owner.

mod account;
mod ack;
mod append;
mod backup;
mod ballast;
mod bell;
mod checkpoint;
mod chunk_label;
mod claim;
mod claim_free;
mod claim_left;
mod close;
mod compact;
mod compact_manifest;
mod condition;
mod core;
mod enter;
mod fetch;
mod follow;
mod follow_journal;
mod follow_stream;
mod fork;
mod health;
mod hold;
mod info;
mod journals;
mod kept;
mod label_rows;
mod left;
mod merge;
mod open;
mod options;
mod owner;
mod pack;
mod phases;
mod pin;
mod pin_recipe;
#[cfg(test)]
mod pin_tests;
mod publish;
mod read_back;
mod reads_whole;
mod reclaim;
mod reclaim_plan;
mod reclaim_thread;
mod recover;
mod remains;
mod removing;
mod retain;
mod retire;
mod rewind;
#[cfg(test)]
mod salvage_tests;
mod scrub;
mod seal;
mod sealer;
mod single;
mod snapshot;
#[cfg(test)]
mod stage_support;
mod store;
mod streamed;
mod streams;
mod sweep;
mod tail;
mod take_in;
mod take_over;
mod taking;
#[cfg(test)]
mod taking_tests;
mod view;
mod view_with;
mod waiting;
mod why;
mod with_objects;
mod worker;

pub use crate::manifest::Compacted;
pub use account::Accounts;
pub(crate) use append::JOURNAL_HOLDER;
pub use append::{Accepted, Append};
pub use backup::{Backup, BackupOptions, BackupProgress};
pub use checkpoint::{Checkpoint, CheckpointNote};
pub(crate) use checkpoint::{STATE_INLINE_BYTES_MAX, place_of_scope};
pub use claim::{Claim, ClaimHeld};
pub use condition::{Attempt, Outcome};
pub use enter::WriteAccess;
pub use fetch::OPEN_FILES_MAX;
pub(crate) use fetch::stored;

pub(crate) use bell::pause;
pub use follow::FollowLevel;
pub(crate) use follow::Follower;
pub(crate) use follow_stream::Take;
pub use fork::{Branch, Fork, Forked};
pub use health::{Health, Stats};
pub use info::Info;
pub use options::Options;
pub use pack::{Packed, Packing};
pub use phases::Phases;
pub(crate) use pin::Pin;
pub(crate) use pin_recipe::Run;
pub(crate) use publish::count_dropped;
pub use publish::{ChunkBuild, Sealing};
pub use reclaim::{Budget, Reclaimed};
pub(crate) use reclaim::{SALVAGE_HOLD, SALVAGE_HOLDER};
pub use reclaim_plan::ReclaimPlan;
pub use recover::Recovery;
pub(crate) use removing::{
    names_of_snapshot, remove_leased, remove_name, remove_name_handoff, remove_object_snapshot,
    remove_preparation,
};
pub use retire::{Retired, Thing};
pub use scrub::{ScrubBudget, ScrubFinding, Scrubbed};
pub(crate) use seal::{Content, RowText, SealedSet};
pub use sealer::Sealer;
pub use single::Layout;
pub use snapshot::SnapshotAge;
pub use store::Store;
pub(crate) use streams::is_kept;
pub(crate) use taking::{Taken, create_intake, retire_intake};
pub use view::StreamView;
pub use waiting::Waiting;
pub use why::{FileKept, Keeper, ObjectKept, Receipt};
pub use with_objects::NewObject;
