//! A rule that no mutant breaks is no rule.

use sealstone::campaign::{catch, is_caught};
use sealstone::protection::Protection;

/// Does the campaign notice when a protection is gone? (All of them: `campaign --mutants`.)
#[test]
fn a_missing_protection_is_noticed() {
    for protection in [
        Protection::PayloadSyncBeforeCommit,
        Protection::CommitBeforeUnlink,
        Protection::OwnerCheck,
        Protection::DedupeInTransaction,
        Protection::RecordGeneration,
        Protection::CopyVerifiedBeforeMove,
        Protection::SyncBeforeTrust,
        Protection::ExpectedCompared,
        Protection::NameNeverAgain,
        Protection::DraftReadBack,
        Protection::HoldWhileCopied,
        Protection::VerifyBeforeSwitch,
        Protection::WrittenByCommit,
    ] {
        let mutant = catch(protection, 1, 1000);
        assert!(is_caught(&mutant), "{}", mutant.line());
    }
}
