//! Slots: the producers that an opening keeps in memory.
//!
//! Those that went idle, and of which everything is sealed, are let go: their rows say the same. So memory,
//! and claims where several processes write, follow the producers that are at work, and not the names that
//! ever came.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::producer::Producer;
use super::stage::Stage;
use crate::manifest::{ClaimRow, ProducerKey, ProducerRow, Reading, ResourceKey};
use crate::vfs::Step;

/// So many are kept, however idle they are.
const IDLE_MAX: usize = 1024;

/// A producer, once it is known how far it got; held while a batch of it is taken, so that its numbers
/// come in their order.
pub(super) type Slot = Arc<Mutex<Option<Producer>>>;

/// Slots by name.
#[derive(Debug, Default)]
pub(super) struct Slots {
    by_name: BTreeMap<String, Kept>,
    /// So many are there when it is next looked for idle ones, beyond those that always stay.
    more: usize,
}

#[derive(Debug, Default)]
struct Kept {
    slot: Slot,
    /// It was asked for since idle ones were last looked for.
    is_used: bool,
}

impl Slots {
    /// The slot of a producer, made where there is none.
    fn of(&mut self, name: &str) -> Slot {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.to_owned(), Kept::default());
        }
        let Some(kept) = self.by_name.get_mut(name) else { return Slot::default() };
        kept.is_used = true;
        Arc::clone(&kept.slot)
    }

    /// The slot of a producer that has one.
    pub(super) fn known(&self, name: &str) -> Option<Slot> {
        self.by_name.get(name).map(|kept| Arc::clone(&kept.slot))
    }

    fn are_many(&self) -> bool {
        self.by_name.len() >= IDLE_MAX.saturating_add(self.more)
    }

    /// Lets go of those that nobody asked for since the last time, and that `is_sealed`: returns them.
    fn sweep(&mut self, is_sealed: &dyn Fn(&str, &Producer) -> bool) -> Vec<String> {
        let mut gone = Vec::new();
        self.by_name.retain(|name, kept| {
            // Whoever holds a slot got it under the lock that is held here.
            if std::mem::take(&mut kept.is_used) || Arc::strong_count(&kept.slot) > 1 {
                return true;
            }
            let held = kept.slot.lock();
            let stays = held.as_ref().is_some_and(|producer| !is_sealed(name, producer));
            if !stays && held.is_some() {
                gone.push(name.clone());
            }
            stays
        });
        self.more = self.by_name.len();
        gone
    }
}

impl Stage {
    /// The slot of `producer`, whose name was looked at.
    pub(super) fn slot(&self, producer: &str) -> Slot {
        let mut slots = self.memory.slots.lock();
        if slots.are_many() {
            self.sweep(&mut slots);
        }
        slots.of(producer)
    }

    /// Lets go of producers that sent nothing since the last time, where several processes write: another
    /// one may append for them then.
    pub(super) fn release_idle(&self) {
        if self.store.is_shared() {
            self.sweep(&mut self.memory.slots.lock());
        }
    }

    /// Of idle producers neither memory nor claims are kept. Nobody gets a slot meanwhile: whoever is next
    /// claims its producer anew.
    fn sweep(&self, slots: &mut Slots) {
        let Ok(snapshot) = self.store.snapshot() else { return };
        // What is sealed is durable: no ticket of it is needed any more.
        let gone = slots.sweep(&|name, producer| {
            let key = ProducerKey { stage: self.id(), name: name.to_owned() };
            let sealed = snapshot.get::<ProducerRow>(&key).ok().flatten().unwrap_or_default();
            sealed.last == producer.row.last
        });
        drop(snapshot);
        let Some((me, _)) = self.store.owner().filter(|_| self.store.is_shared()) else { return };
        let claims: Vec<ResourceKey> =
            gone.iter().map(|name| ResourceKey::of_producer(self.id(), name)).collect();
        if claims.is_empty() {
            return;
        }
        let released = self.store.transact(Step::ClaimCommit, |w| {
            for resource in &claims {
                if w.get::<ClaimRow>(resource)?.is_some_and(|row| row.owner == me) {
                    w.remove::<ClaimRow>(resource)?;
                }
            }
            Ok(())
        });
        // STG11: nobody waits here, and the claims are still ours.
        if let Err(e) = released {
            self.memory.keep_trouble(e);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(slots: &mut Slots, name: &str, is_sealed: bool) {
        if slots.are_many() {
            slots.sweep(&|_, producer| producer.row.rows == 1);
        }
        let row = ProducerRow { rows: u64::from(is_sealed), ..ProducerRow::default() };
        slots.of(name).lock().get_or_insert(Producer::of(row));
    }

    /// Do names that come once, or that nothing was taken of, stay few; and do those stay that are held, at
    /// work, or have something unsealed?
    #[test]
    fn idle_producers_are_let_go() {
        let mut slots = Slots::default();
        used(&mut slots, "unsealed", false);
        used(&mut slots, "held", true);
        let held = slots.of("held");
        for n in 0..20_000 {
            used(&mut slots, &format!("once {n}"), true);
            used(&mut slots, "at work", true);
            drop(slots.of(&format!("nothing {n}")));
            assert!(slots.by_name.len() <= 4 * IDLE_MAX, "{}", slots.by_name.len());
        }
        assert!(["unsealed", "held", "at work"].iter().all(|name| slots.known(name).is_some()));
        assert!(slots.known("held").is_some_and(|slot| Arc::ptr_eq(&slot, &held)));
        assert!(slots.known("once 0").is_none() && slots.known("nobody").is_none());
    }
}
