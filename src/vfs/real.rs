//! The real disk: names, directories and the world outside, through `std::fs`.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use nix::libc;

use super::disk::{
    Access, DirectIo, Disk, Entry, EntryKind, File, Held, Identity, Meta, Sharing, Space,
};
use super::real_file::{RealFile, sync_all};
use crate::clock;

/// The file systems of this machine.
#[derive(Debug, Default)]
pub struct RealDisk(());

impl RealDisk {
    /// Opens the door.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(()))
    }
}

/// A directory locked by `flock`.
#[derive(Debug)]
struct HeldDirectory {
    directory: fs::File,
    pid: u32,
}

impl Held for HeldDirectory {}

impl Drop for HeldDirectory {
    /// Closing alone would leave the lock with a child that was forked meanwhile, until it ends or
    /// runs another program. G18: the child itself lets go of nothing.
    fn drop(&mut self) {
        if std::process::id() == self.pid {
            let _ = self.directory.unlock();
        }
    }
}

fn open_dir(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

fn kind_of(kind: fs::FileType) -> EntryKind {
    if kind.is_file() {
        EntryKind::File
    } else if kind.is_dir() {
        EntryKind::Directory
    } else {
        EntryKind::Other
    }
}

pub(super) fn identity_of(meta: &fs::Metadata) -> Identity {
    Identity { device: meta.dev(), inode: meta.ino() }
}

/// Opens an existing regular file. Anything else is refused, and a pipe without waiting for its
/// other end.
fn open_existing(path: &Path, write: bool) -> io::Result<fs::File> {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

fn create_new(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// A second, direct, handle on the file just created at `path`; `None` where there is no direct
/// I/O, or where somebody put another file there.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path, created: &fs::File) -> Option<fs::File> {
    let direct = fs::OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_DIRECT | libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let same = identity_of(&direct.metadata().ok()?) == identity_of(&created.metadata().ok()?);
    same.then_some(direct)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path, _created: &fs::File) -> Option<fs::File> {
    None
}

/// Asks an existing file of the directory, so that asking changes nothing; only a directory
/// without a file is asked with an unnamed temporary one.
#[cfg(target_os = "linux")]
fn probe_direct(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.take(64) {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let flags = libc::O_DIRECT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
            return fs::OpenOptions::new()
                .read(true)
                .custom_flags(flags)
                .open(entry.path())
                .map(drop);
        }
    }
    let flags = libc::O_TMPFILE | libc::O_DIRECT;
    fs::OpenOptions::new().write(true).mode(0o600).custom_flags(flags).open(directory).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn probe_direct(_directory: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "direct writes are used on Linux only"))
}

/// The first line of a small file of the kernel's, or nothing.
fn kernel_says(path: &str) -> String {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(256).read_to_string(&mut text));
    match read {
        Ok(_) => text.lines().next().unwrap_or_default().trim().to_owned(),
        Err(_) => String::new(),
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let file = match access {
            Access::Read => RealFile::buffered(open_existing(path, false)?),
            Access::ReadWrite => RealFile::buffered(open_existing(path, true)?),
            Access::CreateNew => RealFile::buffered(create_new(path)?),
            Access::CreateNewDirect => {
                let file = create_new(path)?;
                let direct = open_direct(path, &file);
                RealFile::with_direct(file, direct)
            }
        };
        Ok(Arc::new(file))
    }

    fn meta(&self, path: &Path) -> io::Result<Option<Meta>> {
        match fs::symlink_metadata(path) {
            Ok(meta) => Ok(Some(Meta {
                kind: kind_of(meta.file_type()),
                len: meta.len(),
                mode: meta.mode() & 0o7777,
                identity: identity_of(&meta),
            })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o777))
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        fs::read_dir(path)?
            .map(|entry| {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                Ok(Entry { name, kind: kind_of(entry.file_type()?) })
            })
            .collect()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        sync_all(&open_dir(path)?)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = nix::sys::statvfs::statvfs(path)?;
        // The widths of these fields differ from platform to platform.
        #[allow(clippy::unnecessary_cast)]
        let (unit, free, total) =
            (stat.fragment_size() as u64, stat.blocks_available() as u64, stat.blocks() as u64);
        Ok(Space { free: free.saturating_mul(unit), total: total.saturating_mul(unit) })
    }

    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        let directory = open_dir(path)?;
        let locked = match sharing {
            Sharing::Shared => directory.try_lock_shared(),
            Sharing::Exclusive => directory.try_lock(),
        };
        match locked {
            Ok(()) => Ok(Some(Box::new(HeldDirectory { directory, pid: self.pid() }))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }

    fn direct_io(&self, path: &Path) -> DirectIo {
        match probe_direct(path) {
            Ok(()) => DirectIo::Direct,
            Err(e) => DirectIo::Buffered(e.to_string()),
        }
    }

    fn wall_nanos(&self) -> Option<i64> {
        clock::wall_nanos()
    }

    fn monotonic_nanos(&self) -> u64 {
        clock::monotonic_nanos()
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn boot_id(&self) -> String {
        kernel_says("/proc/sys/kernel/random/boot_id")
    }

    fn host(&self) -> String {
        kernel_says("/proc/sys/kernel/hostname")
    }

    fn entropy(&self, into: &mut [u8]) -> io::Result<()> {
        fs::File::open("/dev/urandom")?.read_exact(into)
    }
}
