//! sim: a disk in memory, made from a seed.
//!
//! ```text
//!   SimDisk, SimFile                  what one process holds               disk, calls, file
//!       |
//!     World                           handles, clocks, space               world
//!       |-- Tree                      what every process sees              tree
//!       |-- Locks, Faults             who holds what; what goes wrong      locks, fault, falsify
//!       |-- Medium                    what is durable or on its way        medium, settle, order
//!       |-- EventLog of Events        what happened, in order              log, event
//!               |
//!             ImageCursor             walks the log with a Medium          cursor
//!               |-- Outcomes          which crashes to look at             choices, outcome
//!               |-- Image             what survived one: another SimDisk
//!
//!     Content                         pages that all of these share        content
//! ```
//!
//! - Equal seeds and equal calls give equal runs, lists and images.
//! - Processes see the cache; a crash shows the medium.
//! - The contract with the medium (single bytes are atomic, bytes outside a write do not change, a
//!   sync that succeeded is honoured) holds in every image, whatever the profile.

mod calls;
mod choices;
mod content;
mod cursor;
mod disk;
mod event;
mod falsify;
mod fault;
mod file;
mod locks;
mod log;
mod medium;
mod order;
mod outcome;
mod rng;
mod settle;
mod tree;
mod world;

pub use cursor::{Image, ImageCursor};
pub use disk::SimDisk;
pub use event::{Event, Place, SyncFailure};
pub use fault::{Fault, FaultKind, Fired};
pub use log::EventLog;
pub use outcome::{Outcome, Outcomes, Profile};
pub use rng::Rng;
pub use tree::Inode;
