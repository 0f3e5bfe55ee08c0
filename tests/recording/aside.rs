//! What a resume sets aside: kept before it is cut, and nothing that is sealed.

use sealstone::ErrorKind;
use sealstone::engine::{Append, Store};
use sealstone::manifest::{LeaseRow, Reading};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{QUARANTINE_HOLDER, ResumeFrom, StreamOptions, Value};
use sealstone::vfs::sim::{Profile, Rng};

use crate::resume::{bad_record, with_a_record_that_does_not_decode};
use crate::resuming::{Sim, iterations, observe, on, root, schema, sim};

fn is_kept(store: &Store) -> bool {
    let leases = store.snapshot().unwrap().list::<LeaseRow>(.., 99).unwrap();
    leases.iter().any(|(_, row)| row.holder == QUARANTINE_HOLDER)
}

/// Power cuts anywhere in a resume that sets records aside: after how many are they gone and not kept?
fn lost_in_crashes() -> usize {
    let disk = sim(335);
    let store = on(&disk).create(root()).unwrap();
    with_a_record_that_does_not_decode(&store);
    store.close().unwrap();
    let store = on(&disk).open(root()).unwrap();
    disk.restart_log();
    drop(store.resume("run").from(ResumeFrom::Tail).set_aside().start().unwrap());
    let (log, mut rng) = (disk.events(), Rng::new(5));
    let (mut lost, mut cut) = (0, 0);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            for image in cursor.images(&mut rng, 1) {
                let disk = image.disk();
                let store = on(&disk).open(root()).unwrap();
                let plan = store.resume("run").from(ResumeFrom::Tail).plan().unwrap();
                cut += usize::from(plan.undecodable.is_empty());
                lost += usize::from(plan.undecodable.is_empty() && !is_kept(&store));
                disk.kill();
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    assert!(cut > 0);
    lost
}

/// Are the bytes of what is cut kept before it is cut, wherever the power goes?
#[test]
fn rec35_what_is_cut_is_kept_first() {
    assert_eq!(lost_in_crashes(), 0);
}

/// Would it be noticed if they were kept afterwards? (mutant)
#[test]
fn rec35_cut_before_it_is_kept_is_noticed() {
    let _off = switch_off(Protection::QuarantineFirst);
    assert!(lost_in_crashes() > 0);
}

/// Do records of other streams stay that are sealed, though they were observed after one that does not
/// decode, and does the run go on behind them?
#[test]
fn rec35_what_is_sealed_is_not_cut_for_a_record_of_another_stream() {
    let disk = sim(435);
    let store = on(&disk).create(root()).unwrap();
    let few = StreamOptions::new("few", ["n"])
        .every(sealstone::recording::Every::iterations(3))
        .chunk_records(1u64);
    let draft = store.record("run", &schema()).stream("all", ["x", "name"]).stream_as(few);
    let recorder = draft.start().unwrap();
    observe(&recorder, 0, 20);
    let streams = store.recording("run").unwrap().streams().unwrap();
    let (all, few) = (streams[0].id(), streams[1].id());
    store.append(vec![Append { stream: all, payload: bad_record(20) }]).unwrap();
    for at in (21..201).step_by(3) {
        recorder.append(1, at, &[Value::I64(Sim::at(at).n)]).unwrap();
    }
    recorder.barrier().unwrap();
    drop((recorder, streams));
    let sealed = store.view(few).unwrap().row.sealed_upto.0;
    assert!(sealed > 10, "some of those behind it are sealed: {sealed}");
    let resume = || store.resume("run").from(ResumeFrom::Tail);
    assert_eq!(resume().start().unwrap_err().kind(), ErrorKind::Damage);
    let plan = resume().plan().unwrap();
    assert_eq!((plan.streams[0].kept, plan.streams[1].kept), (20, sealed), "{plan}");
    assert!(plan.streams.iter().all(|stream| stream.sealed_cut == 0), "{plan}");
    let resumed = resume().set_aside().start().unwrap();
    let last = (sealed as i64 - 1) * 3;
    let expected: Vec<i64> = (0..=last).step_by(3).collect();
    assert_eq!(iterations(&store, "run"), [(0..20).collect(), expected.clone()]);
    observe(&resumed.recorder, last + 1, last + 4);
    resumed.recorder.complete().unwrap();
    let [all, few]: [Vec<i64>; 2] = iterations(&store, "run").try_into().unwrap();
    assert_eq!(all[20..], [last + 1, last + 2, last + 3]);
    assert_eq!(few, [expected, vec![last + 3]].concat());
}
