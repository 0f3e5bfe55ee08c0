//! A small store, what is done to it, and what must be so behind it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::ErrorKind;
use sealstone::Limits;
use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Layout, Store};
use sealstone::manifest::Table;
use sealstone::objects::{Digest, Expected, Gone, Name, Pieces, Publish, PutOptions};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;

use super::turns::Turns;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Puts all contents under a preparation of this name, and publishes them under names of their own.
    Put(&'static str),
    /// The names that stand since the beginning go, in one transaction.
    Retire,
    /// The same in bounded ones.
    RetireBounded,
    /// Gives bytes back; files with anything dead in them are rewritten.
    Reclaim,
    /// Reads what stands since the beginning, or is told that it is not there.
    Read,
}

/// Contents of the store. The first is kept by a name all along; the last is made of pieces.
const CONTENTS: usize = 5;
const KEPT: usize = 0;
const OF_PIECES: usize = CONTENTS - 1;

/// What a thread does to a store.
pub type Alone<'a> = dyn Fn(&World) + Sync + 'a;

pub struct World {
    turns: Turns,
    root: PathBuf,
    store: Store,
}

pub fn content(number: usize) -> Vec<u8> {
    let len = if number == OF_PIECES { 3000 } else { 300 + number };
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&[number as u8]).finalize_xof().fill(&mut bytes);
    bytes
}

fn options(number: usize) -> PutOptions {
    match number {
        OF_PIECES => {
            let pieces = Pieces::Of { min: 256, avg: 512, max: 1024 };
            PutOptions { pieces, ..PutOptions::default() }
        }
        _ => PutOptions::default(),
    }
}

fn name(namespace: &str, number: usize) -> Name {
    Name::new(namespace, number.to_string()).unwrap()
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 1;
    limits.ballast_bytes = 0;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.block_bytes = 512;
    limits.background = false;
    limits
}

impl World {
    /// All contents are put once. One, in a file of its own, is retired: its file is condemned. Another one is:
    /// dead bytes in a file that is live otherwise.
    pub fn new(layout: Layout) -> Self {
        let disk = SimDisk::new(7);
        disk.mkdir(Path::new("/data")).unwrap();
        disk.stop_log();
        let turns = Turns::new(Arc::new(disk));
        let root = PathBuf::from("/data/run.stone");
        let options =
            Store::options().limits(limits()).layout(layout).disk(Arc::new(turns.clone()));
        let world = Self { turns, store: options.create(&root).unwrap(), root };
        world.put("a", &[0, 1, 3, 4]);
        world.put("a", &[2]);
        let gone = [2, 3].map(|number| Gone::Name(name("a", number)));
        assert_eq!(world.store.objects().retire(&gone, "at the beginning").unwrap().things, 2);
        world
    }

    fn put(&self, namespace: &str, numbers: &[usize]) {
        let prep = self.store.objects().prepare(namespace).unwrap();
        let digests = numbers.iter().map(|n| prep.put_with(&content(*n), &options(*n)).unwrap());
        let changes: Vec<_> = digests
            .zip(numbers)
            .map(|(digest, n)| Publish::new(name(namespace, *n), Expected::Any, digest))
            .collect();
        prep.publish(&changes).unwrap();
        prep.abandon("published").unwrap();
    }

    pub fn act(&self, act: Act) {
        let objects = self.store.objects();
        match act {
            Act::Put(namespace) => self.put(namespace, &[0, 1, 2, 3, 4]),
            Act::Retire => drop(objects.retire(&going(), "now").unwrap()),
            Act::RetireBounded => drop(objects.retire_bounded(&going(), 1, "by parts").unwrap()),
            Act::Reclaim => drop(self.store.reclaim(budget()).unwrap()),
            Act::Read => {
                for number in [0, 1, 4] {
                    match objects.open(&name("a", number)) {
                        Ok(object) => assert!(object.bytes().unwrap() == content(number)),
                        Err(e) => {
                            assert!(e.kind() == ErrorKind::NotFound && number != KEPT, "{e:?}");
                        }
                    }
                }
            }
        }
    }

    /// Runs two lists of acts, as [`Turns::run`].
    pub fn run(&self, stops: [Option<usize>; 2], acts: [&[Act]; 2]) -> [usize; 2] {
        let [first, second] = acts.map(|acts| move || acts.iter().for_each(|act| self.act(*act)));
        self.turns.run(stops, [&first, &second])
    }

    /// The same with acts of its own: the second goes to its end.
    pub fn run_with(&self, stop: usize, first: &Alone<'_>, second: &Alone<'_>) -> [usize; 2] {
        self.turns.run([Some(stop), None], [&|| first(self), &|| second(self)])
    }

    /// Every name that should stand does and reads, and whatever stands reads; then all of it goes.
    pub fn judge(self, acts: [&[Act]; 2]) {
        let done: Vec<Act> = acts.concat();
        let mut expected = vec![name("a", KEPT)];
        if !done.iter().any(|act| matches!(act, Act::Retire | Act::RetireBounded)) {
            expected.extend([1, OF_PIECES].map(|number| name("a", number)));
        }
        for act in &done {
            if let Act::Put(namespace) = act {
                expected.extend((0..CONTENTS).map(|number| name(namespace, number)));
            }
        }
        let objects = self.store.objects();
        let mut stand = BTreeMap::new();
        for namespace in objects.namespaces("", None, 99).unwrap() {
            for view in objects.names(&namespace, "", None, 99).unwrap() {
                stand.insert(view.name, view.digest);
            }
        }
        assert!(stand.keys().eq(expected.iter()), "{stand:?} instead of {expected:?}");
        self.all_reads(&stand);
        self.is_good();
        self.store.reclaim(budget()).unwrap();
        self.all_reads(&stand);
        let accounts = self.store.accounts().unwrap();
        assert!(accounts.are_closed() && accounts.orphan == 0, "P10: {accounts:?}");
        assert_eq!(accounts.dead + accounts.condemned, 0, "{accounts:?}");
        let all: Vec<Gone> = stand.into_keys().map(Gone::Name).collect();
        objects.retire(&all, "the end").unwrap();
        self.store.reclaim(budget()).unwrap();
        self.is_empty();
    }

    fn all_reads(&self, stand: &BTreeMap<Name, Digest>) {
        for (name, digest) in stand {
            let object = self.store.objects().open(name).unwrap();
            let number: usize = name.name().parse().unwrap();
            assert_eq!(object.digest(), *digest);
            assert!(object.bytes().unwrap() == content(number), "{name} has other bytes");
        }
    }

    fn is_good(&self) {
        let options =
            CheckOptions { disk: Some(Arc::new(self.turns.clone())), ..CheckOptions::default() };
        let report = check(&self.root, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(report.is_good(), "{:#?}", report.findings);
    }

    fn is_empty(&self) {
        for (table, rows) in self.store.stats().unwrap().rows {
            let may_stand = [Table::Meta, Table::Owners, Table::Receipts, Table::Bodies];
            assert!(rows == 0 || may_stand.contains(&table), "{rows} rows of {}", table.name());
        }
        let accounts = self.store.accounts().unwrap();
        let left = accounts.live + accounts.dead + accounts.condemned + accounts.orphan;
        assert!(left == 0 && accounts.are_closed(), "something is left: {accounts:?}");
    }
}

fn going() -> [Gone; 2] {
    [1, OF_PIECES].map(|number| Gone::Name(name("a", number)))
}

fn budget() -> Budget {
    Budget { dead_percent: Some(1), ..Budget::default() }
}
