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
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::{
    FRAME_ALIGN, FRAME_HEADER_BYTES, FrameHeader, FrameKind, HEADER_BYTES, Header, HeaderFault,
    Salt, VERSION,
};
use crate::format::record::{Record, decode_body};
use crate::ids::{OwnerId, StoreId};
use crate::protection::Protection;
use crate::vfs::{Access, Disk, read_exact_at};

use super::window::Window;

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
        /// Where the next valid frame begins, for [`scan_behind`]; or what was known durable ends.
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

/// As [`scan`], from `from` on, which is a multiple of 8: what lies behind damage, for whoever
/// salvages. The file's header is not read, so `expect.salt` must be given.
///
/// # Errors
/// As [`scan`]; `Invalid` without a salt.
pub fn scan_behind(
    disk: &dyn Disk,
    path: &Path,
    expect: &Expect,
    from: u64,
    on_frame: OnFrame<'_>,
) -> Result<Scan> {
    let Some(salt) = expect.salt.filter(|_| from.is_multiple_of(FRAME_ALIGN as u64)) else {
        let cause = "give the salt, and an offset that is a multiple of 8";
        return Err(Error::invalid("scan", path.display(), cause));
    };
    let mut reader = Reader::open(disk, path, expect)?;
    let mut found = Scan {
        header: None,
        end: from,
        synced_up_to: expect.end.unwrap_or(0),
        frames: 0,
        records: 0,
        tail: Tail::Clean,
    };
    reader.frames(salt, &mut found, on_frame)?;
    Ok(found)
}

/// The header of a journal file, for whoever looks for witnesses before the manifest is trusted.
///
/// # Errors
/// `NotFound`, `Io`; `Damage` when the first bytes are no header of ours.
pub fn read_header(disk: &dyn Disk, path: &Path) -> Result<Header> {
    let file = disk.open(path, Access::Read).map_err(|e| unopened(path, e))?;
    let mut bytes = [0; HEADER_BYTES];
    read_exact_at(&*file, &mut bytes, 0).map_err(|e| Error::io("read", path.display(), e))?;
    Header::decode(&bytes)
        .map_err(|fault| Error::damage("read", path.display(), format!("no header: {fault:?}")))
}

fn unopened(path: &Path, source: std::io::Error) -> Error {
    if source.kind() == std::io::ErrorKind::NotFound {
        let cause = "the file is not there";
        return Error::new(ErrorKind::NotFound, "open", path.display(), cause).with_source(source);
    }
    Error::io("open", path.display(), source)
}

struct Reader<'a> {
    window: Window,
    path: &'a Path,
    expect: &'a Expect,
}

/// What stands at one offset.
enum Next {
    /// A records frame, whole; its body is in the window.
    Frame(FrameHeader),
    /// None.
    End(Behind),
}

/// What stands behind an offset at which nothing valid stands.
struct Behind {
    /// The byte after the last that is not zero.
    used: u64,
    /// The highest end of what some frame states to be durable.
    stated: u64,
    /// The first place behind where a frame header is valid.
    next: Option<u64>,
}

impl<'a> Reader<'a> {
    fn open(disk: &dyn Disk, path: &'a Path, expect: &'a Expect) -> Result<Self> {
        let file = disk.open(path, Access::Read).map_err(|e| unopened(path, e))?;
        let window = Window::new(Arc::clone(&file)).map_err(|e| failed_read(path, e))?;
        Ok(Self { window, path, expect })
    }

    fn at(&mut self, offset: u64, want: usize) -> Result<&[u8]> {
        self.window.at(offset, want).map_err(|e| failed_read(self.path, e))
    }

    fn renew(&mut self) -> Result<()> {
        self.window.renew().map_err(|e| failed_read(self.path, e))
    }

    fn header(&mut self) -> Result<Result<Header, HeaderFault>> {
        let mut read = Header::decode(self.at(0, HEADER_BYTES)?);
        if read.is_err() {
            // Once more, from the medium: a reading that went wrong by itself is not damage.
            self.renew()?;
            read = Header::decode(self.at(0, HEADER_BYTES)?);
        }
        let header = match read {
            Ok(header) => header,
            Err(HeaderFault::Version(version)) if version > VERSION => {
                let cause = format!("version {version}; this build reads up to {VERSION}");
                let place = self.path.display();
                return Err(Error::new(ErrorKind::NewerFormat, "open", place, cause));
            }
            Err(fault) => return Ok(Err(fault)),
        };
        let Expect { store, owner, n, salt, .. } = *self.expect;
        let foreign = |what: &str, theirs: String, ours: String| {
            let cause = format!("it is of {what} {theirs}, not of {ours}");
            Err(Error::new(ErrorKind::Foreign, "open", self.path.display(), cause))
        };
        if header.store != store {
            return foreign("store", header.store.to_string(), store.to_string());
        }
        if header.owner != owner {
            return foreign("owner", header.owner.to_string(), owner.to_string());
        }
        if header.n != n {
            return foreign("number", header.n.to_string(), n.to_string());
        }
        if let Some(salt) = salt
            && Protection::FrameSalt.is_on()
            && header.salt != salt
        {
            return foreign("salt", hex(&header.salt), hex(&salt));
        }
        Ok(Ok(header))
    }

    /// Takes frames from `found.end` on.
    fn frames(&mut self, salt: Salt, found: &mut Scan, on_frame: OnFrame<'_>) -> Result<()> {
        // What lies behind the end that a row states is nobody's.
        while self.expect.end != Some(found.end) {
            let offset = found.end;
            let header = match self.next(&salt, offset)? {
                Next::Frame(header) => header,
                Next::End(behind) => {
                    found.synced_up_to = found.synced_up_to.max(behind.stated);
                    found.tail = judge(offset, found.synced_up_to, &behind);
                    return Ok(());
                }
            };
            let synced_up_to = header.synced_up_to;
            let at = FrameAt { offset, end: offset + header.padded_len() as u64, synced_up_to };
            found.synced_up_to = found.synced_up_to.max(synced_up_to);
            let across = self.expect.end.is_some_and(|end| at.end > end);
            let body = self.at(offset + FRAME_HEADER_BYTES as u64, header.body_len())?;
            let Some(records) = decode_body(body).ok().filter(|_| !across) else {
                // A right checksum over a wrong body, or a frame across the known end: no tear.
                found.tail = Tail::Damaged { offset, upto: at.end };
                return Ok(());
            };
            found.frames += 1;
            found.records += records.len() as u64;
            found.end = at.end;
            on_frame(at, records)?;
        }
        Ok(())
    }

    /// The records frame at `offset`, or what lies behind the last one.
    fn next(&mut self, salt: &Salt, offset: u64) -> Result<Next> {
        if let Some(next) = self.records_frame(salt, offset)? {
            return Ok(next);
        }
        // Once more, from the medium: a reading that went wrong by itself is no tear.
        self.renew()?;
        if let Some(next) = self.records_frame(salt, offset)? {
            return Ok(next);
        }
        let behind = self.look_behind(salt, offset)?;
        if behind.stated > offset {
            // A writer may have gone on since: it wrote here before it stated that.
            self.renew()?;
            if let Some(next) = self.records_frame(salt, offset)? {
                return Ok(next);
            }
        }
        Ok(Next::End(behind))
    }

    fn records_frame(&mut self, salt: &Salt, offset: u64) -> Result<Option<Next>> {
        match self.frame(salt, offset)? {
            Some(header) => match header.kind {
                FrameKind::Records => Ok(Some(Next::Frame(header))),
                FrameKind::Synced => Ok(None),
                FrameKind::Unknown(kind) => {
                    let cause = format!("frame kind {kind} at {offset} is not known to this build");
                    let place = self.path.display();
                    Err(Error::new(ErrorKind::NewerFormat, "scan", place, cause))
                }
            },
            None => Ok(None),
        }
    }

    /// The header of the frame at `offset`, if it is whole; its body is left in the window.
    fn frame(&mut self, salt: &Salt, offset: u64) -> Result<Option<FrameHeader>> {
        let len = self.window.len();
        let bytes = self.at(offset, FRAME_HEADER_BYTES)?;
        let header = bytes.first_chunk().and_then(|b| FrameHeader::decode(b, salt, offset));
        let Some(header) = header else { return Ok(None) };
        let padded = header.padded_len();
        if len.saturating_sub(offset) < padded as u64 {
            return Ok(None);
        }
        let frame = self.at(offset, padded)?;
        let whole = frame.len() == padded && header.fits(&frame[FRAME_HEADER_BYTES..]);
        Ok(whole.then_some(header))
    }

    /// Reads all from `offset` on, once, in steps of 8 bytes, for what frame headers state there.
    fn look_behind(&mut self, salt: &Salt, offset: u64) -> Result<Behind> {
        let mut behind = Behind { used: offset, stated: 0, next: None };
        let mut at = offset;
        // A statement stands behind the last frame until the next one takes its place.
        if let Some(statement) = self.frame(salt, offset)? {
            at += statement.padded_len() as u64;
        }
        loop {
            let bytes = self.at(at, FRAME_HEADER_BYTES)?;
            if bytes.is_empty() {
                return Ok(behind);
            }
            let step = bytes.len().min(FRAME_ALIGN);
            if let Some(last) = bytes[..step].iter().rposition(|&b| b != 0) {
                behind.used = at + last as u64 + 1;
                let header = bytes.first_chunk().and_then(|b| FrameHeader::decode(b, salt, at));
                if let Some(header) = header.filter(|_| Protection::FrameChecksum.is_on()) {
                    behind.stated = behind.stated.max(header.synced_up_to);
                    behind.next = behind.next.or((at > offset).then_some(at));
                }
            }
            at += FRAME_ALIGN as u64;
        }
    }

    /// A tear from `offset` on, or nothing.
    fn torn(&mut self, offset: u64) -> Result<Tail> {
        let mut at = offset;
        let mut used = offset;
        loop {
            let bytes = self.at(at, 4096)?;
            if bytes.is_empty() {
                let bytes = used - offset;
                return Ok(if bytes == 0 { Tail::Clean } else { Tail::Torn { bytes } });
            }
            if let Some(last) = bytes.iter().rposition(|&b| b != 0) {
                used = at + last as u64 + 1;
            }
            at += bytes.len() as u64;
        }
    }
}

fn judge(offset: u64, synced_up_to: u64, behind: &Behind) -> Tail {
    // G13: below what is known durable nothing is a tear.
    if offset < synced_up_to && Protection::SyncedUpTo.is_on() {
        return Tail::Damaged { offset, upto: behind.next.unwrap_or(synced_up_to) };
    }
    match behind.used - offset {
        0 => Tail::Clean,
        bytes => Tail::Torn { bytes },
    }
}

fn failed_read(path: &Path, source: std::io::Error) -> Error {
    Error::io("read", path.display(), source)
}

fn hex(salt: &Salt) -> String {
    salt.iter().map(|byte| format!("{byte:02x}")).collect()
}
