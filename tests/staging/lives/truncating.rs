//! The control arm: stages as others wrote them, which lose rows or have them twice. The check that
//! the real one passes must fail here, or it shows nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use sealstone::staging::Key;

use super::source::{PRODUCERS, ROW_BYTES, Source};
use super::tally::Tally;

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// A late batch opens the file that is being flushed, and cuts it.
    TruncatesOnLate,
    /// A converted file is not removed, and is converted again.
    KeepsInputs,
}

/// A file for each key, converted when its minute has passed.
struct Files {
    dir: PathBuf,
    fault: Fault,
    /// Keys whose file is being flushed.
    flushing: BTreeSet<Key>,
    generation: u64,
    names: BTreeMap<String, Key>,
    outputs: Vec<(Key, Vec<u8>)>,
}

impl Files {
    fn new(dir: &Path, fault: Fault) -> Self {
        Self {
            dir: dir.to_owned(),
            fault,
            flushing: BTreeSet::new(),
            generation: 0,
            names: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    fn path(&mut self, key: &Key) -> PathBuf {
        if self.flushing.contains(key) && self.fault == Fault::Nothing {
            self.generation += 1;
            let name = format!("late-{}", self.generation);
            self.names.insert(name.clone(), key.clone());
            return self.dir.join(name);
        }
        let name = key.to_string().replace(['/', '=', ':'], "_");
        self.names.insert(name.clone(), key.clone());
        self.dir.join(name)
    }

    fn append(&mut self, key: &Key, bytes: &[u8]) {
        let path = self.path(key);
        let is_late = self.flushing.contains(key);
        let mut file: File = match self.fault == Fault::TruncatesOnLate && is_late {
            true => File::create(path).unwrap(),
            false => OpenOptions::new().create(true).append(true).open(path).unwrap(),
        };
        file.write_all(bytes).unwrap();
    }

    /// Everything that is there is about to be converted.
    fn detach(&mut self) {
        self.flushing = self.names.values().cloned().collect();
    }

    fn convert(&mut self) {
        self.flushing.clear();
        for (name, key) in self.names.clone() {
            let path = self.dir.join(&name);
            self.outputs.push((key, std::fs::read(&path).unwrap()));
            if self.fault != Fault::KeepsInputs {
                std::fs::remove_file(path).unwrap();
                self.names.remove(&name);
            }
        }
    }
}

fn play(fault: Fault) -> Result<(), String> {
    let (dir, source) = (tempfile::tempdir().unwrap(), Source { seed: 5, rows: 20, minute: 8 });
    let (mut files, batches) = (Files::new(dir.path(), fault), 40);
    for sequence in 1..=batches {
        for producer in 0..PRODUCERS {
            let key = source.key(producer, sequence);
            files.append(&key, &source.batch(producer, sequence));
        }
        match sequence % 8 {
            4 => files.detach(),
            6 => files.convert(),
            _ => {}
        }
    }
    files.convert();
    let mut tally = Tally::new(source);
    for (key, bytes) in &files.outputs {
        tally.take(key, bytes, (bytes.len() / ROW_BYTES) as u64);
    }
    tally.compare(&[batches; PRODUCERS])
}

/// Does the check of the four lives fail for a writer that truncates when a batch comes late, and for
/// one that converts what it had converted, and for no other?
#[test]
fn stg32_a_truncating_writer_fails_the_check() {
    play(Fault::Nothing).unwrap();
    let lost = play(Fault::TruncatesOnLate).unwrap_err();
    let twice = play(Fault::KeepsInputs).unwrap_err();
    println!("truncating: {lost}\nconverting again: {twice}");
    assert!(lost.contains("missing") && twice.contains("twice"));
}
