//! state: values under names, for applications that keep a little and must not lose it.
//!
//! ```text
//!   put, compare_and_set, remove ──▶ batch ──[commit]──▶ ONE transaction:
//!                                                          expectations checked
//!      name ──▶ value        an object: equal ones are     values become objects
//!        └────▶ history      stored once                   replaced ones become history
//!                                                          what is too old goes
//!   get, find, list, versions ◀── a snapshot, in any process
//! ```
//!
//! - P4: the changes of one batch are one transaction, whatever their number.
//! - P1: *Durable* when the call returns.
//! - A generation is never used twice for a name, not even after it was removed: a compare-and-set
//!   never takes a later value for an earlier one.
//! - A value is read as a type of the shape that it was written as, or not at all (`format::shape`).
//! - No code of a caller runs inside a transaction.

mod batch;
mod entry;
mod list;
mod read;
mod store;

pub use crate::ids::{CommitSeq, NameGeneration};
pub use batch::{BATCH_BYTES_MAX, BATCH_CHANGES_MAX, Batch, Changed};
pub use entry::{Entry, Found, NAME_BYTES_MAX, Present, VALUE_BYTES_MAX};
pub use list::Listing;
pub use store::State;
