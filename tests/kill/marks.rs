//! The real disk, with the protocol step in progress written where another process can read it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sealstone::vfs::{RealDisk, Step, TraceDisk};

/// A disk that writes the steps to the file `marks`; at the given pass of `stop_at` the process
/// stands still, to be killed there.
pub fn marking(marks: &Path, stop_at: Option<Step>, passes: u64) -> Arc<TraceDisk> {
    let disk = TraceDisk::counting(RealDisk::new());
    let marks = OpenOptions::new().write(true).create(true).truncate(true).open(marks).unwrap();
    marks.write_all_at(&[0, 0, 0], 0).unwrap();
    let passes = AtomicU64::new(passes);
    disk.on_mark(move |step| mark(&marks, step, stop_at, &passes));
    Arc::new(disk)
}

fn mark(marks: &File, step: Step, stop_at: Option<Step>, passes: &AtomicU64) {
    let at = Step::ALL.iter().position(|other| *other == step).unwrap() as u8 + 1;
    marks.write_all_at(&[at], 0).unwrap();
    if step == Step::OpenReady {
        marks.write_all_at(&[1], 2).unwrap();
    }
    if stop_at == Some(step) && passes.fetch_sub(1, Ordering::Relaxed) <= 1 {
        marks.write_all_at(&[at, 1], 0).unwrap();
        loop {
            std::thread::park();
        }
    }
}

/// What a marks file says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks {
    /// The step in progress.
    pub step: Option<Step>,
    /// The process stands still at it.
    pub is_stopped: bool,
    /// The store was opened once.
    pub was_ready: bool,
}

pub fn read_marks(path: &Path) -> Marks {
    let bytes = std::fs::read(path).unwrap_or_default();
    let step =
        bytes.first().and_then(|at| Step::ALL.get(usize::from(*at).checked_sub(1)?)).copied();
    let is_set = |at| bytes.get(at) == Some(&1);
    Marks { step, is_stopped: is_set(1), was_ready: is_set(2) }
}
