//! What a preparation stored, published.

use super::change::{Publish, Published};
use super::hand_off::NameHandoff;
use crate::error::Result;
use crate::objects::storing::Preparation;

impl Preparation {
    /// Stores what was put so far, then lets every name of `changes` stand for its digest, all or none. The
    /// preparation stays open, and keeps what was not named.
    ///
    /// # Errors
    /// As [`Preparation::flush`] and [`Objects::publish`](crate::objects::Objects::publish): no name was changed, and what was put is kept on.
    ///
    /// # Durability
    /// *Durable* when it returns. What can be read under a name was durable before the name is.
    pub fn publish(&self, changes: &[Publish]) -> Result<Published> {
        // OBJ9: stored and leased before a name stands for it.
        let names = changes.iter().map(|change| (change.name.key(), change.digest));
        self.naming(names, || self.flush())?;
        self.store().objects().publish(self.lease(), changes)
    }

    /// Stores what was put so far, then prepares the publication of `changes` together with something outside.
    ///
    /// # Errors
    /// As [`Preparation::flush`] and [`Objects::hand_off`](crate::objects::Objects::hand_off).
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn hand_off(
        &self,
        changes: &[Publish],
        target: &str,
        intent: &[u8],
    ) -> Result<NameHandoff> {
        self.flush()?;
        self.store().objects().hand_off(self.lease(), changes, target, intent)
    }
}
