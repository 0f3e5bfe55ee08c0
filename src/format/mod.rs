//! format: bytes to values and back. Pure functions: no I/O, no clock.
//!
//! ```text
//!   layout     names inside a store directory
//!   frame      one atomic group in a journal      record   what a frame holds
//!   sealed     content of a sealed file: header, blocks
//!   footer     what it says is inside             trailer  where its content ends
//!   label      what stands behind it, for salvage
//!   told       what a label tells of files of pieces, and of names
//!   row        envelope of a manifest value       head     the witness file
//!   shape      what a serde type asks for, as a fingerprint
//!   snapshot   the manifest's rows, all or what changed, for salvage
//!   column     a chunk of typed records, column-wise
//!   staged     a batch of a stage, and a part of a group
//!   offsets    where the fields of a layout stand
//!   compressed bytes of any length through zstd, for what is published
//!   framed     an object through zstd, in frames that are read one by one
//! ```
//!
//! Each byte layout is written once, in its file's constants; docs/FORMAT.md is compared with them.

pub mod column;
pub(crate) mod compressed;
pub mod footer;
pub mod frame;
pub mod framed;
#[cfg(test)]
mod framed_tests;
pub mod head;
pub mod label;
pub mod layout;
mod offsets;
pub mod record;
pub mod row;
pub mod sealed;
pub mod shape;
pub mod snapshot;
pub mod staged;
pub(crate) mod told;
pub mod trailer;
