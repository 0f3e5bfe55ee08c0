//! A state beside other things: recordings in the same store, readers in the same directory.

use sealstone::Store;
use sealstone::recording::{Field, FieldType, Level, Schema, Value};

use crate::support::small;

/// Does a reader beside the writer see each change once it is acknowledged, and a recording too?
#[test]
fn readers_beside_the_writer_see_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let store = Store::options().limits(small(2)).create(&path).unwrap();
    let schema = Schema::new(vec![Field::new("x", FieldType::I64)]).unwrap();
    let run = store.record("run", &schema).stream("s", ["x"]).start().unwrap();
    let state = store.state();
    let reader = Store::options().limits(small(2)).open_read_only(&path).unwrap();
    for at in 0..10i64 {
        let ticket = run.append(0, at, &[Value::I64(at)]).unwrap();
        run.wait(&ticket, Level::Durable).unwrap();
        state.batch().put("at", &at).put_bytes("large", &vec![at as u8; 900]).commit().unwrap();
        assert_eq!(reader.state().get::<i64>("at").unwrap(), at);
        assert_eq!(reader.state().get_bytes("large").unwrap(), vec![at as u8; 900]);
        assert_eq!(reader.state().versions("at").unwrap().len(), 3.min(at as usize + 1));
    }
    run.complete().unwrap();
    store.reclaim(Default::default()).unwrap();
    let stream = reader.recording("run").unwrap().stream("s").unwrap();
    let values: Vec<i64> = stream.field("x").unwrap().to_vec().unwrap();
    assert_eq!(values.len(), 10);
    assert_eq!(reader.state().history::<i64>("at").unwrap()[2].value, 7);
}
