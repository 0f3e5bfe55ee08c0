//! The world of a play: the disk, its two owners, what was told, and who acts next.

use parking_lot::Mutex;
use std::path::Path;
use std::sync::{Arc, Weak};

use super::acts::step;
use super::model::{Model, Stream};
use crate::campaign::finding::{Finding, Rule};
use crate::campaign::history::Limited;
use crate::campaign::play::root;
use crate::engine::{Options, Sealing, Store, WriteAccess};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::journal::Ticket;
use crate::manifest::CheckIntegrity;
use crate::vfs::sim::{EventLog, Rng, SimDisk};
use crate::vfs::{Disk, Step, TraceDisk};

/// What a play leaves.
#[derive(Debug)]
pub struct SharedRun {
    /// Its seed.
    pub seed: u64,
    /// How many steps it had.
    pub steps: usize,
    /// What happened to the disk since both owners were there.
    pub log: EventLog,
    pub(super) states: Vec<Arc<Model>>,
    /// What went wrong while playing.
    pub findings: Vec<Finding>,
    /// Operations that one owner did inside one of the other.
    pub inside: u64,
}

/// Chunks that are sealed and not published: their stream, its sealed end then, and the end after.
pub(super) type Sealed = (u64, usize, usize, Sealing);

#[derive(Debug, Default)]
pub(super) struct Actor {
    pub(super) store: Option<Store>,
    pub(super) disk: Option<SimDisk>,
    pub(super) sealed: Option<Sealed>,
    pub(super) ticket: Option<Ticket>,
    /// Which life of it this is.
    pub(super) life: u64,
}

impl Actor {
    pub(super) fn owner(&self) -> Option<OwnerId> {
        self.store.as_ref().and_then(Store::owner).map(|(owner, _)| owner)
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) disk: SimDisk,
    pub(super) rng: Rng,
    pub(super) actors: [Actor; 2],
    pub(super) model: Model,
    states: Vec<Arc<Model>>,
    pub(super) findings: Vec<Finding>,
    pub(super) counter: u64,
    next_pid: u32,
    /// After so many announcements of this owner the other one acts.
    pub(super) hook: Option<(usize, u64)>,
    pub(super) inside: u64,
}

pub(super) type Stage = Arc<Mutex<World>>;

impl World {
    /// The model changed: from here on it is what a crash is judged by.
    pub(super) fn told(&mut self) {
        self.states.push(Arc::new(self.model.clone()));
        self.disk.note((self.states.len() as u64 - 1).to_le_bytes());
    }

    pub(super) fn found(&mut self, rule: Rule, seen: impl std::fmt::Display) {
        self.findings.push(Finding::new(rule, seen));
    }

    pub(super) fn failed(&mut self, rule: Rule, doing: &str, error: &Error) {
        self.findings.push(Finding::error(rule, doing, error));
    }
}

/// How a store of a play is opened.
pub(super) fn options(disk: Arc<dyn Disk>, access: WriteAccess) -> Options {
    Store::options()
        .limits(Limited::Tiny.limits())
        .check_integrity(CheckIntegrity::Always)
        .access(access)
        .disk(disk)
}

/// Opens the store as a new process for `who`.
pub(super) fn enter(stage: &Stage, who: usize) {
    let (process, traced) = {
        let mut world = stage.lock();
        world.next_pid += 1;
        let process = world.disk.process(1000 + world.next_pid);
        let traced = TraceDisk::counting(Arc::new(process.clone()));
        (process, traced)
    };
    let weak = Arc::downgrade(stage);
    traced.on_mark(move |step| announced(&weak, who, step));
    let opened = options(Arc::new(traced), WriteAccess::Shared).open_or_create(root());
    let mut world = stage.lock();
    match opened {
        Ok(store) => {
            let life = world.actors[who].life + 1;
            let (store, disk) = (Some(store), Some(process));
            world.actors[who] = Actor { store, disk, life, ..Actor::default() };
        }
        Err(e) => world.failed(Rule::Opens, "open beside the other", &e),
    }
}

/// `who` is about to begin a step of a protocol: the other may act before it does.
fn announced(stage: &Weak<Mutex<World>>, who: usize, _step: Step) {
    let Some(stage) = stage.upgrade() else { return };
    {
        let mut world = stage.lock();
        match &mut world.hook {
            Some((of, left)) if *of == who && *left > 0 => {
                *left -= 1;
                return;
            }
            Some((of, _)) if *of == who => {}
            _ => return,
        }
        world.hook = None;
        world.inside += 1;
    }
    step(&stage, 1 - who, true);
}

/// How many streams there are.
const STREAMS: usize = 3;

/// Plays `steps` steps of two owners.
pub fn play_shared(seed: u64, steps: usize) -> SharedRun {
    let disk = SimDisk::new(seed);
    let parent = Path::new("/data");
    let made = disk.mkdir(parent).and_then(|()| disk.sync_dir(Path::new("/")));
    let stage = Arc::new(Mutex::new(World {
        disk,
        rng: Rng::new(seed ^ 0x5eed),
        actors: Default::default(),
        model: Model::default(),
        states: Vec::new(),
        findings: made.err().map(|e| Finding::new(Rule::Acted, e)).into_iter().collect(),
        counter: 0,
        next_pid: 0,
        hook: None,
        inside: 0,
    }));
    enter(&stage, 0);
    enter(&stage, 1);
    let first = stage.lock().actors[0].store.clone();
    for n in 0..STREAMS {
        match first.as_ref().map(|store| store.create_stream(&format!("s{n}"))) {
            Some(Ok(id)) => drop(stage.lock().model.streams.insert(id.0, Stream::default())),
            Some(Err(e)) => stage.lock().failed(Rule::Acted, "create", &e),
            None => {}
        }
    }
    drop(first);
    stage.lock().disk.restart_log();
    stage.lock().told();
    for _ in 0..steps {
        let who = {
            let mut world = stage.lock();
            if !world.findings.is_empty() {
                break;
            }
            let who = world.rng.index(2);
            world.hook = world.rng.one_in(2).then_some((who, 0));
            let left = world.rng.below(7);
            if let Some(hook) = &mut world.hook {
                hook.1 = left;
            }
            who
        };
        step(&stage, who, false);
        stage.lock().hook = None;
    }
    let (log, actors) = {
        let mut world = stage.lock();
        (world.disk.events(), std::mem::take(&mut world.actors))
    };
    // As killed processes end: the log is over, and nothing of them tidies up.
    actors.iter().filter_map(|actor| actor.disk.as_ref()).for_each(SimDisk::kill);
    drop(actors);
    let mut world = stage.lock();
    SharedRun {
        seed,
        steps,
        log,
        states: std::mem::take(&mut world.states),
        findings: std::mem::take(&mut world.findings),
        inside: world.inside,
    }
}
