//! The newest snapshot whose whole chain reads, as rows.

use std::collections::{BTreeMap, HashMap};

use super::source::Source;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::format::snapshot::{SnapshotHeader, read_snapshot};
use crate::ids::CommitSeq;
use crate::manifest::{CountersKey, CountersRow, Key, MetaRow, Row, StoreKey, Table, from_value};

/// Rows by table and key.
pub(super) type Values = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// The rows as of a commit.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) covers: Option<CommitSeq>,
    pub(super) chain: u64,
    pub(super) values: Values,
    /// Entries of tables that this release does not know.
    pub(super) unknown: u64,
}

impl Snapshot {
    /// The newest one that reads; none is no error.
    pub(super) fn newest(source: &mut Source) -> Self {
        let mut found: Vec<(SnapshotHeader, Digest)> = Vec::new();
        for described in source.files.iter().flat_map(|file| &file.extents) {
            // Most extents are no snapshots, and say so by what describes them.
            if let Ok(header) = SnapshotHeader::from_bytes(&described.about)
                && header.store == source.store
            {
                found.push((header, described.extent.digest));
            }
        }
        found.sort_by_key(|(header, digest)| (header.covers, *digest));
        let onto: HashMap<Digest, Option<Digest>> =
            found.iter().map(|(header, digest)| (*digest, header.onto)).collect();
        while let Some((header, digest)) = found.pop() {
            match Self::read(source, digest, &onto) {
                Ok(snapshot) => return snapshot,
                Err(e) => {
                    let covers = header.covers;
                    source.notes.push(format!("passed over the snapshot of commit {covers}: {e}"));
                }
            }
        }
        Self::default()
    }

    fn read(
        source: &Source,
        newest: Digest,
        onto: &HashMap<Digest, Option<Digest>>,
    ) -> Result<Self> {
        let mut links = vec![newest];
        let mut at = newest;
        while let Some(Some(before)) = onto.get(&at) {
            links.push(*before);
            at = *before;
            // No content holds its own digest, but hostile descriptions may say so.
            if links.len() > onto.len() {
                return Err(Error::damage("salvage", at, "its chain has no base"));
            }
        }
        let mut snapshot = Self::default();
        for digest in links.iter().rev() {
            let Some((_, bytes)) = source.by_digest(digest) else {
                return Err(Error::damage("salvage", digest, "a snapshot that it needs is lost"));
            };
            snapshot.apply(&bytes)?;
        }
        Ok(snapshot)
    }

    fn apply(&mut self, bytes: &[u8]) -> Result<()> {
        let header = SnapshotHeader::from_bytes(bytes)?;
        if header.onto.is_none() != (self.chain == 0) {
            return Err(Error::damage(
                "salvage",
                "snapshot",
                "its chain does not begin with a base",
            ));
        }
        let (values, unknown) = (&mut self.values, &mut self.unknown);
        read_snapshot(bytes, &mut |table, key, value| {
            match (Table::from_number(table), value) {
                (None, _) => *unknown += 1,
                (Some(table), Some(value)) => {
                    values.insert((table, key.to_vec()), value.to_vec());
                }
                (Some(table), None) => {
                    values.remove(&(table, key.to_vec()));
                }
            }
            Ok(())
        })?;
        self.covers = Some(header.covers);
        self.chain += 1;
        Ok(())
    }

    fn one<R: Row>(&self, key: &R::Key) -> Option<R> {
        let key = key.to_bytes();
        let value = self.values.get(&(R::TABLE, key.clone()))?;
        from_value(&key, value).ok()
    }

    pub(super) fn meta(&self) -> Option<MetaRow> {
        self.one::<MetaRow>(&StoreKey)
    }

    pub(super) fn counters(&self) -> CountersRow {
        self.one::<CountersRow>(&CountersKey).unwrap_or_default()
    }
}
