//! A disk whose journal stops at a gate until the test lets it go, or fails there.

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use sealstone::vfs::{Access, AroundDisk, AroundFile, Disk, File, Step};

/// A call on a journal file that the gate can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Write,
    Sync,
}

#[derive(Debug, Default)]
struct Gate {
    held: Option<Call>,
    /// What each call that the gate would hold answers.
    error: Option<io::ErrorKind>,
    /// The writer panics there.
    panics: bool,
    standing: usize,
}

/// What happens once, at a step of the protocol or before a sealed file is opened.
type Hook = Box<dyn FnOnce() + Send>;

/// A disk with the gate before it.
#[derive(Clone)]
pub struct GateDisk {
    disk: Arc<dyn Disk>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
    clock: Arc<Mutex<Clock>>,
    at_step: Arc<Mutex<Option<(Step, Hook)>>>,
    at_sealed: Arc<Mutex<Option<Hook>>>,
}

/// What happens when somebody looks at the wall clock.
#[derive(Default)]
struct Clock {
    looks_before: usize,
    then: Option<Hook>,
}

impl std::fmt::Debug for GateDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateDisk").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl GateDisk {
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        let (clock, at_step, at_sealed) = (Arc::default(), Arc::default(), Arc::default());
        Self { disk, gate: Arc::default(), clock, at_step, at_sealed }
    }

    /// Runs `then` when somebody has looked at the wall clock `looks_before` times and does so again:
    /// between two steps of one call.
    pub fn at_clock(&self, looks_before: usize, then: impl FnOnce() + Send + 'static) {
        *self.clock.lock() = Clock { looks_before, then: Some(Box::new(then)) };
    }

    /// Lets `hook` run when `step` is reached next.
    pub fn at_step(&self, step: Step, hook: impl FnOnce() + Send + 'static) {
        *self.at_step.lock() = Some((step, Box::new(hook)));
    }

    /// Lets `hook` run before a sealed file is opened next for reading.
    pub fn at_sealed(&self, hook: impl FnOnce() + Send + 'static) {
        *self.at_sealed.lock() = Some(Box::new(hook));
    }

    /// Lets the journal stop at its next `call`.
    pub fn hold(&self, call: Call) {
        self.change(|gate| gate.held = Some(call));
    }

    /// Lets everybody through.
    pub fn let_go(&self) {
        self.change(|gate| *gate = Gate { standing: gate.standing, ..Gate::default() });
    }

    /// Lets whoever stands at the gate fail, and whoever makes the same call from now on.
    pub fn fail(&self, call: Call, error: io::ErrorKind) {
        self.change(|gate| (gate.held, gate.error) = (Some(call), Some(error)));
    }

    /// Lets whoever comes to the gate panic.
    pub fn panic_at(&self, call: Call) {
        self.change(|gate| (gate.held, gate.panics) = (Some(call), true));
    }

    /// Returns when somebody stands at the gate.
    pub fn until_somebody_stands(&self) {
        let mut gate = self.gate.0.lock();
        while gate.standing == 0 {
            self.gate.1.wait(&mut gate);
        }
    }

    fn change(&self, what: impl FnOnce(&mut Gate)) {
        what(&mut self.gate.0.lock());
        self.gate.1.notify_all();
    }
}

#[derive(Debug)]
struct GateFile {
    file: Arc<dyn File>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

impl GateFile {
    fn pass(&self, call: Call) -> io::Result<()> {
        let mut gate = self.gate.0.lock();
        gate.standing += 1;
        self.gate.1.notify_all();
        while gate.held == Some(call) && gate.error.is_none() && !gate.panics {
            self.gate.1.wait(&mut gate);
        }
        gate.standing -= 1;
        assert!(!(gate.panics && gate.held == Some(call)), "the disk panics at the gate");
        match gate.error.filter(|_| gate.held == Some(call)) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

impl AroundFile for GateFile {
    fn inner(&self) -> &dyn File {
        &*self.file
    }
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.pass(Call::Write)?;
        self.file.write_at(from, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.pass(Call::Sync)?;
        self.file.sync_data()
    }
}

impl AroundDisk for GateDisk {
    fn inner(&self) -> &dyn Disk {
        &*self.disk
    }
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        if access == Access::Read && path.components().any(|part| part.as_os_str() == "sealed") {
            let hook = self.at_sealed.lock().take();
            hook.into_iter().for_each(|hook| hook());
        }
        let file = self.disk.open(path, access)?;
        let is_journal = path.extension().is_some_and(|extension| extension == "journal");
        match is_journal && access == Access::CreateNew {
            true => Ok(Arc::new(GateFile { file, gate: Arc::clone(&self.gate) })),
            false => Ok(file),
        }
    }
    fn wall_nanos(&self) -> Option<i64> {
        let mut clock = self.clock.lock();
        let then = match clock.looks_before {
            0 => clock.then.take(),
            _ => None,
        };
        clock.looks_before = clock.looks_before.saturating_sub(1);
        drop(clock);
        if let Some(then) = then {
            then();
        }
        self.disk.wall_nanos()
    }
    fn mark(&self, step: Step) {
        self.disk.mark(step);
        let hook = self.at_step.lock().take_if(|(at, _)| *at == step);
        hook.into_iter().for_each(|(_, hook)| hook());
    }
}
