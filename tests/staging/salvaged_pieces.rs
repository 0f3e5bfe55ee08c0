//! Salvaging a stage whose outputs are newer than the last snapshot: is each row there, once?

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use sealstone::check::{CheckOptions, SalvageOptions, Salvaged, Unconfirmed, check, salvage};
use sealstone::engine::{Budget, Layout, Store};
use sealstone::manifest::{ClaimKind, ResourceKey};
use sealstone::staging::{
    ConvertOptions, MergeOptions, PlanOptions, Produced, Progress, Ready, Stage,
};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;

use crate::set_aside::ONCE;
use crate::support::{NAME, batch, key, on, put, root, shape, sim};
use crate::words::{At, Do, Words, all, convert, convert_well, long, words};

/// What a stage holds and how far its producers got.
type Held = (Vec<String>, Vec<Progress>);

/// What `act` made of a new stage, after the process was killed and the manifest lost: what was there
/// before, what is there, and what salvage told.
fn after(seed: u64, act: impl Fn(&Store, &Stage)) -> (Vec<String>, Vec<String>, Salvaged) {
    let (before, after, salvaged) = producing(seed, act);
    assert_eq!(after.1, before.1, "producers");
    (before.0, after.0, salvaged)
}

fn producing(seed: u64, act: impl Fn(&Store, &Stage)) -> (Held, Held, Salvaged) {
    let world = sim(seed);
    on(&world, Layout::Directory).create(root()).unwrap().close().unwrap();
    let mine = world.process(1);
    let store = on(&mine, Layout::Directory).open(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    act(&store, &stage);
    store.reclaim(Budget::default()).unwrap();
    let before = (all(&stage), stage.producers().unwrap());
    mine.kill();
    drop((stage, store));
    let other: SimDisk = world.process(2);
    other.unlink(&root().join("manifest.redb")).unwrap();
    let to = PathBuf::from("/data/new.stone");
    let options = SalvageOptions { disk: Some(Arc::new(other.clone())) };
    let salvaged = salvage(root(), to.clone(), &options).unwrap();
    let store = on(&other, Layout::Directory).open(to).unwrap();
    let stage = store.stage(NAME).unwrap();
    let after = (all(&stage), stage.producers().unwrap());
    // It goes on as any other, and everything of it is sound.
    put(&stage, "z", 1, "behind");
    stage.flush(&Ready::All).unwrap();
    convert_well(&stage);
    assert_eq!(all(&stage).len(), after.0.len() + 1);
    drop(stage);
    store.close().unwrap();
    let look = CheckOptions { disk: Some(Arc::new(other)), ..CheckOptions::default() };
    let to = PathBuf::from("/data/new.stone");
    let report = check(&to, &look, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
    (before, after, salvaged)
}

fn send(stage: &Stage, producer: &str, sequence: u64) {
    let produced = Produced::new(producer, sequence).at(sequence.to_le_bytes());
    let text = format!("{producer} {sequence} {}", long("word", 40));
    stage.append(&key("a", 1), batch(&text), Some(&produced)).unwrap();
}

/// Rows of outputs that salvage tells of.
fn told_rows(salvaged: &Salvaged) -> Vec<u64> {
    let rows = |told: &Unconfirmed| match told {
        Unconfirmed::Output { rows, .. } => Some(*rows),
        _ => None,
    };
    salvaged.unconfirmed.iter().filter_map(rows).collect()
}

fn halfway(stage: &Stage) {
    let stop = words(|at| Ok(if at == At::Batch(2) { Do::Stop } else { Do::GoOn }));
    convert(stage, &stop).into_iter().for_each(|done| drop(done.made.unwrap()));
}

/// Of a part that two conversions used, are both outputs there; and of one that only the first used, is
/// the output there or the part, and the rest of it?
#[test]
fn g25_a_part_that_was_used_in_two_steps_comes_back_whole() {
    for is_whole in [true, false] {
        let (before, after, salvaged) = after(101, |_, stage| {
            for batch in 0..5 {
                put(stage, "a", 1, &format!("{batch} {}", long("word", 40)));
            }
            stage.flush(&Ready::All).unwrap();
            halfway(stage);
            if is_whole {
                convert_well(stage);
                assert_eq!(stage.outputs().unwrap().len(), 2);
            }
        });
        assert_eq!(after, before, "{salvaged:#?}");
        assert!(before.len() == 5 && salvaged.lost.is_empty(), "{salvaged:#?}");
        // A label says the rows that its output holds, and not those of its parts.
        let rows = told_rows(&salvaged);
        let most = if is_whole { vec![2 * 41, 3 * 41] } else { vec![2 * 41] };
        let mut told = rows.clone();
        told.sort_unstable();
        assert!(told == most || (!is_whole && told.is_empty()), "{rows:?}");
    }
}

/// Is an output there of whose group another one was merged?
#[test]
fn g25_an_output_that_was_not_merged_comes_back() {
    let (before, after, salvaged) = after(102, |store, stage| {
        for batch in 0..2 {
            put(stage, "a", 1, &format!("{batch} {}", long("word", 40)));
            stage.seal().unwrap();
        }
        stage.flush(&Ready::All).unwrap();
        let options = ConvertOptions { parts_per_output_max: 1, ..ConvertOptions::default() };
        let plan = stage.plan(&PlanOptions::default()).unwrap();
        plan.convert(&Words::plain(), &options).unwrap();
        put(stage, "a", 1, &format!("later {}", long("word", 40)));
        stage.flush(&Ready::All).unwrap();
        convert_well(stage);
        let ids: Vec<_> = stage.outputs().unwrap().iter().map(|view| view.id).collect();
        assert_eq!(ids.len(), 3);
        let resource = ResourceKey::of_output(stage.id(), ids[1]);
        let _held = store.claim(&resource, ClaimKind::Output).unwrap();
        let merged = stage.merge(&MergeOptions::default(), &Words::plain()).unwrap();
        assert_eq!(merged[0].inputs, [ids[0], ids[2]]);
    });
    assert_eq!(after, before, "{salvaged:#?}");
    assert!(before.len() == 3 && salvaged.lost.is_empty(), "{salvaged:#?}");
}

/// Are batches that a converter refused in quarantine again, with the reason, whether or not others of their part
/// are in an output; and once they were given back and converted, in that output alone?
#[test]
fn g25_what_a_converter_refused_comes_back_once() {
    for (has_others, is_again) in [(true, false), (false, false), (true, true), (false, true)] {
        let (before, after, salvaged) = after(103, |_, stage| {
            for n in 0..2 {
                put(stage, "a", 1, &format!("bad {n} {}", long("word", 40)));
                if has_others {
                    put(stage, "a", 1, &format!("good {n} {}", long("word", 40)));
                }
            }
            stage.flush(&Ready::All).unwrap();
            convert(stage, &ONCE).remove(0).made.unwrap();
            assert_eq!(stage.quarantine().unwrap().len(), 1);
            if is_again {
                stage.retry(stage.quarantine().unwrap()[0].id).unwrap();
                convert_well(stage);
            }
        });
        assert_eq!(after, before, "{has_others} {is_again} {salvaged:#?}");
        assert!(salvaged.lost.is_empty(), "{salvaged:#?}");
    }
}

/// Does a producer stand where its rows do that came back: in parts, in outputs alone, in a merged one, and
/// unsealed beside them?
#[test]
fn g25_producers_stand_where_their_rows_do() {
    for step in 1..5 {
        let ((rows, before), (again, after), salvaged) = producing(104, |_, stage| {
            for sequence in 1..4 {
                send(stage, "p", sequence);
            }
            send(stage, "q", 7);
            stage.flush(&Ready::All).unwrap();
            if step > 1 {
                convert_well(stage);
            }
            if step > 2 {
                send(stage, "p", 4);
                stage.flush(&Ready::All).unwrap();
                convert_well(stage);
            }
            if step > 3 {
                let merged = stage.merge(&MergeOptions::default(), &Words::plain()).unwrap();
                assert_eq!(merged.len(), 1);
            }
            send(stage, "p", 5);
            stage.barrier().unwrap();
        });
        assert_eq!(again, rows, "{step}: {salvaged:#?}");
        assert_eq!(after, before, "{step}: {salvaged:#?}");
        assert!(before.len() == 2 && salvaged.lost.is_empty());
    }
}
