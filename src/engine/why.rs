//! Why something is still there: which rows, leases, claims and readers keep it; and of what is gone,
//! which receipts tell of it.

use std::ops::ControlFlow;

use super::store::Store;
use crate::digest::Digest;
use crate::error::Result;
use crate::format::layout;
use crate::ids::{CommitSeq, FileId, HandoffId, LeaseId, ObjectId, OwnerId};
use crate::manifest::{
    ClaimRow, Edge, FileObjectRow, FileRow, FileState, Key, LeaseRow, LeasedRow, NameHandoffRow,
    NameKey, NameRow, ObjectRow, ObjectSnapshotRow, PREPARATION_HOLDER, PreparationRow, Reading,
    ReceiptRow, RecipeRow, RetiringRow, Row, Snapshot, SnapshotNameKey, SnapshotNameRow, Table,
};

/// The most keepers that are told of one object, and objects of one file.
const TOLD_MAX: usize = 64;

/// What keeps an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keeper {
    /// A name.
    Name(NameKey),
    /// A name in a snapshot.
    Snapshot {
        /// The snapshot's own name.
        snapshot: String,
        /// The name in it.
        name: NameKey,
    },
    /// A preparation, which is not published or abandoned yet.
    Preparation(String),
    /// A lease.
    Lease {
        /// Its number.
        lease: LeaseId,
        /// Who asked for it.
        holder: String,
        /// What for.
        purpose: String,
    },
    /// A publication that an outside system takes part in.
    Handoff {
        /// Its number.
        handoff: HandoffId,
        /// The outside system.
        target: String,
    },
    /// An object that consists of others, this one among them.
    Recipe(Digest),
    /// A row of another kind.
    Row {
        /// The name of its table.
        table: &'static str,
        /// Its key, for people.
        key: String,
    },
    /// A claim on what refers to it.
    Claim {
        /// What it is on.
        resource: String,
        /// Whose it is.
        owner: OwnerId,
    },
    /// A reader of this process.
    Reader,
    /// Nothing refers to it, and its recipe is being taken apart.
    Retiring(CommitSeq),
}

/// What is known of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKept {
    /// Its number.
    pub object: ObjectId,
    /// Its digest.
    pub digest: Digest,
    /// What keeps it, at most 64 of them.
    pub keepers: Vec<Keeper>,
    /// Whether there are more.
    pub is_more: bool,
}

/// What is known of a sealed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKept {
    /// Which.
    pub file: FileId,
    /// What is done with it.
    pub state: FileState,
    /// Bytes of objects that stand.
    pub live: u64,
    /// Bytes of objects that went.
    pub dead: u64,
    /// The objects in it, at most 64 of them.
    pub objects: Vec<ObjectKept>,
    /// Whether there are more.
    pub is_more: bool,
    /// Whether a reader of this process keeps it from being unlinked.
    pub is_read: bool,
}

/// A receipt that names what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The commit that retired it.
    pub commit: CommitSeq,
    /// What went.
    pub what: String,
    /// For what reason.
    pub why: String,
    /// Wall-clock nanoseconds.
    pub at: Option<i64>,
}

impl Store {
    /// What keeps every object with this digest, those included that nobody finds any more.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub(crate) fn why_object(&self, digest: &Digest) -> Result<Vec<ObjectKept>> {
        let snapshot = self.snapshot()?;
        let mut objects: Vec<ObjectId> =
            snapshot.object_of(digest)?.into_iter().map(|(object, _)| object).collect();
        // What is being taken apart has no place in the index.
        snapshot.scan::<RetiringRow>(.., &mut |object, _| {
            if snapshot.require::<ObjectRow>(&object)?.digest == *digest {
                objects.push(object);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        objects.into_iter().map(|object| self.kept_object(&snapshot, object)).collect()
    }

    /// What is in a file and keeps it; `None` for a file without a row.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub(crate) fn why_file(&self, file: FileId) -> Result<Option<FileKept>> {
        let snapshot = self.snapshot()?;
        let Some(row) = snapshot.get::<FileRow>(&file)? else { return Ok(None) };
        let within = (file, ObjectId(0))..=(file, ObjectId(u64::MAX));
        let mut found = snapshot.list::<FileObjectRow>(within, TOLD_MAX + 1)?;
        let is_more = found.len() > TOLD_MAX;
        found.truncate(TOLD_MAX);
        let objects = found.into_iter().map(|((_, object), _)| self.kept_object(&snapshot, object));
        let objects = objects.collect::<Result<_>>()?;
        let is_read = !self.core().pins.allow(file);
        let FileRow { state, live, dead, .. } = row;
        Ok(Some(FileKept { file, state, live, dead, objects, is_more, is_read }))
    }

    /// Receipts that name `digest`, the newest first, at most `at_most`.
    ///
    /// # Errors
    /// As [`Store::receipts_of`].
    pub(crate) fn receipts_of_digest(
        &self,
        digest: &Digest,
        at_most: usize,
    ) -> Result<Vec<Receipt>> {
        self.receipts_of(&super::retire::in_receipt(digest), at_most)
    }

    /// Receipts whose text holds `what`, the newest first, at most `at_most`.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub(crate) fn receipts_of(&self, what: &str, at_most: usize) -> Result<Vec<Receipt>> {
        let snapshot = self.snapshot()?;
        let mut receipts = Vec::new();
        snapshot.scan::<ReceiptRow>(.., &mut |_, row| {
            if row.what.contains(what) {
                let ReceiptRow { commit, what, why, at, .. } = row;
                receipts.push(Receipt { commit, what, why, at });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        receipts.reverse();
        receipts.truncate(at_most);
        Ok(receipts)
    }

    /// Names, snapshots and others that lose something when `object` does not read: of a piece, what refers
    /// to the recipes that it is in.
    pub(crate) fn who_loses(&self, object: ObjectId) -> Result<Vec<Keeper>> {
        let snapshot = self.snapshot()?;
        let mut losers = Vec::new();
        for edge in snapshot.edges_of(object, TOLD_MAX)? {
            if edge.table == Table::Recipes {
                let (recipe, _) = <RecipeRow as Row>::Key::from_bytes(&edge.key)?;
                for edge in snapshot.edges_of(recipe, TOLD_MAX)? {
                    losers.push(keeper(&snapshot, &edge)?);
                }
            } else {
                losers.push(keeper(&snapshot, &edge)?);
            }
            if losers.len() >= TOLD_MAX {
                break;
            }
        }
        losers.dedup();
        Ok(losers)
    }

    fn kept_object(&self, snapshot: &Snapshot, object: ObjectId) -> Result<ObjectKept> {
        let row = snapshot.require::<ObjectRow>(&object)?;
        let mut edges = snapshot.edges_of(object, TOLD_MAX + 1)?;
        let is_more = edges.len() > TOLD_MAX;
        edges.truncate(TOLD_MAX);
        let mut keepers = Vec::new();
        for edge in edges {
            let one = keeper(snapshot, &edge)?;
            if let Keeper::Preparation(name) = &one {
                let resource = crate::manifest::ResourceKey::of_preparation(name);
                if let Some(claim) = snapshot.get::<ClaimRow>(&resource)? {
                    let resource = resource.to_string();
                    keepers.push(Keeper::Claim { resource, owner: claim.owner });
                }
            }
            keepers.push(one);
        }
        if let Some(retiring) = snapshot.get::<RetiringRow>(&object)? {
            keepers.push(Keeper::Retiring(retiring.commit));
        }
        if let crate::manifest::Place::Extent { file, .. } = row.place
            && !self.core().pins.allow(file)
        {
            keepers.push(Keeper::Reader);
        }
        Ok(ObjectKept { object, digest: row.digest, keepers, is_more })
    }
}

/// What the row that an edge names is.
fn keeper(snapshot: &Snapshot, edge: &Edge) -> Result<Keeper> {
    Ok(match edge.table {
        Table::Names => Keeper::Name(<NameRow as Row>::Key::from_bytes(&edge.key)?),
        Table::SnapshotNames => {
            let key: SnapshotNameKey = <SnapshotNameRow as Row>::Key::from_bytes(&edge.key)?;
            let mut of = key.snapshot.to_string();
            snapshot.scan::<ObjectSnapshotRow>(.., &mut |name, row| {
                let is_it = row.snapshot == key.snapshot;
                if is_it {
                    of = name;
                }
                Ok(if is_it { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            Keeper::Snapshot { snapshot: of, name: key.name }
        }
        Table::Leases => lease(snapshot, <LeaseRow as Row>::Key::from_bytes(&edge.key)?)?,
        Table::Leased => lease(snapshot, <LeasedRow as Row>::Key::from_bytes(&edge.key)?.0)?,
        Table::NameHandoffs => {
            let handoff = <NameHandoffRow as Row>::Key::from_bytes(&edge.key)?;
            let target = snapshot.require::<NameHandoffRow>(&handoff)?.target;
            Keeper::Handoff { handoff, target }
        }
        Table::Recipes => {
            let (recipe, _) = <RecipeRow as Row>::Key::from_bytes(&edge.key)?;
            Keeper::Recipe(snapshot.require::<ObjectRow>(&recipe)?.digest)
        }
        other => Keeper::Row { table: other.name(), key: format!("{:02x?}", edge.key) },
    })
}

fn lease(snapshot: &Snapshot, lease: LeaseId) -> Result<Keeper> {
    let row = snapshot.get::<LeaseRow>(&lease)?;
    let (holder, purpose) = row.map(|row| (row.holder, row.purpose)).unwrap_or_default();
    if holder != PREPARATION_HOLDER {
        return Ok(Keeper::Lease { lease, holder, purpose });
    }
    // Its purpose may be any text: its name is the key of its row. There are few of them.
    let mut name = None;
    snapshot.scan::<PreparationRow>(.., &mut |key, row| {
        if row.lease != lease {
            return Ok(ControlFlow::Continue(()));
        }
        name = Some(key);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(Keeper::Preparation(name.unwrap_or(purpose)))
}

impl Store {
    /// The sealed file that is called `name` on disk, as errors print it behind the last slash; `None` where
    /// no row names such a file. Its bytes are not looked at.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn sealed_file(&self, name: &str) -> Result<Option<FileId>> {
        let Some((digest, unique)) = layout::parse_sealed(name) else { return Ok(None) };
        let mut found = None;
        self.snapshot()?.scan::<FileRow>(.., &mut |file, row| {
            if row.unique != unique || row.digest != digest {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some(file);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}
