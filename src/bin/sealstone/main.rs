//! The command line tool, on the public API only.
#![forbid(unsafe_code)]

fn main() {}
