//! What an opening keeps of a stage in memory, for all of its handles.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::producer::Producer;
use crate::error::Error;
use crate::ids::{StageId, StreamId};
use crate::staging::describing::KeyShape;

/// A producer, once it is known how far it got; held while a batch of it is taken, so that its numbers
/// come in their order.
pub(super) type Slot = Arc<Mutex<Option<Producer>>>;

/// What all handles of a stage in one opening share.
#[derive(Debug)]
pub(in crate::staging) struct Memory {
    pub(in crate::staging) id: StageId,
    pub(in crate::staging) name: String,
    pub(in crate::staging) shape: KeyShape,
    /// Held by who seals, recovers or removes: one at a time.
    pub(super) sealing: Mutex<()>,
    /// The intakes that are ours. Batches go to the first.
    pub(super) intakes: Mutex<Vec<StreamId>>,
    producers: Mutex<BTreeMap<String, Slot>>,
    trouble: Mutex<Option<Error>>,
    is_removed: AtomicBool,
}

impl Memory {
    pub(super) fn new(id: StageId, name: &str, shape: KeyShape) -> Self {
        Self {
            id,
            name: name.to_owned(),
            shape,
            sealing: Mutex::default(),
            intakes: Mutex::default(),
            producers: Mutex::default(),
            trouble: Mutex::default(),
            is_removed: AtomicBool::new(false),
        }
    }

    /// The place of a producer.
    pub(super) fn slot(&self, name: &str) -> Slot {
        let mut producers = self.producers.lock();
        match producers.get(name) {
            Some(slot) => Arc::clone(slot),
            None => Arc::clone(producers.entry(name.to_owned()).or_default()),
        }
    }

    /// One more intake is ours.
    pub(super) fn add_intake(&self, intake: StreamId) {
        let mut intakes = self.intakes.lock();
        if !intakes.contains(&intake) {
            intakes.push(intake);
        }
    }

    /// Keeps the first error that nobody was told.
    pub(in crate::staging) fn keep_trouble(&self, trouble: Error) {
        self.trouble.lock().get_or_insert(trouble);
    }

    pub(super) fn take_trouble(&self) -> Option<Error> {
        self.trouble.lock().take()
    }

    /// The stage was removed, by this opening.
    pub(super) fn removed(&self) {
        self.is_removed.store(true, Ordering::Release);
        self.intakes.lock().clear();
    }

    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }
}
