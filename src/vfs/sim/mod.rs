//! sim: a disk in memory, made from a seed.
//!
//! ```text
//!   SimDisk, SimFile (disk, file)      what a process holds
//!            |
//!          World (world, locks)        the cached tree, clocks, handles, locks
//!            |
//!          Event (event)               what happened, in order
//! ```

#[allow(dead_code)]
mod content;
mod disk;
mod event;
mod file;
mod locks;
mod rng;
mod world;

pub use disk::SimDisk;
pub use event::{Event, Place};
pub use rng::Rng;
pub use world::Inode;
