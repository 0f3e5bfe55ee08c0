//! journal: acknowledged records not yet sealed, row-wise, one journal per owner.
//!
//! ```text
//!            [enqueue]            [lead: write]           [lead: sync]
//!   frame ---------------> queued --------------> written --------------> durable
//!                           |  ^                     |
//!                  [settle] |  | write failed        | sync failed
//!                           v  +---- told, kept      v
//!                        durable                  unknown: [poison], for ever
//!
//!   file:  absent --[birth: create, write + sync header, sync directory]--> nameable
//!          nameable --[Registrar::born commits its row]--> open
//!          open --[full, or a write failed: sync, Registrar::finished]--> finished
//! ```
//!
//! There is no thread here: whoever waits first becomes the leader, writes all that is queued, and
//! syncs once for all who wait. Futures take a seat, and are told by whoever leads.
//!
//! Invariants:
//! - P1: *Durable* is told after the data sync of the file, which is told after its row's commit.
//! - G2, G5: frames reach the file in the order of `enqueue`, without a hole; what a scan returns is
//!   a prefix.
//! - P8, G14: after a failed sync nothing is written, synced or acknowledged again.
//! - A file in which a write failed gets exactly the same frames at the same places again (disk
//!   full), or no byte ever again (anything else).
//! - No lock is held during I/O. `enqueue` never waits; `wait_for_room` does.

mod append;
mod birth;
mod book;
mod commit;
mod open_file;
mod queue;
mod read_on;
mod reader;
mod room;
mod scan;
mod seats;
mod ticket;
mod waiters;
mod window;
mod writer;

pub use crate::format::record::{Payload, Place, Record};
pub use append::{Journal, JournalConfig};
pub use birth::Registrar;
pub use book::OpenJournal;
pub(crate) use read_on::{ReadOn, Stopped};
pub use scan::{
    Expect, FrameAt, OnFrame, Scan, Tail, drop_cached, read_header, scan, sync_before_trust,
};
pub use seats::Seat;
pub(crate) use ticket::Keeper;
pub use ticket::{Level, Ticket};
pub use writer::Finished;
