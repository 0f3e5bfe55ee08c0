//! vfs: the one door to the disk.
//!
//! ```text
//!   manifest   journal   sealed   engine
//!        \        |        |       /
//!         +-- Disk, File (disk) --+
//!           |          |          |
//!         real     trace, around   sim
//! ```
//!
//! Paths and bytes go in, durability comes out: nothing above this room names `std::fs`.

mod aligned;
mod around;
mod counts;
mod disk;
mod fresh;
mod io;
mod real;
mod real_file;
mod real_lock;
#[cfg(feature = "sim")]
pub mod sim;
mod step;
mod trace;

pub use aligned::AlignedBuffer;
pub use around::{AroundDisk, AroundFile};
pub use counts::{Counts, Operation};

pub use disk::{
    Access, DirectIo, Disk, Entry, EntryKind, File, Held, Identity, LockRange, Meta, Sharing, Space,
};
pub use fresh::FreshFile;
pub use io::{read_exact_at, read_whole, write_all_at};
pub use real::RealDisk;
pub use step::Step;
pub use trace::{Call, TraceDisk};
