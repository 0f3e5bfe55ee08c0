//! Crash images: every event, every rule.

use sealstone::campaign::{Budget, Depth, History, Tally, cut_history, play, whole_trace};

/// A smaller look than CI takes.
const LOOK: Budget =
    Budget { posix: 3, ext4: 1, kill: 1, depth: Depth { one_in: 5, cuts: 3, each: 1, levels: 2 } };

fn cut(ops: &str) -> Tally {
    let history = History::tiny(11, ops).unwrap();
    if let Some(finding) = whole_trace(&history) {
        panic!("{finding}\n  trace of {history}");
    }
    let mut tally = Tally::up_to(250);
    if let Err((case, finding)) = cut_history(&play(&history), LOOK, &mut tally) {
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
