//! What the suite shares: small stores on a simulated disk, and everything that a state shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::Limits;
use sealstone::engine::{Budget, Layout, Options, Store};
use sealstone::manifest::CheckIntegrity;
use sealstone::state::{NameGeneration, State};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;

/// Bounds small enough that values lie inline and in files, and that history goes soon.
pub fn small(history_max: u64) -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.block_bytes = 512;
    limits.background = false;
    limits.history_max = history_max;
    limits
}

pub fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

/// The same in the single-file layout.
pub fn single(disk: &SimDisk, history_max: u64) -> Options {
    on(disk, history_max).layout(Layout::SingleFile)
}

pub fn on(disk: &SimDisk, history_max: u64) -> Options {
    Store::options()
        .limits(small(history_max))
        .check_integrity(CheckIntegrity::Always)
        .disk(Arc::new(disk.clone()))
}

/// The values of one name, newest first: generation and bytes.
pub type Values = Vec<(NameGeneration, Vec<u8>)>;

/// Everything that a state shows, read in every way there is.
pub fn shown(state: &State) -> BTreeMap<String, Values> {
    let mut all = BTreeMap::new();
    for entry in state.list("") {
        let entry = entry.unwrap();
        let values: Values = state
            .versions(&entry.name)
            .unwrap()
            .into_iter()
            .map(|e| (e.generation, state.get_bytes_at(&e.name, e.generation).unwrap()))
            .collect();
        let found = state.find_bytes(&entry.name).unwrap().unwrap();
        assert_eq!((found.generation, &found.value), (values[0].0, &values[0].1));
        assert_eq!((entry.generation, entry.len), (found.generation, found.value.len() as u64));
        assert_eq!(state.entry(&entry.name).unwrap(), Some(entry.clone()));
        assert!(all.insert(entry.name, values).is_none(), "listed twice");
    }
    all
}

/// Every byte is accounted for, and reclaim takes nothing that counts.
pub fn books_close(store: &Store) {
    assert!(store.accounts().unwrap().are_closed());
    let before = shown(&store.state());
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(shown(&store.state()), before, "reclaim took something");
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.orphan == 0 && accounts.condemned == 0);
}
