//! What this binary does as another process.

use std::path::Path;
use std::process::Command;

pub use crate::children::{Running, seed};
use crate::children::{Told, this};

const STOP_AT: &str = "SEALSTONE_CHILD_STOP_AT";

/// What a child is told.
#[derive(Debug, Clone)]
pub struct Orders {
    told: Told,
    /// The step at which it stands still, and at which pass of it.
    pub stop_at: Option<(String, u64)>,
    /// How many descriptors it may have.
    pub descriptors: Option<u64>,
}

impl Orders {
    pub fn new(role: &str, root: &Path, out: &Path, seed: u64) -> Self {
        Self { told: Told::new(role, root, out, seed), stop_at: None, descriptors: None }
    }

    pub fn start(&self) -> Running {
        let mut command = match self.descriptors {
            None => this(),
            Some(n) => {
                let mut command = Command::new("sh");
                command
                    .args(["-c", &format!("ulimit -n {n}; exec \"$0\" \"$@\"")])
                    .arg(this().get_program());
                command
            }
        };
        if let Some((step, passes)) = &self.stop_at {
            command.env(STOP_AT, format!("{step}:{passes}"));
        }
        self.told.start(command)
    }
}

/// What a child runs; nothing, where no test started it as one.
#[test]
fn a_child() {
    let Some(Told { role, root, out, seed }) = Told::here() else { return };
    let stop_at = std::env::var(STOP_AT).ok().map(|text| {
        let (step, passes) = text.split_once(':').unwrap();
        (step.to_owned(), passes.parse().unwrap())
    });
    match role.as_str() {
        "writer" => crate::writer::run(&root, &out, seed, stop_at),
        "reader" => crate::reader::run(&root, &out),
        "narrow" => crate::full::narrow(&root, &out),
        "holder" => crate::access::hold(&root, &out),
        other => panic!("no such role: {other}"),
    }
}
