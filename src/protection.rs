//! Switches that turn one protection off, so that a test can show that it would be missed. They
//! exist with feature `sim` only; without it every protection is on and costs nothing.

macro_rules! protections {
    ($($variant:ident = $name:literal,)*) => {
        /// A protection that a mutant switches off.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Protection {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Protection {
            /// Every protection that has a switch.
            pub const ALL: &'static [Protection] = &[$(Protection::$variant,)*];

            /// Its name in tables and on command lines.
            pub fn name(self) -> &'static str {
                match self {
                    $(Protection::$variant => $name,)*
                }
            }
        }
    };
}

protections! {
    PayloadSyncBeforeCommit = "payload_sync_before_commit",
    SealedDirectorySync = "sealed_directory_sync",
    JournalDirectorySync = "journal_directory_sync",
    JournalSyncBeforeAck = "journal_sync_before_ack",
    CommitBeforeUnlink = "commit_before_unlink",
    OwnerCheck = "owner_check",
    FrameChecksum = "frame_checksum",
    FrameSalt = "frame_salt",
    RecordGeneration = "record_generation",
    SyncedUpTo = "synced_up_to",
    NewFileBehindTear = "new_file_behind_tear",
    DedupeInTransaction = "dedupe_in_transaction",
    RefuseRolledBack = "refuse_rolled_back",
    CopyVerifiedBeforeMove = "copy_verified_before_move",
    SyncBeforeTrust = "sync_before_trust",
    HaltAfterFailedSync = "halt_after_failed_sync",
    BirthByLink = "birth_by_link",
    StreamClaim = "stream_claim",
    SweepTag = "sweep_tag",
    DraftReadBack = "draft_read_back",
    BytesWithTheirRows = "bytes_with_their_rows",
    ExpectedCompared = "expected_compared",
    NameNeverAgain = "name_never_again",
    PackedVerified = "packed_verified",
    UnpackedSynced = "unpacked_synced",
    HoldWhileCopied = "hold_while_copied",
    VerifyBeforeSwitch = "verify_before_switch",
    SnapshotEdges = "snapshot_edges",
    SnapshotGap = "snapshot_gap",
    SnapshotChainKept = "snapshot_chain_kept",
    HeadSyncedAtOpen = "head_synced_at_open",
    DecodersComplete = "decoders_complete",
    CursorCheck = "cursor_check",
    CheckpointOrder = "checkpoint_order",
    EdgesOfChunks = "edges_of_chunks",
    RecordingClaim = "recording_claim",
    FollowGeneration = "follow_generation",
    RewindTold = "rewind_told",
    FollowCommitted = "follow_committed",
    FollowAdopted = "follow_adopted",
    FollowMoved = "follow_moved",
    RetireEdges = "retire_edges",
    ObservationWhole = "observation_whole",
    EarlierSettled = "earlier_settled",
    FlagBeforeLayout = "flag_before_layout",
    WrittenByCommit = "written_by_commit",
    BodyLength = "body_length",
    RoomAhead = "room_ahead",
    SalvageHold = "salvage_hold",
    QueueBudget = "queue_budget",
    DropCounted = "drop_counted",
    GroupAdmission = "group_admission",
    WriterErrorFirst = "writer_error_first",
    DiffCut = "diff_cut",
    GapListed = "gap_listed",
    OpaqueShape = "opaque_shape",
    IterationsGrow = "iterations_grow",
    ParametersRemoved = "parameters_removed",
    DiffBits = "diff_bits",
    JudgedUnderClaim = "judged_under_claim",
    ObservedOrder = "observed_order",
    BarrierSealsNothing = "barrier_seals_nothing",
    StreamsLetGo = "streams_let_go",
    EndedGrowsNot = "ended_grows_not",
    SettingsCompared = "settings_compared",
    StatusInClaim = "status_in_claim",
    QuarantineFirst = "quarantine_first",
    CheckpointFallBack = "checkpoint_fall_back",
    HistoryBeforeComplete = "history_before_complete",
    DroppedAtCursor = "dropped_at_cursor",
    EarlierFrames = "earlier_frames",
    LabelReferrers = "label_referrers",
    SealerOrder = "sealer_order",
    AskedOnceOpen = "asked_once_open",
    SmallTogether = "small_together",
    StageGroupDetached = "stage_group_detached",
    StageProducerWindow = "stage_producer_window",
    TakenOnce = "taken_once",
    ClaimExclusive = "claim_exclusive",
    ViewOneSnapshot = "view_one_snapshot",
    PinHolds = "pin_holds",
    StageClaimChecked = "stage_claim_checked",
    StageReleaseInCommit = "stage_release_in_commit",
    StageRetireConsumed = "stage_retire_consumed",
    StageValidateFirst = "stage_validate_first",
    StageQuarantineFirst = "stage_quarantine_first",
    StageRecordAside = "stage_record_aside",
    StageProducerClaim = "stage_producer_claim",
    StageClaim = "stage_claim",
    StageAdoption = "stage_adoption",
    HandoffPrepared = "handoff_prepared",
    HandoffEvidence = "handoff_evidence",
    HandoffSynced = "handoff_synced",
    HandoffOwn = "handoff_own",
    HandoffAnew = "handoff_anew",
    PublishedKept = "published_kept",
    SnapshotNamesPin = "snapshot_names_pin",
    EvidenceExact = "evidence_exact",
    NameHandoffPrepared = "name_handoff_prepared",
    RetiringUnfound = "retiring_unfound",
    RetiringResumed = "retiring_resumed",
    DedupeVerified = "dedupe_verified",
    PieceLeases = "piece_leases",
    RecipeWhole = "recipe_whole",
}

#[cfg(feature = "sim")]
mod switch {
    use super::Protection;
    use std::cell::Cell;

    thread_local! {
        static OFF: Cell<u128> = const { Cell::new(0) };
    }

    /// Switches `protection` off on this thread until the guard is dropped.
    #[must_use]
    pub fn switch_off(protection: Protection) -> SwitchedOff {
        let before = OFF.get();
        OFF.set(before | 1 << protection as u32);
        SwitchedOff { before }
    }

    /// Restores the switches of its thread when dropped.
    #[derive(Debug)]
    pub struct SwitchedOff {
        before: u128,
    }

    impl Drop for SwitchedOff {
        fn drop(&mut self) {
            OFF.set(self.before);
        }
    }

    impl Protection {
        /// Whether it is on, on this thread.
        pub fn is_on(self) -> bool {
            OFF.get() & (1 << self as u32) == 0
        }
    }
}

#[cfg(feature = "sim")]
pub use switch::{SwitchedOff, switch_off};

#[cfg(not(feature = "sim"))]
impl Protection {
    /// Whether it is on: always, in this build.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        true
    }
}
