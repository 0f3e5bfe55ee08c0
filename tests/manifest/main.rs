//! What could go wrong with the truth: a store that never opens, rows that refer to nothing, bytes
//! that nobody counts, an outcome that is told wrongly, a file that is not what it seems.
#![cfg(feature = "sim")]

mod birth;
mod crash;
mod draft;
mod failures;
mod flips;
mod meddle;
mod reading;
mod rows;
mod states;
mod support;
