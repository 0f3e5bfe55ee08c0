//! Values under names: batches that put, compare and set, and remove.

use super::{Go, Player, Stop};
use crate::campaign::finding::{Finding, Rule};
use crate::campaign::model::{Bytes, Model};
use crate::error::ErrorKind;
use crate::ids::NameGeneration;

/// Names that begin with each other: few, so that values are replaced.
const NAMES: [&str; 4] = ["a", "a/b", "a/b/c", "z"];

/// Replaced values kept in a play.
pub(in crate::campaign) const HISTORY_MAX: u64 = 2;

/// What one batch does to one name.
enum Change {
    Put(Bytes),
    /// Put, if what stands there is what the model says.
    Set(Bytes),
    Remove,
}

impl Player {
    /// One batch over up to three names; the rule is that all of it is there, or nothing.
    pub(super) fn change_names(&mut self) -> Go {
        let first = self.rng.index(NAMES.len());
        let shared = self.record(900);
        let mut changes = Vec::new();
        for at in 0..3 {
            let name = NAMES[(first + at) % NAMES.len()];
            let change = match self.rng.index(6) {
                0 | 1 => Change::Put(self.record(20)),
                2 => Change::Put(shared.clone()),
                3 => Change::Set(self.record(30)),
                4 => Change::Set(shared.clone()),
                _ => Change::Remove,
            };
            changes.push((name, change));
        }
        let stands = |model: &Model, name: &str| model.names.get(name).map(|values| values[0].0);
        let expected: Vec<_> =
            changes.iter().map(|(name, _)| stands(&self.model, name).map(NameGeneration)).collect();
        self.refuse_stale(changes[0].0)?;
        let changed = self.step(
            "change names",
            |store| {
                let mut batch = store.state().batch();
                for ((name, change), expected) in changes.iter().zip(expected) {
                    batch = match change {
                        Change::Put(bytes) => batch.put_bytes(name, bytes),
                        Change::Set(bytes) => batch.compare_and_set_bytes(name, expected, bytes),
                        Change::Remove => batch.remove(name),
                    };
                }
                batch.commit()
            },
            |model, changed| {
                for ((name, change), generation) in changes.iter().zip(&changed.generations) {
                    match (change, generation) {
                        (Change::Put(bytes) | Change::Set(bytes), Some(generation)) => {
                            let values = model.names.entry((*name).to_owned()).or_default();
                            values.insert(0, (generation.0, bytes.clone()));
                            values.truncate(1 + HISTORY_MAX as usize);
                        }
                        _ => drop(model.names.remove(*name)),
                    }
                }
            },
        )?;
        for ((name, change), generation) in changes.iter().zip(changed.generations) {
            let highest = self.model.generations.entry((*name).to_owned()).or_default();
            match (change, generation) {
                (Change::Put(_) | Change::Set(_), Some(NameGeneration(now))) if now > *highest => {
                    *highest = now;
                }
                (Change::Remove, _) => {}
                (_, now) => {
                    let seen = format!("{name} had generation {highest}, and gets {now:?}");
                    self.findings.push(Finding::new(Rule::Counters, seen));
                    return Err(Stop);
                }
            }
        }
        Ok(())
    }

    /// A value that is not there is not replaced.
    fn refuse_stale(&mut self, name: &str) -> Go {
        let Some(store) = &self.store else { return Err(Stop) };
        let never = Some(NameGeneration(u64::MAX));
        match store.state().compare_and_set_bytes(name, never, b"stale") {
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
            Err(e) => self.stop(Rule::Acted, "compare", &e),
            Ok(_) => {
                let seen = format!("{name} was set although another value was expected");
                self.findings.push(Finding::new(Rule::State, seen));
                Err(Stop)
            }
        }
    }
}
