//! What no crash image shows: tampering, a drive that gives up, the space that crash loops take.

use sealstone::campaign::{
    Faults, History, Limited, crash_loops, crash_loops_in, fault_sweep, random, same_again,
    tamper_all,
};

/// Is an older manifest refused, a flipped frame told, a stale one left alone, a bad copy noticed,
/// and does a failed sync or write lose nothing that was acknowledged?
#[test]
fn p5_p7_p8_g12_g13_g14_what_was_tampered_with_is_told() {
    for seed in [1, 2] {
        if let Err(finding) = tamper_all(seed) {
            panic!("seed {seed}: {finding}");
        }
    }
}

/// Does the disk stay as full as it was, however often the process dies?
#[test]
fn g8_crash_loops_do_not_grow_the_disk() {
    if let Err(finding) = crash_loops(5, 30) {
        panic!("{finding}");
    }
}

/// And the one file: does it stay as long as it was?
#[test]
fn g8_crash_loops_do_not_grow_the_one_file() {
    if let Err(finding) = crash_loops_in(Limited::File, 5, 30) {
        panic!("{finding}");
    }
}

/// The same promise as below, where every failed call is one of the one file.
#[test]
fn p8_g14_g16_g19_a_failed_call_loses_nothing_in_one_file() {
    let mut faults = Faults::default();
    let history: History = "1:file:!NAB|ABP".parse().unwrap();
    if let Err(finding) = fault_sweep(&history, 2, &mut faults) {
        panic!("{finding}");
    }
    assert!(faults.struck > 10 && faults.halted > 0 && faults.told > 0, "{}", faults.table());
}

/// After any failed call: an error or success, a halt that is told, nothing acknowledged lost,
/// handles and locks back where they were?
#[test]
fn p8_g14_g16_g19_a_failed_call_loses_nothing() {
    let mut faults = Faults::default();
    let history = History::tiny(1, "!NAB|AB").unwrap();
    if let Err(finding) = fault_sweep(&history, 2, &mut faults) {
        panic!("{finding}");
    }
    assert!(faults.struck > 10 && faults.halted > 0 && faults.told > 0, "{}", faults.table());
}

/// Do equal seeds give equal runs? (A failure that does not come again cannot be mended.)
#[test]
fn equal_seeds_give_equal_runs() {
    for seed in [1, 2, 3] {
        if let Some(finding) = same_again(&random(seed)) {
            panic!("{finding}");
        }
    }
}
