//! The kill loop.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Store};
use sealstone::vfs::{RealDisk, Step};

use crate::child::{Orders, seed};
use crate::content::{ONE_FILE, Rng, options};
use crate::marks::read_marks;
use crate::model::Model;

/// Kills of a writer at random moments.
const TRIALS: u64 = 200;
/// A new store after so many: birth is killed too.
const TRIALS_OF_ONE_STORE: u64 = 25;
/// Kills of a writer of a store in one file.
const TRIALS_OF_ONE_FILE: u64 = 16;
/// What a store may take after reclaim, however often its writers died.
const STORE_BYTES_MAX: u64 = 16 << 20;

/// Protocols that a writer here does not come to: its disk is never nearly full, its store is a
/// directory without recordings and stages, and stores are compacted, packed and so on from outside. The simulator cuts
/// those at each step (`tests/crash`, `tests/engine`, `tests/recording`, `tests/staging`).
const OUT_OF_REACH: &[&str] = &[
    "ballast.release",
    "event.",
    "manifest.",
    "body.",
    "pack.",
    "unpack.",
    "backup.",
    "salvage.",
    "stage.",
    "output.",
    "group.",
    "quarantine.",
    "handoff.",
    "prepare.",
    "retire.switch",
    "retire.part",
    "scrub.",
    "put.",
    "names.",
    "snapshot_names.",
    "name_handoff.",
];

struct Bench {
    dir: tempfile::TempDir,
    root: PathBuf,
    model: Model,
    rng: Rng,
    kills: BTreeMap<Option<Step>, u64>,
    acknowledged: u64,
    checks: u64,
}

impl Bench {
    fn new(rng: Rng) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("0.stone");
        let (model, kills) = (Model::default(), BTreeMap::new());
        Self { dir, root, model, rng, kills, acknowledged: 0, checks: 0 }
    }

    fn out(&self) -> &Path {
        self.dir.path()
    }

    fn new_store(&mut self, n: u64) {
        self.acknowledged += self.model.acknowledged;
        self.root = self.dir.path().join(format!("{n}.stone"));
        self.model = Model::default();
    }

    /// A writer lives and dies; what it acknowledged is compared with what is there.
    fn trial(&mut self, stop_at: Option<Step>) -> bool {
        let stopped = self.kill_one(stop_at);
        self.look();
        stopped
    }

    fn kill_one(&mut self, stop_at: Option<Step>) -> bool {
        let _ = std::fs::remove_file(self.out().join("log"));
        let _ = std::fs::remove_file(self.out().join("marks"));
        let seed = self.rng.next();
        let mut orders = Orders::new("writer", &self.root, self.out(), seed);
        // Born once, opened seldom; the rest comes again and again.
        let rare = ["birth.", "ballast.", "open.", "reclaim.", "compact."];
        let is_once = |name: &str| rare.iter().any(|protocol| name.starts_with(protocol));
        orders.stop_at = stop_at.map(|step| {
            (step.name().to_owned(), if is_once(step.name()) { 1 } else { 1 + seed % 2 })
        });
        let marks = self.out().join("marks");
        let mut writer = orders.start();
        let mut stopped = true;
        match stop_at {
            None => {
                // A third dies on the way to an open store, the rest at work: after so many bytes of
                // its log, or so much time, and then a moment more.
                let at_work = self.rng.below(3) > 0;
                let told = if at_work { self.rng.below(600) } else { 0 };
                let log = self.dir.path().join("log");
                let since = Instant::now();
                writer.wait_until(|| {
                    let seen = read_marks(&marks);
                    let has_told = std::fs::metadata(&log).map_or(0, |meta| meta.len()) >= told;
                    let is_late = since.elapsed() > Duration::from_millis(900);
                    seen.step.is_some() && (!at_work || seen.was_ready && has_told || is_late)
                });
                std::thread::sleep(Duration::from_micros(self.rng.below(25_000)));
            }
            Some(_) => {
                let since = Instant::now();
                writer.wait_until(|| {
                    stopped = read_marks(&marks).is_stopped;
                    stopped || since.elapsed() > Duration::from_secs(20)
                });
            }
        }
        writer.kill();
        *self.kills.entry(read_marks(&marks).step).or_default() += 1;
        self.model.take(&self.dir.path().join("log"));
        stopped
    }

    /// A reader sees all that was acknowledged and changes nothing; a writer, if one is to open here
    /// and not in the next child, finds the same.
    fn look(&mut self) {
        let before = listing(&self.root);
        match options(RealDisk::new()).open_read_only(&self.root) {
            // It may show the commit before the last: it cannot make that one durable. So it
            // decides nothing.
            Ok(store) => {
                let undecided = self.model.clone();
                self.compare(&store, "read-only");
                self.model = undecided;
            }
            // Killed before the store was born.
            Err(e) => assert!(
                self.model.acknowledged == 0 && e.kind() == sealstone::ErrorKind::NoStore,
                "{e:?}"
            ),
        }
        assert_eq!(listing(&self.root), before, "G20: a reader changed something");
        if self.rng.below(2) == 0
            || !(self.root.is_file() || self.root.join("manifest.redb").exists())
        {
            return;
        }
        let opening = options(RealDisk::new()).wait_millis(20_000);
        let store = opening.open(&self.root).unwrap_or_else(|e| panic!("reopening: {e:?}"));
        self.compare(&store, "reopened");
        assert!(store.claims(10).unwrap().is_empty(), "G9: a dead process holds a claim");
        if self.rng.below(4) == 0 {
            store.reclaim(Budget::default()).unwrap();
            self.compare(&store, "reclaimed");
            let accounts = store.accounts().unwrap();
            assert!(accounts.are_closed() && accounts.orphan == 0, "P10, G8: {accounts:?}");
            assert!(accounts.on_disk < STORE_BYTES_MAX, "G8: {accounts:?}");
            self.check(&self.root.clone());
        }
        if self.rng.below(2) == 0 {
            store.close().unwrap();
        }
    }

    fn compare(&mut self, store: &Store, what: &str) {
        if let Err(e) = self.model.compare(store) {
            let keep = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap()).keep();
            panic!("{what}: {e}; the store is kept in {}", keep.display());
        }
    }

    fn check(&mut self, root: &Path) {
        let report =
            check(root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(report.is_good(), "{:#?}", report.findings);
        self.checks += 1;
    }
}

/// Does a store in one file keep everything acknowledged when its writer is killed, *Written* too?
/// (G1, P1)
#[test]
fn g1_nothing_acknowledged_in_one_file_is_missing_after_a_kill() {
    let mut bench = Bench::new(Rng(seed("kill loop over one file")));
    bench.root = bench.dir.path().join(ONE_FILE);
    let mut trials = 0;
    // A busy machine is killed before it acknowledged much: it gets more trials, up to a bound.
    while trials < TRIALS_OF_ONE_FILE || bench.model.acknowledged <= 100 {
        bench.trial(None);
        trials += 1;
        assert!(trials < 16 * TRIALS_OF_ONE_FILE, "{} acknowledged", bench.model.acknowledged);
    }
    assert_eq!(std::fs::metadata(&bench.root).unwrap().permissions().mode() & 0o777, 0o600);
    println!("{} acknowledgements in {trials} trials", bench.model.acknowledged);
}

/// Every name with length and time of change.
pub fn listing(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Ok(meta) = std::fs::metadata(root).map(|meta| (meta.len(), meta.modified().unwrap())) {
        found.insert(format!("{meta:?}"));
    }
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                dirs.push(entry.path());
            }
            let (path, len, at) = (entry.path(), meta.len(), meta.modified().unwrap());
            found.insert(format!("{} {len} {at:?}", path.display()));
        }
    }
    found
}

/// Does a store whose writer is killed at any moment keep everything acknowledged, once and in
/// order, for whoever opens it next and for a reader beside it? (G1, G2, G5, G8, G9, G10, P2)
#[test]
fn g1_nothing_acknowledged_is_missing_after_a_kill() {
    let since = Instant::now();
    let mut bench = Bench::new(Rng(seed("kill loop")));
    let mut reads = (0, 0);
    for n in 0..TRIALS / TRIALS_OF_ONE_STORE {
        bench.new_store(n);
        let reader = Orders::new("reader", &bench.root, bench.out(), 0).start();
        for _ in 0..TRIALS_OF_ONE_STORE {
            bench.trial(None);
        }
        std::fs::write(bench.out().join("stop"), b"").unwrap();
        reader.wait();
        let told = std::fs::read_to_string(bench.out().join("reads")).unwrap();
        let (read, away) = told.split_once(' ').unwrap();
        reads.0 += read.parse::<u64>().unwrap();
        reads.1 += away.parse::<u64>().unwrap();
        std::fs::remove_file(bench.out().join("stop")).unwrap();
    }
    let random = bench.kills.clone();
    // Steps that random moments did not meet are met on purpose, in a store with something in it.
    let mut unmet = Vec::new();
    for step in Step::ALL.iter().filter(|step| !random.contains_key(&Some(**step))) {
        if OUT_OF_REACH.iter().any(|protocol| step.name().starts_with(protocol)) {
            continue;
        }
        if step.name().starts_with("birth.") || step.name().starts_with("ballast.") {
            bench.new_store(1000 + *step as u64);
        }
        // Only what was interrupted leaves something to finish, or to sweep; and whoever looks before
        // the next writer opens may have done it.
        let before = match step {
            Step::OpenUnlink => Some(Step::ReclaimUnlink),
            Step::ReclaimSweep => Some(Step::SealSyncDir),
            _ => None,
        };
        let tries = if before.is_some() { 5 } else { 1 };
        let is_met = (0..tries).any(|_| {
            if let Some(before) = before {
                bench.kill_one(Some(before));
            }
            bench.trial(Some(*step))
        });
        if !is_met {
            unmet.push(step.name());
        }
    }
    bench.acknowledged += bench.model.acknowledged;
    println!("{TRIALS} kills at random moments, the rest stopped at a step and killed there:");
    println!("{:<24} {:>7} {:>11}", "step in progress", "random", "on purpose");
    for step in [None].into_iter().chain(Step::ALL.iter().copied().map(Some)) {
        let at_random = random.get(&step).copied().unwrap_or(0);
        let on_purpose = bench.kills.get(&step).copied().unwrap_or(0) - at_random;
        let name = step.map_or("none yet", Step::name);
        println!("{name:<24} {at_random:>7} {on_purpose:>11}");
    }
    println!(
        "{} acknowledgements, {} views of the reader ({} times turned away), {} checks, {:.1} s",
        bench.acknowledged,
        reads.0,
        reads.1,
        bench.checks,
        since.elapsed().as_secs_f64()
    );
    println!("out of reach: {OUT_OF_REACH:?}; not met: {unmet:?}");
    assert!(unmet.is_empty(), "steps that no writer came to: {unmet:?}");
    assert!(bench.acknowledged > 1000 && reads.0 > 1000 && bench.checks > 5);
}
