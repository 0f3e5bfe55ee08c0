//! Compact: a partly live file's live objects move to a new file, and the old one is condemned.
//!
//! ```text
//!   copy -> sync and place -> re-read and verify the copy -> move each row that still points at
//!   the old place -> the old file has no live byte, and is condemned
//! ```
//! An unreadable object stops the compaction of its file: nothing is lost by tidying up.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::fetch::stored;
use super::label_rows::LabelRows;
use super::reclaim::{Budget, Reclaimed};
use super::scrub::is_refused;
use super::seal::RowText;
use super::store::Store;
use super::take_in::file_row;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{layout, told::ToldPieces};
use crate::ids::{FileId, ObjectId, UniqueId};
use crate::manifest::{
    FileObjectRow, FileRow, FileState, Key, ObjectRow, Place, Raw, Reading, RecipeRow, Snapshot,
    Table,
};
use crate::protection::Protection;
use crate::sealed::{self, Builder, Built, Expect, Extent, Label, Reader, Referrer, STEP_BYTES};
use crate::vfs::Step;

/// Rows that a label tells of one object, at most.
const EDGES_IN_LABEL_MAX: usize = 16;

struct Copy {
    object: ObjectId,
    old: ObjectRow,
    offset: u64,
}

impl Store {
    /// Rewrites files whose share of dead bytes passes the limit, until the budget's bytes are copied.
    pub(super) fn compact_files(&self, budget: &Budget, done: &mut Reclaimed) -> Result<()> {
        let mut left = budget.copy_bytes;
        for (file, row) in self.worth_compacting(budget.dead_percent)? {
            if left == 0 {
                done.is_more_left = true;
                return Ok(());
            }
            match self.compact_file(file, &row) {
                Ok(moved) => {
                    left = left.saturating_sub(moved);
                    done.compacted += 1;
                    done.moved_bytes += moved;
                }
                // One damaged file stays as it is and stops no other: one with a sector that the disk refuses.
                Err(e) if e.kind() == ErrorKind::Damage || self.is_refused(&e, &row) => {
                    done.unreadable += 1;
                    self.core().condition.warn(e);
                }
                // Another process, or another thread, rewrote it, or gave it back, under our hands.
                Err(e) if e.kind() != ErrorKind::OutcomeUnknown && self.is_gone(file)? => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn is_refused(&self, e: &Error, row: &FileRow) -> bool {
        let folders = self.core().manifest.meta().sealed_folders;
        is_refused(e, &layout::sealed(&self.core().root, &row.digest, row.unique, folders))
    }

    fn is_gone(&self, file: FileId) -> Result<bool> {
        let row = self.snapshot()?.get::<FileRow>(&file)?;
        Ok(row.is_none_or(|row| row.state != FileState::Sealed))
    }

    pub(super) fn worth_compacting(
        &self,
        dead_percent: Option<u8>,
    ) -> Result<Vec<(FileId, FileRow)>> {
        let percent = dead_percent.unwrap_or(self.core().limits.compact_dead_percent);
        let percent = u128::from(percent);
        let mut found = Vec::new();
        self.snapshot()?.scan::<FileRow>(.., &mut |id, row| {
            let content = u128::from(row.live) + u128::from(row.dead);
            let enough = u128::from(row.dead) * 100 >= content * percent;
            if row.state == FileState::Sealed && row.dead > 0 && enough {
                found.push((id, row));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    fn compact_file(&self, file: FileId, row: &FileRow) -> Result<u64> {
        let core = self.core();
        let me = core.check_write("compact")?;
        let folders = core.manifest.meta().sealed_folders;
        let path = layout::sealed(&core.root, &row.digest, row.unique, folders);
        let store = Some(core.manifest.meta().store);
        let expect = Expect { len: Some(row.len), digest: Some(row.digest), store };
        let reader = Reader::open(&core.disk, &path, &expect)?;
        let described = reader.footer()?;
        let unique = core.unique()?;
        core.disk.mark(Step::CompactCopy);
        let mut builder =
            Builder::create(&core.disk, &core.root, me.owner, unique, core.limits.block_bytes)?;
        // Salvage reads what an extent is from the footer: it moves along.
        let told = described.extents.iter().rev();
        let told: BTreeMap<u64, &[u8]> = told.map(|e| (e.extent.offset, &e.about[..])).collect();
        let mut copies = Vec::new();
        for (object, old) in self.live_objects(file)? {
            let Place::Extent { offset, .. } = old.place else { continue };
            let about = told.get(&offset).copied().unwrap_or_default();
            let extent = Extent { digest: old.digest, len: old.len, codec: old.codec, about };
            builder.begin()?;
            let mut from = 0;
            while from < old.stored_len {
                let to = from.saturating_add(STEP_BYTES).min(old.stored_len);
                builder.push(&reader.read_range(offset, old.stored_len, from..to)?)?;
                from = to;
            }
            let at = builder.end(&extent)?;
            copies.push(Copy { object, old, offset: at.offset });
        }
        if copies.is_empty() {
            return Ok(0);
        }
        self.building()?.lock().insert(unique);
        let result = self.finish_copy(builder, file, row, &copies);
        self.building()?.lock().remove(&unique);
        result
    }

    fn finish_copy(
        &self,
        builder: Builder,
        file: FileId,
        row: &FileRow,
        copies: &[Copy],
    ) -> Result<u64> {
        let core = self.core();
        let folders = core.manifest.meta().sealed_folders;
        let label = Label {
            store: core.manifest.meta().store,
            referrers: self.referrers(copies)?,
            inputs: vec![row.digest],
            commit: core.manifest.commit_seq(),
        };
        let built = builder.finish(&label).inspect_err(|e| core.halt_if_sync_failed(e))?;
        let moved = self.move_copy(&built, file, copies);
        if let Err(e) = &moved
            && e.kind() != ErrorKind::OutcomeUnknown
            && core.condition.is_working()
        {
            // No row names it: rubbish already, and in the way on a full disk.
            let path = layout::sealed(&core.root, &built.digest, built.unique, folders);
            let _ = core.disk.unlink(&path);
            let _ = core.disk.unlink(&built.tmp);
        }
        moved
    }

    /// Who refers to each object now: what the old label said may have changed since.
    fn referrers(&self, copies: &[Copy]) -> Result<Vec<Referrer>> {
        let snapshot = self.snapshot()?;
        let mut rows = LabelRows::default();
        // A row of a recipe names a thousand pieces: it is told once, by digests, and not with each of them.
        let mut recipes: BTreeSet<(ObjectId, u64)> = BTreeSet::new();
        for (extent, copy) in (0..).zip(copies) {
            for edge in snapshot.edges_of(copy.object, EDGES_IN_LABEL_MAX)? {
                if edge.table == Table::Recipes {
                    let key = Key::from_bytes(&edge.key)?;
                    if recipes.insert(key) {
                        rows.context(&told_pieces(&snapshot, &key)?);
                    }
                    continue;
                }
                let value = snapshot.raw_get(edge.table, &edge.key)?.unwrap_or_default();
                rows.referrer(extent, (edge.table.number(), edge.key, value));
            }
        }
        Ok(rows.into_rows())
    }

    fn move_copy(&self, built: &Built, file: FileId, copies: &[Copy]) -> Result<u64> {
        let core = self.core();
        let folders = core.manifest.meta().sealed_folders;
        let placed = std::slice::from_ref(built);
        sealed::place(&core.disk, &core.root, placed, folders)
            .inspect_err(|e| core.halt_if_sync_failed(e))?;
        core.disk.mark(Step::CompactVerify);
        if Protection::CopyVerifiedBeforeMove.is_on() {
            self.verify_copy(built, copies)?;
        }
        self.move_rows(built, file, copies)
    }

    /// P7: the old bytes go only when the new ones were read back from the medium and are the same.
    fn verify_copy(&self, built: &Built, copies: &[Copy]) -> Result<()> {
        let core = self.core();
        let folders = core.manifest.meta().sealed_folders;
        let path = layout::sealed(&core.root, &built.digest, built.unique, folders);
        let reader = Reader::open(
            &core.disk,
            &path,
            &Expect { len: Some(built.len), digest: Some(built.digest), store: None },
        )?;
        reader.sync().inspect_err(|e| core.halt_if_sync_failed(e))?;
        for copy in copies {
            // Raw or compressed: what is compared is what readers get.
            if reader.digest_of(&stored(&copy.old, copy.offset))? != copy.old.digest {
                let cause =
                    format!("the copy of object {} differs; nothing was moved", copy.object);
                return Err(Error::damage("compact", path.display(), cause));
            }
        }
        Ok(())
    }

    /// ONE transaction: each row that still points at the old place moves.
    fn move_rows(&self, built: &Built, file: FileId, copies: &[Copy]) -> Result<u64> {
        let committed = self.transact(Step::CompactMove, |w| {
            let id = w.next_file_id()?;
            let mut live = 0;
            w.put(&id, &file_row(built, w.commit_seq()))?;
            for copy in copies {
                let to = Place::Extent { file: id, offset: copy.offset };
                if w.move_object(copy.object, copy.old.place, to)? {
                    live += copy.old.stored_len;
                }
            }
            Ok(live)
        })?;
        self.files().forget(file);
        Ok(committed.value)
    }

    fn live_objects(&self, file: FileId) -> Result<Vec<(ObjectId, ObjectRow)>> {
        let snapshot = self.snapshot()?;
        let mut found = Vec::new();
        let range = (file, ObjectId(0))..=(file, ObjectId(u64::MAX));
        snapshot.scan::<FileObjectRow>(range, &mut |(_, object), _| {
            if let Some(row) = snapshot.get::<ObjectRow>(&object)? {
                found.push((object, row));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    fn building(&self) -> Result<&parking_lot::Mutex<BTreeSet<UniqueId>>> {
        Ok(&self.writer("compact")?.building)
    }
}

/// A row of a recipe as labels tell it.
fn told_pieces(snapshot: &Snapshot, key: &(ObjectId, u64)) -> Result<RowText> {
    let row = snapshot.require::<RecipeRow>(key)?;
    let mut pieces = Vec::with_capacity(row.pieces.len());
    for piece in &row.pieces {
        pieces.push((snapshot.require::<ObjectRow>(&piece.object)?.digest, piece.len));
    }
    let whole = snapshot.require::<ObjectRow>(&key.0)?.digest;
    let told = ToldPieces { whole, begins: key.1, pieces };
    Ok((Table::Recipes.number(), told.key(), told.value()?))
}
