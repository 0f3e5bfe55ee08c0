//! A store in a folder of its own.

use sealstone::Store;
use tempfile::TempDir;

/// A new store, and the folder that holds it.
pub fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("run.stone")).unwrap();
    (folder, store)
}
