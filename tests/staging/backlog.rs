//! One backlog, two processes with four threads each, and one of the two killed again and again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use sealstone::WriteAccess;
use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Store};
use sealstone::manifest::ClaimKind;
use sealstone::staging::{Batch, ConvertOptions, PlanOptions, Produced, Ready, Stage};
use sealstone::vfs::RealDisk;

use crate::child::{Orders, seed};
use crate::lives::ingest::{STAGE, options, tally_outputs, tally_view};
use crate::lives::source::{self, PRODUCERS, Rng, Source};
use crate::rows::RowsAsTheyAre;

/// Groups, at least.
const GROUPS: usize = 2_000;
/// Batches of each producer: two sites, a minute for each two batches, and some to spare, since minutes whose
/// batches all come late have none.
const BATCHES: u64 = GROUPS as u64 + 30;
const THREADS: usize = 4;

fn open(root: &Path) -> Store {
    options(RealDisk::new()).access(WriteAccess::Shared).open_or_create(root).unwrap()
}

/// Stages everything, in two parts of each group, and closes.
fn fill(root: &Path, source: Source) {
    let store = open(root);
    let stage = store.stage_or_create(STAGE, &source::shape()).unwrap();
    for producers in [0..PRODUCERS / 2, PRODUCERS / 2..PRODUCERS] {
        for producer in producers {
            append_all(&stage, source, producer);
        }
        // Sealed, and nothing of it ready.
        stage.flush(&Ready::rule(&|_| false)).unwrap();
    }
    stage.flush(&Ready::All).unwrap();
    let groups = stage.groups().unwrap();
    assert!(groups.len() >= GROUPS, "{} groups", groups.len());
    drop(stage);
    store.close().unwrap();
}

fn append_all(stage: &Stage, source: Source, producer: usize) {
    let name = source::name(producer);
    for sequence in 1..=BATCHES {
        let produced = Produced::new(&name, sequence).at(sequence.to_le_bytes());
        let batch = Batch::opaque(source.batch(producer, sequence), source.rows);
        stage.append(&source.key(producer, sequence), batch, Some(&produced)).unwrap();
    }
    stage.barrier().unwrap();
}

/// A child: plans and converts with its threads until nothing is left, or it is killed.
pub fn convert(root: &Path, seed: u64) {
    let store = open(root);
    let stage = store.stage(STAGE).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let stage = &stage;
            scope.spawn(move || convert_some(stage, Rng(seed ^ thread << 32)));
        }
    });
    drop(stage);
    store.close().unwrap();
}

fn convert_some(stage: &Stage, mut rng: Rng) {
    while !stage.groups().unwrap().is_empty() {
        let most = 1 + rng.below(24) as usize;
        let plan = stage.plan(&PlanOptions { groups_max: most, ..PlanOptions::default() }).unwrap();
        if plan.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        }
        if rng.below(16) == 0 {
            // STG19: dropped, and free for others.
            continue;
        }
        for converted in plan.convert(&RowsAsTheyAre, &ConvertOptions::default()).unwrap() {
            converted.made.unwrap();
        }
    }
}

/// Do eight threads of two processes, one of them killed and started again at random, convert each of
/// 2,000 groups once, so that each part is in one output and each row there once?
#[test]
fn stg4_stg12_two_processes_convert_one_backlog_once() {
    let since = Instant::now();
    let seed = seed("backlog");
    let (dir, mut rng) = (tempfile::tempdir().unwrap(), Rng(seed));
    let source = Source { seed, rows: 3, minute: 2 };
    let root = dir.path().join("run.stone");
    fill(&root, source);
    println!("{} groups after {:.1} s", groups(&root).len(), since.elapsed().as_secs_f64());
    let outs = ["steady", "killed"].map(|name| dir.path().join(name));
    outs.iter().for_each(|out| std::fs::create_dir(out).unwrap());
    let mut steady = Orders::new("converter", &root, &outs[0], rng.next()).start();
    let mut kills = 0;
    loop {
        let mut mortal = Orders::new("converter", &root, &outs[1], rng.next()).start();
        let until = Instant::now() + Duration::from_millis(50 + rng.below(600));
        while Instant::now() < until && !(steady.has_ended() && mortal.has_ended()) {
            std::thread::sleep(Duration::from_millis(2));
        }
        if steady.has_ended() {
            mortal.wait();
            break;
        }
        if !mortal.has_ended() {
            mortal.kill();
            kills += 1;
        }
    }
    let store = open(&root);
    let stage = store.stage(STAGE).unwrap();
    let left = stage.groups().unwrap();
    assert!(left.is_empty(), "groups are left: {left:?}");
    let claims = store.claims(99).unwrap();
    let of_groups: Vec<_> =
        claims.iter().filter(|held| held.row.kind == ClaimKind::Group).collect();
    assert!(of_groups.is_empty(), "claims are left: {of_groups:?}");
    let (mut seen, outputs) = (BTreeSet::new(), stage.outputs().unwrap());
    for output in &outputs {
        assert_eq!(output.groups.len(), 1);
        assert!(seen.insert(output.groups[0]), "a group is in two outputs: {output:?}");
    }
    assert!(seen.len() >= GROUPS);
    tally_outputs(source, &stage).compare(&[BATCHES; PRODUCERS]).unwrap();
    tally_view(source, &stage.view().unwrap()).compare(&[BATCHES; PRODUCERS]).unwrap();
    store.reclaim(Budget::default()).unwrap();
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.orphan == 0, "P10, G8: {accounts:?}");
    drop(stage);
    store.close().unwrap();
    let report = check(&root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(()));
    let report = report.unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
    println!(
        "{} groups in as many outputs, {kills} kills, {:.1} s",
        seen.len(),
        since.elapsed().as_secs_f64()
    );
    assert!(kills > 0);
}

fn groups(root: &Path) -> Vec<sealstone::staging::GroupView> {
    let store = options(RealDisk::new()).open_read_only(root).unwrap();
    store.stage(STAGE).unwrap().groups().unwrap()
}
