//! Mutants: each protection is switched off in turn, and the campaign has to notice.

use super::finding::{Finding, Rule};
use super::history::{History, Limited, pairs, singles};
use super::nested::Depth;
use super::packing::{cut_packing, packings};
use super::play::play;
use super::report::Tally;
use super::salvaged::salvage_without;
use super::slice::{Budget, cut_history};
use super::tamper::tamper_all;
use super::trace::check_trace;
use crate::clock::monotonic_nanos;
use crate::protection::{Protection, switch_off};

/// What became of a mutant.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// What was switched off.
    pub protection: Protection,
    /// What noticed it: the rule, and what was seen.
    pub caught: Option<Finding>,
    /// A line that shows it again under the same switch, where a crash was needed.
    pub case: String,
    /// Images until then.
    pub images: u64,
    /// Seconds until then.
    pub seconds: f64,
}

impl Mutant {
    /// Its line of the table.
    pub fn line(&self) -> String {
        let rule = self.caught.as_ref().map_or("NOT CAUGHT", |finding| finding.rule.name());
        let name = self.protection.name();
        format!("{name:28} | {rule:28} | {:7} | {:6.2}", self.images, self.seconds)
    }
}

/// What needs other tests than a campaign: a copy that is read back before it counts stands against a disk
/// that lies while it is read, and its own suite lies to it; a hostile length, a full disk and a hold have
/// suites of their own; what keeps several owners apart has plays of its own, and what recordings and stages
/// promise has tests of its own.
const ELSEWHERE: &[Protection] = &[
    Protection::StageClaimChecked,
    Protection::StageReleaseInCommit,
    Protection::StageRetireConsumed,
    Protection::StageValidateFirst,
    Protection::StageQuarantineFirst,
    Protection::StageRecordAside,
    Protection::StageProducerClaim,
    Protection::StageClaim,
    Protection::StageAdoption,
    Protection::PackedVerified,
    Protection::StreamClaim,
    Protection::SweepTag,
    Protection::DecodersComplete,
    Protection::CursorCheck,
    Protection::CheckpointOrder,
    Protection::EdgesOfChunks,
    Protection::FollowGeneration,
    Protection::RewindTold,
    Protection::FollowCommitted,
    Protection::FollowAdopted,
    Protection::FollowMoved,
    Protection::RetireEdges,
    Protection::BodyLength,
    Protection::RoomAhead,
    Protection::SalvageHold,
    Protection::RecordingClaim,
    Protection::QueueBudget,
    Protection::DropCounted,
    Protection::GroupAdmission,
    Protection::WriterErrorFirst,
    Protection::DiffCut,
    Protection::GapListed,
    Protection::OpaqueShape,
    Protection::IterationsGrow,
    Protection::ParametersRemoved,
    Protection::DiffBits,
    Protection::JudgedUnderClaim,
    Protection::ObservedOrder,
    Protection::BarrierSealsNothing,
    Protection::StreamsLetGo,
    Protection::EndedGrowsNot,
    Protection::SettingsCompared,
    Protection::StatusInClaim,
    Protection::QuarantineFirst,
    Protection::CheckpointFallBack,
    Protection::HistoryBeforeComplete,
    Protection::DroppedAtCursor,
    Protection::ObservationWhole,
    Protection::EarlierSettled,
    Protection::FlagBeforeLayout,
    Protection::EarlierFrames,
    Protection::LabelReferrers,
    Protection::SealerOrder,
    Protection::AskedOnceOpen,
    Protection::SmallTogether,
    Protection::StageGroupDetached,
    Protection::StageProducerWindow,
    Protection::TakenOnce,
    Protection::ClaimExclusive,
    Protection::ViewOneSnapshot,
    Protection::PinHolds,
    Protection::HandoffPrepared,
    Protection::HandoffEvidence,
    Protection::HandoffSynced,
    Protection::HandoffOwn,
    Protection::HandoffAnew,
    Protection::PublishedKept,
    Protection::SnapshotNamesPin,
    Protection::EvidenceExact,
    Protection::NameHandoffPrepared,
    Protection::RetiringUnfound,
    Protection::RetiringResumed,
    Protection::DedupeVerified,
    Protection::PieceLeases,
    Protection::RecipeWhole,
];

/// Every protection that a crash, a meddler or a play of one owner can show the use of.
pub fn protections_in_use() -> Vec<Protection> {
    Protection::ALL.iter().copied().filter(|one| !ELSEWHERE.contains(one)).collect()
}

const HUNT: Budget =
    Budget { posix: 6, ext4: 1, kill: 2, depth: Depth { one_in: 4, cuts: 4, each: 1, levels: 1 } };

/// Histories that come near many protections, tried before all others.
const FIRST: [&str; 11] = [
    "!N|AWk",
    "|!N",
    "!NNAB|PUV",
    "!NNABOE|FV",
    "!NNACAB|RkA",
    "!NNABO|SYX",
    "!NAB|fA",
    "!N|1AB1",
    "!NNAGAG|WB1",
    "!nnnnnnnn|n",
    "!NNAGBO|m",
];

/// Switches `protection` off on this thread and hunts until a rule breaks, or `images_max` images
/// passed.
pub fn catch(protection: Protection, seed: u64, images_max: u64) -> Mutant {
    let began = monotonic_nanos();
    let off = switch_off(protection);
    let mut tally = Tally::up_to(images_max);
    let found = match protection {
        Protection::UnpackedSynced => hunt_packings(seed, &mut tally),
        _ => hunt(protection, seed, &mut tally),
    };
    let (caught, case) = match found {
        Some((finding, case)) => (Some(finding), case),
        None => (None, String::new()),
    };
    drop(off);
    let seconds = (monotonic_nanos() - began) as f64 / 1e9;
    Mutant { protection, caught, case, images: tally.images, seconds }
}

fn hunt_packings(seed: u64, tally: &mut Tally) -> Option<(Finding, String)> {
    packings(seed).iter().find_map(|history| {
        let finding = cut_packing(history, HUNT, tally).err()?;
        Some((finding, format!("moving the store of {history}")))
    })
}

fn hunt(protection: Protection, seed: u64, tally: &mut Tally) -> Option<(Finding, String)> {
    if let Some((case, finding)) = salvage_without(protection, seed) {
        return Some((finding, format!("salvage of {case}")));
    }
    if let Err(finding) = tamper_all(seed) {
        return Some((finding, "a scenario".to_owned()));
    }
    let mut first: Vec<History> =
        FIRST.iter().filter_map(|ops| History::tiny(seed, ops).ok()).collect();
    let in_one_file = first.get(2).cloned();
    let written = History::tiny(seed, "!NB|AWk").ok();
    let in_file = |history| History { limited: Limited::File, ..history };
    first.extend(in_one_file.into_iter().chain(written).map(in_file));
    // Plays cost next to nothing, crashes come after.
    for history in &first {
        if let Some(finding) = whole_trace(history) {
            return Some((finding, format!("trace of {history}")));
        }
    }
    for history in first.into_iter().chain(singles(seed)).chain(pairs(seed, 1)) {
        if let Err((case, finding)) = cut_history(&play(&history), HUNT, tally) {
            return Some((finding, case.to_string()));
        }
        if tally.is_full() {
            return None;
        }
    }
    None
}

/// The rules of the trace, over a history from its first event.
pub fn whole_trace(history: &History) -> Option<Finding> {
    let mut cut = history.prefix.clone();
    cut.extend(&history.cut);
    let run = play(&History { prefix: Vec::new(), cut, ..history.clone() });
    run.findings.first().cloned().or_else(|| check_trace(&run.log))
}

/// G4: equal seeds and equal calls give equal runs; what differs, if they do not.
pub fn same_again(history: &History) -> Option<Finding> {
    let (one, other) = (play(history).log, play(history).log);
    (one.trace_hash() != other.trace_hash()).then(|| {
        let pairs = one.events().iter().zip(other.events());
        let at = pairs.take_while(|(one, other)| one == other).count();
        Finding::new(Rule::Replay, format!("{history} differs from event {}", one.describe(at)))
    })
}

/// Whether a rule noticed anything at all: a mutant that only makes a play fail is caught as well.
pub fn is_caught(mutant: &Mutant) -> bool {
    mutant.caught.as_ref().is_some_and(|finding| Rule::ALL.contains(&finding.rule))
}
