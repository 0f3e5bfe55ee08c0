//! staging: batches are acknowledged under a key, grouped, converted, and published exactly once.
//!
//! ```text
//!   append ──▶ intake stream (journal) ──[flush, seal]──▶ parts of groups ──[plan: claim]──▶ convert
//!                                                                                    │
//!   hand-off ◀── outputs ◀──[ONE transaction: output in, consumed parts out, claims released]
//!
//!   describing    key, key shape, batch, form, group         taking_in    stage, append, seal, flush
//!   converting    plan, converter, output, merge, quarantine  reading      every row at one instant
//!   shipped       JSON lines by zstd, Parquet
//! ```
//!
//! - STG1: batches come to open groups only; what is detached does not change.
//! - STG9: a batch, its number and its source's position are one record: one frame of the journal.
//! - STG31: nothing is changed without a claim: on the intake, the stage, the group or the output.

mod converting;
mod describing;
mod handing_off;
mod reading;
mod shipped;
mod taking_in;

pub use crate::format::staged::{Form, POSITION_BYTES_MAX, PRODUCER_BYTES_MAX};
pub use crate::ids::{GroupId, HandoffId, OutputId, QuarantineId, StageId};
#[cfg(feature = "arrow")]
pub use crate::interop::arrow::RecordBatch;
pub use crate::journal::{Level, Ticket};
pub use crate::manifest::HandoffState;
pub use converting::{
    ConvertOptions, ConvertProgress, Converted, Converter, Input, Made, MergeOptions, Merged,
    Merger, OnProgress, OutputReader, OutputView, OutputWriter, Plan, PlanOptions, Quarantined,
    RetiredOutputs,
};
pub use describing::{
    Batch, GroupView, KEY_BYTES_MAX, KEY_FIELDS_MAX, Key, KeyPart, KeyShape, KeyType, Produced,
};
pub use handing_off::{DirectoryTarget, HandedOff, HandoffView, Offer, Resumed, Target};
pub use reading::{Origin, PartView, ReadBatch, StageBatches, StageView};
pub use shipped::JsonLinesToZstd;
#[cfg(feature = "parquet")]
pub use shipped::ToParquet;
pub use taking_in::{
    Appended, Flushed, Progress, Ready, RemovedStage, STAGE_NAME_BYTES_MAX, Stage, StageAbout,
};
