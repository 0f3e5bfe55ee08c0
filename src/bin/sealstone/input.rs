//! The files that import reads and export writes, through the library's own door to the disk.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::vfs::{Access, Disk, File, RealDisk, write_all_at};
use sealstone::{Error, Result};

/// An input: a file or standard input, with a bar that follows it.
pub struct Input {
    source: Source,
    bar: indicatif::ProgressBar,
    bytes: u64,
}

enum Source {
    File { file: Arc<dyn File>, offset: u64 },
    Stdin(io::StdinLock<'static>),
}

impl Input {
    /// Opens `path`; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self> {
        let source = if path == Path::new("-") {
            Source::Stdin(io::stdin().lock())
        } else {
            let disk = RealDisk::new();
            let file = disk.open(path, Access::Read);
            let file = file.map_err(|e| Error::io("import", path.display(), e))?;
            Source::File { file, offset: 0 }
        };
        Ok(Self { source, bar: indicatif::ProgressBar::hidden(), bytes: 0 })
    }

    /// Its length, where that is known.
    pub fn length(&self) -> Option<u64> {
        match &self.source {
            Source::File { file, .. } => file.len().ok(),
            Source::Stdin(_) => None,
        }
    }

    /// Lets `bar` follow what is read.
    pub fn follow(&mut self, bar: indicatif::ProgressBar) {
        self.bar = bar;
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Read for &mut Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.source {
            Source::File { file, offset } => {
                let read = file.read_at(into, *offset)?;
                *offset += read as u64;
                read
            }
            Source::Stdin(stdin) => stdin.read(into)?,
        };
        self.bytes += read as u64;
        self.bar.set_position(self.bytes);
        Ok(read)
    }
}

/// A new file that an export writes. Unless it is finished it is removed again.
pub struct NewFile {
    disk: Arc<RealDisk>,
    file: Arc<dyn File>,
    path: PathBuf,
    offset: u64,
    is_finished: bool,
}

impl NewFile {
    /// Creates `path`, which must not be there.
    pub fn create(path: &Path) -> Result<Self> {
        let disk = RealDisk::new();
        let file = disk.open(path, Access::CreateNew).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => {
                let cause = "it is there already and was left as it is";
                Error::new(sealstone::ErrorKind::Exists, "export", path.display(), cause)
            }
            _ => Error::io("export", path.display(), e),
        })?;
        Ok(Self { disk, file, path: path.to_owned(), offset: 0, is_finished: false })
    }

    /// Makes it durable, and keeps it.
    pub fn finish(mut self) -> Result<u64> {
        let synced = self.file.sync_all().and_then(|()| self.disk.sync_dir(folder(&self.path)));
        synced.map_err(|e| Error::io("export", self.path.display(), e))?;
        self.is_finished = true;
        Ok(self.offset)
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Write for NewFile {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        write_all_at(&*self.file, from, self.offset)?;
        self.offset += from.len() as u64;
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.disk.unlink(&self.path);
        }
    }
}
