//! Crash images: every event, every rule.

use sealstone::campaign::{Budget, Depth, History, Tally, cut_history, play, whole_trace};
use sealstone::vfs::Step;

/// A smaller look than CI takes.
const LOOK: Budget =
    Budget { posix: 3, ext4: 1, kill: 1, depth: Depth { one_in: 5, cuts: 3, each: 1, levels: 2 } };

/// For what has many events: few crashes at each.
const THIN: Budget =
    Budget { posix: 2, ext4: 1, kill: 0, depth: Depth { one_in: 6, cuts: 2, each: 1, levels: 2 } };

fn cut(ops: &str) -> Tally {
    cut_with(ops, 250, LOOK)
}

fn cut_with(ops: &str, images: u64, budget: Budget) -> Tally {
    let history = History::tiny(11, ops).unwrap();
    if let Some(finding) = whole_trace(&history) {
        panic!("{finding}\n  trace of {history}");
    }
    let mut tally = Tally::up_to(images);
    if let Err((case, finding)) = cut_history(&play(&history), budget, &mut tally) {
        panic!("{finding}\n  campaign --replay \"{case}\"");
    }
    assert!(tally.images > 50, "{} images of {history}", tally.images);
    tally
}

/// Does a store whose creation was cut off come to life again, or was it never there?
#[test]
fn p2_g1_g3_a_birth_cut_anywhere_is_whole_or_nothing() {
    cut("|!N");
}

/// Is what was acknowledged there, once and in order, whatever a crash took of the rest?
#[test]
fn p1_g1_g2_g5_records_survive_as_a_prefix() {
    let tally = cut("!NNAB|GWAB");
    assert!(tally.nested > 0);
}

/// Is a publication all or nothing, and does every digest verify?
#[test]
fn p3_p4_g3_g6_a_publication_is_all_or_nothing() {
    cut("!NNAGB|PX");
}

/// Does only that go which no row names, and only after the commit that says so?
#[test]
fn p3_p10_g8_reclaim_takes_what_no_row_names() {
    cut("!NNABOE|FV");
}

/// Is a batch of values all or nothing, whatever it replaces and shares, and does nothing of it leak?
#[test]
fn p4_p10_g3_g8_names_change_together() {
    cut("!nnn|nVn");
}

/// Do checkpoint and rewind leave one of their two states, and no record of the other?
#[test]
fn g3_g5_a_rewind_is_one_step() {
    cut("!NNACAB|RA");
}

/// Are claims of the dead free, and do epochs and counters only grow, from process to process?
#[test]
fn g9_g10_processes_that_die_leave_nothing_behind() {
    cut("!NAH|kA");
}

/// Is a manifest that is being compacted the old one or the new one, with the same rows, also when
/// what recovers it is cut again?
#[test]
fn g3_g10_a_manifest_is_compacted_or_it_is_not() {
    let tally = cut_with("!NNAGBPOF|M", 400, THIN);
    assert!(tally.nested > 0);
    for step in [Step::ManifestCopy, Step::ManifestSwitch, Step::ManifestSyncDir] {
        assert!(tally.steps.contains_key(&step), "{} was not cut", step.name());
    }
}

/// The same rules, where everything is in one file: records, publications, names and space.
#[test]
fn p2_p3_g1_g3_g6_one_file_obeys_the_same_rules() {
    for ops in ["|!N", "!NNAB|GWABP", "!NNABOE|FV", "!NNACAB|RkA", "!NNAGBPOF|M"] {
        let history: History = format!("11:file:{ops}").parse().unwrap();
        let mut tally = Tally::up_to(120);
        if let Err((case, finding)) = cut_history(&play(&history), LOOK, &mut tally) {
            panic!("{finding}\n  campaign --replay \"{case}\"");
        }
        assert!(tally.images > 50, "{} images of {history}", tally.images);
    }
}

/// Is a backup that is cut anywhere the earlier one, or none, or the new one, whole; and does the
/// next call finish it, cut again or not?
#[test]
fn p1_p3_g10_a_backup_is_the_earlier_one_or_the_new_one() {
    let mut steps = cut_with("!NNAGBPO|b", 300, THIN).steps;
    steps.extend(cut_with("!NNAGBPOAb|Pb", 400, THIN).steps);
    for step in Step::ALL.iter().filter(|step| step.name().starts_with("backup.")) {
        assert!(steps.contains_key(step), "{} was not cut", step.name());
    }
}

/// Does a backup hold what it copies while that is retired and reclaimed, wherever it is cut?
#[test]
fn g8_a_backup_holds_what_it_copies() {
    cut_with("!NNAGBO|m", 300, THIN);
}
