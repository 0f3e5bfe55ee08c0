//! The command line as a script meets it: what every suite of commands needs.

// Not every suite asks for all of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder that goes with its test.
pub struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.text(name)
    }
}

/// The command, without what the environment says.
pub fn sealstone() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sealstone"));
    command.env_remove("SEALSTONE_STORE").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

pub fn run(args: &[&str]) -> Output {
    sealstone().args(args).output().unwrap()
}

/// Both of its streams, one behind the other.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Every JSON object that a command prints, one on each line.
#[track_caller]
pub fn told(args: &[&str], code: i32) -> Vec<Value> {
    let output = run(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    let values = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    values.inspect(|value: &Value| assert_eq!(value["schema"], 1, "{value}")).collect()
}

/// The last JSON object that a command prints.
#[track_caller]
pub fn json(args: &[&str], code: i32) -> Value {
    told(args, code).pop().unwrap()
}

/// Both streams of a command that ends with `code`.
#[track_caller]
pub fn ran(args: &[&str], code: i32) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
    text(&output)
}

/// Everything below `root`, with lengths and times of the last change.
pub fn listing(root: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            }
            found.push((entry.path(), meta.len(), meta.modified().unwrap()));
        }
    }
    found.sort();
    found
}
