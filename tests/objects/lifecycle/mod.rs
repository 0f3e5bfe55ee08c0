//! lifecycle: many files, three versions of them, from the first byte put to a store that holds nothing again.
//!
//! ```text
//!   source ── what each file of each version holds, made anew whenever it is asked for
//!   life   ── store, publish, reopen, read, unpublish, put again, edit, retire, reclaim, and what the disk holds
//!             after each step
//! ```
//!
//! With files of 256 MiB instead of 2 MiB (about 10 GiB on the disk):
//! `SEALSTONE_LIFE_FILE_MIB=256 cargo test --release --test objects lifecycle -- --nocapture`. `TMPDIR` says on
//! which disk.

mod life;
mod source;
