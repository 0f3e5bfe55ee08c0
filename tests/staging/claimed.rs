//! Claims: is nothing of a stage changed by whoever does not hold what it changes?

use sealstone::engine::Store;
use sealstone::manifest::{
    ClaimKind, GroupRow, HandoffRow, OutputRow, PartRow, ProducerRow, QuarantineRow, Reading,
    ResourceKey, Row, StageRow,
};
use sealstone::staging::{
    GroupId, HandoffId, MergeOptions, Offer, OutputId, OutputReader, QuarantineId, Ready, Stage,
    Target,
};
use sealstone::{Error, ErrorKind, Result};

use crate::support::{NAME, each, key, put};
use crate::words::{Words, convert_well, refusal};

/// An outside system that takes nothing.
struct Full;

impl Target for Full {
    fn name(&self) -> String {
        "full".to_owned()
    }
    fn intent(&self, _: &Offer) -> Result<Vec<u8>> {
        Ok(b"there".to_vec())
    }
    fn put(&self, _: &[u8], _: u32, _: &mut OutputReader) -> Result<()> {
        Err(refusal())
    }
    fn evidence(&self, _: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
    fn remove(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// One of everything.
struct Whole {
    outputs: Vec<OutputId>,
    aside: QuarantineId,
    group: GroupId,
    handoff: HandoffId,
}

fn whole(stage: &Stage) -> Whole {
    for n in 0..3 {
        put(stage, "a", 1, &format!("output {n}"));
        stage.flush(&Ready::All).unwrap();
        convert_well(stage);
    }
    let outputs: Vec<_> = stage.outputs().unwrap().iter().map(|output| output.id).collect();
    stage.hand_off(outputs[2], &Full).unwrap_err();
    let detached = |name: &str| {
        put(stage, name, 1, "words");
        stage.flush(&Ready::All).unwrap();
        let groups = stage.groups().unwrap();
        groups.iter().find(|group| group.key == key(name, 1)).unwrap().id.unwrap()
    };
    let aside = stage.set_aside(detached("b"), "by hand").unwrap()[0].id;
    let group = detached("c");
    put(stage, "d", 1, "open");
    stage.seal().unwrap();
    put(stage, "d", 1, "unsealed");
    stage.barrier().unwrap();
    let handoff = stage.handoffs().unwrap()[0].id;
    Whole { outputs, aside, group, handoff }
}

/// Every row of a stage, in words.
fn rows(store: &Store) -> String {
    fn of<R: Row + std::fmt::Debug>(store: &Store) -> String
    where
        R::Key: std::fmt::Debug,
    {
        format!("{:#?}", store.snapshot().unwrap().list::<R>(.., usize::MAX).unwrap())
    }
    let all = [
        of::<StageRow>(store),
        of::<GroupRow>(store),
        of::<PartRow>(store),
        of::<OutputRow>(store),
        of::<QuarantineRow>(store),
        of::<ProducerRow>(store),
        of::<HandoffRow>(store),
    ];
    all.join("\n")
}

type Call<'c> = (&'c str, Box<dyn Fn() -> Option<Error> + 'c>);

/// While somebody else has the stage, a group, something in quarantine or an output: does each call that would
/// change it fail for that reason, or pass it over, and is each row what it was; and does it go on then?
#[test]
fn stg31_nothing_is_changed_without_its_claim() {
    each(91, |_, _, store, stage| {
        let Whole { outputs, aside, group, handoff } = whole(&stage);
        let before = rows(&store);
        let remove = || store.remove_stage(NAME, "no").err();
        let of_stage = ResourceKey::of_stage(stage.id());
        let of_output = |at: usize| ResourceKey::of_output(stage.id(), outputs[at]);
        let resume = || match stage.resume_handoffs(&Full) {
            Ok(resumed) => resumed.into_iter().find_map(|one| one.result.err()),
            Err(e) => Some(e),
        };
        let plan_passes_over = || {
            assert!(stage.plan(&Default::default()).unwrap().is_empty());
            None
        };
        let merge_passes_over = || {
            let merged = stage.merge(&MergeOptions::default(), &Words::plain()).unwrap();
            assert!(merged.is_empty(), "{merged:?}");
            None
        };
        let calls: Vec<(ResourceKey, ClaimKind, Vec<Call<'_>>)> = vec![
            (
                of_stage,
                ClaimKind::Stage,
                vec![
                    ("flush", Box::new(|| stage.flush(&Ready::All).err())),
                    ("remove", Box::new(remove)),
                ],
            ),
            (
                ResourceKey::of_group(stage.id(), group),
                ClaimKind::Group,
                vec![
                    ("plan", Box::new(plan_passes_over)),
                    ("set aside", Box::new(|| stage.set_aside(group, "no").err())),
                    ("remove", Box::new(remove)),
                ],
            ),
            (
                ResourceKey::of_quarantined(stage.id(), aside),
                ClaimKind::Group,
                vec![
                    ("retry", Box::new(|| stage.retry(aside).err())),
                    ("remove", Box::new(remove)),
                ],
            ),
            (
                of_output(0),
                ClaimKind::Output,
                vec![
                    ("retire", Box::new(|| stage.retire_outputs(&outputs[..1], "no").err())),
                    ("hand off", Box::new(|| stage.hand_off(outputs[0], &Full).err())),
                    ("merge", Box::new(merge_passes_over)),
                    ("remove", Box::new(remove)),
                ],
            ),
            (
                of_output(2),
                ClaimKind::Output,
                vec![
                    ("hand off", Box::new(|| stage.hand_off(outputs[2], &Full).err())),
                    ("resume", Box::new(resume)),
                    ("roll back", Box::new(|| stage.roll_back(handoff, &Full).err())),
                    ("remove", Box::new(remove)),
                ],
            ),
        ];
        for (resource, kind, calls) in calls {
            let held = store.claim(&resource, kind).unwrap();
            for (name, call) in calls {
                if let Some(e) = call() {
                    assert_eq!(e.kind(), ErrorKind::Conflict, "{name} beside {resource}: {e}");
                } else {
                    assert!(["plan", "merge", "resume"].contains(&name), "{name}");
                }
                assert_eq!(rows(&store), before, "{name} beside {resource}");
            }
            drop(held);
        }
        // Free, each of them goes on.
        stage.roll_back(handoff, &Full).unwrap();
        stage.retry(aside).unwrap();
        stage.set_aside(group, "yes").unwrap();
        let merged = stage.merge(&MergeOptions::default(), &Words::plain()).unwrap();
        stage.retire_outputs(&[*merged[0].output.as_ref().unwrap()], "yes").unwrap();
        assert!(!stage.flush(&Ready::All).unwrap().detached.is_empty());
        store.remove_stage(NAME, "yes").unwrap();
    });
}
