//! A disk that stops a thread at one of its steps until it is let go.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use sealstone::vfs::{Access, AroundDisk, Disk, File, Step};

/// Whoever makes no step for so long waits for the one that stands still.
const WAITS: Duration = Duration::from_millis(15);
/// Longer than any of it takes.
const DEADLINE: Duration = Duration::from_secs(60);

thread_local! {
    static ACTOR: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Where one of the two threads is.
#[derive(Debug, Clone, Copy, Default)]
struct Actor {
    steps: usize,
    /// It stands still before this one.
    stop_before: Option<usize>,
    is_standing: bool,
    is_over: bool,
}

/// A disk before another one.
#[derive(Clone)]
pub struct Turns {
    disk: Arc<dyn Disk>,
    actors: Arc<(Mutex<[Actor; 2]>, Condvar)>,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Turns {
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, actors: Arc::default() }
    }

    /// Runs two acts in two threads. The first stops before its step `stops[0]`; then the second runs, up to its
    /// step `stops[1]`; then the first goes on to its end, then the second. Who waits for the other is
    /// passed over. How many steps each had.
    pub fn run(&self, stops: [Option<usize>; 2], acts: [&(dyn Fn() + Sync); 2]) -> [usize; 2] {
        *self.actors.0.lock() = stops.map(|stop_before| Actor { stop_before, ..Actor::default() });
        std::thread::scope(|scope| {
            for (number, act) in acts.into_iter().enumerate() {
                scope.spawn(move || {
                    ACTOR.set(Some(number));
                    let over = Over(self, number);
                    act();
                    drop(over);
                });
                self.rest(number);
            }
            for number in [0, 1] {
                self.let_go(number);
                self.rest(number);
            }
        });
        self.actors.0.lock().map(|actor| actor.steps)
    }

    /// Until an actor stands still, is over, or waits for the other.
    fn rest(&self, number: usize) {
        let (actors, changed) = &*self.actors;
        let since = Instant::now();
        let mut actors = actors.lock();
        loop {
            let before = actors[number];
            if before.is_standing || before.is_over {
                return;
            }
            assert!(since.elapsed() < DEADLINE, "nobody goes on: {actors:?}");
            let waited = changed.wait_for(&mut actors, WAITS);
            let other = actors[1 - number];
            let is_held_up = other.is_standing && actors[number].steps == before.steps;
            if waited.timed_out() && is_held_up {
                return;
            }
        }
    }

    fn let_go(&self, number: usize) {
        let mut actors = self.actors.0.lock();
        actors[number].stop_before = None;
        actors[number].is_standing = false;
        self.actors.1.notify_all();
    }

    fn step(&self) {
        let Some(number) = ACTOR.get() else { return };
        let (actors, changed) = &*self.actors;
        let mut actors = actors.lock();
        let actor = &mut actors[number];
        actor.steps += 1;
        actor.is_standing = actor.stop_before == Some(actor.steps);
        changed.notify_all();
        while actors[number].is_standing {
            changed.wait(&mut actors);
        }
    }
}

/// Says that an actor is over, whichever way.
struct Over<'t>(&'t Turns, usize);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.actors.0.lock()[self.1].is_over = true;
        self.0.actors.1.notify_all();
        if std::thread::panicking() {
            self.0.let_go(1 - self.1);
        }
    }
}

impl AroundDisk for Turns {
    fn inner(&self) -> &dyn Disk {
        &*self.disk
    }

    fn mark(&self, step: Step) {
        self.step();
        self.disk.mark(step);
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.step();
        self.disk.open(path, access)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step();
        self.disk.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.step();
        self.disk.unlink(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step();
        self.disk.sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<sealstone::vfs::Entry>> {
        self.step();
        self.disk.list(path)
    }
}
