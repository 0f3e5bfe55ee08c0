//! The handle of a preparation, and putting bytes.

use std::sync::Arc;

use parking_lot::Mutex;

use super::options::PutOptions;
use super::prepare::place;
use super::queue::{Queue, Take};
use crate::digest::Digest;
use crate::engine::{Claim, RowText, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::LeaseId;

/// The most contents of one [`Preparation::put_batch`].
pub const PUT_OBJECTS_MAX: usize = 1 << 16;

/// The most bytes of one [`Preparation::put_batch`]: 256 MiB.
pub const PUT_BYTES_MAX: u64 = 256 << 20;

/// Objects are put under it, and leased, before any name refers to them. Usable from many threads at once.
/// Dropped, it stands and is open for whoever goes on with it; what was put and not flushed is gone.
#[derive(Debug)]
pub struct Preparation {
    pub(super) store: Store,
    pub(super) name: String,
    lease: LeaseId,
    claim: Claim,
    pub(super) queue: Mutex<Queue>,
    /// Held by who seals.
    pub(super) sealing: Mutex<()>,
    /// What labels tell of names that are about to be published.
    pub(super) named: Mutex<Vec<Arc<[RowText]>>>,
}

impl Preparation {
    pub(super) fn new(store: Store, name: String, lease: LeaseId, claim: Claim) -> Self {
        let (queue, sealing, named) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { store, name, lease, claim, queue, sealing, named }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What keeps its objects.
    pub fn lease(&self) -> LeaseId {
        self.lease
    }

    /// The store that it is in.
    pub(in crate::objects) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn into_parts(self) -> (Store, String, Claim) {
        (self.store, self.name, self.claim)
    }

    /// Puts `bytes`, and returns their digest. The same bytes are stored once, whoever puts them.
    ///
    /// Once 64 MiB (limit `sealed_file_bytes`) wait, this seals and stores them first.
    ///
    /// # Errors
    /// `DiskFull`, `Io` from sealing what waits: what was accepted waits on, this content perhaps among it,
    /// for the next call. `Fenced`, `Halted`, `Forked`.
    ///
    /// # Durability
    /// *Accepted*: lost unless [`flush`](Self::flush) returns after it.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest> {
        self.put_with(bytes, &PutOptions::default())
    }

    /// As [`Preparation::put`].
    ///
    /// # Errors
    /// As there; `Invalid` for lengths of pieces that cannot be.
    ///
    /// # Durability
    /// As there.
    pub fn put_with(&self, bytes: &[u8], options: &PutOptions) -> Result<Digest> {
        self.check("put")?;
        self.put_slice(bytes, options)
    }

    /// Puts `contents`, each as [`Preparation::put_with`], and returns the digest of each.
    ///
    /// # Errors
    /// As there: the first one ends it. `LimitExceeded` above [`PUT_OBJECTS_MAX`] or [`PUT_BYTES_MAX`]: nothing was
    /// accepted, and nothing written.
    ///
    /// # Durability
    /// As there.
    pub fn put_batch(&self, contents: &[&[u8]], options: &PutOptions) -> Result<Vec<Digest>> {
        self.check("put")?;
        let bytes = contents.iter().fold(0u64, |sum, one| sum.saturating_add(one.len() as u64));
        if contents.len() > PUT_OBJECTS_MAX || bytes > PUT_BYTES_MAX {
            let cause = format!(
                "{} contents of {bytes} bytes, {PUT_OBJECTS_MAX} and {PUT_BYTES_MAX} allowed; put \
                 less at a time",
                contents.len()
            );
            return Err(Error::new(ErrorKind::LimitExceeded, "put", place(&self.name), cause));
        }
        contents.iter().map(|bytes| self.put_with(bytes, options)).collect()
    }

    /// Stores what was put so far: returns once it is leased. Nothing is written where nothing is new.
    ///
    /// # Errors
    /// `DiskFull`, `Io`: what was accepted waits on, and the call can be made again; `Fenced`, `Halted`;
    /// `NotFound` when the preparation was taken away; `OutcomeUnknown`, after which the store has halted.
    ///
    /// # Durability
    /// *Durable*: one set of syncs and one commit for all that was put.
    pub fn flush(&self) -> Result<()> {
        self.check("flush")?;
        self.seal(Take::Put)
    }

    /// Whether the store still works for us.
    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        self.store.check_open(operation)
    }

    /// Seals what waits, once it is as much as a file holds.
    pub(super) fn seal_if_due(&self) -> Result<()> {
        let cap = self.store.limits().sealed_file_bytes;
        if self.queue.lock().bytes() < cap {
            return Ok(());
        }
        self.seal(Take::All)
    }
}
