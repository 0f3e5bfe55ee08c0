//! Where content comes from: a reader or a file, read from its beginning to its end and otherwise left alone.

use std::io::{ErrorKind as IoKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::vfs::{Access, Disk, File};

/// Gives content, in order.
pub(super) trait Source {
    /// The next bytes, at most as many as fit; none at the end.
    fn read(&mut self, into: &mut [u8]) -> Result<usize>;

    /// Fills `into` as far as the content goes: less only at its end.
    fn fill(&mut self, into: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(left) = into.get_mut(filled..).filter(|left| !left.is_empty()) {
            match self.read(left)? {
                0 => break,
                more => filled += more,
            }
        }
        Ok(filled)
    }
}

/// A caller's reader.
#[derive(Debug)]
pub(super) struct Reader<R>(pub(super) R);

impl<R: Read> Source for Reader<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let place = "the reader";
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.0.read(into))) {
                Ok(Ok(len)) if len <= into.len() => return Ok(len),
                Ok(Ok(_)) => {
                    return Err(Error::invalid("put", place, "it read more than it was asked for"));
                }
                Ok(Err(e)) if e.kind() == IoKind::Interrupted => {}
                Ok(Err(e)) => return Err(Error::io("read", place, e)),
                Err(_) => {
                    let cause = "it panicked; nothing of its content was put";
                    return Err(Error::new(ErrorKind::CallerPanicked, "put", place, cause));
                }
            }
        }
    }
}

/// A file, opened for reading.
#[derive(Debug)]
pub(super) struct FromFile {
    file: Arc<dyn File>,
    path: PathBuf,
    len: u64,
    at: u64,
}

impl FromFile {
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| match e.kind() {
            IoKind::NotFound => {
                let cause = "there is no such file";
                Error::new(ErrorKind::NotFound, "open", path.display(), cause).with_source(e)
            }
            _ => Error::io("open", path.display(), e),
        };
        // OBJ4: for reading alone.
        let file = disk.open(path, Access::Read).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        Ok(Self { file, path: path.to_owned(), len, at: 0 })
    }

    /// At its end it is as long as it was at its beginning.
    fn check_end(&self) -> Result<()> {
        let len = self.file.len().map_err(|e| Error::io("read", self.path.display(), e))?;
        if self.at == self.len && len == self.len {
            return Ok(());
        }
        let cause = format!(
            "it was {} bytes long and is {len}: somebody writes it; put it when they are done",
            self.len
        );
        Err(Error::new(ErrorKind::Conflict, "put", self.path.display(), cause))
    }
}

impl Source for FromFile {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            match self.file.read_at(into, self.at) {
                Ok(0) => return self.check_end().map(|()| 0),
                Ok(len) => {
                    self.at += len as u64;
                    return Ok(len);
                }
                Err(e) if e.kind() == IoKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", self.path.display(), e)),
            }
        }
    }
}
