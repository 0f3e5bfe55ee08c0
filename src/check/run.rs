//! The check itself, part by part.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::look::Look;
use super::report::{Report, Severity};
use super::{edges, files, journals, names, owners, rows, streams};
use crate::engine::Store;
use crate::error::Result;
use crate::manifest::{CheckIntegrity, MetaRow, Reading, StoreKey};
use crate::vfs::{Disk, RealDisk};

/// How to check.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// Looks at rows, lengths and labels only, not at the content of sealed files.
    pub fast: bool,
    /// Checks a store directory that other users may enter.
    pub allow_shared_root: bool,
    /// Another disk than the machine's own.
    pub disk: Option<Arc<dyn Disk>>,
}

/// How far a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// What is being looked at: "rows", "journals", "streams", "files", "names".
    pub part: &'static str,
    /// Rows, or for files and journals bytes, looked at in this part.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// Compares everything on disk with what the rows say of it, and changes nothing. `progress` may
/// end it.
///
/// # Errors
/// Only what prevents any look: `NoStore`, `ManifestLost`, `Foreign`, `NewerFormat`, `RolledBack`,
/// `Damage` of the manifest as a whole, `InUse` while a writer is opening it, `Io`; `Cancelled`.
/// Everything else is a finding.
pub fn check(
    path: impl AsRef<Path>,
    options: &CheckOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Report> {
    let disk = options.disk.clone().unwrap_or_else(|| RealDisk::new());
    let mut opening =
        Store::options().disk(Arc::clone(&disk)).allow_shared_root(options.allow_shared_root);
    if !options.fast {
        opening = opening.check_integrity(CheckIntegrity::Always);
    }
    let store = opening.open_read_only(path.as_ref())?;
    let snapshot = store.snapshot()?;
    let meta = snapshot.require::<MetaRow>(&StoreKey)?;
    let mut look = Look {
        report: Report::new(store.id(), snapshot.counters()?.commit_seq, options.fast),
        root: path.as_ref().to_owned(),
        // In a single file the names below the store are its own.
        disk: store.disk(),
        store,
        meta,
        fast: options.fast,
        progress,
        at: Progress::default(),
    };
    if !options.fast {
        look.report.bytes_read += look.store.stats()?.manifest_bytes;
    }
    let known = rows::check_rows(&mut look, &snapshot)?;
    edges::check_edges(&mut look, &snapshot)?;
    let living = owners::check_owners(&mut look, &snapshot)?;
    drop(snapshot);
    let tails = journals::check_journals(&mut look, &living)?;
    streams::check_streams(&mut look, tails)?;
    files::check_files(&mut look, &known)?;
    names::check_names(&mut look, &living)?;
    close_books(&mut look, living.is_empty());
    look.store.close()?;
    Ok(look.report)
}

/// P10: the classes of bytes are summed apart from each other, and must be what the disk holds.
fn close_books(look: &mut Look, is_quiet: bool) {
    match look.store.accounts() {
        Ok(accounts) => {
            // While a writer lives the classes may be of different instants.
            if is_quiet && !accounts.are_closed() {
                let what = format!("the classes of bytes do not add up: {accounts:?}");
                let means = "a file has another length than its row says, or is not there";
                look.find(Severity::Warning, "accounts", what, means);
            }
            look.report.accounts = Some(accounts);
        }
        Err(e) => look.failed(&e, "the bytes cannot be added up by class"),
    }
}
