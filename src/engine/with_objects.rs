//! Rows together with the bytes that they refer to, in one transaction: what the faces build on.

use super::seal::{Content, SealedSet};
use super::store::Store;
use crate::error::Result;
use crate::ids::ObjectId;
use crate::manifest::{Committed, Table, Write};
use crate::vfs::Step;

/// Bytes to store as an object.
#[derive(Debug, Clone)]
pub struct NewObject {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The row that will refer to them, by table and key; for salvage.
    pub referrer: Option<(Table, Vec<u8>)>,
}

impl Store {
    /// Stores `contents`, each once, and lets `change` write the rows that refer to them, in ONE
    /// transaction; the objects come in the order of the contents. For the faces: `change` may be
    /// called more than once, may do no I/O and call no code of a caller. An error from it changes
    /// nothing. Without contents this is [`Store::transact`], which also works on a full disk.
    ///
    /// # Errors
    /// As [`Store::transact`]; `DiskFull`; `Invalid` when `change` leaves an object without a row
    /// that refers to it.
    ///
    /// # Durability
    /// *Durable* when it returns, bytes and rows.
    pub fn transact_with<T>(
        &self,
        step: Step,
        contents: Vec<NewObject>,
        change: impl Fn(&mut Write, &[ObjectId]) -> Result<T>,
    ) -> Result<Committed<T>> {
        let writer = self.writer("put")?;
        if contents.is_empty() {
            return self.transact(step, |w| change(w, &[]));
        }
        self.core().check_intake("put")?;
        let contents = contents
            .into_iter()
            .map(|new| {
                let text = |(table, key): (Table, _)| (table.number(), key, Vec::new());
                Content::new(new.bytes, new.referrer.map(text))
            })
            .collect();
        // P3: sealed and synced before the transaction that names them.
        let set = SealedSet::seal(self.core(), self.files(), &writer.building, contents)?;
        let committed = set.publish(self.files(), step, change)?;
        self.count_publication();
        Ok(committed)
    }
}
