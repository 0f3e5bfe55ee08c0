//! finding: which recordings there are, by what is known of them.
//!
//! ```text
//!   a filter in words ──[filter_words]──▶ words ──[filter]──▶ a tree     spoken_time: 2026-01-31
//!                                                               │
//!   catalogue: the part that an index answers ──▶ candidates ───┴──▶ those that it holds for
//! ```
//!
//! - An index only spares looking: what it leaves out, the filter would refuse as well.
//! - A filter that does not read is refused with the character at which it does not.

mod catalogue;
mod filter;
mod filter_words;
mod spoken_time;

pub use catalogue::{Catalogue, Selected};
