//! Reading a journal file that some owner left behind, or is still writing.
//!
//! ```text
//!   header | frame | frame | frame | ?
//!                                  ^ the first place where no frame is valid
//!     nothing but zeros up to the end of the file                      -> Clean
//!     some frame, here or behind, states that all up to past here
//!       was durable; or the file's row says so                         -> Damaged
//!     anything else                                                    -> Torn
//! ```
//!
//! Unsynced frames may reach the medium in any order, so valid frames behind an invalid one prove
//! nothing by being there; only what they state does.
//!
//! Memory: one frame and one window. Time: linear in the length of the file, whatever it holds,
//! since looking behind reads frame headers only.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::frame::{HEADER_BYTES, Header, HeaderFault, Salt, VERSION};
use crate::format::record::Record;
use crate::ids::{OwnerId, StoreId};
use crate::protection::Protection;
use crate::vfs::{Access, Disk, read_exact_at};

use super::reader::{Reader, failed_read, newer, unopened};

/// What the manifest knows of a journal file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// The store.
    pub store: StoreId,
    /// The owner that wrote it.
    pub owner: OwnerId,
    /// Its number.
    pub n: u64,
    /// Its salt, if it has a row: its header is then known to be durable.
    pub salt: Option<Salt>,
    /// Where it ends, if its row says so: all before is durable, and nothing behind is looked at.
    pub end: Option<u64>,
}

/// Where a frame stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAt {
    /// Its first byte.
    pub offset: u64,
    /// The first byte behind it and its padding.
    pub end: u64,
    /// All below this was durable when it was written.
    pub synced_up_to: u64,
}

/// What lies behind the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing, or zeros.
    Clean,
    /// What a crash leaves of a write that was never acknowledged as durable.
    Torn {
        /// From the end of the last frame to the last byte that is not zero.
        bytes: u64,
    },
    /// Bytes that were durable are not what was written.
    Damaged {
        /// Where it begins.
        offset: u64,
        /// Where the next frame header that is valid stands; or where what was known durable ends.
        upto: u64,
    },
}

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The file's header, where it can be read.
    pub header: Option<Header>,
    /// Where the last frame that was handed out ends.
    pub end: u64,
    /// All below this is known to have been durable.
    pub synced_up_to: u64,
    /// Frames handed out.
    pub frames: u64,
    /// Records in them.
    pub records: u64,
    /// What lies behind.
    pub tail: Tail,
}

/// What a scan calls for each frame.
pub type OnFrame<'a> = &'a mut dyn FnMut(FrameAt, Vec<Record>) -> Result<()>;

/// Syncs a journal that another opening wrote, then drops its cached pages, so that a scan sees what
/// the medium holds and nothing that a scan showed is lost later.
///
/// # Errors
/// `NotFound`, `Io`.
pub fn sync_before_trust(disk: &dyn Disk, path: &Path) -> Result<()> {
    if !Protection::SyncBeforeTrust.is_on() {
        return Ok(());
    }
    let file = disk.open(path, Access::ReadWrite).map_err(|e| unopened(path, e))?;
    file.sync_data().map_err(|e| Error::io("sync", path.display(), e))?;
    file.evict().map_err(|e| Error::io("evict", path.display(), e))
}

/// Drops the cached pages of a journal, for a reader that may not sync it: after a failed sync these may show what
/// the medium does not hold, and what they showed would be taken back by the next look. What is on its way there
/// stays.
///
/// # Errors
/// `NotFound`, `Io`.
pub fn drop_cached(disk: &dyn Disk, path: &Path) -> Result<()> {
    if !Protection::SyncBeforeTrust.is_on() {
        return Ok(());
    }
    let file = disk.open(path, Access::Read).map_err(|e| unopened(path, e))?;
    file.evict().map_err(|e| Error::io("evict", path.display(), e))
}

/// Hands every frame of the file to `on_frame`, in order, up to the first place where none is.
///
/// # Errors
/// `NotFound` when there is no file; `Foreign` when it belongs to another store, owner or number;
/// `NewerFormat`; `Io`; what `on_frame` returns. Damage and tears are no errors but a [`Tail`]:
/// what was read before them counts.
pub fn scan(disk: &dyn Disk, path: &Path, expect: &Expect, on_frame: OnFrame<'_>) -> Result<Scan> {
    let mut reader = Reader::open(disk, path, expect)?;
    let mut found = Scan {
        header: None,
        end: 0,
        synced_up_to: expect.end.unwrap_or(0),
        frames: 0,
        records: 0,
        tail: Tail::Clean,
    };
    let header = match reader.header()? {
        Ok(header) => header,
        // The row is committed after the header is durable, so without a row this is a torn birth.
        Err(_) if expect.salt.is_none() && expect.end.is_none() => {
            found.tail = reader.torn(0)?;
            return Ok(found);
        }
        Err(_) => {
            found.tail = Tail::Damaged { offset: 0, upto: HEADER_BYTES as u64 };
            return Ok(found);
        }
    };
    found.header = Some(header);
    found.end = HEADER_BYTES as u64;
    reader.frames(header.salt, &mut found, on_frame)?;
    Ok(found)
}

/// The header of a journal file, for whoever looks for witnesses before the manifest is trusted.
///
/// # Errors
/// `NotFound`, `Io`; `Damage` when the first bytes are no header of ours; `NewerFormat`.
pub fn read_header(disk: &dyn Disk, path: &Path) -> Result<Header> {
    let file = disk.open(path, Access::Read).map_err(|e| unopened(path, e))?;
    let mut bytes = [0; HEADER_BYTES];
    read_exact_at(&*file, &mut bytes, 0).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::damage("open", path.display(), "it ends inside its header")
        }
        _ => failed_read(path, e),
    })?;
    Header::decode(&bytes).map_err(|fault| match fault {
        HeaderFault::Version(version) if version > VERSION => newer(path, version),
        fault => Error::damage("open", path.display(), format!("no header ({fault:?})")),
    })
}
