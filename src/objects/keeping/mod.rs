//! What goes and why: retirement in one transaction or in bounded ones, what keeps a thing, what takes the
//! bytes.
//!
//! ```text
//!   names, snapshots, preparations, publications --[retire]--> gone, with what only they kept
//!                 \--[retire_bounded]--> found by nobody --[go_on_retiring, reclaim]--> gone
//!   condemned files --[Store::reclaim]--> bytes given back
//! ```
//! - OBJ15: any number of things goes in one transaction; OBJ16: all of it or nothing.
//! - OBJ17: each kind of row goes by the one function that every other way of losing it uses.

mod retire;
mod usage;
mod why;

pub use retire::{Gone, Retirement};
pub use usage::{NamespaceUsage, Usage};
pub use why::{Subject, Why};
