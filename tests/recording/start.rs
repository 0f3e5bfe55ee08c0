//! Starting a recording.

use sealstone::recording::{Field, FieldType, Schema};
use sealstone::{ErrorKind, Store};

/// Is a recording without a stream refused, and nothing left of it?
#[test]
fn rec3_a_recording_without_a_stream_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("run.stone")).unwrap();
    let schema = Schema::new(vec![Field::new("x", FieldType::F64)]).unwrap();
    let refused = store.record("run", &schema).start().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("no stream"), "{refused}");
    assert_eq!(store.recording("run").unwrap_err().kind(), ErrorKind::NotFound);
}
