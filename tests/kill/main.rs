//! Real processes: writers killed by the kernel at any moment, readers beside them, and who may
//! write. The tests start their own binary again as a child; what a child does is in `writer` and
//! `reader`.
//!
//! `SEALSTONE_SEED` replays a run as far as real processes can be replayed.

mod access;
mod child;
#[path = "../children/mod.rs"]
mod children;
mod content;
mod full;
mod loops;
mod marks;
mod model;
mod reader;
mod writer;
