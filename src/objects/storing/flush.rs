//! What waits becomes durable: sealed, then stored and leased in one transaction.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::options::Compress;
use super::preparation::Preparation;
use super::queue::{Batch, Take, Taken};
use super::refer::{Ask, Verdicts};
use crate::engine::Content;
use crate::error::Result;
use crate::ids::ObjectId;
use crate::manifest::{Key, Reading, Table};
use crate::vfs::Step;

/// What a transaction stored.
pub(super) struct Published {
    /// The contents of the batch, in their order.
    pub(super) objects: Vec<ObjectId>,
    /// Objects that it leased as pieces of what turned out to be stored otherwise.
    pub(super) unneeded: Vec<ObjectId>,
}

impl Preparation {
    /// Seals what waits; who comes meanwhile waits. What is put while this runs is left for the next call, so
    /// that it ends. On an error all of it waits on.
    pub(super) fn seal(&self, mut how: Take) -> Result<()> {
        let _one = self.sealing.lock();
        let cap = self.store.limits().sealed_file_bytes;
        loop {
            let mut queue = self.queue.lock();
            if how == Take::All && queue.bytes() < cap {
                // Somebody else sealed it while we waited.
                return Ok(());
            }
            let Some(mut batch) = queue.take(how) else { return Ok(()) };
            drop(queue);
            match self.find_known(&mut batch).and_then(|()| self.publish_batch(&batch)) {
                Ok(Some(Published { objects, unneeded })) => {
                    self.queue.lock().stored(&batch, &objects, &unneeded);
                    if how == Take::Released {
                        return Ok(());
                    }
                    how = Take::Released;
                }
                // What was known went meanwhile.
                Ok(None) => self.queue.lock().give_back(batch),
                Err(e) => {
                    self.queue.lock().give_back(batch);
                    return Err(e);
                }
            }
        }
    }

    /// Whole contents first: of one that is stored already no piece is looked at.
    fn find_known(&self, batch: &mut Batch) -> Result<()> {
        for listed in &mut batch.lists {
            listed.known = None;
            // What went by in earlier batches was compared there, piece by piece.
            if !listed.list.is_waiting() {
                continue;
            }
            for (object, row) in self.store.snapshot()?.object_of(&listed.digest)? {
                if self.store.reads_whole(object)?.as_ref() == Some(&row) {
                    listed.known = Some((object, row));
                    break;
                }
            }
        }
        batch.spare_known();
        Ok(())
    }

    /// Stores a batch; nothing where it has to be looked at again.
    fn publish_batch(&self, batch: &Batch) -> Result<Option<Published>> {
        let referrer = (Table::Leases.number(), self.lease().to_bytes(), Vec::new());
        let told = self.told(batch)?;
        let pieces = batch.digests_of_pieces();
        let content = |taken: &Taken| Content {
            is_piece: pieces.contains(&taken.content.digest),
            context: Arc::clone(&told),
            digest: Some(taken.content.digest),
            compress: taken.content.compress == Compress::Auto,
            ..Content::new(Arc::clone(&taken.content.bytes), Some(referrer.clone()))
        };
        // P3: sealed and synced before the transaction that names them.
        let mut set = self.store.seal_contents(batch.contents.iter().map(content).collect())?;
        let mut verdicts: Verdicts = BTreeMap::new();
        loop {
            let ask = RefCell::new(None);
            let tried = self.store.publish_again(&mut set, Step::PutCommit, |w, objects| {
                self.refer(w, batch, objects, &verdicts, &ask)
            });
            match (tried, ask.take()) {
                (Err(_), Some(Ask::Read(objects))) => {
                    for (object, row) in objects {
                        // One that moved meanwhile is asked for again.
                        let read = self.store.reads_whole(object)?;
                        let is_whole = read.is_some();
                        verdicts.insert(object, (read.unwrap_or(row), is_whole));
                    }
                }
                (Err(_), Some(Ask::Again)) => return Ok(None),
                (tried, _) => return tried.map(Some),
            }
        }
    }
}
