//! pack: one layout made into the other, whole or not at all.
//!
//! ```text
//!   source: recovered, closed, locked, and then only read [source]
//!     |-- pack [into_file]: <name>.sealstone-new, locked -- rows, files' bytes -- synced, verified
//!     |                       -- linked to its name, directory synced, first name gone
//!     `-- unpack [into_directory]: <name>.sealstone-new/, locked -- files synced -- rows -- verified
//!                             -- renamed to its name, directory synced
//! ```
//! - P3: the target has its name only when all of it is durable.
//! - P6: everything is read back from the target and compared before that: files byte for byte,
//!   objects by digest [`verify`].
//! - P7: the source is only read; what is in the way and is not ours stays.
//! - A second call after a crash starts over, or finds the target whole and finishes.

mod files;
mod into_directory;
mod into_file;
mod run;
mod source;
mod verify;

pub use run::{Packed, Packing};
