//! Random histories against a map in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sealstone::ErrorKind;
use sealstone::engine::Options;
use sealstone::state::{Batch, NameGeneration, Present};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;

use crate::support::{Values, books_close, on, root, shown, sim, single};

/// Names that begin with each other, sort apart from their lengths, and are no ASCII.
const NAMES: [&str; 7] = ["a", "a/b", "a/b\0", "a\u{1}", "b", "é/ü", "z"];

#[derive(Debug, Clone)]
enum Change {
    Put(usize, Vec<u8>),
    /// With the generation that stands there, or another one.
    Cas(usize, Vec<u8>, Guess),
    Remove(usize),
    RemoveExpected(usize, Guess),
    Expect(usize, Guess),
}

#[derive(Debug, Clone, Copy)]
enum Guess {
    Right,
    Absent,
    Older,
    Newer,
}

#[derive(Debug, Clone)]
enum Op {
    Batch(Vec<Change>, Option<u64>),
    List(String, usize),
    Reclaim,
    Reopen,
    Kill,
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    // Few different ones: equal values are one object. Both sides of the inline limit.
    (0u8..3, prop::sample::select(vec![0usize, 3, 64, 65, 1500]))
        .prop_map(|(byte, len)| vec![byte; len])
}

fn change() -> impl Strategy<Value = Change> {
    let name = 0..NAMES.len();
    let guess = prop::sample::select(vec![
        Guess::Right,
        Guess::Right,
        Guess::Right,
        Guess::Absent,
        Guess::Older,
        Guess::Newer,
    ]);
    prop_oneof![
        4 => (name.clone(), bytes()).prop_map(|(n, b)| Change::Put(n, b)),
        3 => (name.clone(), bytes(), guess.clone()).prop_map(|(n, b, g)| Change::Cas(n, b, g)),
        1 => name.clone().prop_map(Change::Remove),
        1 => (name.clone(), guess.clone()).prop_map(|(n, g)| Change::RemoveExpected(n, g)),
        1 => (name, guess).prop_map(|(n, g)| Change::Expect(n, g)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let prefix = prop::sample::select(vec!["", "a", "a/", "b", "é", "nothing"]);
    prop_oneof![
        6 => (prop::collection::vec(change(), 1..5), prop::option::weighted(0.2, 0u64..4))
            .prop_map(|(changes, keep)| Op::Batch(changes, keep)),
        2 => (prefix, 1usize..4).prop_map(|(p, n)| Op::List(p.to_owned(), n)),
        1 => Just(Op::Reclaim),
        1 => Just(Op::Reopen),
        1 => Just(Op::Kill),
    ]
}

impl Change {
    fn name(&self) -> &'static str {
        match self {
            Change::Put(n, _)
            | Change::Cas(n, _, _)
            | Change::Remove(n)
            | Change::RemoveExpected(n, _)
            | Change::Expect(n, _) => NAMES[*n],
        }
    }
}

#[derive(Debug, Default)]
struct Model {
    names: BTreeMap<String, Values>,
    /// The highest generation that each name ever had.
    highest: BTreeMap<String, NameGeneration>,
}

impl Model {
    fn now(&self, name: &str) -> Option<NameGeneration> {
        self.names.get(name).map(|values| values[0].0)
    }

    fn guessed(&self, name: &str, guess: Guess) -> Option<NameGeneration> {
        let now = self.now(name);
        match guess {
            Guess::Right => now,
            Guess::Absent => None,
            // What it had before it was removed must not count either.
            Guess::Older => Some(self.highest.get(name).copied().unwrap_or_default())
                .filter(|highest| Some(*highest) != now)
                .or(Some(NameGeneration(now.map_or(0, |now| now.0 - 1)))),
            Guess::Newer => Some(NameGeneration(now.map_or(0, |now| now.0) + 1)),
        }
    }

    /// Adds the change to the batch; whether what it expects stands there.
    fn add(&self, batch: Batch, change: &Change) -> (Batch, bool) {
        let name = change.name();
        let fits = |guess| self.guessed(name, guess) == self.now(name);
        match change {
            Change::Put(_, bytes) => (batch.put_bytes(name, bytes), true),
            Change::Cas(_, bytes, guess) => {
                let expected = self.guessed(name, *guess);
                (batch.compare_and_set_bytes(name, expected, bytes), fits(*guess))
            }
            Change::Remove(_) => (batch.remove(name), true),
            Change::RemoveExpected(_, guess) => match self.guessed(name, *guess) {
                Some(expected) => (batch.remove_expected(name, expected), fits(*guess)),
                None => (batch.remove(name), true),
            },
            Change::Expect(_, guess) => {
                (batch.expect(name, self.guessed(name, *guess)), fits(*guess))
            }
        }
    }

    fn apply(&mut self, change: &Change, generation: Option<NameGeneration>, keep: u64) {
        let name = change.name();
        match change {
            Change::Put(_, bytes) | Change::Cas(_, bytes, _) => {
                let generation = generation.unwrap();
                let highest = self.highest.entry(name.to_owned()).or_default();
                assert!(generation > *highest, "{name} had {highest}, and gets {generation}");
                *highest = generation;
                let values = self.names.entry(name.to_owned()).or_default();
                values.insert(0, (generation, bytes.clone()));
                values.truncate(1 + keep as usize);
            }
            Change::Remove(_) | Change::RemoveExpected(..) => {
                let gone = self.names.remove(name).map(|values| values[0].0);
                assert_eq!(generation, gone);
            }
            Change::Expect(..) => assert_eq!(generation, self.now(name)),
        }
    }
}

const KEEP: u64 = 2;

fn play(ops: &[Op], seed: u64, create: fn(&SimDisk, u64) -> Options) {
    let world = sim(seed);
    let mut disk = world.clone();
    let mut pid = disk.pid();
    let mut store = create(&disk, KEEP).create(root()).unwrap();
    let mut model = Model::default();
    for op in ops {
        match op {
            Op::Batch(changes, keep) => {
                let mut batch = store.state().batch();
                if let Some(keep) = keep {
                    batch = batch.keep_history(*keep);
                }
                let (mut all_fit, mut names) = (true, std::collections::BTreeSet::new());
                let mut is_twice = false;
                for change in changes {
                    let (with, fits) = model.add(batch, change);
                    (batch, all_fit) = (with, all_fit && fits);
                    is_twice |= !names.insert(change.name());
                }
                match batch.commit() {
                    Ok(changed) => {
                        assert!(all_fit && !is_twice, "{changes:?}");
                        for (change, generation) in changes.iter().zip(changed.generations) {
                            model.apply(change, generation, keep.unwrap_or(KEEP));
                        }
                    }
                    Err(e) if is_twice => assert_eq!(e.kind(), ErrorKind::Invalid, "{e}"),
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
                        assert!(!all_fit, "{e}");
                        let present = Present::of(&e).unwrap();
                        assert_eq!(present.generation, model.now(&present.name));
                    }
                }
            }
            Op::List(prefix, at_most) => {
                let state = store.state();
                let expected: Vec<&String> =
                    model.names.keys().filter(|name| name.starts_with(&**prefix)).collect();
                let (mut seen, mut after) = (Vec::new(), None::<String>);
                loop {
                    let page = state.page(prefix, after.as_deref(), *at_most).unwrap();
                    assert!(page.len() <= *at_most);
                    let Some(last) = page.last() else { break };
                    after = Some(last.name.clone());
                    seen.extend(page.into_iter().map(|entry| entry.name));
                }
                assert!(seen.iter().eq(expected.iter().copied()), "{seen:?} {expected:?}");
                let listed: Vec<String> = state.list(prefix).map(|e| e.unwrap().name).collect();
                assert_eq!(listed, seen);
            }
            Op::Reclaim => books_close(&store),
            Op::Reopen => {
                store.close().unwrap();
                store = on(&disk, KEEP).open(root()).unwrap();
            }
            Op::Kill => {
                disk.kill();
                drop(store);
                pid += 1;
                disk = world.process(pid);
                store = on(&disk, KEEP).open(root()).unwrap();
            }
        }
        assert_eq!(shown(&store.state()), model.names, "after {op:?}");
    }
    books_close(&store);
    store.close().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Does a state show what a map would, after any sequence of changes, refusals and openings?
    #[test]
    fn g4_a_state_is_a_map(ops in prop::collection::vec(op(), 1..30), seed in any::<u64>()) {
        play(&ops, seed, if seed % 2 == 0 { on } else { single });
    }
}
