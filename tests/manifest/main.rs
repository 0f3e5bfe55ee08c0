//! What could go wrong with the truth: a store that never opens, rows that refer to nothing, bytes
//! that nobody counts, an outcome that is told wrongly, a file that is not what it seems.
#![cfg(feature = "sim")]

mod reading;
mod rows;
mod support;
