//! Retain: while a copy of the store is made, nothing goes that the copy still needs.
//!
//! It is an OS lock on the folder `sealed/`: exclusive for who copies, shared for who unlinks. So it
//! reaches every process, also from one that may not write a row, and it ends with its holder.
//!
//! ```text
//!   copy:    [retain] -> snapshot -> copy -> verify -> let go
//!   removal: [may_remove] -> commit that forgets -> unlink -> let go;  or later, where it is held
//! ```
//! Whatever a snapshot taken under the hold names is there until the hold ends.

use std::io;

use super::core::Core;
use super::worker;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::protection::Protection;
use crate::vfs::{Held, Sharing};

/// How long a copy waits for removals under way, and for another copy.
const WAIT_MILLIS: u64 = 10_000;
const WAIT_MILLIS_STEP: u64 = 5;

/// The right to copy, or to remove. Ends when dropped.
#[derive(Debug)]
pub(super) struct Hold {
    /// Absent where there is no file to hold.
    _lock: Option<Box<dyn Held>>,
}

/// Keeps every file in its place; waits for removals under way.
///
/// # Errors
/// `Conflict` when another copy is made meanwhile; `Io`.
pub(super) fn retain(core: &Core) -> Result<Hold> {
    if !Protection::HoldWhileCopied.is_on() {
        return Ok(Hold { _lock: None });
    }
    let mut waited = 0;
    loop {
        if let Some(hold) = take(core, Sharing::Exclusive)? {
            return Ok(hold);
        }
        if waited >= WAIT_MILLIS {
            let cause = "another copy of the store is being made, or files are being removed";
            let place = core.root.display();
            return Err(Error::new(ErrorKind::Conflict, "back up", place, cause));
        }
        worker::pause(WAIT_MILLIS_STEP);
        waited += WAIT_MILLIS_STEP;
    }
}

/// The right to remove files; `None` while a copy is made: they go later.
pub(super) fn may_remove(core: &Core) -> Result<Option<Hold>> {
    take(core, Sharing::Shared)
}

fn take(core: &Core, sharing: Sharing) -> Result<Option<Hold>> {
    if core.manifest.meta().single_file {
        // A snapshot of the one file holds every byte of it.
        return Ok(Some(Hold { _lock: None }));
    }
    let dir = layout::sealed_dir(&core.root);
    match core.disk.lock_dir(&dir, sharing) {
        Ok(Some(lock)) => Ok(Some(Hold { _lock: Some(lock) })),
        Ok(None) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Some(Hold { _lock: None })),
        Err(e) => Err(Error::io("lock", dir.display(), e)),
    }
}
