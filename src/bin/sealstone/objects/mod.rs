//! objects: the commands over files that are stored by content.
//!
//! ```text
//!   files ──[put]──▶ leased ──[put --name, lease publish]──▶ names ──[get]──▶ files
//!                      │                                       │
//!                      ╰─[lease abandon]─▶ retired ◀──[names rm, retire]── snapshots
//!                                             ╰──[gc]──▶ given back
//! ```
//!
//! - What a name says never chooses a path: `get` writes to standard output, or where it is told to.

mod args;
mod du;
mod gc;
mod get;
mod kept;
mod lease;
mod names;
mod put;
mod retire;
mod run;
mod scrub;
mod snapshot;
mod sources;
mod why;

pub use args::{ObjectsCommand, ThingsArgs};
pub use retire::run as retire;
pub use run::run;
