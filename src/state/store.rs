//! The handle of a store's state: single changes, each a batch of one.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::batch::Batch;
use crate::engine::Store;
use crate::error::Result;
use crate::ids::NameGeneration;

impl Store {
    /// The store's state: values under names.
    pub fn state(&self) -> State {
        State { store: self.clone() }
    }
}

/// Values under names. Cheap to clone, usable from any thread; it keeps the store open.
///
/// ```
/// # fn main() -> sealstone::Result<()> {
/// # let path = std::env::temp_dir().join(format!("state-{}.stone", std::process::id()));
/// # let store = sealstone::Store::create(&path)?;
/// let state = store.state();
/// state.put("config/current", &("eu-west".to_owned(), 3u32))?;
/// let (region, replicas): (String, u32) = state.get("config/current")?;
/// # assert_eq!((region.as_str(), replicas), ("eu-west", 3));
/// # store.close()?;
/// # std::fs::remove_dir_all(path).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct State {
    pub(super) store: Store,
}

impl State {
    /// Begins a batch: several changes, all or none.
    pub fn batch(&self) -> Batch {
        Batch::new(self.store.clone())
    }

    /// Makes `value` the value of `name`, whatever stands there. Returns its generation.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn put<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        value: &T,
    ) -> Result<NameGeneration> {
        self.one(self.batch().put(name, value))
    }

    /// Makes `bytes` the value of `name`, as they are.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn put_bytes(&self, name: &str, bytes: &[u8]) -> Result<NameGeneration> {
        self.one(self.batch().put_bytes(name, bytes))
    }

    /// Makes `value` the value of `name` if the value of generation `expected` stands there, or
    /// nothing, where that is `None`.
    ///
    /// # Errors
    /// `Conflict` when something else stands there: [`Present::of`](super::Present::of) says what.
    /// Otherwise as [`Batch::commit`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn compare_and_set<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        expected: Option<NameGeneration>,
        value: &T,
    ) -> Result<NameGeneration> {
        self.one(self.batch().compare_and_set(name, expected, value))
    }

    /// [`State::compare_and_set`] with bytes as they are.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn compare_and_set_bytes(
        &self,
        name: &str,
        expected: Option<NameGeneration>,
        bytes: &[u8],
    ) -> Result<NameGeneration> {
        self.one(self.batch().compare_and_set_bytes(name, expected, bytes))
    }

    /// Removes `name` with its value and its history; false when nothing was there.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn remove(&self, name: &str) -> Result<bool> {
        let changed = self.batch().remove(name).commit()?;
        Ok(changed.generations.iter().any(Option::is_some))
    }

    fn one(&self, batch: Batch) -> Result<NameGeneration> {
        let changed = batch.commit()?;
        Ok(changed.generations.into_iter().flatten().next().unwrap_or_default())
    }
}
