//! A store directory with folders only, extents made from seeds, and a small source of randomness.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::digest::Digest;
use sealstone::format::layout;
use sealstone::ids::{CommitSeq, OwnerId, StoreId, UniqueId};
use sealstone::sealed::{Builder, Built, Expect, Extent, Label, Reader, Referrer};
use sealstone::vfs::{Access, Disk, RealDisk, read_whole, write_all_at};

/// Folders under sealed/ in these tests.
pub const FOLDERS: u16 = 4;

pub struct World {
    pub disk: Arc<dyn Disk>,
    pub root: PathBuf,
    pub _dir: Option<tempfile::TempDir>,
}

impl World {
    /// A world in memory where that is built in, one on the real disk elsewhere.
    pub fn new() -> Self {
        #[cfg(feature = "sim")]
        return Self::born(
            Arc::new(sealstone::vfs::sim::SimDisk::new(1)),
            "/run.stone".into(),
            None,
        );
        #[cfg(not(feature = "sim"))]
        Self::real()
    }

    pub fn real() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("run.stone");
        Self::born(RealDisk::new(), root, Some(dir))
    }

    /// Makes the folders of a store, durably.
    pub fn born(disk: Arc<dyn Disk>, root: PathBuf, dir: Option<tempfile::TempDir>) -> Self {
        for folder in [root.clone(), layout::tmp_dir(&root), layout::sealed_dir(&root)] {
            disk.mkdir(&folder).unwrap();
        }
        for folder in 0..FOLDERS {
            disk.mkdir(&layout::sealed_folder(&root, folder)).unwrap();
        }
        disk.sync_dir(&layout::sealed_dir(&root)).unwrap();
        disk.sync_dir(&root).unwrap();
        disk.sync_dir(root.parent().unwrap()).unwrap();
        Self { disk, root, _dir: dir }
    }

    pub fn builder(&self, unique: u8, block_bytes: u64) -> Builder {
        Builder::create(&self.disk, &self.root, owner(), id(unique), block_bytes).unwrap()
    }

    pub fn build(&self, unique: u8, block_bytes: u64, extents: &[Vec<u8>]) -> Built {
        let mut builder = self.builder(unique, block_bytes);
        for stored in extents {
            builder.add(&extent(stored), stored).unwrap();
        }
        builder.finish(&label()).unwrap()
    }

    pub fn path(&self, built: &Built) -> PathBuf {
        layout::sealed(&self.root, &built.digest, built.unique, FOLDERS)
    }

    /// A file beside the store with these bytes.
    pub fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.root.join("some-file");
        if self.disk.meta(&path).unwrap().is_some() {
            self.disk.unlink(&path).unwrap();
        }
        let file = self.disk.open(&path, Access::CreateNew).unwrap();
        write_all_at(&*file, bytes, 0).unwrap();
        path
    }

    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        read_whole(&*self.disk.open(path, Access::Read).unwrap(), 1 << 30).unwrap()
    }

    pub fn open(&self, path: &Path) -> Reader {
        Reader::open(&self.disk, path, &Expect::default()).unwrap()
    }
}

pub fn owner() -> OwnerId {
    OwnerId::from_parts(1, [1; 10])
}

pub fn id(n: u8) -> UniqueId {
    UniqueId::from_parts(2, [n; 10])
}

pub fn extent(stored: &[u8]) -> Extent<'_> {
    let about = &stored[..stored.len().min(3)];
    Extent { digest: Digest::of(stored), len: stored.len() as u64, codec: 0, about }
}

pub fn label() -> Label {
    Label {
        store: StoreId::from_parts(3, [3; 10]),
        commit: CommitSeq(41),
        referrers: vec![Referrer {
            extent: Some(0),
            table: 15,
            key: vec![0, 0, 0, 7],
            value: vec![1, 2, 3],
        }],
        inputs: vec![Digest::of(b"input")],
    }
}

/// Splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn fill(&mut self, into: &mut [u8]) {
        into.iter_mut().for_each(|byte| *byte = self.next() as u8);
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }
}
