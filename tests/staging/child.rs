//! What this binary does as another process.

use std::path::Path;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

pub use crate::children::{Running, fixed_seed, seed};
use crate::children::{Told, this};

/// What a child is told.
#[derive(Debug, Clone)]
pub struct Orders(Told);

impl Orders {
    pub fn new(role: &str, root: &Path, out: &Path, seed: u64) -> Self {
        Self(Told::new(role, root, out, seed))
    }

    /// As all children are started, with SIGTERM blocked, to wait for it.
    pub fn start(&self) -> Running {
        terminations().thread_block().unwrap();
        let running = self.0.start(this());
        terminations().thread_unblock().unwrap();
        running
    }
}

fn terminations() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set
}

/// Waits for a SIGTERM, in a child.
pub fn wait_for_termination() {
    terminations().wait().unwrap();
}

/// SIGTERM; it ends when it likes.
pub fn terminate(child: &Running) {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
}

/// What a child runs; nothing, where no test started it as one.
#[test]
fn a_child() {
    let Some(Told { role, root, out, seed }) = Told::here() else { return };
    match role.as_str() {
        "ingest" => crate::lives::ingest::run(&root, &out, seed),
        "converter" => crate::backlog::convert(&root, seed),
        "reader" => crate::counting::read(&root, &out),
        other => panic!("no such role: {other}"),
    }
}
