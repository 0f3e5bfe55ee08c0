//! Each face in use, with the types that a user has to write down: fields of structures, arguments,
//! results, boxed errors, traits of one's own.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::future::IntoFuture;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use sealstone::check::{CheckOptions, Finding, Progress, Report, Severity, check};
use sealstone::engine::{
    Accepted, Accounts, Append, Attempt, Budget, Checkpoint, ChunkBuild, Claim, ClaimHeld, Health,
    Info, NewObject, Outcome, Reclaimed, Recovery, Retired, Sealing, Stats, StreamView, Thing,
    Waiting,
};
use sealstone::ids::{CheckpointId, LeaseId, ObjectId, StreamId};
use sealstone::journal::{Level, Ticket};
use sealstone::manifest::{ClaimKind, Committed, Reading, ResourceKey, Snapshot};
use sealstone::recording::{
    Bulk, Field, FieldType, NewRecord, NewRecording, Recorder, Recording, Schema, Stream, Value,
};
use sealstone::state::{Batch, Changed, Entry, Found, Listing, NameGeneration, Present, State};
use sealstone::vfs::{Disk, RealDisk, Step};
use sealstone::{Error, ErrorKind, Limits, Options, Result, Store};
use serde::{Deserialize, Serialize};

/// An application that keeps handles in its own structure.
#[derive(Debug, Clone)]
pub struct Application {
    store: Store,
    state: State,
    last: Option<Ticket>,
}

/// A value of the application's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub region: String,
    pub limits: BTreeMap<String, u64>,
}

/// Any error of the crate goes into a box, a log line and a match.
pub fn told(error: Error) -> Box<dyn StdError + Send + Sync> {
    let kind: ErrorKind = error.kind();
    let _: (&str, &str, &str, String) =
        (error.operation(), error.place(), kind.name(), error.chain());
    let again: Error = error.clone().with_source(std::io::Error::other("x"));
    let _: Option<&Present> = Present::of(&again);
    Box::new(error)
}

pub fn opened(path: &Path, disk: Arc<dyn Disk>) -> Result<Application> {
    let mut limits = Limits::default();
    limits.history_max = 3;
    limits.check()?;
    let options: Options = Store::options().limits(limits).wait_millis(100).disk(disk);
    let store = options.clone().open_or_create(path)?;
    let _reader: Store = options.open_read_only(path)?;
    let _: Recovery = store.recovery();
    let state = store.state();
    Ok(Application { store, state, last: None })
}

pub fn opened_on_the_machine(path: &Path) -> Result<Application> {
    opened(path, RealDisk::new())
}

impl Application {
    pub fn state(&self, config: &Config) -> Result<NameGeneration> {
        let first: NameGeneration = self.state.put("config", config)?;
        let found: Option<Found<Config>> = self.state.find("config")?;
        let expected: Option<NameGeneration> = found.map(|found| found.generation);
        self.state.compare_and_set("config", expected.max(Some(first)), config)?;
        let batch: Batch = self.state.batch().put("a", &1u8).remove("b").keep_history(2);
        let Changed { commit: _, generations } = batch.commit()?;
        let listing: Listing = self.state.list("a");
        let entries: Vec<Entry> = listing.collect::<Result<_>>()?;
        let _: Vec<Found<Config>> = self.state.history("config")?;
        let _ = (entries, self.state.get_bytes("a")?);
        generations.into_iter().flatten().next().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "state", "application", "nothing was put")
        })
    }

    pub async fn append(&mut self, stream: StreamId) -> Result<()> {
        let accepted: Accepted = self.store.append(vec![Append { stream, payload: vec![1] }])?;
        self.last = Some(accepted.ticket.clone());
        let waiting: Waiting = accepted.clone().into_future();
        waiting.await?;
        accepted.await?;
        if let Some(ticket) = &self.last {
            self.store.when(ticket, Level::Written).await?;
            self.store.wait(ticket, Level::Durable)?;
        }
        self.store.barrier()
    }

    pub fn engine(&self, stream: StreamId, chunk: ChunkBuild) -> Result<()> {
        let sealing: Sealing = self.store.seal_chunks(vec![chunk])?;
        sealing.publish()?;
        let view: StreamView = self.store.view(stream)?;
        let first: Option<ObjectId> = view.chunks.first().map(|(_, row)| row.object);
        if let Some(object) = first {
            let _: (Vec<u8>, Vec<u8>) =
                (self.store.fetch(object)?, self.store.fetch_range(object, 0..1)?);
        }
        let lease: LeaseId = self.store.lease("application", "why", None, &[])?;
        self.store.put_objects(lease, vec![vec![1]])?;
        let at: CheckpointId = self.store.checkpoint(1, &[stream], b"state")?;
        let Checkpoint { cursors, .. } = self.store.latest_checkpoint(1)?;
        self.store.rewind(&cursors)?;
        let things = [Thing::Lease(lease), Thing::Checkpoint(1, at)];
        let _: Retired = self.store.retire(&things, "done")?;
        let _: Reclaimed = self.store.reclaim(Budget::default())?;
        let claim: Claim = self.store.claim(&ResourceKey::from("x"), ClaimKind::Maintenance)?;
        drop(claim);
        let _: Vec<ClaimHeld> = self.store.claims(10)?;
        let snapshot: Snapshot = self.store.snapshot()?;
        snapshot.counters()?;
        let new = NewObject { bytes: Vec::new(), referrer: None };
        let done: Result<Committed<()>> =
            self.store.transact_with(Step::LeaseCommit, vec![new], |_, _| Ok(()));
        done.map(|_| ())
    }

    pub fn looked_at(&self, attempt: Attempt) -> Result<Outcome> {
        let _: Health = self.store.health();
        let _: Stats = self.store.stats()?;
        let _: Accounts = self.store.accounts()?;
        let _: Info = self.store.info()?;
        self.store.outcome_of(attempt)
    }

    pub fn recorded(&self) -> Result<Vec<f64>> {
        let schema = Schema::new(vec![Field::new("x", FieldType::F64)])?;
        let draft: NewRecording = self.store.record("run", &schema).stream("s", ["x"]);
        let run: Recorder = draft.start()?;
        let values = [Value::F64(1.0)];
        let ticket: Ticket = run.append(0, 1, &values)?;
        run.append_all(&[NewRecord { stream: 0, iteration: 2, time: None, values: &values }])?;
        let _: Waiting = run.when(&ticket, Level::Durable);
        run.complete()?;
        let bulk: Bulk = self.store.record("bulk", &schema).stream("s", ["x"]).start_bulk()?;
        drop(bulk);
        let recording: Recording = self.store.recording("run")?;
        let stream: Stream = recording.stream("s")?;
        stream.field("x")?.iterations(0..10).to_vec()
    }

    pub fn end(self) -> Result<()> {
        let Self { store, state, .. } = self;
        drop(state);
        store.close()
    }
}

pub fn checked(path: &Path) -> Result<Vec<Finding>> {
    let mut progress = |_: Progress| ControlFlow::Continue(());
    let report: Report = check(path, &CheckOptions::default(), &mut progress)?;
    Ok(report.findings.into_iter().filter(|f| f.severity == Severity::Damage).collect())
}
