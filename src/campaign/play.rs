//! Plays a history on a simulated disk, keeping the model beside it and writing into the disk's log
//! where each step began and ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Content;
use super::finding::{Finding, Rule};
use super::history::History;
use super::model::{Model, Survivors};
use crate::engine::{Claim, Options, Store};
use crate::error::{Error, Result};
use crate::journal::Ticket;
use crate::manifest::{CheckIntegrity, Reading, SnapshotRow};
use crate::vfs::Disk;
use crate::vfs::sim::{EventLog, Fault, FaultKind, Rng, SimDisk};

mod acts;
mod chunks;
pub(super) mod names;
mod upkeep;

/// What a play leaves: everything that a crash of it is judged by.
#[derive(Debug)]
pub struct Run {
    /// What was played.
    pub history: History,
    /// What happened to the disk since the prefix.
    pub log: EventLog,
    /// The model before the first step, and after each.
    pub states: Vec<Arc<Model>>,
    /// How many steps the prefix took.
    pub first: usize,
    /// What went wrong while playing.
    pub findings: Vec<Finding>,
    /// The world as it was left.
    pub world: SimDisk,
}

/// A step in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It began.
    Begun(usize),
    /// It ended.
    Ended(usize),
}

impl Mark {
    fn to_note(self) -> [u8; 9] {
        let (kind, step) = match self {
            Self::Begun(step) => (b'b', step),
            Self::Ended(step) => (b'e', step),
        };
        let mut note = [kind; 9];
        note[1..].copy_from_slice(&(step as u64).to_le_bytes());
        note
    }

    /// What a note of a play says.
    pub fn of_note(note: &[u8]) -> Option<Self> {
        let (kind, step) = note.split_first()?;
        let step = usize::try_from(u64::from_le_bytes(step.try_into().ok()?)).ok()?;
        match kind {
            b'b' => Some(Self::Begun(step)),
            b'e' => Some(Self::Ended(step)),
            _ => None,
        }
    }
}

impl Run {
    /// The models that a crash after these notes may show: before the step under way and after it,
    /// or after the last one that ended.
    pub fn allowed(&self, last_note: Option<&[u8]>) -> Vec<&Model> {
        let state = |at: usize| self.states.get(at).map(Arc::as_ref);
        match last_note.and_then(Mark::of_note) {
            None => state(self.first).into_iter().collect(),
            Some(Mark::Begun(step)) => state(step).into_iter().chain(state(step + 1)).collect(),
            Some(Mark::Ended(step)) => state(step + 1).into_iter().collect(),
        }
    }
}

/// Where the store of a play stands.
pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

/// Where its backups go.
pub fn copy_root() -> PathBuf {
    PathBuf::from("/data/copy.stone")
}

/// How a store of `history` is opened on `disk`.
pub fn options(history: &History, disk: &SimDisk) -> Options {
    Store::options()
        .limits(history.limited.limits())
        .layout(history.limited.layout())
        .check_integrity(CheckIntegrity::Always)
        .disk(Arc::new(disk.clone()))
}

/// A play in which something went wrong with the disk.
pub(super) struct Broken {
    pub(super) run: Run,
    /// The store as the failure left it.
    pub(super) store: Option<Store>,
    /// What the operation that met the failure returned; `None` if nothing came of it.
    pub(super) error: Option<Error>,
}

/// Plays `history`; after the prefix, and `after` more operations of the disk, `kind` strikes.
pub(super) fn play_broken(history: &History, after: u64, kind: FaultKind) -> Broken {
    let mut player = player(history);
    player.fault = Some((after, kind));
    player.fault_is_near = true;
    player.run_all();
    let (store, error) = (player.store.take(), player.error.take());
    player.claims.clear();
    Broken { run: player.into_run(), store, error }
}

/// Plays `history` from an empty disk.
pub fn play(history: &History) -> Run {
    let mut player = player(history);
    player.run_all();
    player.into_run()
}

fn player(history: &History) -> Player {
    let world = SimDisk::new(history.seed);
    // The parent stands before: a store answers for its own name in it.
    let parent = Path::new("/data");
    let made = world.mkdir(parent).and_then(|()| world.sync_dir(Path::new("/")));
    let mut player = Player {
        history: history.clone(),
        disk: world.clone(),
        pid: world.pid(),
        world,
        store: None,
        claims: Vec::new(),
        ticket: None,
        accepted: 0,
        counter: 0,
        model: Model::default(),
        states: vec![Arc::new(Model::default())],
        findings: Vec::new(),
        rng: Rng::new(history.seed),
        fault: None,
        fault_is_near: false,
        error: None,
        first: 0,
    };
    if let Err(e) = made {
        player.findings.push(Finding::new(Rule::Acted, e));
    }
    player
}

/// A step ended early: the play is over.
#[derive(Debug)]
struct Stop;

type Go<T = ()> = std::result::Result<T, Stop>;

struct Player {
    history: History,
    world: SimDisk,
    disk: SimDisk,
    pid: u32,
    store: Option<Store>,
    claims: Vec<Claim>,
    /// The last group: its ticket, and its number among all accepted ones.
    ticket: Option<(Ticket, u64)>,
    accepted: u64,
    counter: u64,
    model: Model,
    states: Vec<Arc<Model>>,
    findings: Vec<Finding>,
    rng: Rng,
    /// After so many operations of the disk behind the prefix, this strikes.
    fault: Option<(u64, FaultKind)>,
    /// Errors are part of the play.
    fault_is_near: bool,
    error: Option<Error>,
    /// How many steps the prefix took.
    first: usize,
}

impl Player {
    fn run_all(&mut self) {
        let (prefix, cut) = (self.history.prefix.clone(), self.history.cut.clone());
        let mut went_well = true;
        for (at, shape) in prefix.iter().enumerate() {
            went_well = went_well && self.act(at, *shape).is_ok();
        }
        self.world.restart_log();
        self.first = self.states.len() - 1;
        if let Some((after, kind)) = self.fault {
            self.world.inject(Fault::new(self.world.operations() + after, kind));
        }
        for (at, shape) in cut.iter().enumerate() {
            went_well = went_well && self.act(prefix.len() + at, *shape).is_ok();
        }
    }

    fn into_run(self) -> Run {
        Run {
            log: self.world.events(),
            history: self.history,
            first: self.first,
            world: self.world,
            states: self.states,
            findings: self.findings,
        }
    }

    fn begin(&self) {
        self.world.note(Mark::Begun(self.states.len() - 1).to_note());
    }

    /// A step ended well: what the model says now is acknowledged.
    fn end(&mut self) {
        if let Some(store) = &self.store
            && let Ok(snapshot) = store.snapshot()
            && let Ok(counters) = snapshot.counters()
        {
            self.model.counters = counters;
            let newest = snapshot.last::<SnapshotRow>(..).ok().flatten();
            self.model.covered = newest.map_or(0, |(covers, _)| covers);
        }
        self.states.push(Arc::new(self.model.clone()));
        self.world.note(Mark::Ended(self.states.len() - 2).to_note());
    }

    /// One step: `act` on the store, and `then` on the model when it was acknowledged.
    fn step<T>(
        &mut self,
        what: &str,
        act: impl FnOnce(&Store) -> Result<T>,
        then: impl FnOnce(&mut Model, &T),
    ) -> Go<T> {
        let Some(store) = self.store.clone() else { return Err(Stop) };
        self.begin();
        match act(&store) {
            Ok(done) => {
                then(&mut self.model, &done);
                self.end();
                Ok(done)
            }
            Err(e) => self.stop(Rule::Acted, what, &e),
        }
    }

    fn stop<T>(&mut self, rule: Rule, what: &str, error: &Error) -> Go<T> {
        if self.fault_is_near {
            self.error = Some(error.clone());
        } else {
            self.findings.push(Finding::error(rule, what, error));
        }
        Err(Stop)
    }

    /// Opens the store, and checks what it shows against the model.
    fn open(&mut self, survivors: Survivors) -> Go {
        let opened = options(&self.history, &self.disk).open(root());
        let store = match opened {
            Ok(store) => store,
            Err(e) => return self.stop(Rule::Opens, "open", &e),
        };
        let content = match Content::read(&store) {
            Ok(content) => content,
            Err(e) => return self.stop(Rule::State, "read", &e),
        };
        if let Err(why) = self.model.explains(&content, survivors) {
            self.findings.push(Finding::new(Rule::State, why));
            return Err(Stop);
        }
        self.model.adopt(&content);
        self.model.epoch = store.owner().map(|(_, epoch)| epoch).unwrap_or_default();
        self.ticket = None;
        self.store = Some(store);
        Ok(())
    }

    fn birth(&mut self) -> Go {
        self.begin();
        match options(&self.history, &self.disk).create(root()) {
            Ok(store) => {
                self.model.exists = true;
                self.model.epoch = store.owner().map(|(_, epoch)| epoch).unwrap_or_default();
                self.store = Some(store);
                self.end();
                Ok(())
            }
            Err(e) => self.stop(Rule::Acted, "create", &e),
        }
    }

    /// Closes the store: everything accepted is durable then, and no claim stands.
    fn close(&mut self) -> Go {
        self.begin();
        let Some(store) = self.store.take() else { return Err(Stop) };
        if let Err(e) = store.close() {
            return self.stop(Rule::Acted, "close", &e);
        }
        self.claims.clear();
        self.model.settle_all();
        self.model.claims.clear();
        self.end();
        Ok(())
    }

    fn reopen(&mut self) -> Go {
        self.close()?;
        self.begin();
        self.open(Survivors::OfPower)?;
        self.end();
        Ok(())
    }

    /// The process dies without a word; another one opens the store.
    fn kill(&mut self) -> Go {
        self.begin();
        self.disk.kill();
        self.store = None;
        self.claims.clear();
        self.pid += 1;
        self.disk = self.world.process(self.pid);
        self.open(Survivors::OfKill)?;
        self.end();
        Ok(())
    }
}
