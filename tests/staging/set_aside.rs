//! What cannot be converted: does it go to quarantine with its bytes and the reason, is the rest converted, and
//! does nothing of it stand in the way for ever?

use sealstone::manifest::{QuarantineRow, Reading, Write};
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{
    Converter, GroupId, GroupView, Input, OutputReader, OutputWriter, QuarantineId, Ready, Stage,
};
use sealstone::vfs::Step;
use sealstone::{ErrorKind, Result};

use crate::support::{each, findings, key, put, reopen};
use crate::words::{
    Words, all, claims, convert, convert_well, is_tidy, long, published, refusal, words,
};

/// Refuses batches that begin with a word; reads everything twice where it is told to.
pub struct Refusing {
    word: &'static str,
    is_twice: bool,
}

pub const ONCE: Refusing = Refusing { word: "bad", is_twice: false };

impl Converter for Refusing {
    fn form(&self) -> &str {
        "words"
    }
    fn convert(
        &self,
        _: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        assert_eq!(input.refuse("nothing was given").unwrap_err().kind(), ErrorKind::Invalid);
        for round in 0..=usize::from(self.is_twice) {
            while let Some(batch) = input.next() {
                let batch = batch?;
                if batch.bytes().starts_with(self.word.as_bytes()) {
                    assert!(round == 0, "what was refused is not given again");
                    input.refuse(format!("it begins with {}", self.word))?;
                    let again = input.refuse("again").unwrap_err();
                    assert_eq!(again.kind(), ErrorKind::Invalid);
                    continue;
                }
                if round == usize::from(self.is_twice) {
                    out.put(batch.bytes())?;
                    out.put(b"\n")?;
                }
            }
            if round < usize::from(self.is_twice) {
                input.start_over();
            }
        }
        Ok(input.rows())
    }
    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        Converter::count_rows(&Words::plain(), output)
    }
}

fn exported(stage: &Stage, id: QuarantineId) -> Vec<u8> {
    let pieces = stage.export_quarantined(id).unwrap();
    pieces.into_iter().flat_map(|(_, bytes)| bytes).collect()
}

/// Three parts of one key with good and bad batches in between, small ones and one in an object of its own.
fn mixed(stage: &Stage) -> Vec<String> {
    for part in [["good 1", "bad 2", "good 3"], ["bad 4", "bad 5", "good 6"]] {
        part.iter().for_each(|text| put(stage, "a", 1, &format!("{text} {}", long("word", 9))));
        stage.seal().unwrap();
    }
    for text in ["good 7", "bad 8"] {
        put(stage, "a", 1, &format!("{text} {}", long("large", 900)));
    }
    stage.flush(&Ready::All).unwrap();
    all(stage)
}

/// Is the rest of a group converted, once, when its converter refuses some of its batches; and are those in
/// quarantine with their bytes and the reason, seen by views, and the same when they are given back?
#[test]
fn stg15_what_a_converter_refuses_is_put_aside_and_the_rest_converted() {
    for is_twice in [false, true] {
        each(71, |disk, layout, store, stage| {
            let texts = mixed(&stage);
            let made = convert(&stage, &Refusing { is_twice, ..ONCE }).remove(0).made.unwrap();
            let good: Vec<_> = texts.iter().filter(|text| text.starts_with("good")).collect();
            assert_eq!(published(&stage).iter().collect::<Vec<_>>(), good);
            assert_eq!((made.outputs.len(), made.rows_left), (1, 0));
            assert_eq!(all(&stage), texts, "each row is there once");
            let aside = stage.quarantine().unwrap();
            assert_eq!(made.quarantined, aside);
            assert_eq!(aside.iter().map(|one| one.batches).collect::<Vec<_>>(), [1, 2, 1]);
            assert!(aside.iter().all(|one| one.reason.contains("it begins with bad")));
            assert!(aside[1].reason.contains("1 batches more"), "{}", aside[1].reason);
            let bytes = exported(&stage, aside[1].id);
            let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(has("bad 4 word") && has("bad 5 word") && !has("good"));
            assert!(exported(&stage, aside[2].id).ends_with(long("large", 900).as_bytes()));
            assert!(stage.groups().unwrap().is_empty() && claims(&store).is_empty());
            is_tidy(&store, &stage);
            // Given back they are refused again, and taken by another converter.
            drop((store, stage));
            let (store, stage) = reopen(disk, layout);
            stage.retry(aside[0].id).unwrap();
            convert(&stage, &ONCE).remove(0).made.unwrap();
            assert_eq!(all(&stage), texts);
            assert_eq!(stage.quarantine().unwrap().len(), 3);
            for one in stage.quarantine().unwrap() {
                stage.retry(one.id).unwrap();
            }
            convert_well(&stage);
            assert_eq!(published(&stage), texts);
            assert!(stage.quarantine().unwrap().is_empty());
            is_tidy(&store, &stage);
            drop(stage);
            store.close().unwrap();
            assert_eq!(findings(disk), Vec::<String>::new());
        });
    }
}

/// Does a group of which everything is refused end, as a failed conversion does not; and does a converter that
/// took something, but wrote no rows, leave all as it was?
#[test]
fn stg23_a_group_of_which_all_is_refused_ends() {
    each(72, |_, _, store, stage| {
        put(&stage, "a", 1, "bad one");
        put(&stage, "a", 1, "bad two");
        stage.flush(&Ready::All).unwrap();
        let made = convert(&stage, &ONCE).remove(0).made.unwrap();
        assert_eq!((made.outputs.len(), made.quarantined.len(), made.rows_left), (0, 1, 0));
        assert!(stage.groups().unwrap().is_empty());
        assert_eq!(all(&stage), ["bad one", "bad two"]);
        is_tidy(&store, &stage);
        struct Nothing;
        impl Converter for Nothing {
            fn form(&self) -> &str {
                "words"
            }
            fn convert(
                &self,
                group: &GroupView,
                input: &mut Input<'_>,
                out: &mut OutputWriter<'_>,
            ) -> Result<u64> {
                ONCE.convert(group, input, out).map(|_| 0)
            }
            fn count_rows(&self, _: &mut OutputReader) -> Result<u64> {
                Ok(0)
            }
        }
        put(&stage, "b", 1, "bad three");
        put(&stage, "b", 1, "good four");
        stage.flush(&Ready::All).unwrap();
        let made = convert(&stage, &Nothing).remove(0).made.unwrap();
        assert_eq!((made.quarantined.len(), made.rows_left), (0, 4));
        assert_eq!(all(&stage), ["bad one", "bad three", "bad two", "good four"]);
    });
}

/// STG29: does a refusal change nothing when another output of its group fails?
#[test]
fn stg20_what_was_refused_stays_when_its_group_fails() {
    each(73, |_, _, store, stage| {
        let texts = mixed(&stage);
        struct Failing;
        impl Converter for Failing {
            fn form(&self) -> &str {
                "words"
            }
            fn convert(
                &self,
                group: &GroupView,
                input: &mut Input<'_>,
                out: &mut OutputWriter<'_>,
            ) -> Result<u64> {
                ONCE.convert(group, input, out)?;
                Err(refusal())
            }
            fn count_rows(&self, _: &mut OutputReader) -> Result<u64> {
                Ok(0)
            }
        }
        convert(&stage, &Failing).remove(0).made.unwrap_err();
        assert!(stage.quarantine().unwrap().is_empty());
        assert_eq!(all(&stage), texts);
        is_tidy(&store, &stage);
    });
}

/// Can a group be taken out of the way by hand, with the reason, and given back part by part; and is only a
/// detached one taken, that nobody converts?
#[test]
fn stg15_a_group_is_set_aside_by_hand() {
    each(74, |_, _, store, stage| {
        let texts = mixed(&stage);
        put(&stage, "b", 1, "open");
        stage.seal().unwrap();
        let group = |name: &str| {
            let groups = stage.groups().unwrap();
            groups.iter().find(|group| group.key == key(name, 1)).unwrap().id.unwrap()
        };
        let (a, b) = (group("a"), group("b"));
        convert(&stage, &words(|_| Err(refusal()))).remove(0).made.unwrap_err();
        let refused = |id: GroupId, why: &str| stage.set_aside(id, why).unwrap_err().kind();
        assert_eq!(refused(b, "it is open"), ErrorKind::Invalid);
        assert_eq!(refused(a, " "), ErrorKind::Invalid);
        assert_eq!(refused(GroupId(999), "none"), ErrorKind::NotFound);
        let plan = stage.plan(&Default::default()).unwrap();
        assert_eq!(refused(a, "it is planned"), ErrorKind::Conflict);
        drop(plan);
        let aside = stage.set_aside(a, &"ü".repeat(600)).unwrap();
        assert_eq!(aside, stage.quarantine().unwrap());
        assert!(aside.len() == 3 && aside.iter().all(|one| one.group == a));
        assert_eq!(aside[0].reason, "ü".repeat(512));
        assert!(stage.plan(&Default::default()).unwrap().is_empty());
        assert_eq!(refused(a, "again"), ErrorKind::NotFound);
        let mut with_open = texts.clone();
        with_open.push("open".to_owned());
        with_open.sort();
        assert_eq!(all(&stage), with_open);
        is_tidy(&store, &stage);
        let bytes = exported(&stage, aside[0].id);
        assert!(bytes.windows(6).any(|part| part == b"good 1"));
        for one in &aside {
            stage.retry(one.id).unwrap();
        }
        convert_well(&stage);
        assert_eq!(published(&stage), texts);
        is_tidy(&store, &stage);
    });
}

/// Mutant: what leaves its group goes nowhere. Rows must be missed.
#[test]
fn stg14_mutant_stage_quarantine_first_is_caught() {
    let are_there = || {
        let mut are_there = true;
        each(75, |_, _, _, stage| {
            let texts = mixed(&stage);
            let group = stage.groups().unwrap()[0].id.unwrap();
            stage.set_aside(group, "by hand").unwrap();
            are_there &= all(&stage) == texts;
        });
        are_there
    };
    assert!(are_there());
    let _off = switch_off(Protection::StageQuarantineFirst);
    assert!(!are_there());
}

/// A part of which every batch is in an output, in quarantine because its end was torn: given back once it is
/// whole, does its group end though it has no row, and does it come back while it is not?
#[test]
fn stg14_what_has_no_row_left_ends_when_it_is_given_back() {
    each(76, |_, _, store, stage| {
        let texts = mixed(&stage);
        let group = stage.groups().unwrap()[0].id.unwrap();
        let aside = stage.set_aside(group, "by hand").unwrap();
        // As if all of its batches were in an output.
        let empty = |w: &mut Write<'_>| {
            let key = (stage.id(), aside[0].id);
            let mut row = w.require::<QuarantineRow>(&key)?;
            row.part.skip += row.part.batches;
            (row.part.rows, row.part.batches, row.part.len) = (0, 0, 0);
            w.put(&key, &row)
        };
        store.transact(Step::QuarantineCommit, empty).unwrap();
        stage.retry(aside[0].id).unwrap();
        assert_eq!(stage.groups().unwrap().len(), 1);
        // No converter is asked: there is nothing to convert.
        let made = convert(&stage, &words(|_| Err(refusal()))).remove(0).made.unwrap();
        assert_eq!((made.outputs.len(), made.quarantined.len(), made.rows_left), (0, 0, 0));
        assert!(stage.groups().unwrap().is_empty() && stage.quarantine().unwrap().len() == 2);
        assert_eq!(all(&stage).len(), texts.len() - 3);
        is_tidy(&store, &stage);
    });
}
