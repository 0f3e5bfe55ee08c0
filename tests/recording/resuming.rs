//! What the tests of resuming share: a small simulation, a store on a simulated disk, ways to damage it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::format::layout;
use sealstone::manifest::{FileRow, Reading};
use sealstone::recording::{
    Cell, Every, Field, FieldType, NewRecording, Observable, Recorder, Schema, Value,
};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, read_exact_at, write_all_at};
use sealstone::{Options, Store, WriteAccess};

pub fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

pub fn on(disk: &SimDisk) -> Options {
    let mut limits = sealstone::Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.background = false;
    Store::options().limits(limits).disk(Arc::new(disk.clone()))
}

pub fn shared(disk: &SimDisk) -> Store {
    on(disk).access(WriteAccess::Shared).open_or_create(root()).unwrap()
}

/// A state of two numbers and a text, each of which follows from the one before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sim {
    pub iteration: i64,
    pub x: f64,
    pub n: i64,
    pub name: String,
}

impl Sim {
    pub fn first() -> Self {
        Self { iteration: 0, x: 0.5, n: 1, name: "0".to_owned() }
    }

    pub fn next(&self) -> Self {
        let x = 3.9 * self.x * (1.0 - self.x);
        let n = self.n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let iteration = self.iteration + 1;
        Self { iteration, x, n, name: iteration.to_string() }
    }

    pub fn at(iteration: i64) -> Self {
        (0..iteration).fold(Self::first(), |state, _| state.next())
    }
}

impl Observable for Sim {
    fn iteration(&self) -> i64 {
        self.iteration
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        match name {
            "x" => to.put(Value::F64(self.x)),
            "n" => to.put(Value::I64(self.n)),
            _ => to.put(Value::String(&self.name)),
        }
    }
}

pub fn schema() -> Schema {
    let types = [("x", FieldType::F64), ("n", FieldType::I64), ("name", FieldType::String)];
    Schema::new(types.map(|(name, ty)| Field::new(name, ty)).to_vec()).unwrap()
}

/// Stream `all` of every observation with x and name, `few` of every third with n.
pub fn draft(store: &Store, name: &str) -> NewRecording {
    store
        .record(name, &schema())
        .stream("all", ["x", "name"])
        .stream_every("few", ["n"], Every::iterations(3))
        .chunk_bytes(120)
}

/// Observes iterations `from..to`.
pub fn observe(recorder: &Recorder, from: i64, to: i64) {
    let mut state = Sim::at(from);
    while state.iteration < to {
        recorder.observe(&state).unwrap();
        state = state.next();
    }
}

/// The iterations of each stream, after a look at every value.
pub fn iterations(store: &Store, name: &str) -> Vec<Vec<i64>> {
    let mut all = Vec::new();
    for stream in store.recording(name).unwrap().streams().unwrap() {
        let at = stream.iteration().to_column().unwrap().as_i64().unwrap().to_vec();
        let states = states(&at);
        if stream.name() == "all" {
            let xs: Vec<f64> = stream.field("x").unwrap().to_vec().unwrap();
            let names: Vec<String> = stream.field("name").unwrap().to_vec().unwrap();
            for ((state, x), name) in states.iter().zip(xs).zip(names) {
                assert_eq!((state.x.to_bits(), &state.name), (x.to_bits(), &name));
            }
        } else {
            let ns: Vec<i64> = stream.field("n").unwrap().to_vec().unwrap();
            states.iter().zip(ns).for_each(|(state, n)| assert_eq!(state.n, n));
        }
        all.push(at);
    }
    all
}

fn states(at: &[i64]) -> Vec<Sim> {
    let mut state = Sim::first();
    let states = at.iter().map(|at| {
        while state.iteration < *at {
            state = state.next();
        }
        assert_eq!(state.iteration, *at, "iterations grow");
        state.clone()
    });
    states.collect()
}

/// What an uninterrupted run of `count` iterations has.
pub fn whole(count: i64) -> Vec<Vec<i64>> {
    vec![(0..count).collect(), (0..count).step_by(3).collect()]
}

pub fn sealed_files(store: &Store) -> Vec<(PathBuf, FileRow)> {
    let rows = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
    let path = |row: &FileRow| layout::sealed(&root(), &row.digest, row.unique, 2);
    rows.into_iter().map(|(_, row)| (path(&row), row)).collect()
}

/// Changes one byte of a file.
pub fn flip(disk: &SimDisk, path: &Path, at: u64) {
    let file = disk.open(path, Access::ReadWrite).unwrap();
    let mut byte = [0];
    read_exact_at(&*file, &mut byte, at).unwrap();
    write_all_at(&*file, &[byte[0] ^ 0x55], at).unwrap();
}
