//! Before the target has its name: everything in it is read back and compared.

use std::ops::ControlFlow;

use super::files::{Opened, read_whole};
use super::run::Job;
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
    snapshot.scan::<ObjectRow>(.., &mut |object, _| {
        fetch::verify_object(target.core(), target.files(), object)?;
        objects += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(objects)
}

/// How many objects there are.
pub(super) fn count_objects(store: &Store) -> Result<u64> {
    store.snapshot()?.count(Table::Objects)
}
