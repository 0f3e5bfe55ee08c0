//! Many threads at once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Layout, Store};
use sealstone::manifest::{ObjectRow, Reading, Table};
use sealstone::objects::{Expected, Gone, Name, Pieces, Publish, PutOptions};
use sealstone::{ErrorKind, WriteAccess};

/// Steps of each thread here; `SEALSTONE_CROWD_STEPS` asks for another number.
const STEPS: u64 = 40;
const THREADS: u64 = 8;
const CONTENTS: u64 = 24;

/// A number from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Content `number`; every third one is made of pieces, that it shares with the next one such.
fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 500 + number as usize];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
    if number.is_multiple_of(3) {
        let mut shared = vec![0; 6000];
        let family = number / 6;
        blake3::Hasher::new()
            .update(&(1000 + family).to_le_bytes())
            .finalize_xof()
            .fill(&mut shared);
        bytes.extend(shared);
    }
    bytes
}

fn put_options(number: u64) -> PutOptions {
    let pieces = match number.is_multiple_of(3) {
        true => Pieces::Of { min: 256, avg: 512, max: 1024 },
        false => Pieces::Auto,
    };
    PutOptions { pieces, ..PutOptions::default() }
}

fn name(slot: u64, number: u64) -> Name {
    Name::new(format!("slot-{slot}"), number.to_string()).unwrap()
}

fn open(root: &Path, layout: Layout, access: WriteAccess) -> Store {
    let mut limits = sealstone::Limits::default();
    limits.object_inline_bytes_max = 64;
    // Objects are those of the threads.
    limits.snapshot_chain_max = 0;
    Store::options().limits(limits).layout(layout).access(access).open_or_create(root).unwrap()
}

fn budget() -> Budget {
    Budget { dead_percent: Some(1), ..Budget::default() }
}

/// What a step may answer where others are at the same.
fn at_most_conflict<T>(outcome: sealstone::Result<T>) {
    if let Err(e) = outcome {
        assert_eq!(e.kind(), ErrorKind::Conflict, "{e:?}");
    }
}

/// One thread: puts, publishes, retires, reads and reclaims what it draws. Its own names stand as it knows.
fn step(store: &Store, thread: u64, random: &mut Random, own: &mut BTreeSet<u64>) {
    let objects = store.objects();
    let numbers: BTreeSet<u64> = (0..1 + random.below(4)).map(|_| random.below(CONTENTS)).collect();
    match random.below(10) {
        0..4 => {
            let prep = objects.prepare(&format!("thread-{thread}")).unwrap();
            let change = |number: &u64| {
                let digest = prep.put_with(&content(*number), &put_options(*number)).unwrap();
                Publish::new(name(thread, *number), Expected::Any, digest)
            };
            prep.publish(&numbers.iter().map(change).collect::<Vec<_>>()).unwrap();
            prep.abandon("published").unwrap();
            own.extend(numbers);
        }
        4..6 => {
            let gone: Vec<Gone> =
                numbers.iter().map(|number| Gone::Name(name(thread, *number))).collect();
            let done = match random.below(2) {
                0 => objects.retire(&gone, "drawn"),
                _ => objects.retire_bounded(&gone, 4, "drawn"),
            };
            assert_eq!(done.unwrap().things, own.intersection(&numbers).count() as u64);
            own.retain(|number| !numbers.contains(number));
        }
        6 => at_most_conflict(store.reclaim(budget())),
        _ => {
            let (slot, number) = (random.below(THREADS), random.below(CONTENTS));
            match objects.open(&name(slot, number)).and_then(|object| object.bytes()) {
                Ok(bytes) => assert!(bytes == content(number), "slot {slot}, {number}"),
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    assert!(slot != thread || !own.contains(&number), "{e:?}");
                }
                // Of another process: given back under a look.
                Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e:?}"),
            }
        }
    }
    for number in own.iter() {
        assert!(objects.name(&name(thread, *number)).unwrap().is_some());
    }
}

fn is_good(root: &Path) {
    let report = check(root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
}

fn crowd(layout: Layout, access: WriteAccess, openings: usize, seed: u64) {
    println!("{layout:?}, {openings} opening(s), seed {seed}");
    let steps = std::env::var("SEALSTONE_CROWD_STEPS");
    let steps = steps.map_or(STEPS, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let root: PathBuf = folder.path().join("run.stone");
    let stores: Vec<Store> = (0..openings).map(|_| open(&root, layout, access)).collect();
    let own: Vec<BTreeSet<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let store = stores[thread as usize % openings].clone();
                scope.spawn(move || {
                    let (mut random, mut own) = (Random(seed << 8 | thread), BTreeSet::new());
                    (0..steps).for_each(|_| step(&store, thread, &mut random, &mut own));
                    own
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let store = &stores[0];
    for (thread, own) in own.iter().enumerate() {
        for number in 0..CONTENTS {
            let found = store.objects().open(&name(thread as u64, number));
            assert_eq!(found.is_ok(), own.contains(&number), "{thread} {number}");
            if let Ok(object) = found {
                assert!(object.bytes().unwrap() == content(number));
            }
        }
    }
    is_good(&root);
    let all = own.iter().enumerate().flat_map(|(thread, own)| {
        own.iter().map(move |number| Gone::Name(name(thread as u64, *number)))
    });
    store.objects().retire(&all.collect::<Vec<_>>(), "the end").unwrap();
    while store.reclaim(budget()).unwrap().is_more_left {}
    assert!(store.snapshot().unwrap().list::<ObjectRow>(.., 1).unwrap().is_empty());
    let accounts = store.accounts().unwrap();
    let left = accounts.live + accounts.dead + accounts.condemned + accounts.orphan;
    assert!(left == 0 && accounts.are_closed(), "something is left: {accounts:?}");
    let rows = store.stats().unwrap().rows;
    let of = |table| rows.iter().find(|(one, _)| *one == table).map_or(0, |(_, rows)| *rows);
    for table in [Table::Files, Table::Edges, Table::Leases, Table::Retiring, Table::Claims] {
        assert_eq!(of(table), 0, "rows of {}", table.name());
    }
    stores.into_iter().for_each(|store| store.close().unwrap());
    is_good(&root);
}

/// Do threads that put, publish, retire, reclaim and read what others do keep what they know, and leave nothing?
#[test]
fn obj1_obj19_obj23_a_crowd_loses_nothing_and_leaves_nothing() {
    for seed in 0..2 {
        crowd(Layout::Directory, WriteAccess::Single, 1, seed);
    }
    crowd(Layout::SingleFile, WriteAccess::Single, 1, 2);
}

/// And those of two openings, as two processes have them?
#[test]
fn obj1_obj19_obj23_a_crowd_of_two_openings() {
    crowd(Layout::Directory, WriteAccess::Shared, 2, 3);
}
