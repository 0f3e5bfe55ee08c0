//! Many threads on one state.

use sealstone::state::Present;
use sealstone::{ErrorKind, Store};

use crate::support::small;

/// Is each increment of a counter counted once, when eight threads compare and set it?
#[test]
fn g4_increments_of_eight_threads_are_counted_once() {
    const THREADS: u64 = 8;
    const EACH: u64 = 12;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().limits(small(3)).create(dir.path().join("run.stone")).unwrap();
    store.state().put("counter", &0u64).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let state = store.state();
            scope.spawn(move || {
                for _ in 0..EACH {
                    loop {
                        let found = state.find::<u64>("counter").unwrap().unwrap();
                        let own = format!("thread/{thread}");
                        let batch = state.batch();
                        // The counter and a name of this thread's own, together or not at all.
                        let done = batch
                            .compare_and_set("counter", Some(found.generation), &(found.value + 1))
                            .put(&own, &(found.value + 1))
                            .commit();
                        match done {
                            Ok(_) => break,
                            Err(e) => {
                                assert_eq!(e.kind(), ErrorKind::Conflict, "{e:?}");
                                assert!(Present::of(&e).is_some_and(|p| p.name == "counter"));
                            }
                        }
                    }
                }
            });
        }
        let state = store.state();
        scope.spawn(move || {
            let mut last = 0;
            while last < THREADS * EACH {
                let now = state.get::<u64>("counter").unwrap();
                assert!(now >= last, "{now} after {last}");
                last = now;
                let history = state.history::<u64>("counter").unwrap();
                assert!(history.windows(2).all(|pair| pair[0].value == pair[1].value + 1));
            }
        });
    });
    let state = store.state();
    assert_eq!(state.get::<u64>("counter").unwrap(), THREADS * EACH);
    assert_eq!(state.history::<u64>("counter").unwrap().len(), 4);
    let best = (0..THREADS).map(|t| state.get::<u64>(&format!("thread/{t}")).unwrap()).max();
    assert_eq!(best, Some(THREADS * EACH));
    let report_path = dir.path().join("run.stone");
    store.close().unwrap();
    let options = sealstone::check::CheckOptions::default();
    let mut quiet = |_| std::ops::ControlFlow::Continue(());
    let report = sealstone::check::check(&report_path, &options, &mut quiet).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// Do values that are equal and come and go at once on many threads ever get lost?
#[test]
fn equal_values_that_come_and_go_are_never_lost() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().limits(small(0)).create(dir.path().join("run.stone")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let state = store.state();
            scope.spawn(move || {
                let name = format!("flag/{thread}");
                for round in 0..20u8 {
                    let value = vec![(round + thread) % 2; if round % 4 == 0 { 500 } else { 5 }];
                    state.put(&name, &value).unwrap();
                    assert_eq!(state.get::<Vec<u8>>(&name).unwrap(), value);
                    if round % 7 == 6 {
                        assert!(state.remove(&name).unwrap());
                    }
                }
            });
        }
    });
    let left = store.state().list("flag/").count();
    assert_eq!(left, 4);
    crate::support::books_close(&store);
}
