//! What was promised in numbers: syncs are counted, memory is counted, and a store that an error
//! stopped says so. The figure for a manifest of 10^6 rows comes from `examples/reopen.rs`.
#![cfg(feature = "sim")]

mod halt;
mod syncs;
