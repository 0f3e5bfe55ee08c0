//! The simulated disk as one of its processes holds it.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::content::PAGE;
use super::event::Event;
use super::fault::{Fault, Fired};
use super::log::EventLog;
use super::world::World;
use crate::vfs::counts::Counts;

/// The device number of everything simulated.
pub(super) const DEVICE: u64 = 0x51;

/// A world and the bell that rings whenever a lock in it is released.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) world: Mutex<World>,
    pub(super) released: Condvar,
}

/// A disk in memory, and the world around it, made from one seed.
///
/// Clones are the same process in the same world; [`process`](Self::process) is another process.
/// Equal seeds and equal calls give equal runs.
#[derive(Clone)]
pub struct SimDisk {
    pub(super) shared: Arc<Shared>,
    pub(super) pid: u32,
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimDisk(process {})", self.pid)
    }
}

impl SimDisk {
    /// An empty disk: the directory `/` and nothing in it.
    pub fn new(seed: u64) -> Self {
        Self::over(World::new(seed), 1000)
    }

    pub(super) fn over(world: World, pid: u32) -> Self {
        let shared = Shared { world: Mutex::new(world), released: Condvar::new() };
        Self { shared: Arc::new(shared), pid }
    }

    /// The same world seen by the process `pid`, which has its own handles and locks.
    pub fn process(&self, pid: u32) -> Self {
        Self { shared: Arc::clone(&self.shared), pid }
    }

    /// Ends this process as SIGKILL would: its handles close, its locks go, each later call of it
    /// fails. What it wrote stays in the cache.
    pub fn kill(&self) {
        self.shared.world.lock().kill(self.pid);
        self.shared.released.notify_all();
    }

    /// Writes down, between two events, what the workload knows.
    pub fn note(&self, note: impl AsRef<[u8]>) {
        self.shared.world.lock().record(Event::Note(note.as_ref().into()));
    }

    /// Everything that happened since the disk was made, crashed or had its log restarted.
    pub fn events(&self) -> EventLog {
        self.shared.world.lock().events()
    }

    /// Begins the log anew: what happened so far is where its crashes start from.
    pub fn restart_log(&self) {
        self.shared.world.lock().restart_log(true);
    }

    /// Ends the log, for runs too long to remember. [`restart_log`](Self::restart_log) begins a
    /// new one.
    pub fn stop_log(&self) {
        self.shared.world.lock().restart_log(false);
    }

    /// What was called so far, by all processes, and what is held now.
    pub fn counts(&self) -> Counts {
        let world = self.shared.world.lock();
        let mut counts = world.counts;
        counts.open_handles = world.handles.len() as u64;
        counts.locks_held = world.locks.len();
        counts
    }

    /// Steps the wall clock, back or forward.
    pub fn step_wall_clock(&self, nanos: i64) {
        let mut world = self.shared.world.lock();
        world.wall_ahead = world.wall_ahead.map(|ahead| ahead.saturating_add(nanos));
    }

    /// Sets the wall clock; `None` makes it one that cannot be represented.
    pub fn set_wall_clock(&self, nanos: Option<i64>) {
        let mut world = self.shared.world.lock();
        let now = i64::try_from(world.monotonic).unwrap_or(i64::MAX);
        world.wall_ahead = nanos.map(|nanos| nanos.saturating_sub(now));
    }

    /// Lets time pass on both clocks.
    pub fn pass_time(&self, nanos: u64) {
        self.shared.world.lock().monotonic += nanos;
    }

    /// Makes something go wrong later.
    pub fn inject(&self, fault: Fault) {
        self.shared.world.lock().faults.arm(fault);
    }

    /// Takes back every fault that is still to come; an injected full disk stays full.
    pub fn clear_faults(&self) {
        self.shared.world.lock().faults.disarm();
    }

    /// The faults that struck and had an effect, in order.
    pub fn fired(&self) -> Vec<Fired> {
        self.shared.world.lock().faults.fired().to_vec()
    }

    /// Operations so far: the count that [`Fault::at`] refers to.
    pub fn operations(&self) -> u64 {
        self.shared.world.lock().faults.operations
    }

    /// Sets the size of the disk, in bytes; `None` for no end. Files take whole pages of 4 KiB,
    /// holes none, directories none.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.world.lock().capacity = bytes;
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.shared.world.lock().tree.used * PAGE as u64
    }

    /// Sets how many handles each process may have open.
    pub fn set_handles_max(&self, handles: Option<usize>) {
        self.shared.world.lock().handles_max = handles;
    }
}
