//! Before the target has its name: everything in it is read back and compared.

use std::ops::ControlFlow;

use super::files::{Opened, PIECE_BYTES, read_whole};
use super::run::Job;
use crate::digest::Hasher;
use crate::engine::fetch;
use crate::engine::store::Store;
use crate::error::{Error, Result};
use crate::manifest::{ObjectRow, Reading, Table};

/// P6: compares every file of `target` with the source, which is read once more for it, and every
/// object with its digest. Returns the number of objects.
pub(super) fn verify(job: &mut Job<'_>, target: &Store) -> Result<u64> {
    job.begin("verify")?;
    for item in job.items.clone() {
        let original = Opened::of(&job.source.store, &item)?;
        let mut same = Vec::new();
        read_whole(job, target, &item, &mut |at, bytes| {
            same.resize(bytes.len(), 0);
            original.read(at, &mut same)?;
            if same == bytes {
                return Ok(());
            }
            let place = target.path().join(&item.name);
            let cause = "it does not hold what the source holds";
            Err(Error::damage("verify", place.display(), cause))
        })?;
    }
    let snapshot = target.snapshot()?;
    let mut objects = 0;
    snapshot.scan::<ObjectRow>(.., &mut |object, row| {
        let mut hasher = Hasher::default();
        let mut at = 0;
        while at < row.len {
            let end = at.saturating_add(PIECE_BYTES).min(row.len);
            hasher.update(&fetch::fetch_range(target.core(), target.files(), object, at..end)?);
            at = end;
        }
        if hasher.finish() != row.digest {
            let cause = "its bytes have another digest than its row says";
            return Err(Error::damage("verify", format!("object {object}"), cause));
        }
        objects += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(objects)
}

/// How many objects there are.
pub(super) fn count_objects(store: &Store) -> Result<u64> {
    store.snapshot()?.count(Table::Objects)
}
