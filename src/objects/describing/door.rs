//! The handle of a store's objects.

use crate::engine::Store;

impl Store {
    /// The store's objects: files by content, and names for them.
    pub fn objects(&self) -> Objects {
        Objects { store: self.clone() }
    }
}

/// Files by content, and names for them. Cheap to clone, usable from any thread; it keeps the store open.
#[derive(Debug, Clone)]
pub struct Objects {
    store: Store,
}

impl Objects {
    /// The store that they are in.
    pub(in crate::objects) fn store(&self) -> &Store {
        &self.store
    }
}
