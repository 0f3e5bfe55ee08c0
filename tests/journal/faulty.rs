//! A disk that fails as told, at a byte of a write, and that can become another process.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, AroundDisk, AroundFile, Disk, File};

/// Calls that a fault may hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Create,
    Write,
    SetLen,
    Sync,
    SyncDir,
    Unlink,
}

/// The first call from number `at` on (of one kind, where given) fails with `error`; a write after
/// `bytes` of it were taken.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub at: u64,
    pub only: Option<Call>,
    pub bytes: usize,
    pub error: io::ErrorKind,
    pub forever: bool,
}

#[derive(Debug, Default)]
struct Plan {
    fault: Option<Fault>,
    calls: Vec<Call>,
    hit: Option<(u64, Call)>,
    reads: u64,
    flip: Option<u64>,
}

#[derive(Debug)]
pub struct FaultyDisk {
    disk: SimDisk,
    pid: AtomicU32,
    plan: Arc<Mutex<Plan>>,
}

impl FaultyDisk {
    pub fn new(disk: SimDisk) -> Self {
        Self { disk, pid: AtomicU32::new(1000), plan: Arc::default() }
    }

    pub fn become_process(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// Counts calls anew, and lets one of them fail.
    pub fn plan(&self, fault: Option<Fault>) {
        *self.plan.lock() = Plan { fault, ..Plan::default() };
    }

    /// Counts reads anew, and flips a bit in every byte that read number `at` returns, once.
    pub fn flip_read(&self, at: u64) {
        *self.plan.lock() = Plan { flip: Some(at), ..Plan::default() };
    }

    /// Reads since the last plan.
    pub fn reads(&self) -> u64 {
        self.plan.lock().reads
    }

    /// The calls since the last plan, the failing ones included.
    pub fn calls(&self) -> Vec<Call> {
        self.plan.lock().calls.clone()
    }

    /// The first call that failed.
    pub fn hit(&self) -> Option<(u64, Call)> {
        self.plan.lock().hit
    }
}

impl Plan {
    /// How many bytes to take first, and the error, if this call fails.
    fn call(&mut self, call: Call) -> Option<(usize, io::Error)> {
        let number = self.calls.len() as u64;
        self.calls.push(call);
        let fault = self.fault?;
        let meant = number >= fault.at && fault.only.is_none_or(|only| only == call);
        if !meant || (self.hit.is_some() && !fault.forever) {
            return None;
        }
        self.hit.get_or_insert((number, call));
        Some((fault.bytes, fault.error.into()))
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Arc<dyn File>,
    plan: Arc<Mutex<Plan>>,
    /// The rest of a write of which some bytes were taken.
    failing: Mutex<Option<io::Error>>,
}

impl FaultyFile {
    fn check(&self, call: Call) -> io::Result<()> {
        self.plan.lock().call(call).map_or(Ok(()), |(_, error)| Err(error))
    }
}

impl AroundFile for FaultyFile {
    fn inner(&self) -> &dyn File {
        &*self.file
    }
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(into, offset)?;
        let mut plan = self.plan.lock();
        if plan.flip == Some(plan.reads) {
            into[..read].iter_mut().for_each(|byte| *byte ^= 4);
        }
        plan.reads += 1;
        Ok(read)
    }
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        if let Some(error) = self.failing.lock().take() {
            return Err(error);
        }
        match self.plan.lock().call(Call::Write) {
            None => self.file.write_at(from, offset),
            Some((bytes, error)) => match bytes.min(from.len()) {
                0 => Err(error),
                short => {
                    *self.failing.lock() = Some(error);
                    self.file.write_at(&from[..short], offset)
                }
            },
        }
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check(Call::SetLen)?;
        self.file.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.check(Call::Sync)?;
        self.file.sync_data()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.check(Call::Sync)?;
        self.file.sync_all()
    }
}

impl FaultyDisk {
    fn check(&self, call: Call) -> io::Result<()> {
        self.plan.lock().call(call).map_or(Ok(()), |(_, error)| Err(error))
    }
}

impl AroundDisk for FaultyDisk {
    fn inner(&self) -> &dyn Disk {
        &self.disk
    }
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        if access == Access::CreateNew {
            self.check(Call::Create)?;
        }
        let file = self.disk.open(path, access)?;
        Ok(Arc::new(FaultyFile { file, plan: Arc::clone(&self.plan), failing: Mutex::default() }))
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.check(Call::Unlink)?;
        self.disk.unlink(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Call::SyncDir)?;
        self.disk.sync_dir(path)
    }
    fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }
}
