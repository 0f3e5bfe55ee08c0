//! What the labels of a batch tell for salvage: which pieces make up the files that become whole with it, and
//! which names are about to be published.

use std::sync::Arc;

use super::preparation::Preparation;
use super::queue::{At, Batch};
use crate::digest::Digest;
use crate::engine::RowText;
use crate::error::Result;
use crate::format::told::{ToldName, ToldPieces};
use crate::manifest::{Key, NameKey, ObjectRow, PIECES_PER_ROW_MAX, Reading, Table};

impl Preparation {
    /// While `act` runs, labels tell that `names` are about to stand for these digests.
    pub(in crate::objects) fn naming<T>(
        &self,
        names: impl Iterator<Item = (NameKey, Digest)>,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let table = Table::Names.number();
        let told =
            names.map(|(key, digest)| Ok((table, key.to_bytes(), ToldName(digest).value()?)));
        let told: Arc<[RowText]> = told.collect::<Result<Vec<RowText>>>()?.into();
        self.named.lock().push(told.clone());
        let done = act();
        self.named.lock().retain(|one| !Arc::ptr_eq(one, &told));
        done
    }

    /// The rows that the labels of a batch tell besides.
    pub(super) fn told(&self, batch: &Batch) -> Result<Arc<[RowText]>> {
        let snapshot = self.store.snapshot()?;
        let mut rows: Vec<RowText> =
            self.named.lock().iter().flat_map(|one| one.iter().cloned()).collect();
        // What is stored already has its own labels.
        for listed in batch.lists.iter().filter(|listed| listed.known.is_none()) {
            let mut begins = 0u64;
            for run in listed.list.pieces.chunks(PIECES_PER_ROW_MAX) {
                let mut pieces = Vec::with_capacity(run.len());
                for named in run {
                    let digest = match named.at {
                        At::Stored(object) => {
                            snapshot.get::<ObjectRow>(&object)?.map(|row| row.digest)
                        }
                        At::Queued(number) => batch.digest_of(number),
                    };
                    // One that went is told when the transaction finds it gone.
                    let Some(digest) = digest else { break };
                    pieces.push((digest, u64::from(named.len)));
                }
                let told = ToldPieces { whole: listed.digest, begins, pieces };
                begins = told.pieces.iter().fold(begins, |at, (_, len)| at.saturating_add(*len));
                rows.push((Table::Recipes.number(), told.key(), told.value()?));
            }
        }
        Ok(rows.into())
    }
}
