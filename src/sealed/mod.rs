//! sealed: closed bytes. Files named by the digest of their content, never changed again.
//!
//! ```text
//!             [Builder::create]                 [place]                       [place]
//!   nothing ----------------> tmp/, growing           sealed/xx/, not durable -------> sealed/xx/
//!                                  |  [Builder::finish]      ^                         durable
//!                                  '------> tmp/, synced ----'                            |
//!                                                                                [Reader::open]
//! ```
//!
//! - P3, G7: a name under `sealed/` appears only after its file is synced, and [`place`] returns only
//!   after the name's directory is. No committed row may name the file before that.
//! - G7: bytes under such a name never change: nothing here opens an existing file for writing, and a
//!   path, unique by its id, is used once.
//! - P6: the [`Reader`] returns no byte whose block's checksum does not fit.
//! - P9: what it allocates is bounded by the length of the file it reads.
//!
//! Who may drop a file, and when, is not decided here.

mod builder;
mod decoded;
mod ends;
mod place;
mod reader;
mod remains;
mod slices;

pub use crate::format::footer::{Described, ExtentAt, Footer};
pub use crate::format::label::{Label, Referrer};
pub use builder::{Builder, Built, Extent};
pub(crate) use decoded::{STEP_BYTES, Stored};
pub use place::place;
pub use reader::{Expect, Reader};
pub use slices::SLICE_BYTES;
