//! What an opening keeps of a stage in memory, for all of its handles.

use parking_lot::Mutex;

use crate::error::Error;
use crate::ids::StageId;
use crate::staging::describing::KeyShape;

/// What all handles of a stage in one opening share.
#[derive(Debug)]
pub(in crate::staging) struct Memory {
    pub(in crate::staging) id: StageId,
    pub(in crate::staging) name: String,
    pub(in crate::staging) shape: KeyShape,
    /// Held by who seals: one at a time.
    pub(super) sealing: Mutex<()>,
    trouble: Mutex<Option<Error>>,
}

impl Memory {
    pub(super) fn new(id: StageId, name: &str, shape: KeyShape) -> Self {
        let (sealing, trouble) = (Mutex::default(), Mutex::default());
        Self { id, name: name.to_owned(), shape, sealing, trouble }
    }

    /// Keeps the first error that nobody was told.
    pub(in crate::staging) fn keep_trouble(&self, trouble: Error) {
        self.trouble.lock().get_or_insert(trouble);
    }

    pub(super) fn take_trouble(&self) -> Option<Error> {
        self.trouble.lock().take()
    }
}
