//! What this binary does as another process.

use std::path::Path;

pub use crate::children::Running;
use crate::children::{Told, this};

/// Starts a child.
pub fn start(role: &str, root: &Path, out: &Path, seed: u64) -> Running {
    Told::new(role, root, out, seed).start(this())
}

/// What a child runs; nothing, where no test started it as one.
#[test]
fn a_child() {
    let Some(Told { role, root, out, seed }) = Told::here() else { return };
    match role.split('-').next().unwrap() {
        "reader" => crate::readers::read(&root, &out),
        "holder" => crate::readers::hold(&root, &out),
        "owner" => crate::in_use::own(&root, &out, seed),
        other => panic!("no such role: {other}"),
    }
}
