//! What a resume would do, told before anything is done.

use std::fmt;
use std::path::PathBuf;

use super::undecodable::Undecodable;
use crate::ids::CheckpointId;
use crate::manifest::RecordingStatus;

/// What a resume would cut from which stream. Made by `plan`, which writes nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResumePlan {
    /// The recording.
    pub recording: String,
    /// How far it is.
    pub status: RecordingStatus,
    /// The checkpoint that it would go on from; none goes on from the end of what is there.
    pub checkpoint: Option<CheckpointId>,
    /// The iteration of that checkpoint's state.
    pub iteration: Option<i64>,
    /// Newer checkpoints that would be passed over, and why.
    pub passed_over: Vec<(CheckpointId, String)>,
    /// Each stream, by position.
    pub streams: Vec<StreamPlan>,
    /// Records that do not decode: without `set_aside` the resume is refused.
    pub undecodable: Vec<Undecodable>,
    /// Incomplete tails of journals that were found when the store was opened, and their lengths.
    pub torn: Vec<(PathBuf, u64)>,
    /// Why `start` would refuse, each reason in words; empty where it would not.
    pub refused: Vec<String>,
}

/// What would become of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamPlan {
    /// Its name.
    pub name: String,
    /// How many records it has.
    pub records: u64,
    /// How many would stay.
    pub kept: u64,
    /// How many of those that go are sealed in chunks.
    pub sealed_cut: u64,
}

impl StreamPlan {
    /// How many records would go.
    pub fn cut(&self) -> u64 {
        self.records.saturating_sub(self.kept)
    }
}

impl ResumePlan {
    /// How many records would go, over all streams.
    pub fn cut(&self) -> u64 {
        self.streams.iter().map(StreamPlan::cut).fold(0, u64::saturating_add)
    }
}

impl fmt::Display for ResumePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match &self.status {
            RecordingStatus::Running => "running".to_owned(),
            RecordingStatus::Complete => "complete".to_owned(),
            RecordingStatus::Failed { reason } => format!("failed: {reason:?}"),
        };
        write!(f, "resume of {:?} ({status}) ", self.recording)?;
        match (self.checkpoint, self.iteration) {
            (Some(id), Some(at)) => writeln!(f, "from checkpoint {id}, iteration {at}")?,
            (Some(id), None) => writeln!(f, "from checkpoint {id}")?,
            (None, _) => writeln!(f, "from its end")?,
        }
        for (id, why) in &self.passed_over {
            writeln!(f, "  checkpoint {id} is passed over: {why}")?;
        }
        for stream in &self.streams {
            let StreamPlan { name, records, kept, sealed_cut } = stream;
            write!(f, "  stream {name:?}: {kept} of {records} records stay")?;
            match (stream.cut(), sealed_cut) {
                (0, _) => writeln!(f)?,
                (cut, 0) => writeln!(f, ", {cut} are cut")?,
                (cut, sealed) => writeln!(f, ", {cut} are cut, {sealed} of them sealed")?,
            }
        }
        for Undecodable { stream, first, records, cause, .. } in &self.undecodable {
            let place = format!("stream {stream:?} record {first}");
            writeln!(
                f,
                "  {place} does not decode, nor do {records} count from there on: {cause}"
            )?;
        }
        for (path, bytes) in &self.torn {
            let path = path.display();
            writeln!(
                f,
                "  journal {path} ends in a fragment of {bytes} bytes, which counts for nothing"
            )?;
        }
        for why in &self.refused {
            writeln!(f, "  it would be refused: {why}")?;
        }
        write!(f, "  {} records are cut in all; nothing is written by this plan", self.cut())
    }
}
