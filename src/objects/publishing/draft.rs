//! A snapshot of names while it is open: names come in, in bounded transactions, until it is committed.

use super::leased::{Lookup, look_early};
use super::snapshots::{SnapshotInfo, missing, place};
use crate::digest::Digest;
use crate::engine::{Claim, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{LeaseId, ObjectSnapshotId};
use crate::manifest::{
    ClaimKind, NameKey, NameRow, ObjectSnapshotRow, ObjectSnapshotState, Reading, ResourceKey,
    SnapshotNameKey, SnapshotNameRow, Write,
};
use crate::objects::describing::{Name, Objects, check_namespace, key_behind, key_of};
use crate::vfs::Step;

/// The longest name of a snapshot, in bytes of UTF-8.
pub const SNAPSHOT_NAME_BYTES_MAX: usize = 256;

/// Names that come in with one transaction.
const NAMES_AT_ONCE: usize = 1024;

/// A snapshot of names that is open: it is ours alone as long as this lives. Dropped, it stays open with the
/// names that it has, which it pins; whoever calls [`Objects::snapshot`] next goes on with it.
#[derive(Debug)]
pub struct SnapshotDraft {
    store: Store,
    name: String,
    id: ObjectSnapshotId,
    claim: Claim,
}

impl Objects {
    /// Opens the snapshot called `name`, or goes on with it: the names that it has stay in it, whatever
    /// happened meanwhile. What a process that is gone had open is taken over.
    ///
    /// # Errors
    /// `Conflict` with who has it open; `Exists` for one that is committed; `Invalid` for a blank name or a
    /// NUL in it, `LimitExceeded` above [`SNAPSHOT_NAME_BYTES_MAX`]; `ReadOnly`.
    ///
    /// # Durability
    /// *Durable* when it returns: it stands until it is committed and retired.
    pub fn snapshot(&self, name: &str) -> Result<SnapshotDraft> {
        check_snapshot_name(name)?;
        let key = name.to_owned();
        let (store, created) = (self.store(), self.store().wall_nanos());
        let resource = ResourceKey::of_object_snapshot(name);
        let step = Step::SnapshotNamesCommit;
        let (id, claim) =
            store.claim_with(&resource, ClaimKind::Snapshot, step, |w| match w
                .get::<ObjectSnapshotRow>(&key)?
            {
                Some(row) if row.state == ObjectSnapshotState::Open => Ok(row.snapshot),
                Some(_) => {
                    let cause = "it is committed; choose another name, or retire it first";
                    Err(Error::new(ErrorKind::Exists, "open", place(name), cause))
                }
                None => {
                    let snapshot = w.next_object_snapshot_id()?;
                    let state = ObjectSnapshotState::Open;
                    let (committed, names, bytes) = (None, 0, 0);
                    let row =
                        ObjectSnapshotRow { snapshot, state, created, committed, names, bytes };
                    w.put(&key, &row)?;
                    Ok(snapshot)
                }
            })?;
        Ok(SnapshotDraft { store: store.clone(), name: key, id, claim })
    }
}

fn check_snapshot_name(name: &str) -> Result<()> {
    if name.trim().is_empty() || name.contains('\0') {
        return Err(Error::invalid("open", "snapshot", "its name is blank, or holds a NUL"));
    }
    if name.len() > SNAPSHOT_NAME_BYTES_MAX {
        let cause = format!("{} bytes of name, {SNAPSHOT_NAME_BYTES_MAX} allowed", name.len());
        return Err(Error::new(ErrorKind::LimitExceeded, "open", "snapshot", cause));
    }
    Ok(())
}

impl SnapshotDraft {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a name with what it stands for now. One that is in it already gets what it stands for now.
    ///
    /// # Errors
    /// `NotFound` where nothing stands under it.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn add(&self, name: &Name) -> Result<()> {
        self.add_all(std::slice::from_ref(name))
    }

    /// As [`SnapshotDraft::add`], of many: up to 1,024 of them come in together. After an error those before
    /// are in it, and the call can be made again.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn add_all(&self, names: &[Name]) -> Result<()> {
        names.chunks(NAMES_AT_ONCE).try_for_each(|names| {
            self.change(|w| {
                let row_of = |name: &Name| {
                    let row = w.get::<NameRow>(&name.key())?.ok_or_else(|| {
                        let cause = "nothing stands under this name";
                        Error::new(ErrorKind::NotFound, "add", name, cause)
                    })?;
                    Ok((name.key(), entry_of(&row)))
                };
                names.iter().map(row_of).collect()
            })
        })
    }

    /// Adds a name with the object of digest `digest`, which `lease` keeps; whatever the name stands for. The
    /// lease keeps it on.
    ///
    /// # Errors
    /// `NotFound` for a lease that does not stand and for what it does not keep; `Invalid` for a piece of what
    /// is not complete.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn add_as(&self, lease: LeaseId, name: &Name, digest: &Digest) -> Result<()> {
        self.add_all_as(lease, &[(name.clone(), *digest)])
    }

    /// As [`SnapshotDraft::add_as`], of many: up to 1,024 of them come in together. After an error those
    /// before are in it, and the call can be made again.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn add_all_as(&self, lease: LeaseId, names: &[(Name, Digest)]) -> Result<()> {
        names.chunks(NAMES_AT_ONCE).try_for_each(|names| {
            let digests = names.iter().map(|(_, digest)| *digest);
            let looked_at = look_early("add", &self.store.snapshot()?, lease, digests)?;
            self.change(|w| {
                let mut lookup = Lookup::of("add", w, lease, &looked_at)?;
                let mut rows = Vec::with_capacity(names.len());
                for (name, digest) in names {
                    let kept = lookup.find(w, digest)?;
                    let (object, len, generation) = (kept.object, kept.len, None);
                    rows.push((name.key(), SnapshotNameRow { object, len, generation }));
                }
                Ok(rows)
            })
        })
    }

    /// Adds every name in `namespace` with what it stands for, 1,024 of them at a time: names that are changed
    /// meanwhile are in it as they were before or after, each whole. Returns how many. After an error those
    /// before are in it, and the call can be made again.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for what is no namespace.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn add_namespace(&self, namespace: &str) -> Result<u64> {
        check_namespace(namespace)?;
        let (mut from, behind, mut added) = (key_of(namespace, ""), key_behind(namespace), 0);
        loop {
            let range = from.clone()..behind.clone();
            // Where none is left nothing is committed.
            if self.store.snapshot()?.list::<NameRow>(range.clone(), 1)?.is_empty() {
                return Ok(added);
            }
            let mut last = None;
            self.change(|w| {
                let page = w.list::<NameRow>(range.clone(), NAMES_AT_ONCE)?;
                last = page.last().map(|(key, _)| (key.clone(), page.len()));
                Ok(page.into_iter().map(|(key, row)| (key, entry_of(&row))).collect())
            })?;
            let Some((key, names)) = last else { return Ok(added) };
            added += names as u64;
            from = NameKey { name: key.name + "\0", ..key };
        }
    }

    /// Commits it: from here on it does not change, is read, and pins what is in it until it is retired.
    ///
    /// # Errors
    /// Each leaves it open, to be gone on with: `Fenced`; `OutcomeUnknown`, after which the store has halted.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn commit(self) -> Result<SnapshotInfo> {
        let committed = self.store.transact(Step::SnapshotNamesCommit, |w| {
            let mut row = self.row(w)?;
            row.state = ObjectSnapshotState::Committed;
            row.committed = Some(w.commit_seq());
            w.put(&self.name, &row)?;
            self.claim.release_in(w)?;
            Ok(SnapshotInfo::new(self.name.clone(), row))
        })?;
        self.claim.released();
        Ok(committed.value)
    }

    /// Its row, as long as it is open.
    fn row(&self, w: &Write<'_>) -> Result<ObjectSnapshotRow> {
        let row = w.get::<ObjectSnapshotRow>(&self.name)?;
        let ours =
            row.filter(|row| row.snapshot == self.id && row.state == ObjectSnapshotState::Open);
        ours.ok_or_else(|| missing(&self.name))
    }

    /// Lets the names that `of` tells come in, in one transaction.
    fn change(
        &self,
        of: impl FnOnce(&Write<'_>) -> Result<Vec<(NameKey, SnapshotNameRow)>>,
    ) -> Result<()> {
        let committed = self.store.transact(Step::SnapshotNamesCommit, |w| {
            let mut row = self.row(w)?;
            for (name, entry) in of(w)? {
                let key = SnapshotNameKey { snapshot: self.id, name };
                match w.get::<SnapshotNameRow>(&key)? {
                    Some(old) => row.bytes = row.bytes.saturating_sub(old.len),
                    None => row.names = row.names.saturating_add(1),
                }
                row.bytes = row.bytes.saturating_add(entry.len);
                w.put(&key, &entry)?;
            }
            w.put(&self.name, &row)
        });
        committed.map(drop)
    }
}

fn entry_of(row: &NameRow) -> SnapshotNameRow {
    SnapshotNameRow { object: row.object, len: row.len, generation: Some(row.generation) }
}
