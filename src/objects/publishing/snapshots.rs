//! Snapshots of names: which there are, what is in them, and retiring one.

use std::cell::Cell;
use std::ops::{Bound, ControlFlow, RangeBounds};

use crate::digest::Digest;
use crate::engine::{names_of_snapshot, remove_object_snapshot};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, NameGeneration, ObjectSnapshotId};
use crate::manifest::{
    NameKey, ObjectRow, ObjectSnapshotRow, ObjectSnapshotState, Reading, Snapshot, SnapshotNameKey,
    SnapshotNameRow,
};
use crate::objects::describing::{Name, Objects, check_namespace, key_behind, key_of};
use crate::objects::reading::Object;
use crate::vfs::Step;

/// What is told of a snapshot of names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub state: ObjectSnapshotState,
    /// Wall-clock nanoseconds since 1970 when it was opened, where the clock could say.
    pub created: Option<i64>,
    /// The commit that committed it.
    pub committed: Option<CommitSeq>,
    /// Names in it.
    pub names: u64,
    /// The sum of the lengths of what they stand for, in bytes.
    pub bytes: u64,
}

impl SnapshotInfo {
    pub(super) fn new(name: String, row: ObjectSnapshotRow) -> Self {
        let ObjectSnapshotRow { state, created, committed, names, bytes, .. } = row;
        Self { name, state, created, committed, names, bytes }
    }
}

/// A name in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotName {
    /// The name.
    pub name: Name,
    /// What it stood for.
    pub digest: Digest,
    /// Its length in bytes.
    pub len: u64,
    /// Which value of the name that was, where it was one.
    pub generation: Option<NameGeneration>,
}

/// A committed snapshot of names. It shows the same names and bytes until it is retired, whatever is published
/// meanwhile, in any process; then its calls say `NotFound`.
#[derive(Debug, Clone)]
pub struct SnapshotView {
    objects: Objects,
    id: ObjectSnapshotId,
    info: SnapshotInfo,
}

pub(super) fn place(name: &str) -> String {
    format!("snapshot {name:?}")
}

pub(super) fn missing(name: &str) -> Error {
    let cause = "there is no such snapshot, or no longer as it was";
    Error::new(ErrorKind::NotFound, "read", place(name), cause)
}

impl Objects {
    /// Every snapshot of names, open or committed, in the order of their names.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let rows = self.store().snapshot()?.list::<ObjectSnapshotRow>(.., usize::MAX)?;
        Ok(rows.into_iter().map(|(name, row)| SnapshotInfo::new(name, row)).collect())
    }

    /// The committed snapshot called `name`.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for one that is open.
    pub fn read_snapshot(&self, name: &str) -> Result<SnapshotView> {
        let row = self.store().snapshot()?.get::<ObjectSnapshotRow>(&name.to_owned())?;
        let row = row.ok_or_else(|| missing(name))?;
        if row.state == ObjectSnapshotState::Open {
            let cause = "it is open; it is read once it is committed";
            return Err(Error::new(ErrorKind::Conflict, "read", place(name), cause));
        }
        let (id, info) = (row.snapshot, SnapshotInfo::new(name.to_owned(), row));
        Ok(SnapshotView { objects: self.clone(), id, info })
    }

    /// Retires the committed snapshot called `name`, in ONE transaction: what nothing else refers to goes with
    /// it. `why` goes into the receipt. `false` where there is none. The time follows the names in it.
    ///
    /// # Errors
    /// `Conflict` for one that is open. Any error leaves it as it was.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn retire_snapshot(&self, name: &str, why: &str) -> Result<bool> {
        let there = self.store().snapshot()?.get::<ObjectSnapshotRow>(&name.to_owned())?;
        if there.is_none() {
            return Ok(false);
        }
        let is_gone = Cell::new(false);
        let retired = self.store().transact(Step::SnapshotNamesCommit, |w| {
            let Some(row) = remove_object_snapshot(w, name)? else {
                is_gone.set(true);
                return Err(missing(name));
            };
            let what = format!("{} with {} names", place(name), row.names);
            self.store().write_receipt(w, &what, why).map(drop)
        });
        match retired {
            Err(_) if is_gone.get() => Ok(false),
            retired => retired.map(|_| true),
        }
    }
}

impl SnapshotView {
    /// What is told of it.
    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// What `name` stood for; `None` for a name that is not in it.
    ///
    /// # Errors
    /// `NotFound` once it was retired; `Damage`, `Halted`, `Closed`.
    pub fn get(&self, name: &Name) -> Result<Option<SnapshotName>> {
        let snapshot = self.rows()?;
        let row = snapshot.get::<SnapshotNameRow>(&self.key(name.key()))?;
        row.map(|row| told(&snapshot, name.clone(), &row)).transpose()
    }

    /// The object that `name` stood for, as [`Objects::get`].
    ///
    /// # Errors
    /// `NotFound` for a name that is not in it, and once it was retired; otherwise as [`Objects::get`].
    pub fn open(&self, name: &Name) -> Result<Object> {
        let key = self.key(name.key());
        self.objects.object_at(name, &|snapshot| {
            self.check(snapshot)?;
            Ok(snapshot.get::<SnapshotNameRow>(&key)?.map(|row| row.object))
        })
    }

    /// At most `at_most` of its names behind `after`, those of all namespaces, in order. The last one given out
    /// is the `after` of the next page; a page that is not full is the last.
    ///
    /// # Errors
    /// As [`SnapshotView::get`].
    pub fn all(&self, after: Option<&Name>, at_most: usize) -> Result<Vec<SnapshotName>> {
        let all = names_of_snapshot(self.id);
        let from = match after {
            Some(after) => Bound::Excluded(self.key(after.key())),
            None => Bound::Included(all.start),
        };
        self.page((from, Bound::Excluded(all.end)), "", at_most)
    }

    /// At most `at_most` of its names in `namespace` that begin with `prefix` and come behind `after`, as
    /// [`Objects::names`].
    ///
    /// # Errors
    /// As there, and `NotFound` once it was retired.
    pub fn names(
        &self,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        at_most: usize,
    ) -> Result<Vec<SnapshotName>> {
        check_namespace(namespace)?;
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(self.key(key_of(namespace, after))),
            _ => Bound::Included(self.key(key_of(namespace, prefix))),
        };
        let behind = Bound::Excluded(self.key(key_behind(namespace)));
        self.page((from, behind), prefix, at_most)
    }

    fn page(
        &self,
        range: impl RangeBounds<SnapshotNameKey>,
        prefix: &str,
        at_most: usize,
    ) -> Result<Vec<SnapshotName>> {
        let (snapshot, mut names) = (self.rows()?, Vec::new());
        if at_most == 0 {
            return Ok(names);
        }
        snapshot.scan::<SnapshotNameRow>(range, &mut |key, row| {
            let name = Name::of_key(&key.name)?;
            if !name.name().starts_with(prefix) {
                return Ok(ControlFlow::Break(()));
            }
            names.push(told(&snapshot, name, &row)?);
            Ok(match names.len() < at_most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        Ok(names)
    }

    fn key(&self, name: NameKey) -> SnapshotNameKey {
        SnapshotNameKey { snapshot: self.id, name }
    }

    /// The rows of now, in which it stands.
    fn rows(&self) -> Result<Snapshot> {
        let snapshot = self.objects.store().snapshot()?;
        self.check(&snapshot)?;
        Ok(snapshot)
    }

    fn check(&self, snapshot: &Snapshot) -> Result<()> {
        let row = snapshot.get::<ObjectSnapshotRow>(&self.info.name)?;
        match row.is_some_and(|row| row.snapshot == self.id) {
            true => Ok(()),
            false => Err(missing(&self.info.name)),
        }
    }
}

fn told(rows: &impl Reading, name: Name, row: &SnapshotNameRow) -> Result<SnapshotName> {
    let digest = rows.require::<ObjectRow>(&row.object)?.digest;
    Ok(SnapshotName { name, digest, len: row.len, generation: row.generation })
}
