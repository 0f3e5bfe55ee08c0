//! A directory into one file.

use std::sync::Arc;

use super::files::Opened;
use super::run::Job;
use super::verify::verify;
use crate::error::Result;
use crate::manifest::{Draft, Newborn};
use crate::protection::Protection;
use crate::vfs::Step;

pub(super) fn make(job: &mut Job<'_>) -> Result<u64> {
    let disk = Arc::clone(&job.disk);
    let newborn = Newborn::begin(&disk, job.target)?;
    disk.mark(Step::PackCopy);
    fill(job, &newborn)?;
    disk.mark(Step::PackVerify);
    let mut objects = 0;
    if Protection::PackedVerified.is_on() {
        let store = job.options.clone().open_read_only(newborn.path())?;
        objects = verify(job, &store)?;
        store.close()?;
    }
    // P3: nothing has the name that is not durable and verified.
    disk.mark(Step::PackLink);
    newborn.name(Step::PackSyncDir)?;
    Ok(objects)
}

/// Rows, then files; the draft is synced and its rows read back.
fn fill(job: &mut Job<'_>, newborn: &Newborn) -> Result<()> {
    job.begin("copy")?;
    let source = job.source.store.clone();
    let mut draft = Draft::over(&job.disk, newborn.path(), newborn.file())?;
    draft.copy_rows(&source.snapshot()?, &[], &mut |meta| {
        meta.single_file = true;
        Ok(())
    })?;
    for item in job.items.clone() {
        let opened = Opened::of(&source, &item)?;
        draft.put_file(&item.name, item.len, &mut |at, into| {
            opened.read(at, into)?;
            job.did(into.len() as u64)
        })?;
    }
    draft.finish().map(drop)
}
