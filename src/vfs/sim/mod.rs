//! sim: a disk in memory, made from a seed.
//!
//! ```text
//!   SimDisk, SimFile                  what one process holds                 disk, file
//!       |
//!     World ---- Locks                the cached tree, handles, clocks       world, locks
//!       |   \
//!       |    EventLog of Events       what happened, in order                log, event
//!       |       |
//!       |     ImageCursor             walks the log; at each cut: Image      cursor
//!       |       |     \
//!       |       |      Outcomes       which crashes to look at               choices, outcome
//!       |       |
//!      Medium                         what is durable, what is on its way    medium
//!       |
//!     Content                         pages that versions share              content
//! ```
//!
//! - Equal seeds and equal calls give equal runs, lists and images.
//! - Processes see the cache; a crash shows the medium.
//! - The contract with the medium (single bytes are atomic, bytes outside a write do not change, a
//!   sync that succeeded is honoured) holds in every image, whatever the profile.
//! - One thing is not simulated: the handles of a killed process close at once, as they do under a
//!   real kernel, but a thread of it that waits for a lock learns of it only when a lock is released.

mod choices;
#[allow(dead_code)]
mod content;
mod cursor;
mod disk;
mod event;
mod file;
mod locks;
mod log;
mod medium;
mod outcome;
mod rng;
mod world;

pub use cursor::{Image, ImageCursor};
pub use disk::SimDisk;
pub use event::{Event, Place, SyncFailure};
pub use log::EventLog;
pub use outcome::{Outcome, Outcomes, Profile};
pub use rng::Rng;
pub use world::Inode;
