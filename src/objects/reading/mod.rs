//! reading: an object whole, in ranges, or as a stream.
//!
//! ```text
//!   [Objects::get] digest ──╮
//!   [Objects::open] name ───┴─▶ Object, pinned ──[bytes, range]──▶ bytes
//!                                  ├─[reader]───▶ ObjectReader: Read, Seek, a window at a time
//!                                  ╰─[verify]───▶ its digest, computed anew
//! ```
//!
//! - P6, OBJ2: no byte leaves here that did not pass its checksum.
//! - OBJ23: what was got stays readable in this process, whatever is retired, reclaimed or moved meanwhile.
//! - OBJ13: nothing here asks for a claim, or waits for whoever holds one.

mod get;
mod object;
mod reader;
mod verify;

pub use object::{IN_MEMORY_BYTES_MAX, Object};
pub use reader::{ObjectReader, READ_AHEAD_BYTES};
