//! How a scan goes forward: one frame at a time, and a look behind where none is valid.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::{
    FRAME_ALIGN, FRAME_HEADER_BYTES, FrameHeader, FrameKind, HEADER_BYTES, Header, HeaderFault,
    Salt, VERSION,
};
use crate::format::record::decode_body;
use crate::protection::Protection;
use crate::vfs::{Access, Disk};

use super::scan::{Expect, FrameAt, OnFrame, Scan, Tail};
use super::window::Window;

pub(super) fn newer(path: &Path, version: u32) -> Error {
    let cause = format!("version {version}; this build reads up to {VERSION}");
    Error::new(ErrorKind::NewerFormat, "open", path.display(), cause)
}

pub(super) fn unopened(path: &Path, source: std::io::Error) -> Error {
    if source.kind() == std::io::ErrorKind::NotFound {
        let cause = "the file is not there";
        return Error::new(ErrorKind::NotFound, "open", path.display(), cause).with_source(source);
    }
    Error::io("open", path.display(), source)
}

pub(super) struct Reader<'a> {
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
    pub fn open(disk: &dyn Disk, path: &'a Path, expect: &'a Expect) -> Result<Self> {
        let file = disk.open(path, Access::Read).map_err(|e| unopened(path, e))?;
        let window = Window::new(Arc::clone(&file)).map_err(|e| failed_read(path, e))?;
        Ok(Self { window, path, expect })
    }

    /// For a reader that comes again and again: it reads what is new, and little more.
    pub fn open_again(disk: &dyn Disk, path: &'a Path, expect: &'a Expect) -> Result<Self> {
        let file = disk.open(path, Access::Read).map_err(|e| unopened(path, e))?;
        let window = Window::probing(Arc::clone(&file)).map_err(|e| failed_read(path, e))?;
        Ok(Self { window, path, expect })
    }

    pub fn at(&mut self, offset: u64, want: usize) -> Result<&[u8]> {
        self.window.at(offset, want).map_err(|e| failed_read(self.path, e))
    }

    fn renew(&mut self) -> Result<()> {
        self.window.renew().map_err(|e| failed_read(self.path, e))
    }

    pub fn header(&mut self) -> Result<Result<Header, HeaderFault>> {
        let mut read = Header::decode(self.at(0, HEADER_BYTES)?);
        if read.is_err() {
            // Once more, from the medium: a reading that went wrong by itself is not damage.
            self.renew()?;
            read = Header::decode(self.at(0, HEADER_BYTES)?);
        }
        let header = match read {
            Ok(header) => header,
            Err(HeaderFault::Version(version)) if version > VERSION => {
                return Err(newer(self.path, version));
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
    pub fn frames(&mut self, salt: Salt, found: &mut Scan, on_frame: OnFrame<'_>) -> Result<()> {
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
    pub fn frame(&mut self, salt: &Salt, offset: u64) -> Result<Option<FrameHeader>> {
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
    pub fn torn(&mut self, offset: u64) -> Result<Tail> {
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

pub(super) fn failed_read(path: &Path, source: std::io::Error) -> Error {
    Error::io("read", path.display(), source)
}

fn hex(salt: &Salt) -> String {
    salt.iter().map(|byte| format!("{byte:02x}")).collect()
}
