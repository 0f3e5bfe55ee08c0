//! A failed commit or sync halts the store; reopening tells what became of the last commit.

use std::sync::Arc;

use sealstone::engine::{Append, Outcome, Store};
use sealstone::vfs::sim::{Fault, FaultKind, Rng, SimDisk, SyncFailure};
use sealstone::vfs::{Operation, Step};
use sealstone::{Error, ErrorKind};

use crate::syncs::{options, sim};

type Act = fn(&Store) -> Result<(), Error>;

/// Where a sync or a commit can fail, and what makes it happen.
const CASES: &[(&str, Operation, Act)] = &[
    ("manifest.redb", Operation::Write, commit),
    ("manifest.redb", Operation::SyncData, commit),
    (".journal", Operation::SyncData, barrier),
    ("/tmp/", Operation::SyncData, publish),
    ("/sealed/", Operation::SyncDir, publish),
    ("/journal", Operation::SyncDir, barrier),
];

const FAILURES: &[FaultKind] = &[
    FaultKind::Eio,
    FaultKind::SyncFails(SyncFailure::NothingKept),
    FaultKind::SyncFails(SyncFailure::RandomPart),
    FaultKind::SyncFails(SyncFailure::CacheReverted),
    FaultKind::SyncFails(SyncFailure::NeverAgain),
];

fn commit(store: &Store) -> Result<(), Error> {
    store.create_stream("made by the failing commit").map(|_| ())
}

fn barrier(store: &Store) -> Result<(), Error> {
    let stream = sealstone::ids::StreamId(1);
    store.append(vec![Append { stream, payload: vec![1; 50] }])?;
    store.barrier()
}

fn publish(store: &Store) -> Result<(), Error> {
    let lease = sealstone::ids::LeaseId(1);
    let mut content = vec![0; 20_000];
    Rng::new(5).fill(&mut content);
    store.put_objects(lease, vec![content]).map(|_| ())
}

fn prepared(seed: u64) -> (SimDisk, std::path::PathBuf, Store) {
    let (disk, root) = sim(seed);
    let store = options(Arc::new(disk.clone())).create(&root).unwrap();
    store.create_stream("s").unwrap();
    store.lease("holder", "test", None, &[]).unwrap();
    (disk, root, store)
}

/// What every call says after a failure: halted, with the first cause.
fn assert_halted(store: &Store, what: &str) {
    let stream = sealstone::ids::StreamId(1);
    let calls: Vec<(&str, Result<(), Error>)> = vec![
        ("append", store.append(vec![Append { stream, payload: vec![2] }]).map(|_| ())),
        ("barrier", store.barrier()),
        ("commit", commit(store)),
        ("publish", publish(store)),
        ("read", store.view(stream).map(|_| ())),
        ("checkpoint", store.checkpoint(1, &[stream], b"x").map(|_| ())),
        ("reclaim", store.reclaim(Default::default()).map(|_| ())),
    ];
    let cause = store.health().halted.unwrap_or_else(|| panic!("{what}: health is well"));
    for (call, told) in calls {
        let told = told.expect_err(&format!("{what}: {call} went on"));
        assert_eq!(told.kind(), ErrorKind::Halted, "{what}: {call}: {told:?}");
        assert!(told.chain().contains(cause.cause()), "{what}: {call} names no cause: {told:?}");
    }
    assert!(!store.health().is_good());
}

/// Does any failed sync, and any failed commit, halt the store until it is reopened, and does
/// reopening tell whether the last commit took place? (P8, G14)
#[test]
fn p8_a_failed_sync_or_commit_halts_and_reopening_tells() {
    let mut told = std::collections::BTreeMap::new();
    let mut struck = 0;
    for (at, (place, only, act)) in CASES.iter().enumerate() {
        for (number, failure) in FAILURES.iter().enumerate() {
            if !failure.suits(*only) {
                continue;
            }
            for delay in 0..40 {
                let seed = (at * 1000 + number * 100 + delay) as u64;
                let (disk, root, store) = prepared(seed);
                let fault = Fault::new(disk.operations() + delay as u64, *failure);
                disk.inject(fault.on(place).only(*only));
                let failed = act(&store);
                if disk.fired().is_empty() {
                    break;
                }
                struck += 1;
                let what = format!("{place} {failure:?} after {delay}");
                let Err(failed) = failed else {
                    // A read that failed may have been read again; nothing that changes may be.
                    panic!("{what}: it went on, after {:?}", disk.fired());
                };
                disk.clear_faults();
                assert_halted(&store, &what);
                let attempt = store.health().attempt;
                assert_eq!(
                    attempt.is_some(),
                    failed.kind() == ErrorKind::OutcomeUnknown && *place == "manifest.redb",
                    "{what}: {failed:?}"
                );
                drop(store);
                let store = match options(Arc::new(disk.clone())).open(&root) {
                    Ok(store) => store,
                    // The medium itself is broken for good, and says so.
                    Err(e) if what.contains("NeverAgain") && e.kind() == ErrorKind::Io => continue,
                    Err(e) => panic!("{what}: reopening: {e:?}"),
                };
                let Some(attempt) = attempt else { continue };
                let outcome = store.outcome_of(attempt).unwrap();
                let names = crate::syncs::names(&store);
                let is_there = names.iter().any(|name| name.starts_with("made by"));
                assert_eq!(
                    outcome == Outcome::Committed,
                    is_there,
                    "{what}: {outcome:?}, {names:?}"
                );
                *told.entry(format!("{outcome:?}")).or_insert(0) += 1;
            }
        }
    }
    println!("{struck} failures struck; outcomes of unknown commits: {told:?}");
    assert!(struck > 40 && told.len() == 2, "{struck}, {told:?}");
}

/// Is a failed sync never tried again?
#[test]
fn g14_a_failed_sync_is_not_tried_again() {
    let (disk, _, store) = prepared(9);
    barrier(&store).unwrap();
    let fault = Fault::new(disk.operations(), FaultKind::SyncFails(SyncFailure::NothingKept));
    disk.inject(fault.on(".journal").only(Operation::SyncData));
    let failed = barrier(&store).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::OutcomeUnknown, "{failed:?}");
    let before = disk.counts();
    assert_halted(&store, "journal");
    let _ = store.transact(Step::ClaimCommit, |_| Ok(()));
    drop(store);
    let after = disk.counts().since(&before);
    assert_eq!(after.mutations(), 0, "a halted store changed something: {after:?}");
}
