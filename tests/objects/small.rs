//! Small stores on simulated disks, of each layout.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::Limits;
use sealstone::engine::{Layout, Options, Store};
use sealstone::manifest::CheckIntegrity;
use sealstone::objects::Name;
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;

pub const LAYOUTS: [Layout; 2] = [Layout::Directory, Layout::SingleFile];

/// Bounds small enough that objects lie inline and in files.
pub fn small() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 0;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.block_bytes = 512;
    limits.manifest_cache_bytes = 1 << 20;
    limits.background = false;
    limits
}

pub fn sim(seed: u64) -> SimDisk {
    println!("seed {seed}");
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

pub fn on(disk: &SimDisk, layout: Layout) -> Options {
    Store::options()
        .limits(small())
        .layout(layout)
        .check_integrity(CheckIntegrity::Always)
        .disk(Arc::new(disk.clone()))
}

/// A store of each layout, on a disk of its own.
pub fn each(seed: u64, test: impl Fn(&SimDisk, Layout, Store)) {
    for layout in LAYOUTS {
        let disk = sim(seed);
        let store = on(&disk, layout).create(root()).unwrap();
        test(&disk, layout, store);
    }
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}
