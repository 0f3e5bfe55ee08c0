//! The steps of the protocols, by name: what docs/PROTOCOLS.md lists and the crash campaign counts.

macro_rules! steps {
    ($($variant:ident = $name:literal,)*) => {
        /// A step of a protocol, announced just before its first disk operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Step {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Step {
            /// Every step, in the order of docs/PROTOCOLS.md.
            pub const ALL: &'static [Step] = &[$(Step::$variant,)*];

            /// Its name: protocol, dot, step.
            pub fn name(self) -> &'static str {
                match self {
                    $(Step::$variant => $name,)*
                }
            }
        }
    };
}

steps! {
    BirthFolders = "birth.folders",
    BirthManifest = "birth.manifest",
    BirthLink = "birth.link",
    BirthSyncDir = "birth.sync_dir",
    BirthParent = "birth.parent",
    OpenLock = "open.lock",
    OpenWitness = "open.witness",
    OpenManifest = "open.manifest",
    OpenOwnerLock = "open.owner_lock",
    OpenEpoch = "open.epoch",
    OpenReplay = "open.replay",
    OpenTakeOver = "open.take_over",
    OpenSweep = "open.sweep",
    OpenUnlink = "open.unlink",
    OpenReady = "open.ready",
    JournalCreate = "journal.create",
    JournalSyncDir = "journal.sync_dir",
    JournalRow = "journal.row",
    JournalPrewrite = "journal.prewrite",
    AppendWrite = "append.write",
    AppendSync = "append.sync",
    JournalForget = "journal.forget",
    JournalUnlink = "journal.unlink",
    SealBuild = "seal.build",
    SealSync = "seal.sync",
    SealRename = "seal.rename",
    SealSyncDir = "seal.sync_dir",
    PublishCommit = "publish.commit",
    PublishDrop = "publish.drop",
    CheckpointCommit = "checkpoint.commit",
    RewindCommit = "rewind.commit",
    EventCommit = "event.commit",
    ClaimCommit = "claim.commit",
    LeaseCommit = "lease.commit",
    StateCommit = "state.commit",
    StageCommit = "stage.commit",
    StageSeal = "stage.seal",
    OutputCommit = "output.commit",
    GroupFail = "group.fail",
    QuarantineCommit = "quarantine.commit",
    HandoffPrepare = "handoff.prepare",
    HandoffCopy = "handoff.copy",
    HandoffLink = "handoff.link",
    HandoffSyncDir = "handoff.sync_dir",
    HandoffSettle = "handoff.settle",
    PrepareCommit = "prepare.commit",
    PutCommit = "put.commit",
    NamesCommit = "names.commit",
    SnapshotNamesCommit = "snapshot_names.commit",
    NameHandoffPrepare = "name_handoff.prepare",
    NameHandoffSettle = "name_handoff.settle",
    RetireCommit = "retire.commit",
    RetireSwitch = "retire.switch",
    RetirePart = "retire.part",
    ReclaimMark = "reclaim.mark",
    ReclaimUnlink = "reclaim.unlink",
    ReclaimSyncDir = "reclaim.sync_dir",
    ReclaimForget = "reclaim.forget",
    ReclaimSweep = "reclaim.sweep",
    ScrubCommit = "scrub.commit",
    CompactCopy = "compact.copy",
    CompactVerify = "compact.verify",
    CompactMove = "compact.move",
    ManifestCopy = "manifest.copy",
    ManifestSwitch = "manifest.switch",
    ManifestSyncDir = "manifest.sync_dir",
    BodyCommit = "body.commit",
    PackCopy = "pack.copy",
    PackVerify = "pack.verify",
    PackLink = "pack.link",
    PackSyncDir = "pack.sync_dir",
    UnpackFolders = "unpack.folders",
    UnpackCopy = "unpack.copy",
    UnpackManifest = "unpack.manifest",
    UnpackVerify = "unpack.verify",
    UnpackRename = "unpack.rename",
    UnpackSyncDir = "unpack.sync_dir",
    BackupFolders = "backup.folders",
    BackupRows = "backup.rows",
    BackupCopy = "backup.copy",
    BackupPlace = "backup.place",
    BackupVerify = "backup.verify",
    BackupSwitch = "backup.switch",
    BackupSyncDir = "backup.sync_dir",
    BackupSweep = "backup.sweep",
    SnapshotCommit = "snapshot.commit",
    SalvageCopy = "salvage.copy",
    SalvageRows = "salvage.rows",
    SalvageRecords = "salvage.records",
    SalvageRename = "salvage.rename",
    HeadWrite = "head.write",
    HeadRename = "head.rename",
    BallastFill = "ballast.fill",
    BallastRelease = "ballast.release",
    CloseSync = "close.sync",
    CloseCommit = "close.commit",
    CloseManifest = "close.manifest",
}
