//! What commits hold of a body: its length, and its pages.

use std::cell::OnceCell;
use std::sync::Arc;

use super::names::{Body, body_of};
use crate::error::{Error, Result};
use crate::manifest::handle::Manifest;
use crate::manifest::read::{Reading, Snapshot};
use crate::manifest::rows::{BodyRow, FrameRow, PageRow};
use crate::manifest::table::Table;
use crate::protection::Protection;

/// The bodies as of one snapshot, taken when it is first asked.
pub(super) struct Stored<'m> {
    manifest: &'m Manifest,
    snapshot: OnceCell<Arc<Snapshot>>,
}

impl<'m> Stored<'m> {
    /// As of now. What waits in [`Pending`](super::Pending) is asked first: what it no longer holds
    /// was committed before this looks.
    pub(super) fn now(manifest: &'m Manifest) -> Self {
        Self { manifest, snapshot: OnceCell::new() }
    }

    /// As of a snapshot taken earlier.
    pub(super) fn then(manifest: &'m Manifest, snapshot: Option<Arc<Snapshot>>) -> Self {
        let stored = Self::now(manifest);
        if let Some(snapshot) = snapshot {
            let _ = stored.snapshot.set(snapshot);
        }
        stored
    }

    pub(super) fn snapshot(&self) -> Result<&Snapshot> {
        if let Some(snapshot) = self.snapshot.get() {
            return Ok(snapshot);
        }
        let taken = Arc::new(self.manifest.read()?);
        Ok(self.snapshot.get_or_init(|| taken))
    }

    /// Whether a file has this name.
    pub(super) fn has(&self, name: &str) -> Result<bool> {
        Ok(self.snapshot()?.get::<BodyRow>(&name.to_owned())?.is_some())
    }

    /// The length of the file of this name.
    pub(super) fn len(&self, name: &str) -> Result<Option<u64>> {
        let snapshot = self.snapshot()?;
        let Some(row) = snapshot.get::<BodyRow>(&name.to_owned())? else { return Ok(None) };
        let table = match body_of(name) {
            Some(Body::Frames(..)) => Table::Frames,
            _ => Table::Pages,
        };
        // P9: whoever reads it sizes what it reads into by this.
        let page_bytes = body_of(name).map_or(0, Body::page_bytes);
        let held = snapshot.count(table)?.saturating_mul(page_bytes);
        if row.len > held.min(self.manifest.len_bytes()?) && Protection::BodyLength.is_on() {
            let cause = format!("it says {} bytes, and all pages hold {held}", row.len);
            return Err(Error::damage("read", format!("bodies {name:?}"), cause));
        }
        Ok(Some(row.len))
    }

    /// A page that the file's length says is there.
    pub(super) fn page(&self, body: Body, page: u64) -> Result<Vec<u8>> {
        let snapshot = self.snapshot()?;
        let bytes = match body {
            Body::Frames(owner, n) => {
                let at = page.saturating_mul(body.page_bytes());
                snapshot.get::<FrameRow>(&(owner, n, at))?.map(|row| row.bytes)
            }
            Body::Pages(unique) => snapshot.get::<PageRow>(&(unique, page))?.map(|row| row.bytes),
        };
        // P6: a hole is never read as zeros.
        bytes.ok_or_else(|| {
            let place = format!("page {page} of {body:?}");
            Error::damage("read", place, "the file's length says that it is there, and it is not")
        })
    }
}
