//! Starting a recording.

use sealstone::ErrorKind;
use sealstone::recording::{RecordingStatus, Value};

use crate::support::{draft, home, iterations, schema};

const X: [Value<'_>; 1] = [Value::F64(1.5)];

/// Is a name that exists refused, running, complete or failed, and what has it left as it was?
#[test]
fn rec1_a_name_that_exists_is_refused_and_the_mutant_is_caught() {
    let home = home();
    let store = &home.store;
    let run = draft(store).stream("s", ["x"]).metadata("who", "first").start().unwrap();
    run.append(0, 7, &X).unwrap();
    let again = || draft(store).stream("t", ["y"]).start().map(drop).unwrap_err();
    let refused = again();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    let pid = std::process::id().to_string();
    assert!(refused.to_string().contains(&pid), "the holder is named: {refused}");
    assert_eq!(iterations(store, "s"), [7]);
    run.append(0, 8, &X).unwrap();
    drop(run);
    assert_eq!(again().kind(), ErrorKind::Exists, "it is running, and nobody writes it");
    assert_eq!(iterations(store, "s"), [7, 8]);
    let recording = store.recording("run").unwrap();
    assert_eq!(recording.status(), &RecordingStatus::Running);
    assert_eq!(recording.metadata(), [("who".to_owned(), "first".to_owned())]);
    assert_eq!(recording.stream_count(), 1);

    let done = store.record("done", &schema()).stream("s", ["x"]).start().unwrap();
    done.complete().unwrap();
    let again = store.record("done", &schema()).stream("s", ["x"]).start().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
    assert_eq!(store.recording("done").unwrap().status(), &RecordingStatus::Complete);
    let empty = store.record("failed", &schema()).stream("s", ["x"]).start().unwrap();
    empty.fail("on purpose").unwrap();
    let again = store.record("failed", &schema()).stream("s", ["x"]).start_bulk().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);

    #[cfg(feature = "sim")]
    {
        use sealstone::protection::{Protection, switch_off};
        let _first = store.record("two", &schema()).stream("s", ["x"]).start().unwrap();
        let _off = switch_off(Protection::RecordingClaim);
        let robbed = store.record("two", &schema()).stream("t", ["x"]).start();
        assert!(robbed.is_ok(), "without the claim, what is being written gives way");
    }
}
