//! One layout made into the other, cut everywhere.

use sealstone::campaign::{Budget, Depth, Finding, History, Tally, cut_packing};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::Step;

const LOOK: Budget =
    Budget { posix: 2, ext4: 1, kill: 1, depth: Depth { one_in: 6, cuts: 2, each: 1, levels: 1 } };

fn cut(limits: &str, ops: &str, images: u64) -> Result<Tally, Finding> {
    let history: History = format!("5:{limits}:{ops}|").parse().unwrap();
    let mut tally = Tally::up_to(images);
    cut_packing(&history, LOOK, &mut tally).map(|()| tally)
}

fn every_step(tally: &Tally, steps: &[Step]) {
    assert!(tally.nested > 0);
    for step in steps {
        assert!(tally.steps.contains_key(step), "{} was not cut", step.name());
    }
}

/// Is a store that is packed whole in one file or not there at all, and its source as it was, also
/// when the second call is cut?
#[test]
fn p3_g6_g10_a_packed_store_is_whole_or_not_there() {
    let tally = cut("tiny", "!NNAGBLPCOEnHAGBk", u64::MAX).unwrap_or_else(|e| panic!("{e}"));
    every_step(&tally, &[Step::PackCopy, Step::PackVerify, Step::PackLink, Step::PackSyncDir]);
}

/// The same the other way, where the target is many files.
#[test]
fn p3_g6_g10_an_unpacked_store_is_whole_or_not_there() {
    let tally = cut("file", "!NNAGBLPCOEnHAGBk", u64::MAX).unwrap_or_else(|e| panic!("{e}"));
    every_step(
        &tally,
        &[
            Step::UnpackFolders,
            Step::UnpackCopy,
            Step::UnpackManifest,
            Step::UnpackVerify,
            Step::UnpackRename,
            Step::UnpackSyncDir,
        ],
    );
}

/// Is it noticed when files are not durable before the directory has its name?
#[test]
fn mutant_unpacked_synced_is_caught() {
    let _off = switch_off(Protection::UnpackedSynced);
    assert!(cut("file", "!NNAGBPOA", 2_000).is_err());
}
