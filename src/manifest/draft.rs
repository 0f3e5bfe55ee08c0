//! A manifest that is made row by row under a name of its own: for a copy, for a smaller one, for
//! one that is rebuilt. It becomes a store's manifest by a rename, which is its maker's to do.
//!
//! ```text
//!   [create] ---> rows in bounded transactions [put, copy] ---> [finish]: the last commit,
//!   closed, synced, dropped from the cache, read back whole ---> Drafted
//! ```

use redb::{Builder, ConcurrencyMode, Database, Durability};
use std::io;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

use super::backend::Backend;
use super::commit;
use super::copy::Copy;
use super::examine::Served;
use super::halt::{Halt, drop_quietly};
use super::key::{Key, StoreKey};
use super::read::{KeyBytes, Raw, Snapshot, Visit, scan_in};
use super::row::{Row, from_value, to_value};
use super::rows::MetaRow;
use super::table::Table;
use crate::digest::Hasher;
use crate::error::{Error, ErrorKind, Result};
use crate::format::row as envelope;
use crate::protection::Protection;
use crate::vfs::{Access, Disk, File};

/// Rows gathered before they are committed, in bytes: what a draft holds in memory, beside a cache
/// of the same order.
const BATCH_BYTES: usize = 4 << 20;
/// What a row costs in memory beside its bytes.
const ROW_BYTES: usize = 64;
const CACHE_BYTES: usize = 16 << 20;

/// What becomes of a row on its way into a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pass {
    /// It goes in as it is.
    Same,
    /// It goes in with this value: a whole one, as [`row_value`] makes it.
    Changed(Vec<u8>),
    /// It stays out.
    Left,
}

/// Decides about each row: table, key, value. Rows that follow from others (edges, digests,
/// file_objects, condemned) are shown too and do not follow by themselves: who changes or leaves a
/// row answers for them.
pub type PassRow<'h> = dyn FnMut(Table, &[u8], &[u8]) -> Result<Pass> + 'h;

/// A manifest being made. Dropped before [`finish`](Draft::finish), it leaves a file that is no
/// manifest and that nothing may name.
pub struct Draft {
    db: Database,
    file: Arc<dyn File>,
    halt: Arc<Halt>,
    batch: Vec<(Table, Vec<u8>, Vec<u8>)>,
    batch_bytes: usize,
    /// Kept for the last commit: a file without it is no manifest.
    store: Vec<(Vec<u8>, Vec<u8>)>,
    tally: Tally,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft").field("path", &self.halt.path()).finish_non_exhaustive()
    }
}

/// What a finished draft holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drafted {
    /// Rows of all tables.
    pub rows: u64,
    /// Rows by table.
    pub by_table: Vec<(Table, u64)>,
    /// Length of the file.
    pub bytes: u64,
}

/// The value of a row as a manifest holds it, for [`Pass::Changed`] and [`Draft::put`].
///
/// # Errors
/// `Invalid` when it cannot be encoded.
pub fn row_value<R: Row>(key: &R::Key, row: &R) -> Result<Vec<u8>> {
    to_value(&key.to_bytes(), row)
}

impl Draft {
    /// Begins a manifest at `path`, any path on any disk, under which there is nothing yet.
    ///
    /// # Errors
    /// `Exists` where something has the name, which is left as it is; `Io`, `DiskFull`.
    pub fn create(disk: &Arc<dyn Disk>, path: &Path) -> Result<Self> {
        let file = disk.open(path, Access::CreateNew).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => {
                let cause = "something has the name already, and was left as it is";
                Error::new(ErrorKind::Exists, "create", path.display(), cause)
            }
            _ => Error::io("create", path.display(), e),
        })?;
        Self::over(disk, path, &file)
    }

    /// Begins a manifest in `file`, which is empty and stands at `path`.
    ///
    /// # Errors
    /// `Io`, `DiskFull`.
    pub fn over(disk: &Arc<dyn Disk>, path: &Path, file: &Arc<dyn File>) -> Result<Self> {
        let (file, halt) = (Arc::clone(file), Halt::new(disk, path.to_owned()));
        let db = halt.guard("create", || {
            Builder::new()
                .set_cache_size(CACHE_BYTES)
                .set_concurrency_mode(ConcurrencyMode::SingleWriter)
                .create_with_backend(Backend::new(file.clone(), halt.clone()))
        })?;
        let (batch, store) = (Vec::new(), Vec::new());
        Ok(Self { db, file, halt, batch, batch_bytes: 0, store, tally: Tally::default() })
    }

    /// Puts a row in, whatever stood at its key. It is as durable as the file when
    /// [`finish`](Self::finish) returns, and not before.
    ///
    /// # Errors
    /// `Damage` when the value is not what was written at this key. `Io`, `DiskFull`: the draft is
    /// of no use any more.
    pub fn put(&mut self, table: Table, key: &[u8], value: Vec<u8>) -> Result<()> {
        // P6: a damaged row is not handed on as if it were whole.
        if !envelope::is_whole(table.number(), key, &value) {
            let place = format!("{} {key:02x?}", table.name());
            return Err(Error::damage("copy", place, "the row's checksum does not fit"));
        }
        if table == Table::Meta {
            self.store.retain(|(other, _)| other != key);
            self.store.push((key.to_vec(), value));
            return Ok(());
        }
        self.batch_bytes += key.len() + value.len() + ROW_BYTES;
        self.batch.push((table, key.to_vec(), value));
        if self.batch_bytes >= BATCH_BYTES {
            self.commit(false)?;
        }
        Ok(())
    }

    /// Puts all rows of `from` in, but for what `pass` changes or leaves.
    ///
    /// # Errors
    /// What `pass` returns, what reading `from` fails with, and as [`put`](Self::put).
    pub fn copy(&mut self, from: &Snapshot, pass: &mut PassRow<'_>) -> Result<()> {
        for table in Table::ALL {
            let all: KeyBytes = (Bound::Unbounded, Bound::Unbounded);
            from.raw_scan(*table, all, false, &mut |key, value| {
                match pass(*table, key, value)? {
                    Pass::Same => self.put(*table, key, value.to_vec())?,
                    Pass::Changed(value) => self.put(*table, key, value)?,
                    Pass::Left => {}
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }

    /// Puts all rows of `from` in, without those of the tables in `without` and with what `meta`
    /// changes in the row of the store.
    ///
    /// # Errors
    /// As [`copy`](Self::copy); what `meta` returns.
    pub fn copy_rows(
        &mut self,
        from: &Snapshot,
        without: &[Table],
        meta: &mut dyn FnMut(&mut MetaRow) -> Result<()>,
    ) -> Result<()> {
        self.copy(from, &mut |table, key, value| {
            if table == Table::Meta && *key == *StoreKey.to_bytes() {
                return changed_meta(value, meta);
            }
            Ok(if without.contains(&table) { Pass::Left } else { Pass::Same })
        })
    }

    /// Commits what is gathered; the last commit makes all tables and leaves nothing to repair.
    fn commit(&mut self, is_last: bool) -> Result<()> {
        let mut txn = commit::begin(&self.db, &self.halt)?;
        if !is_last {
            // Nothing names the file: what a crash leaves of it counts for nothing.
            self.halt.guard("write", || txn.set_durability(Durability::Immediate))?;
            txn.set_two_phase_commit(false);
            txn.set_quick_repair(false);
        }
        let (batch, tally) = (std::mem::take(&mut self.batch), &mut self.tally);
        self.batch_bytes = 0;
        self.halt.guard("write", || {
            let mut rows = batch.iter().peekable();
            while let Some((table, ..)) = rows.peek() {
                let mut open = txn.open_table(table.definition())?;
                while let Some((_, key, value)) = rows.next_if(|(other, ..)| other == table) {
                    if let Some(old) = open.insert(key.as_slice(), value.as_slice())? {
                        tally.lose(*table, key, old.value());
                    }
                    tally.gain(*table, key, value);
                }
            }
            if is_last {
                for table in Table::ALL {
                    txn.open_table(table.definition())?;
                }
            }
            Ok::<_, redb::Error>(())
        })?;
        self.halt.guard("commit", || txn.commit())
    }

    /// Ends it: the last commit, closed, synced; then the file is read back from the medium, with
    /// redb's check of every page, and each row compared with what was put.
    ///
    /// # Durability
    /// The content of the file is durable when this returns. Its name is not, until the directory
    /// is synced; who renames it syncs there.
    ///
    /// # Errors
    /// `Damage` when what was read back is not what was put; `Invalid` without a row of what the
    /// store is; `Io`, `DiskFull`.
    pub fn finish(mut self) -> Result<Drafted> {
        if !self.store.iter().any(|(key, _)| *key == StoreKey.to_bytes()) {
            let cause = "no row says what the store is";
            return Err(Error::invalid("write", self.halt.path().display(), cause));
        }
        let store = std::mem::take(&mut self.store);
        self.batch.extend(store.into_iter().map(|(key, value)| (Table::Meta, key, value)));
        self.commit(true)?;
        let Self { mut db, file, halt, tally, .. } = self;
        // Rows put in order split their pages in halves, and each commit moved some of them.
        halt.guard("write", || db.compact().map(|_| ()))?;
        halt.guard("close", || db.close())?;
        let fail = |operation| {
            let place = halt.path().display().to_string();
            move |e| Error::io(operation, place, e)
        };
        file.sync_all().map_err(fail("sync"))?;
        let bytes = file.len().map_err(fail("measure"))?;
        if Protection::DraftReadBack.is_on() {
            file.evict().map_err(fail("read"))?;
            read_back(&file, &halt, &tally)?;
        }
        let by_table: Vec<_> = Table::ALL.iter().copied().zip(tally.rows).collect();
        Ok(Drafted { rows: tally.rows.iter().sum(), by_table, bytes })
    }
}

/// Reads every page and every row of a closed file, and compares.
fn read_back(file: &Arc<dyn File>, halt: &Halt, put: &Tally) -> Result<()> {
    let probe = Halt::new(halt.disk(), halt.path().to_owned());
    let fail = |e| Error::io("read", halt.path().display(), e);
    let copy = Copy::new(file.clone(), probe.clone(), true, Served::Written).map_err(fail)?;
    let db = probe.guard("open", || {
        Builder::new()
            .set_cache_size(CACHE_BYTES)
            .set_check_integrity_on_open(true)
            .create_with_backend(copy)
    })?;
    let found = probe.guard("open", || redb::ReadableDatabase::begin_read(&db)).and_then(|txn| {
        let mut found = Tally::default();
        for table in Table::ALL {
            let open = probe.guard("open", || txn.open_table(table.definition()))?;
            let all: KeyBytes = (Bound::Unbounded, Bound::Unbounded);
            let visit: &mut Visit = &mut |key, value| {
                found.gain(*table, key, value);
                Ok(ControlFlow::Continue(()))
            };
            scan_in(&probe, &open, all, false, visit)?;
        }
        Ok(found)
    });
    probe.freeze();
    drop_quietly(db);
    if found? == *put {
        return Ok(());
    }
    let cause = "the rows read back are not those that were written";
    Err(Error::damage("verify", halt.path().display(), cause))
}

/// How many rows there are, and a sum over all of them in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tally {
    rows: [u64; Table::ALL.len()],
    sum: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { rows: [0; Table::ALL.len()], sum: 0 }
    }
}

impl Tally {
    fn gain(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.rows[table.index()] += 1;
        self.sum = self.sum.wrapping_add(sum_of(table, key, value));
    }

    fn lose(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.rows[table.index()] -= 1;
        self.sum = self.sum.wrapping_sub(sum_of(table, key, value));
    }
}

fn sum_of(table: Table, key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = Hasher::default();
    hasher.update(&[table.number()]);
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.finish().prefix()
}

impl Snapshot {
    /// Copies all rows into a NEW manifest file at `path`, any path on any disk, without the rows
    /// of the tables in `without` and with what `meta` changes in the row of the store. Memory is
    /// bounded, whatever the number of rows; the tables are all there. Keep the snapshot no longer:
    /// it pins what its manifest's later commits free.
    ///
    /// # Durability
    /// When this returns, the content of the file is durable, was read back from the medium with
    /// redb's check of every page, and holds exactly these rows. Its name is durable once the
    /// caller syncs the directory. After an error, or a crash, what has the name is no manifest:
    /// unlink it.
    ///
    /// # Errors
    /// As [`Draft::finish`]; what `meta` returns; `Damage` for the row of the store.
    pub fn copy_to(
        &self,
        disk: &Arc<dyn Disk>,
        path: &Path,
        without: &[Table],
        meta: &mut dyn FnMut(&mut MetaRow) -> Result<()>,
    ) -> Result<Drafted> {
        let mut draft = Draft::create(disk, path)?;
        draft.copy_rows(self, without, meta)?;
        draft.finish()
    }
}

fn changed_meta(value: &[u8], meta: &mut dyn FnMut(&mut MetaRow) -> Result<()>) -> Result<Pass> {
    let key = StoreKey.to_bytes();
    let before: MetaRow = from_value(&key, value)?;
    let mut after = before.clone();
    meta(&mut after)?;
    Ok(if after == before { Pass::Same } else { Pass::Changed(to_value(&key, &after)?) })
}
