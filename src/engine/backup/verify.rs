//! Reads a copy back as whoever opens it will: every file that its rows name, every record of its
//! journals.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::run::Job;
use crate::engine::merge::Merge;
use crate::engine::store::Store;
use crate::engine::streams::Source;
use crate::engine::view::expect;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::StoreId;
use crate::journal::{self, Tail};
use crate::manifest::{FileRow, JournalRow, JournalState, Reading, StreamRow};
use crate::protection::Protection;
use crate::sealed::{Expect, Reader};
use crate::vfs::{Disk, Step};

impl Job<'_, '_> {
    /// Verifies everything that the rows of `staged` name. A file that the earlier backup had and
    /// that does not read any more is copied again.
    pub(super) fn verify(&mut self, staged: &Store) -> Result<()> {
        self.target.disk.mark(Step::BackupVerify);
        if !Protection::VerifyBeforeSwitch.is_on() {
            return Ok(());
        }
        self.begin("verify", self.named.bytes)?;
        staged.snapshot()?.scan::<FileRow>(.., &mut |_, row| {
            match self.verify_one(&row) {
                Err(e) if e.kind() == ErrorKind::Damage => {
                    self.copy_file_anew(&row)?;
                    self.done.files_copied += 1;
                    self.verify_one(&row)?;
                }
                verified => verified?,
            }
            self.did(row.len)?;
            Ok(ControlFlow::Continue(()))
        })?;
        verify_journals(staged)
    }

    fn verify_one(&self, row: &FileRow) -> Result<()> {
        let (target, store) = (&self.target, self.core.manifest.meta().store);
        let path = layout::sealed(&target.root, &row.digest, row.unique, target.folders);
        verify_file(&target.disk, &path, store, row, self.is_fast)
    }
}

/// P6: a file is what its row says; unless it is `fast`, every byte of it.
pub(super) fn verify_file(
    disk: &Arc<dyn Disk>,
    path: &Path,
    store: StoreId,
    row: &FileRow,
    is_fast: bool,
) -> Result<()> {
    let expect = Expect { len: Some(row.len), digest: Some(row.digest), store: Some(store) };
    let reader = Reader::open(disk, path, &expect)?;
    reader.label()?;
    if is_fast {
        return Ok(());
    }
    // Not what the cache holds but what the medium does.
    reader.sync()?;
    reader.verify(&row.digest)
}

/// Reads the journals as recovery will: each up to its end, and each stream without a hole.
pub(super) fn verify_journals(staged: &Store) -> Result<()> {
    let (core, snapshot) = (staged.core(), staged.snapshot()?);
    let (mut merge, mut allow_gap) = (Merge::default(), false);
    for ((owner, n), row) in snapshot.list::<JournalRow>(.., usize::MAX)? {
        let path = layout::journal(&core.root, owner, n);
        let expected = expect(core, owner, n, &row);
        let source = Source::Adopted { owner, n };
        let scan = journal::scan(&*core.disk, &path, &expected, &mut |_, records| {
            records.into_iter().for_each(|record| merge.take(record, source));
            Ok(())
        })?;
        let is_aside = matches!(row.state, JournalState::SetAside { .. });
        allow_gap |= is_aside;
        if !is_aside && (scan.tail != Tail::Clean || Some(scan.end) != expected.end) {
            let cause = format!("it ends at {} in the copy ({:?})", scan.end, scan.tail);
            return Err(Error::damage("verify", path.display(), cause));
        }
    }
    for stream in merge.streams().collect::<Vec<_>>() {
        if let Some(row) = snapshot.get::<StreamRow>(&stream)? {
            merge.tail(stream, &row, allow_gap)?;
        }
    }
    Ok(())
}
