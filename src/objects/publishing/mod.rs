//! publishing: names come to stand for objects, all or none, and go again.
//!
//! ```text
//!   leased, named by nobody --[publish]--> a name stands for it --[publish, release]--> it goes, unless
//!                                                                 something else refers to it
//! ```
//!
//! - OBJ7: the names of one publication change in one transaction, each compared with what was expected.
//! - OBJ8: a name comes to stand only for what the caller's lease keeps, whole; what a lease keeps is
//!   durable (OBJ9).
//! - A generation is never used twice for a name, not even after it was released.

mod change;
mod leased;
mod prepared;
mod publish;

pub use change::{Expected, PUBLISH_NAMES_MAX, Present, Publish, Published};
