//! A transaction that writes: it checks its owner, writes rows with their edges and index rows,
//! and settles what lost its last reference.

use redb::{ReadableTableMetadata, Table as RedbTable, WriteTransaction};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use super::changes::Touched;
use super::halt::Halt;
use super::key::{CountersKey, EdgeKey, Key};
use super::pinned::Apart;
use super::read::{KeyBytes, Raw, Reading, Visit, get_in, scan_in};
use super::row::{Row, place_of, to_value};
use super::rows::{
    CondemnedRow, CountersRow, DigestRow, EdgeRow, FileObjectRow, HandoffOrderRow, OpenGroupRow,
    OwnerEnd, OwnerRow, ParameterOrderRow,
};
use super::settle::Unsettled;
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{
    CheckpointId, CommitCount, CommitSeq, Epoch, FileId, GroupId, HandoffId, LeaseId, ObjectId,
    ObjectSnapshotId, OutputId, OwnerId, PartId, QuarantineId, ReceiptId, RecordingId, StageId,
    StreamId,
};
use crate::protection::Protection;

type Bytes = &'static [u8];

/// A transaction that writes.
pub struct Write<'t> {
    tables: [OnceCell<RefCell<RedbTable<'t, Bytes, Bytes>>>; Table::ALL.len()],
    txn: &'t WriteTransaction,
    halt: Arc<Halt>,
    owner: Option<OwnerId>,
    counters: CountersRow,
    pub(super) unsettled: Unsettled,
    apart: Option<Arc<Apart>>,
    touched: RefCell<Touched>,
}

impl std::fmt::Debug for Write<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Write").field("commit", &self.commit_seq()).finish_non_exhaustive()
    }
}

macro_rules! next_ids {
    ($($name:ident: $id:ident = $counter:ident;)*) => {$(
        #[doc = concat!("A number that no ", stringify!($counter), " had before.")]
        ///
        /// # Errors
        /// `LimitExceeded` when none is left.
        pub fn $name(&mut self) -> Result<$id> {
            let next = self.counters.$counter.next().ok_or_else(|| {
                let kind = ErrorKind::LimitExceeded;
                Error::new(kind, "number", stringify!($counter), "no number is left")
            })?;
            self.counters.$counter = next;
            Ok(next)
        }
    )*};
}

impl<'t> Write<'t> {
    pub(super) fn begin(
        txn: &'t WriteTransaction,
        halt: &Arc<Halt>,
        owner: Option<OwnerId>,
    ) -> Result<Self> {
        let mut write = Self {
            tables: [const { OnceCell::new() }; Table::ALL.len()],
            txn,
            halt: halt.clone(),
            owner,
            counters: CountersRow::default(),
            unsettled: Unsettled::default(),
            apart: None,
            touched: RefCell::default(),
        };
        write.counters = write.require::<CountersRow>(&CountersKey)?;
        write.counters.commit_seq = write.counters.commit_seq.next().ok_or_else(|| {
            Error::new(ErrorKind::LimitExceeded, "number", "commit_seq", "no number is left")
        })?;
        // P5: a fenced owner changes nothing.
        if Protection::OwnerCheck.is_on() {
            write.check_owner()?;
        }
        Ok(write)
    }

    fn check_owner(&self) -> Result<()> {
        let Some(owner) = self.owner else { return Ok(()) };
        let fenced = |cause: String| {
            Err(Error::new(ErrorKind::Fenced, "write", place_of::<OwnerRow>(&owner), cause))
        };
        match self.get::<OwnerRow>(&owner)? {
            None => fenced("this owner has no row".to_owned()),
            Some(OwnerRow { ended: Some(OwnerEnd::Closed), .. }) => {
                fenced("this owner has closed the store".to_owned())
            }
            Some(OwnerRow { ended: Some(OwnerEnd::TakenOver { by }), .. }) => {
                fenced(format!("owner {by} took over what this one had"))
            }
            Some(OwnerRow { ended: None, .. }) => Ok(()),
        }
    }

    pub(super) fn halt(&self) -> &Halt {
        &self.halt
    }

    pub(super) fn touch_all<K: AsRef<[u8]>>(&self, table: Table, keys: &[K]) {
        let mut touched = self.touched.borrow_mut();
        keys.iter().for_each(|key| touched.row(table, key.as_ref()));
    }

    pub(super) fn table(&self, table: Table) -> Result<&RefCell<RedbTable<'t, Bytes, Bytes>>> {
        self.halt.check("write")?;
        let slot = &self.tables[table.index()];
        if let Some(open) = slot.get() {
            return Ok(open);
        }
        let open = self.halt.guard("write", || self.txn.open_table(table.definition()))?;
        Ok(slot.get_or_init(|| RefCell::new(open)))
    }

    /// Sets a value, or takes it away.
    fn set(&self, table: Table, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.touched.borrow_mut().row(table, key);
        let cell = self.table(table)?;
        let Ok(mut open) = cell.try_borrow_mut() else {
            let cause = "a row cannot be changed from inside a scan of its table";
            return Err(Error::invalid("write", table.name(), cause));
        };
        self.halt.guard("write", || {
            match value {
                Some(value) => open.insert(key, value)?,
                None => open.remove(key)?,
            };
            Ok::<_, redb::StorageError>(())
        })
    }

    pub(super) fn set_row<R: Row>(&self, key: &R::Key, row: &R) -> Result<()> {
        let bytes = key.to_bytes();
        let value = to_value(&bytes, row)?;
        self.set(R::TABLE, &bytes, Some(&value))
    }

    /// Takes a value away that nothing else follows from.
    pub(super) fn erase(&self, table: Table, key: &[u8]) -> Result<()> {
        self.set(table, key, None)
    }

    /// Makes `old` of the row at `key` into `new`, with its edges and index rows.
    pub(super) fn change<R: Row>(
        &mut self,
        key: &R::Key,
        old: Option<&R>,
        new: Option<&R>,
    ) -> Result<()> {
        let key_bytes = key.to_bytes();
        let (before, after) = (edges_of(old), edges_of(new));
        for object in after.difference(&before) {
            self.add_edge::<R>(*object, key, &key_bytes)?;
        }
        for object in before.difference(&after) {
            let edge = EdgeKey { object: *object, table: R::TABLE, key: key_bytes.clone() };
            self.set(Table::Edges, &edge.to_bytes(), None)?;
            self.unsettled.lost.insert(*object);
        }
        let (before, after) = (derived_of(key, old), derived_of(key, new));
        for (table, index) in before.difference(&after) {
            self.set(*table, index, None)?;
        }
        for (table, index) in after.difference(&before) {
            let value = match table {
                Table::Digests => to_value(index, &DigestRow)?,
                Table::FileObjects => to_value(index, &FileObjectRow)?,
                Table::Condemned => to_value(index, &CondemnedRow)?,
                Table::ParameterOrder => to_value(index, &ParameterOrderRow)?,
                Table::OpenGroups => to_value(index, &OpenGroupRow)?,
                Table::HandoffOrder => to_value(index, &HandoffOrderRow)?,
                other => {
                    let cause = "no row of this table follows from others";
                    return Err(Error::invalid("write", other.name(), cause));
                }
            };
            self.set(*table, index, Some(&value))?;
        }
        match new {
            Some(row) => self.set_row(key, row),
            None => self.set(R::TABLE, &key_bytes, None),
        }
    }

    fn add_edge<R: Row>(&mut self, object: ObjectId, key: &R::Key, bytes: &[u8]) -> Result<()> {
        // G6: no committed row names an object that is not there.
        if self.raw_get(Table::Objects, &object.to_bytes())?.is_none() {
            let cause = format!("it refers to object {object}, which has no row");
            return Err(Error::invalid("write", place_of::<R>(key), cause));
        }
        if Protection::RetiringUnfound.is_on() && self.is_retiring(object)? {
            let cause = format!("it refers to object {object}, which is being taken apart");
            return Err(Error::new(ErrorKind::Conflict, "write", place_of::<R>(key), cause));
        }
        if R::TABLE == Table::Chunks && !Protection::EdgesOfChunks.is_on() {
            return Ok(());
        }
        if R::TABLE == Table::SnapshotNames && !Protection::SnapshotNamesPin.is_on() {
            return Ok(());
        }
        let edge = EdgeKey { object, table: R::TABLE, key: bytes.to_vec() };
        self.set_row(&edge, &EdgeRow)
    }

    /// Writes the row at `key`, whether or not one is there, with its edges.
    ///
    /// # Errors
    /// `Invalid` when it refers to an object that has no row, or when the table is one whose rows
    /// follow from others (digests, edges, file_objects) or belongs to the transaction itself
    /// (counters); `LimitExceeded` for a row that says what none may ([`Row::excess`]); `Damage` when the
    /// row that it replaces cannot be read.
    pub fn put<R: Row>(&mut self, key: &R::Key, row: &R) -> Result<()> {
        let bytes = key.to_bytes();
        self.refuse_derived::<R>(key, &bytes)?;
        let old = self.get::<R>(key)?;
        if let Some(contradiction) = row.contradiction() {
            return Err(Error::invalid("write", place_of::<R>(key), contradiction));
        }
        // P9: what is written reads again.
        if let Some(cause) = row.excess() {
            let kind = ErrorKind::LimitExceeded;
            return Err(Error::new(kind, "write", place_of::<R>(key), cause));
        }
        self.unsettled.note_put(R::TABLE, &bytes, old.is_none())?;
        self.change(key, old.as_ref(), Some(row))
    }

    /// Takes the row at `key` away, with its edges; returns it.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Invalid` for an object, which goes with its last edge.
    pub fn remove<R: Row>(&mut self, key: &R::Key) -> Result<Option<R>> {
        self.refuse_derived::<R>(key, &key.to_bytes())?;
        // P4: objects go through the settlement alone.
        if matches!(R::TABLE, Table::Objects | Table::Inline | Table::Recipes | Table::Meta) {
            let cause = "the row goes by itself, with the last edge of its object";
            return Err(Error::invalid("remove", place_of::<R>(key), cause));
        }
        let Some(old) = self.get::<R>(key)? else { return Ok(None) };
        self.change(key, Some(&old), None)?;
        Ok(Some(old))
    }

    /// Writes the row at `key` unless one is there; returns whether it did.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn insert_absent<R: Row>(&mut self, key: &R::Key, row: &R) -> Result<bool> {
        if self.get::<R>(key)?.is_some() {
            return Ok(false);
        }
        self.put(key, row).map(|()| true)
    }

    fn refuse_derived<R: Row>(&self, key: &R::Key, bytes: &[u8]) -> Result<()> {
        if R::TABLE.is_derived() || (R::TABLE, bytes) == (Table::Meta, &CountersKey.to_bytes()[..])
        {
            let cause = "the row follows from others; write those";
            return Err(Error::invalid("write", place_of::<R>(key), cause));
        }
        Ok(())
    }

    /// Who writes.
    pub fn owner(&self) -> Option<OwnerId> {
        self.owner
    }

    /// Notes what this transaction takes apart in `apart`, which ends when it has ended.
    pub(super) fn note_apart(&mut self, apart: &Arc<Apart>) {
        self.apart = Some(Arc::clone(apart));
    }

    pub(super) fn apart(&self) -> Option<&Apart> {
        self.apart.as_deref()
    }

    /// The number that this commit will have.
    pub fn commit_seq(&self) -> CommitSeq {
        self.counters.commit_seq
    }

    /// This transaction tells no caller anything that lasts: a snapshot from before it lacks
    /// nothing.
    pub fn keep_quiet(&mut self) {
        self.touched.get_mut().is_bookkeeping = true;
    }

    pub(super) fn take_touched(&mut self) -> Touched {
        std::mem::take(self.touched.get_mut())
    }

    /// Raises every counter that is below the one in `least`: those numbers were given out before.
    pub fn raise_counters(&mut self, least: &CountersRow) {
        let ours = &mut self.counters;
        ours.commit_seq = ours.commit_seq.max(least.commit_seq);
        ours.epoch = ours.epoch.max(least.epoch);
        ours.object = ours.object.max(least.object);
        ours.file = ours.file.max(least.file);
        ours.lease = ours.lease.max(least.lease);
        ours.recording = ours.recording.max(least.recording);
        ours.stream = ours.stream.max(least.stream);
        ours.checkpoint = ours.checkpoint.max(least.checkpoint);
        ours.receipt = ours.receipt.max(least.receipt);
        ours.stage = ours.stage.max(least.stage);
        ours.group = ours.group.max(least.group);
        ours.part = ours.part.max(least.part);
        ours.output = ours.output.max(least.output);
        ours.quarantine = ours.quarantine.max(least.quarantine);
        ours.handoff = ours.handoff.max(least.handoff);
        ours.object_snapshot = ours.object_snapshot.max(least.object_snapshot);
    }

    next_ids! {
        next_epoch: Epoch = epoch;
        next_object_id: ObjectId = object;
        next_file_id: FileId = file;
        next_lease_id: LeaseId = lease;
        next_recording_id: RecordingId = recording;
        next_stream_id: StreamId = stream;
        next_checkpoint_id: CheckpointId = checkpoint;
        next_receipt_id: ReceiptId = receipt;
        next_stage_id: StageId = stage;
        next_group_id: GroupId = group;
        next_part_id: PartId = part;
        next_output_id: OutputId = output;
        next_quarantine_id: QuarantineId = quarantine;
        next_handoff_id: HandoffId = handoff;
        next_object_snapshot_id: ObjectSnapshotId = object_snapshot;
    }

    /// Settles, numbers and counts the transaction.
    pub(super) fn finish(&mut self) -> Result<CommitCount> {
        self.settle()?;
        let mut count = CommitCount(0);
        if let Some(owner) = self.owner
            && let Some(mut row) = self.get::<OwnerRow>(&owner)?
        {
            row.commits = row.commits.next().ok_or_else(|| {
                Error::new(ErrorKind::LimitExceeded, "number", "commits", "no number is left")
            })?;
            count = row.commits;
            self.set_row(&owner, &row)?;
        }
        self.set_row(&CountersKey, &self.counters)?;
        Ok(count)
    }
}

fn edges_of<R: Row>(row: Option<&R>) -> BTreeSet<ObjectId> {
    let mut edges = BTreeSet::new();
    if let Some(row) = row {
        row.edges(&mut |object| {
            edges.insert(object);
        });
    }
    edges
}

fn derived_of<R: Row>(key: &R::Key, row: Option<&R>) -> BTreeSet<(Table, Vec<u8>)> {
    let mut derived = BTreeSet::new();
    if let Some(row) = row {
        row.derived(key, &mut |table, index| {
            derived.insert((table, index));
        });
    }
    derived
}

impl Raw for Write<'_> {
    fn raw_get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        get_in(&self.halt, &*self.table(table)?.borrow(), key)
    }

    fn raw_scan(&self, table: Table, range: KeyBytes, down: bool, visit: &mut Visit) -> Result<()> {
        scan_in(&self.halt, &*self.table(table)?.borrow(), range, down, visit)
    }

    fn raw_count(&self, table: Table) -> Result<u64> {
        let table = self.table(table)?.borrow();
        self.halt.guard("read", || table.len())
    }
}
