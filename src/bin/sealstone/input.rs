//! The files that commands read and write, through the library's own door to the disk.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::vfs::{Access, Disk, EntryKind, File, RealDisk, write_all_at};
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
    /// Opens `path` for `operation`; `-` is standard input.
    pub fn open(operation: &'static str, path: &Path) -> Result<Self> {
        let source = if path == Path::new("-") {
            Source::Stdin(io::stdin().lock())
        } else {
            let disk = RealDisk::new();
            let file = disk.open(path, Access::Read);
            let file = file.map_err(|e| Error::io(operation, path.display(), e))?;
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

/// What a file is called until it is whole, where it is to replace another one.
const UNFINISHED: &str = "sealstone-unfinished";

/// A new file that a command writes. Unless it is finished it is removed again.
pub struct NewFile {
    operation: &'static str,
    disk: Arc<RealDisk>,
    file: Arc<dyn File>,
    path: PathBuf,
    /// What it is called once it is whole, where that is another name.
    name_then: Option<PathBuf>,
    offset: u64,
    is_finished: bool,
}

impl NewFile {
    /// Creates `path`, which must not be there.
    pub fn create(operation: &'static str, path: &Path) -> Result<Self> {
        Self::create_as(operation, path, None)
    }

    /// Writes a file that takes the place of the one at `path`, if there is one, in one step once it is whole.
    pub fn replace(operation: &'static str, path: &Path) -> Result<Self> {
        Self::check(operation, path, true)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{UNFINISHED}-{}", RealDisk::new().pid()));
        Self::create_as(operation, &path.with_file_name(name), Some(path.to_owned()))
    }

    /// Whether a file can come to `path`: nothing is there, or a file that may be replaced.
    pub fn check(operation: &'static str, path: &Path, may_replace: bool) -> Result<()> {
        let meta = RealDisk::new().meta(path);
        match meta.map_err(|e| Error::io(operation, path.display(), e))? {
            None => Ok(()),
            Some(meta) if meta.kind == EntryKind::File && may_replace => Ok(()),
            Some(meta) if meta.kind == EntryKind::File => Err(is_there(operation, path)),
            Some(_) => {
                let cause = "what is there is no regular file, and was left as it is";
                Err(Error::new(sealstone::ErrorKind::Exists, operation, path.display(), cause))
            }
        }
    }

    fn create_as(operation: &'static str, path: &Path, name_then: Option<PathBuf>) -> Result<Self> {
        let disk = RealDisk::new();
        let file = disk.open(path, Access::CreateNew).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => is_there(operation, path),
            _ => Error::io(operation, path.display(), e),
        })?;
        let path = path.to_owned();
        Ok(Self { operation, disk, file, path, name_then, offset: 0, is_finished: false })
    }

    /// Makes it durable, and keeps it.
    pub fn finish(mut self) -> Result<u64> {
        let failed = |path: &Path, e| Error::io(self.operation, path.display(), e);
        self.file.sync_all().map_err(|e| failed(&self.path, e))?;
        if let Some(name) = &self.name_then {
            self.disk.rename(&self.path, name).map_err(|e| failed(name, e))?;
        }
        self.is_finished = true;
        self.disk.sync_dir(folder(&self.path)).map_err(|e| failed(&self.path, e))?;
        Ok(self.offset)
    }
}

fn is_there(operation: &'static str, path: &Path) -> Error {
    let cause = "it is there already and was left as it is";
    Error::new(sealstone::ErrorKind::Exists, operation, path.display(), cause)
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
