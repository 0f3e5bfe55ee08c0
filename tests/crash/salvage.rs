//! Images without their manifest.

use sealstone::campaign::{catch, is_caught, salvage_all};
use sealstone::protection::Protection;

/// Does salvage bring back the state of a commit, list what it adds, and say rightly when nothing is
/// missing, wherever a history was cut? Is its new store whole or absent?
#[test]
fn g25_what_salvage_brings_back_is_a_state_that_was() {
    match salvage_all(1, 1, 12) {
        Ok(done) => {
            println!("{done:?}");
            assert!(done.whole > 20 && done.listed > 50, "{done:?}");
        }
        Err((case, finding)) => panic!("{finding}\n  a salvage of {case}"),
    }
}

/// Would anybody notice if one of the protections of snapshots and labels were gone?
#[test]
fn g25_a_missing_protection_of_salvage_is_noticed() {
    for protection in [
        Protection::SnapshotEdges,
        Protection::SnapshotGap,
        Protection::SnapshotChainKept,
        Protection::HeadSyncedAtOpen,
    ] {
        let mutant = catch(protection, 1, 400);
        println!("{} {}", mutant.line(), mutant.case);
        assert!(is_caught(&mutant), "{}", mutant.line());
    }
}
