//! How a store is opened: a builder, checked whole before anything is touched.

use std::path::Path;
use std::sync::Arc;

use super::enter::WriteAccess;
use super::single::Layout;
use super::{open, store::Store};
use crate::error::Result;
use crate::limits::Limits;
use crate::manifest::CheckIntegrity;
use crate::vfs::{Disk, RealDisk};

/// Builds an opening of a store: `Store::options().wait_millis(500).open(path)?`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(super) limits: Limits,
    pub(super) disk: Option<Arc<dyn Disk>>,
    pub(super) check_integrity: Option<CheckIntegrity>,
    pub(super) set_aside_damage: bool,
    pub(super) allow_shared_root: bool,
    pub(super) wait_millis: u64,
    pub(super) layout: Layout,
    pub(super) access: WriteAccess,
}

impl Options {
    /// Bounds other than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Another disk than the machine's own.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = Some(disk);
        self
    }

    /// When the manifest's own integrity check runs. Default: up to 64 MiB of manifest (about
    /// 1 ms per MiB). Switched off, a damaged manifest may end the process instead of this call.
    #[must_use]
    pub fn check_integrity(mut self, check: CheckIntegrity) -> Self {
        self.check_integrity = Some(check);
        self
    }

    /// Opens although part of a journal that was durable no longer reads: the file is kept, named
    /// in [`Health`](super::Health), and never written or removed. Default: refuse with `Damage`.
    #[must_use]
    pub fn set_aside_damage(mut self, allowed: bool) -> Self {
        self.set_aside_damage = allowed;
        self
    }

    /// Opens a store directory that other users may enter. Default: refuse.
    #[must_use]
    pub fn allow_shared_root(mut self, allowed: bool) -> Self {
        self.allow_shared_root = allowed;
        self
    }

    /// How long to wait for a store that is in use, in milliseconds. Default: 0.
    #[must_use]
    pub fn wait_millis(mut self, millis: u64) -> Self {
        self.wait_millis = millis;
        self
    }

    /// How a store that is created lies on disk; one that is opened lies as it lies. Default: a
    /// directory.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Who may write while it is open. Default: this process alone. Where several write, all of them
    /// ask for [`WriteAccess::Shared`], and each stream is written by the one that claimed it.
    #[must_use]
    pub fn access(mut self, access: WriteAccess) -> Self {
        self.access = access;
        self
    }

    /// Creates a store and opens it for writing.
    ///
    /// # Errors
    /// `Exists` when the path holds a store, which is left as it is; `Invalid` when it holds
    /// something else.
    ///
    /// # Durability
    /// When it returns the empty store is durable, its name included.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Store> {
        self.limits.check()?;
        open::create(path.as_ref(), &self)?;
        open::open(path.as_ref(), &self)
    }

    /// Opens an existing store for writing and recovers it.
    ///
    /// # Errors
    /// `NoStore`, `InUse` (with the holder), `ManifestLost`, `Foreign`, `NewerFormat`,
    /// `RolledBack`, `Damage`.
    ///
    /// # Durability
    /// Whatever it shows is durable: nothing shown is taken back by a later recovery.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store> {
        self.limits.check()?;
        open::open(path.as_ref(), &self)
    }

    /// Opens a store for writing, and creates it first where the path holds nothing.
    ///
    /// # Errors
    /// As [`Options::open`] and [`Options::create`].
    pub fn open_or_create(self, path: impl AsRef<Path>) -> Result<Store> {
        self.limits.check()?;
        match open::create(path.as_ref(), &self) {
            Ok(()) => {}
            Err(e) if e.kind() == crate::ErrorKind::Exists => {}
            Err(e) => return Err(e),
        }
        open::open(path.as_ref(), &self)
    }

    /// Opens an existing store for reading, beside a writer or after one was killed. Changes
    /// nothing on disk.
    ///
    /// # Errors
    /// As [`Options::open`]; `InUse` only while another reader recovers a killed writer's store.
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<Store> {
        self.limits.check()?;
        open::open_read_only(path.as_ref(), &self)
    }

    pub(super) fn disk_or_real(&self) -> Arc<dyn Disk> {
        self.disk.clone().unwrap_or_else(|| RealDisk::new())
    }
}
