//! What this binary does as another process.

use std::path::Path;

pub use crate::children::{Running, seed};
use crate::children::{Told, this};

/// What a child is told.
#[derive(Debug, Clone)]
pub struct Orders(Told);

impl Orders {
    pub fn new(role: &str, root: &Path, out: &Path, seed: u64) -> Self {
        Self(Told::new(role, root, out, seed))
    }

    pub fn start(&self) -> Running {
        self.0.start(this())
    }
}

/// What a child runs; nothing, where no test started it as one.
#[test]
fn a_child() {
    let Some(Told { role, root, out, seed }) = Told::here() else { return };
    match role.as_str() {
        "holder" => crate::access::hold(&root, &out),
        "writer" => crate::loops::write(&root, &out, seed),
        other => panic!("no such role: {other}"),
    }
}
