//! Every public name, as a user would write it. A name that is not here fails the house's rules
//! (`tests/tidy/outside.rs`), and one that cannot be written so does not compile.

#![allow(unused_imports)]

mod door {
    pub use sealstone::{Error, ErrorKind, Layout, Limits, Options, Result, Store, WriteAccess};
}

mod clock {
    pub use sealstone::clock::{monotonic_nanos, wall_nanos};
}

mod codec {
    pub use sealstone::codec::{ENCODED_BYTES_MAX, decode, decode_value, encode, encode_value};
}

mod digest {
    pub use sealstone::digest::{Digest, Hasher, checksum, checksum_more};
}

mod error {
    pub use sealstone::error::{Error, ErrorKind, Result};
}

mod ids {
    pub use sealstone::ids::{
        CheckpointId, CommitCount, CommitSeq, Epoch, EventId, FileId, Generation, GroupId,
        HandoffId, LeaseId, NameGeneration, ObjectId, ObjectSnapshotId, Ordinal, OutputId, OwnerId,
        PartId, QuarantineId, ReceiptId, RecordingId, Sequence, StageId, StoreId, StreamId,
        UniqueId, unix_millis,
    };
}

mod limits {
    pub use sealstone::limits::Limits;
}

mod protection {
    pub use sealstone::protection::{Protection, SwitchedOff, switch_off};
}

mod vfs {
    pub use sealstone::vfs::{
        Access, AlignedBuffer, AroundDisk, AroundFile, Call, Counts, DirectIo, Disk, Entry,
        EntryKind, File, FreshFile, Held, Identity, LockRange, Meta, Operation, RealDisk, Sharing,
        Space, Step, TraceDisk, read_exact_at, read_whole, write_all_at,
    };
}

mod vfs_sim {
    pub use sealstone::vfs::sim::{
        Event, EventLog, Fault, FaultKind, Fired, Image, ImageCursor, Inode, Outcome, Outcomes,
        Place, Profile, Rng, SimDisk, SyncFailure,
    };
}

mod format_column {
    pub use sealstone::format::column::{
        Array, Axis, BLOCK_RAW_BYTES, BLOCK_RECORDS_MAX, BLOCK_ROW_LAYOUT, Blob, BlockCodec,
        BlockInfo, CHUNK_RAW_BYTES_MAX, Chunk, ChunkBuilder, Column, ColumnId, Data, END_MAGIC,
        Elements, EncodedChunk, FIELD_NAME_BYTES_MAX, FIELDS_MAX, FOOTER_LAYOUT, Field, FieldType,
        Flags, HEADER_LAYOUT, HEADER_LEN, MAGIC, Number, OpaqueType, RANK_MAX, ReadRange, Schema,
        Shape, TRAILER_LAYOUT, TRAILER_LEN, VALUE_BYTES_MAX, VERSION, Value,
    };
}

mod format_column_row_payload {
    pub use sealstone::format::column::row_payload::{
        ROW_KIND, TIMED_ROW_KIND, decode, encode, encoded_len, iteration, moment,
    };
}

mod format_shape {
    pub use sealstone::format::shape::{fingerprint_of, name_of};
}

mod format_footer {
    pub use sealstone::format::footer::{
        CODEC_NONE, Described, ENTRY_BYTES, ExtentAt, Footer, pad, push_entry,
    };
}

mod format_frame {
    pub use sealstone::format::frame::{
        FRAME_ALIGN, FRAME_BYTES_MAX, FrameHeader, FrameKind, Header, HeaderFault, MAGIC, Salt,
        VERSION, body_checksum, padded,
    };
}

mod format_framed {
    pub use sealstone::format::framed::{
        CODEC, END_BYTES, Encoder, FRAME_BYTES, Frames, decode_all, encode, pays, read_range,
    };
}

mod format_head {
    pub use sealstone::format::head::{
        BYTES, CHECKSUM_AT, COMMIT_AT, Head, MAGIC, QUIET_AT, STORE_AT, VERSION, VERSION_AT,
    };
}

mod format_label {
    pub use sealstone::format::label::{
        LABEL_BODY_BYTES_MAX, LABEL_END_BYTES, LABEL_MAGIC, Label, LabelEnd, Referrer,
    };
}

mod format_layout {
    pub use sealstone::format::layout::{
        BACKUP, BALLAST, HEAD, HEAD_NEXT, JOURNAL, MANIFEST, NEWBORN_SUFFIX, OWNERS, SEALED, TMP,
        TOP, backup, ballast, folder_of, head, head_next, journal, journal_dir, manifest, newborn,
        owner_lock, owners_dir, parent, parse_journal, parse_owner_lock, parse_sealed, parse_tmp,
        sealed, sealed_dir, sealed_folder, tmp, tmp_dir,
    };
}

mod format_record {
    pub use sealstone::format::record::{
        COUNT_BYTES, Payload, Place, RECORD_HEADER_BYTES, RECORD_LAYOUT, Record, SharedBytes,
        body_len, decode_body, encode_body, encode_single, single_len,
    };
}

mod format_row {
    pub use sealstone::format::row::{CHECKSUM_BYTES, VERSION_BYTES, is_whole, open, seal};
}

mod format_sealed {
    pub use sealstone::format::sealed::{
        BLOCK_BYTES_MAX, BLOCK_CRC_BYTES, Blocks, Framing, HEADER_BYTES, MAGIC, SEED_BYTES_MAX,
        VERSION, seed_of, show,
    };
}

mod format_snapshot {
    pub use sealstone::format::snapshot::{
        OnEntry, RATIO_MAX, SNAPSHOT_BLOCK_BYTES, SNAPSHOT_HEADER_BYTES, SNAPSHOT_MAGIC,
        SNAPSHOT_VERSION, SnapshotHeader, SnapshotWriter, read_snapshot,
    };
}

mod format_trailer {
    pub use sealstone::format::trailer::{TRAILER_ALIGN, TRAILER_BYTES, TRAILER_MAGIC, Trailer};
}

mod journal {
    pub use sealstone::journal::{
        Expect, Finished, FrameAt, Journal, JournalConfig, Level, OnFrame, OpenJournal, Payload,
        Place, Record, Registrar, Scan, Seat, Tail, Ticket, drop_cached, read_header, scan, sync_before_trust,
    };
}

mod manifest {
    pub use sealstone::manifest::{
        Birth, BodyDisk, BodyRow, Books, CHANGED_ROWS_DUE, ChangeLoad, CheckIntegrity,
        CheckpointRow, ChunkRow, ClaimKind, ClaimRow, Committed, Compacted, CondemnedRow,
        CountersKey, CountersRow, Cursor, Cut, DigestRow, Draft, Drafted, Edge, EdgeKey, EdgeRow,
        EventForm, EventRow, FEATURES_READ, FEATURES_WRITE, FORMAT, FileObjectRow, FileRow,
        FileState, FrameRow, GroupRow, GroupState, HANDOFF_NAMES_MAX, HandoffName, HandoffOrderKey,
        HandoffOrderRow, HandoffRow, HandoffState, HistoryKey, HistoryRow, InlineRow, JournalRow,
        JournalState, Key, LeaseRow, LeasedRow, Manifest, MetaRow, NameHandoffRow, NameKey,
        NameRow, Namespace, Newborn, ObjectRow, ObjectSnapshotRow, ObjectSnapshotState, Open,
        OpenGroupKey, OpenGroupRow, OutputRow, OwnerEnd, OwnerRow, PIECES_PER_ROW_MAX, PREPARATION_HOLDER, PageRow,
        ParameterKey, ParameterOrderKey, ParameterOrderRow, ParameterRow, PartRow, Pass, PassRow,
        Piece, Place, PreparationRow, ProducerKey, ProducerRow, QuarantineRow, Raw, Reading,
        ReceiptRow, RecipePin, RecipeRow, RecordingNameRow, RecordingRow, RecordingStatus,
        ResourceKey, RetiringRow, Row, RowKey, ScrubRow, Settled, Snapshot, SnapshotNameKey,
        SnapshotNameRow, SnapshotRow, StageRow, StateBytes, StoreKey, StreamRow, TURN_MILLIS_MAX,
        Table, TakenApart, ValueForm, Waits, Witness, Write, edges_of_value, from_value, lock_file,
        lock_out, read_head, read_whole_head, recipe_of, replace_head, row_value, switch, to_value,
        write_head, write_head_by,
    };
}

mod sealed {
    pub use sealstone::sealed::{
        Builder, Built, Described, Expect, Extent, ExtentAt, Footer, Label, Reader, Referrer,
        SLICE_BYTES, place,
    };
}

mod format_staged {
    pub use sealstone::format::staged::{
        BATCH_HEAD_BYTES, BATCH_HEAD_BYTES_MAX, BATCH_KEY_BYTES_MAX, BATCH_LAYOUT, BatchHead,
        Content, Form, PART_BYTES_MAX, PART_FRAME_BYTES, PART_FRAME_LAYOUT, PART_HEADER_BYTES,
        PART_HEADER_LAYOUT, POSITION_BYTES_MAX, PRODUCER_BYTES_MAX, PartBuilder, PartEnd,
        PartFrame, PartHeader, PartScan, ProducerMark, decode_batch, decode_head, encode_batch,
        fingerprint, scan_part,
    };
}

mod engine {
    pub use sealstone::engine::{
        Accepted, Accounts, Append, Attempt, Backup, BackupOptions, BackupProgress, Branch, Budget,
        Checkpoint, CheckpointNote, ChunkBuild, Claim, ClaimHeld, Compacted, FileKept, FollowLevel,
        Fork, Forked, Health, Info, Keeper, Layout, NewObject, OPEN_FILES_MAX, ObjectKept, Options,
        Outcome, Packed, Packing, Phases, Receipt, ReclaimPlan, Reclaimed, Recovery, Retired,
        ScrubBudget, ScrubFinding, Scrubbed, Sealer, Sealing, SnapshotAge, Stats, Store,
        StreamView, Thing, Waiting, WriteAccess,
    };
}

mod check {
    pub use sealstone::check::{
        CheckOptions, Finding, LookedAt, Lost, Progress, Report, SalvageOptions, Salvaged,
        Severity, Unconfirmed, check, salvage,
    };
}

mod interop {
    pub use sealstone::interop::{
        Cells, Format, Missing, OutColumn, Plan, ReadOptions, RowPlace, RowWriter, Table,
        write_json, write_scalar,
    };
}

mod recording {
    pub use sealstone::recording::{
        Applied, Array, Axis, BULK_COLUMNS_MAX, BULK_STREAMS_MAX, Blob, Block, BlockCodec, Blocks,
        Bulk, CHECKPOINTS_KEPT, Catalogue, Cell, Column, Columns, Data, Decoded, Decoders, Diff,
        Difference, EVENT_BYTES_MAX, EVENT_KIND_BYTES_MAX, Element, Elements, Event, EventId,
        EventValue, Every, ExportOptions, Exported, Field, FieldRead, FieldType, Flags, Follow,
        FollowLevel, Followed, FollowedRecord, ForkedRecording, Gap, Import, ImportOptions,
        Imported, Level, Merged, NAME_BYTES_MAX, NOTE, NdArray, NewRecord, NewRecording, Number,
        Observable, Opaque, OpaqueType, Overflow, PARAMETER_BYTES_MAX, Parameter, PausedFollow,
        Progress, QUARANTINE_HOLDER, Quarantined, ROWS_STREAM, Readable, Recorder, Recording,
        RecordingStatus, Records, Restored, Resume, ResumeFrom, ResumePlan, Resumed, Retention,
        RetentionPlan, Schema, Selected, SetAside, Shape, States, Stays, Stream, StreamOptions,
        StreamPlan, Ticket, TimeAxis, ToRetire, Undecodable, Value, ValueMap, import_dry_run,
    };
}

mod state {
    pub use sealstone::state::{
        BATCH_BYTES_MAX, BATCH_CHANGES_MAX, Batch, Changed, CommitSeq, Entry, Found, Listing,
        NAME_BYTES_MAX, NameGeneration, Present, State, VALUE_BYTES_MAX,
    };
}

mod objects {
    pub use sealstone::objects::{
        CommitSeq, Compress, Digest, IN_MEMORY_BYTES_MAX, NAME_BYTES_MAX, NAMESPACE_BYTES_MAX,
        Name, NameGeneration, NameView, Object, ObjectReader, Objects, PIECES_MAX,
        PREPARATION_NAME_BYTES_MAX, PUT_BYTES_MAX, PUT_OBJECTS_MAX, Pieces, Preparation, PreparationView, PrepareOptions,
        PutOptions, READ_AHEAD_BYTES, Stored, WHOLE_BYTES_MAX,
    };
}

mod objects_keeping {
    pub use sealstone::objects::{Gone, NamespaceUsage, Retirement, Subject, Usage, Why};
}

mod objects_publishing {
    pub use sealstone::objects::{
        Evidence, Expected, HANDOFF_BYTES_MAX, HANDOFF_NAMES_MAX, HANDOFF_TARGET_BYTES_MAX,
        HandoffChange, HandoffId, NameHandoff, ObjectSnapshotState, PUBLISH_NAMES_MAX, Present,
        Publish, Published, SNAPSHOT_NAME_BYTES_MAX, SnapshotDraft, SnapshotInfo, SnapshotName,
        SnapshotView,
    };
}

mod staging {
    pub use sealstone::staging::{
        Appended, Batch, ConvertOptions, ConvertProgress, Converted, Converter, DirectoryTarget,
        Flushed, Form, GroupId, GroupView, HandedOff, HandoffId, HandoffState, HandoffView, Input,
        KEY_BYTES_MAX, KEY_FIELDS_MAX, Key, KeyPart, KeyShape, KeyType, Level, Made, MergeOptions,
        Merged, Merger, Offer, OnProgress, Origin, OutputId, OutputReader, OutputView,
        OutputWriter, POSITION_BYTES_MAX, PRODUCER_BYTES_MAX, PartView, Plan, PlanOptions,
        Produced, Progress, QuarantineId, Quarantined, ReadBatch, Ready, RemovedStage, Resumed,
        RetiredOutputs, STAGE_NAME_BYTES_MAX, Stage, StageAbout, StageBatches, StageId, StageView,
        Target, Ticket,
    };
}

mod shipped {
    pub use sealstone::staging::JsonLinesToZstd;
}

#[cfg(feature = "parquet")]
mod parquet {
    pub use sealstone::staging::{RecordBatch, ToParquet};
}

mod campaign {
    pub use sealstone::campaign;
}
