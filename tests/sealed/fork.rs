//! A builder carried into a forked child: refused there, and the parent's file untouched (G18).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Rng, World, extent, label};
use sealstone::ErrorKind;
use sealstone::format::layout;
use sealstone::sealed::SLICE_BYTES;
use sealstone::vfs::{AroundDisk, Disk, RealDisk};

/// A disk whose process can become another, as in a forked child.
#[derive(Debug)]
struct Forking {
    disk: Arc<dyn Disk>,
    pid: AtomicU32,
}

impl AroundDisk for Forking {
    fn inner(&self) -> &dyn Disk {
        &*self.disk
    }
    fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }
}

/// Does a child write into its parent's file, finish it, or take it away when its copy is dropped?
#[test]
fn g18_a_forked_child_leaves_the_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let disk = Arc::new(Forking { disk: RealDisk::new(), pid: AtomicU32::new(1) });
    let world = World::born(Arc::clone(&disk) as Arc<dyn Disk>, root, Some(dir));
    let stored = Rng(1).bytes(2 * SLICE_BYTES);
    let mut builder = world.builder(1, 4096);
    builder.begin().unwrap();
    builder.push(&stored[..100_000]).unwrap();
    let mut in_child = world.builder(2, 4096);
    in_child.begin().unwrap();
    disk.pid.store(2, Ordering::Relaxed);
    assert_eq!(in_child.push(&stored).unwrap_err().kind(), ErrorKind::Forked);
    drop(in_child);
    let unfinished = world.builder(3, 64);
    disk.pid.store(1, Ordering::Relaxed);
    assert_eq!(unfinished.finish(&label()).unwrap_err().kind(), ErrorKind::Forked);
    assert_eq!(world.disk.list(&layout::tmp_dir(&world.root)).unwrap().len(), 3);
    builder.push(&stored[100_000..]).unwrap();
    builder.end(&extent(&stored)).unwrap();
    let built = builder.finish(&label()).unwrap();
    assert_eq!(built.digest, World::new().build(1, 4096, &[stored]).digest);
}
