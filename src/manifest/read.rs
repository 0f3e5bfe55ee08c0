//! Reading rows: one set of methods for a snapshot and for a transaction that writes.
//!
//! A snapshot pins the pages of its commit: while it lives, they are not reused, and the manifest
//! grows. Take one, read, drop it.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata, TableHandle};
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::{Arc, OnceLock};

use super::halt::Halt;
use super::key::{CountersKey, EdgeKey, Key};
use super::row::{Row, from_value, place_of};
use super::rows::{CountersRow, DigestRow, EdgeRow, ObjectRow};
use super::table::Table;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::ids::ObjectId;

/// Bounds of a range of keys, as bytes.
pub type KeyBytes = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// What a raw scan calls with each key and value.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>> + 'v;

/// Rows as bytes. Implemented by [`Snapshot`] and [`Write`](super::Write) alone.
pub trait Raw {
    /// The value at `key`.
    fn raw_get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Visits every row in a range, in order of keys or against it.
    fn raw_scan(&self, table: Table, range: KeyBytes, down: bool, visit: &mut Visit) -> Result<()>;
    /// The number of rows.
    fn raw_count(&self, table: Table) -> Result<u64>;
}

/// A row that refers to an object.
pub type Edge = EdgeKey;

/// Reading by type. The first `Err` of a scan ends it.
///
/// Every method errs with `Damage`, naming table and key, when a row is not what was written,
/// `NewerFormat` when a later release wrote it, and `Halted` once the handle has stopped; an error
/// of the disk stops it.
pub trait Reading: Raw {
    /// The row at `key`.
    fn get<R: Row>(&self, key: &R::Key) -> Result<Option<R>> {
        let bytes = key.to_bytes();
        match self.raw_get(R::TABLE, &bytes)? {
            Some(value) => from_value(&bytes, &value).map(Some),
            None => Ok(None),
        }
    }

    /// The row at `key`, which another row says is there: `Damage` when it is not.
    fn require<R: Row>(&self, key: &R::Key) -> Result<R> {
        self.get(key)?.ok_or_else(|| {
            Error::damage("read", place_of::<R>(key), "the row is referred to and is not there")
        })
    }

    /// Visits every row in `range`, in order of keys, until told to stop.
    fn scan<R: Row>(
        &self,
        range: impl RangeBounds<R::Key>,
        visit: &mut dyn FnMut(R::Key, R) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.raw_scan(R::TABLE, key_bytes(&range), false, &mut |key, value| {
            visit(R::Key::from_bytes(key)?, from_value(key, value)?)
        })
    }

    /// The first `at_most` rows in `range`.
    fn list<R: Row>(
        &self,
        range: impl RangeBounds<R::Key>,
        at_most: usize,
    ) -> Result<Vec<(R::Key, R)>> {
        let mut rows = Vec::new();
        if at_most > 0 {
            self.scan(range, &mut |key, row| {
                rows.push((key, row));
                Ok(match rows.len() < at_most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
        }
        Ok(rows)
    }

    /// As [`Reading::list`], where a row that does not read is an error of its own.
    fn list_each<R: Row>(
        &self,
        range: impl RangeBounds<R::Key>,
        at_most: usize,
    ) -> Result<Vec<(R::Key, Result<R>)>> {
        let mut rows = Vec::new();
        self.raw_scan(R::TABLE, key_bytes(&range), false, &mut |key, value| {
            if rows.len() < at_most {
                rows.push((R::Key::from_bytes(key)?, from_value(key, value)));
            }
            Ok(match rows.len() < at_most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        Ok(rows)
    }

    /// The last row in `range`.
    fn last<R: Row>(&self, range: impl RangeBounds<R::Key>) -> Result<Option<(R::Key, R)>> {
        let mut last = None;
        self.raw_scan(R::TABLE, key_bytes(&range), true, &mut |key, value| {
            last = Some((R::Key::from_bytes(key)?, from_value(key, value)?));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(last)
    }

    /// The number of rows in a table.
    fn count(&self, table: Table) -> Result<u64> {
        self.raw_count(table)
    }

    /// The counters, as of the last commit.
    fn counters(&self) -> Result<CountersRow> {
        self.require::<CountersRow>(&CountersKey)
    }

    /// Every object with this digest: one, or more where a damaged one was stored again.
    fn object_of(&self, digest: &Digest) -> Result<Vec<(ObjectId, ObjectRow)>> {
        let prefix = digest.prefix();
        let mut found = Vec::new();
        let range = (prefix, ObjectId(0))..=(prefix, ObjectId(u64::MAX));
        self.scan::<DigestRow>(range, &mut |(_, object), _| {
            let row = self.require::<ObjectRow>(&object)?;
            if row.digest == *digest {
                found.push((object, row));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Whether any row refers to `object`.
    fn has_edges(&self, object: ObjectId) -> Result<bool> {
        Ok(!self.edges_of(object, 1)?.is_empty())
    }

    /// The first `at_most` rows that refer to `object`.
    fn edges_of(&self, object: ObjectId, at_most: usize) -> Result<Vec<Edge>> {
        let from = EdgeKey { object, table: Table::Meta, key: Vec::new() };
        let upto = match object.next() {
            Some(object) => {
                Bound::Excluded(EdgeKey { object, table: Table::Meta, key: Vec::new() })
            }
            None => Bound::Unbounded,
        };
        let edges = self.list::<EdgeRow>((Bound::Included(from), upto), at_most)?;
        Ok(edges.into_iter().map(|(edge, _)| edge).collect())
    }
}

impl<T: Raw> Reading for T {}

fn key_bytes<K: Key>(range: &impl RangeBounds<K>) -> KeyBytes {
    (range.start_bound().map(K::to_bytes), range.end_bound().map(K::to_bytes))
}

/// Whether no key can lie in the range; redb is not asked.
fn is_empty(range: &KeyBytes) -> bool {
    match range {
        (Bound::Included(from), Bound::Included(upto)) => from > upto,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(upto))
        | (Bound::Excluded(from), Bound::Included(upto)) => from >= upto,
        _ => false,
    }
}

type Bytes = &'static [u8];

pub(super) fn get_in(
    halt: &Halt,
    table: &impl ReadableTable<Bytes, Bytes>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    halt.guard("read", || table.get(key).map(|found| found.map(|value| value.value().to_vec())))
}

pub(super) fn scan_in(
    halt: &Halt,
    table: &impl ReadableTable<Bytes, Bytes>,
    range: KeyBytes,
    down: bool,
    visit: &mut Visit,
) -> Result<()> {
    if is_empty(&range) {
        return Ok(());
    }
    let bounds = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
    let mut rows = halt.guard("read", || table.range::<&[u8]>(bounds))?;
    loop {
        let next = || {
            let row = if down { rows.next_back() } else { rows.next() }.transpose()?;
            // Where a damaged page says that they are, key and value may not be: look in here,
            // where a panic is caught.
            if let Some((key, value)) = &row {
                let _ = (key.value(), value.value());
            }
            Ok::<_, redb::StorageError>(row)
        };
        let Some((key, value)) = halt.guard("read", next)? else { return Ok(()) };
        if visit(key.value(), value.value())?.is_break() {
            return Ok(());
        }
    }
}

/// The manifest as of one commit.
pub struct Snapshot {
    tables: [OnceLock<ReadOnlyTable<Bytes, Bytes>>; Table::ALL.len()],
    txn: ReadTransaction,
    halt: Arc<Halt>,
    /// Tells the handle that it is read.
    reader: Option<Arc<()>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("manifest", &self.halt.path()).finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(super) fn new(txn: ReadTransaction, halt: Arc<Halt>) -> Self {
        Self { tables: [const { OnceLock::new() }; Table::ALL.len()], txn, halt, reader: None }
    }

    /// The same; `readers` are counted by whoever made it.
    pub(super) fn held_by(mut self, readers: &Arc<()>) -> Self {
        self.reader = Some(Arc::clone(readers));
        self
    }

    pub(super) fn halt(&self) -> &Halt {
        &self.halt
    }

    pub(super) fn table(&self, table: Table) -> Result<&ReadOnlyTable<Bytes, Bytes>> {
        self.halt.check("read")?;
        let slot = &self.tables[table.index()];
        if let Some(open) = slot.get() {
            return Ok(open);
        }
        let open = self.halt.guard("read", || self.txn.open_table(table.definition()))?;
        Ok(slot.get_or_init(|| open))
    }

    /// Whether it has tables, and none of ours.
    pub(super) fn is_of_another_program(&self) -> Result<bool> {
        let ours = |name: &str| Table::ALL.iter().any(|table| table.name() == name);
        self.halt.guard("read", || {
            let names: Vec<String> =
                self.txn.list_tables()?.map(|table| table.name().to_owned()).collect();
            Ok::<_, redb::StorageError>(!names.is_empty() && !names.iter().any(|name| ours(name)))
        })
    }

    /// What the pages of a table take of the file. The time follows its rows.
    pub(super) fn table_bytes(&self, table: Table) -> Result<u64> {
        let open = self.table(table)?;
        let stats = self.halt.guard("read", || open.stats())?;
        let bytes = stats.stored_bytes().saturating_add(stats.metadata_bytes());
        Ok(bytes.saturating_add(stats.fragmented_bytes()))
    }
}

impl Raw for Snapshot {
    fn raw_get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        get_in(&self.halt, self.table(table)?, key)
    }

    fn raw_scan(&self, table: Table, range: KeyBytes, down: bool, visit: &mut Visit) -> Result<()> {
        scan_in(&self.halt, self.table(table)?, range, down, visit)
    }

    fn raw_count(&self, table: Table) -> Result<u64> {
        let table = self.table(table)?;
        self.halt.guard("read", || table.len())
    }
}
