//! What the tests of recordings share.

use sealstone::Store;
use sealstone::recording::{Field, FieldType, NewRecording, Schema};

/// A folder with a new store in it.
pub struct Home {
    _dir: tempfile::TempDir,
    pub store: Store,
}

pub fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("run.stone")).unwrap();
    Home { _dir: dir, store }
}

/// Fields `x` and `y` of numbers, and a `note` that may be missing.
pub fn schema() -> Schema {
    let fields = ["x", "y"].map(|name| Field::new(name, FieldType::F64));
    let mut fields = fields.to_vec();
    fields.push(Field::new("note", FieldType::String).nullable());
    Schema::new(fields).unwrap()
}

/// A recording called `run` that is not started yet.
pub fn draft(store: &Store) -> NewRecording {
    store.record("run", &schema())
}

/// The iterations of a stream of `run`.
pub fn iterations(store: &Store, stream: &str) -> Vec<i64> {
    let recording = store.recording("run").unwrap();
    recording.stream(stream).unwrap().iteration().to_vec().unwrap()
}
