//! Pinned recipes: what a reader of this process is in the middle of is not taken apart under it.
//!
//! ```text
//!   [pin_recipe] waits while a transaction takes it apart ---> pinned --- dropped ---> as before
//!   the last edge goes [settle] --- pinned? yes ---> retiring: its rows stay, nobody finds it
//!                                     \--- no ----> its rows go; until the transaction has ended no pin
//! ```
//! A recipe of any length is pinned by its number alone. Pins are in memory: they reach no other
//! process, and end with this one.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::handle::Manifest;
use super::write::Write;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;
use crate::protection::Protection;

/// The longest wait for a transaction that takes the same recipe apart: it takes milliseconds.
const APART_MILLIS_MAX: u64 = 10_000;

/// Which recipes are pinned, and which are being taken apart.
#[derive(Debug, Default)]
pub(super) struct PinnedRecipes {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pinned: BTreeMap<ObjectId, u64>,
    /// Taken apart by transactions that have not ended.
    apart: BTreeMap<ObjectId, u64>,
}

/// While it stands, no transaction of this process takes the rows of its recipe away.
#[derive(Debug)]
pub struct RecipePin {
    of: Arc<PinnedRecipes>,
    object: ObjectId,
}

/// What one transaction takes apart, until it has ended.
#[derive(Debug)]
pub(super) struct Apart {
    of: Arc<PinnedRecipes>,
    objects: Mutex<Vec<ObjectId>>,
}

impl Manifest {
    /// Pins the recipe of `object`. Look at its row afterwards, in a snapshot taken after this: if it
    /// stands there, all of it stays.
    ///
    /// # Errors
    /// `Conflict` when a transaction that takes it apart does not end.
    pub fn pin_recipe(&self, object: ObjectId) -> Result<RecipePin> {
        let of = Arc::clone(self.pinned_recipes());
        let mut state = of.state.lock();
        while state.apart.contains_key(&object) {
            let wait = of.ended.wait_for(&mut state, Duration::from_millis(APART_MILLIS_MAX));
            if wait.timed_out() {
                let (place, cause) =
                    (format!("object {object}"), "it is being retired; look again");
                return Err(Error::new(ErrorKind::Conflict, "read", place, cause));
            }
        }
        *state.pinned.entry(object).or_default() += 1;
        drop(state);
        Ok(RecipePin { of, object })
    }
}

impl Apart {
    pub(super) fn new(of: &Arc<PinnedRecipes>) -> Arc<Self> {
        Arc::new(Self { of: Arc::clone(of), objects: Mutex::default() })
    }

    fn take(&self, object: ObjectId) -> bool {
        let mut state = self.of.state.lock();
        if state.pinned.contains_key(&object) && Protection::PinHolds.is_on() {
            return false;
        }
        *state.apart.entry(object).or_default() += 1;
        self.objects.lock().push(object);
        true
    }
}

impl Write<'_> {
    /// Whether this transaction may take the rows of a recipe away: `false` while a reader of this
    /// process is in the middle of it. Once it was `true`, nobody pins the recipe until the transaction
    /// has ended.
    pub fn may_take_apart(&self, object: ObjectId) -> bool {
        self.apart().is_none_or(|apart| apart.take(object))
    }
}

fn fewer(counts: &mut BTreeMap<ObjectId, u64>, object: ObjectId) {
    if let Some(count) = counts.get_mut(&object) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&object);
        }
    }
}

impl Drop for RecipePin {
    fn drop(&mut self) {
        fewer(&mut self.of.state.lock().pinned, self.object);
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let mut state = self.of.state.lock();
        for object in self.objects.get_mut().drain(..) {
            fewer(&mut state.apart, object);
        }
        drop(state);
        self.of.ended.notify_all();
    }
}
