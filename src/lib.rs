#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![warn(missing_debug_implementations)]
#![warn(unnameable_types)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/GUIDE.md"))]
//! sealstone keeps state that must still be there after the power fails.
//!
//! Every fact (what exists, who owns it, where its bytes lie, what may go) is a row in one redb
//! database, changed in transactions. Large payloads are appended to files that are sealed, named
//! by the digest of their content, never changed again, and real only because a committed row
//! names them.

#[cfg(windows)]
compile_error!(
    "sealstone does not support Windows: its locks, links and directory syncs are POSIX ones"
);

pub mod clock;
pub mod codec;
pub mod digest;
pub mod error;
pub mod ids;
pub mod limits;
pub mod protection;

pub mod vfs;

pub mod format;

pub mod journal;
pub mod manifest;
pub mod sealed;

pub mod engine;

pub mod check;
#[cfg(feature = "interop")]
pub mod interop;

pub mod objects;
pub mod recording;
pub mod staging;
pub mod state;

#[cfg(feature = "sim")]
pub mod campaign;

pub use engine::{Layout, Options, Store, WriteAccess};
pub use error::{Error, ErrorKind, Result};
pub use limits::Limits;
