//! body: the files of a store that is one file. A disk over tables of the manifest: whoever writes
//! journals and sealed files above it sees the names of a directory.
//!
//! ```text
//!   journal, sealed, engine
//!        |  Disk, File                     paths below the store: here
//!     BodyDisk (disk), its files (file)    all else: the disk underneath
//!        |
//!     Pending (pending)   names and pages that no commit carries yet
//!        |  carried by the next transaction, whoever makes it
//!     bodies (name -> length)   pages, frames (bytes)   which file is which: names
//! ```
//!
//! - P1: a journal is synced by a commit, which is the barrier itself.
//! - P3: what is written before a transaction is carried by it or by an earlier one, so a row and
//!   the bytes that it names are durable together, without a sync of their own.
//! - P6: pages are rows: each passes its checksum, and one that is missing is damage.
//! - What waits in memory is bounded; past the bound it is committed, named by nothing yet.

mod content;
mod disk;
mod file;
mod fill;
mod lock;
mod names;
mod pending;
mod room;

pub use disk::{BodyDisk, Books};
pub use lock::lock_file;
pub(super) use lock::{AROUND_THE_STORES_LOCK, lock_open_file};
pub(super) use pending::Pending;
pub(super) use room::spare_bytes;
