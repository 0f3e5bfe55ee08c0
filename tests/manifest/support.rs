//! A store directory with folders and a manifest, owners, and rows made from small numbers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::digest::Digest;
use sealstone::error::Result;
use sealstone::format::layout;
use sealstone::ids::{
    CommitCount, FileId, Generation, ObjectId, Ordinal, OwnerId, Sequence, StoreId, StreamId,
    UniqueId,
};
use sealstone::manifest::{
    Birth, ChunkRow, FileRow, FileState, Manifest, ObjectRow, Open, OwnerRow, Place, Reading, Write,
};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Disk, RealDisk, Step};

pub const FOLDERS: u16 = 4;

pub fn store(n: u8) -> StoreId {
    StoreId::from_parts(1_000, [n; 10])
}

pub fn owner(n: u8) -> OwnerId {
    OwnerId::from_parts(2_000, [n; 10])
}

pub fn birth(n: u8) -> Birth {
    Birth { store: store(n), created: Some(7), sealed_folders: FOLDERS, single_file: false }
}

/// Makes the folders of a store, durably.
pub fn folders(disk: &dyn Disk, root: &Path) {
    let inside = [layout::tmp_dir(root), layout::journal_dir(root), layout::owners_dir(root)];
    disk.mkdir(root).unwrap();
    for folder in inside {
        disk.mkdir(&folder).unwrap();
    }
    disk.sync_dir(root).unwrap();
    disk.sync_dir(root.parent().unwrap()).unwrap();
}

pub struct World {
    pub disk: Arc<dyn Disk>,
    pub root: PathBuf,
    _dir: Option<tempfile::TempDir>,
}

impl World {
    /// A store on a simulated disk.
    pub fn sim(seed: u64) -> (Self, SimDisk) {
        let sim = SimDisk::new(seed);
        (Self::on(Arc::new(sim.clone()), "/run.stone".into(), None), sim)
    }

    /// A store on the real disk.
    pub fn real() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("run.stone");
        Self::on(RealDisk::new(), root, Some(dir))
    }

    fn on(disk: Arc<dyn Disk>, root: PathBuf, dir: Option<tempfile::TempDir>) -> Self {
        folders(&*disk, &root);
        Manifest::create(&disk, &root, &birth(1), "birth").unwrap();
        Self { disk, root, _dir: dir }
    }

    pub fn open(&self) -> Result<Manifest> {
        Manifest::open(&self.disk, &self.root, &Open::default())
    }

    pub fn open_read_only(&self) -> Result<Manifest> {
        Manifest::open_read_only(&self.disk, &self.root, &Open::default())
    }

    /// Opens for writing, and gives owner `n` its row.
    pub fn open_as(&self, n: u8) -> Manifest {
        let manifest = self.open().unwrap();
        let row = OwnerRow { boot_id: self.disk.boot_id(), ..owner_row(n) };
        manifest.write(None, Step::OpenEpoch, |w| w.put(&owner(n), &row)).unwrap();
        manifest
    }
}

pub fn owner_row(n: u8) -> OwnerRow {
    OwnerRow {
        epoch: sealstone::ids::Epoch(u64::from(n)),
        commits: CommitCount(0),
        host: "here".to_owned(),
        pid: 7,
        boot_id: "boot".to_owned(),
        opened: None,
        ended: None,
    }
}

pub fn object_row(n: u64, stored_len: u64, place: Place) -> ObjectRow {
    let digest = Digest::of(&n.to_le_bytes());
    ObjectRow { digest, len: 2 * stored_len, stored_len, codec: 1, place }
}

pub fn chunk(object: ObjectId, first: u64) -> ChunkRow {
    ChunkRow {
        object,
        generation: Generation(0),
        first: Sequence(first),
        records: 10,
        records_written: 10,
        iterations: None,
        times: None,
        raw_len: 80,
        payloads: Vec::new(),
    }
}

pub fn chunk_key(n: u64) -> (StreamId, Ordinal) {
    (StreamId(1), Ordinal(n))
}

/// Publishes a file of `count` objects of 100 bytes, each referred to by a chunk `first + i`.
pub fn publish(w: &mut Write<'_>, first: u64, count: u64) -> Result<(FileId, Vec<ObjectId>)> {
    let file = w.next_file_id()?;
    let row = FileRow {
        digest: Digest::of(&first.to_be_bytes()),
        unique: UniqueId::from_parts(first, [3; 10]),
        len: 50 + 100 * count,
        framing: 50,
        live: 100 * count,
        dead: 0,
        state: FileState::Sealed,
        sealed: w.commit_seq(),
    };
    w.put(&file, &row)?;
    let mut objects = Vec::new();
    for i in 0..count {
        let object = w.next_object_id()?;
        let place = Place::Extent { file, offset: 50 + 100 * i };
        w.put(&object, &object_row(first + i, 100, place))?;
        w.put(&chunk_key(first + i), &chunk(object, 10 * (first + i)))?;
        objects.push(object);
    }
    Ok((file, objects))
}

/// Every row of the tables that the tests write, as text: what a store says.
pub fn contents(from: &impl Reading) -> Result<Vec<String>> {
    use sealstone::manifest::{EdgeRow, FileObjectRow};
    use std::ops::ControlFlow;
    let mut lines = vec![format!("{:?}", from.counters()?)];
    macro_rules! dump {
        ($($row:ty)*) => {$(
            from.scan::<$row>(.., &mut |key, row| {
                lines.push(format!("{key:?} {row:?}"));
                Ok(ControlFlow::Continue(()))
            })?;
        )*};
    }
    dump! { OwnerRow ObjectRow FileRow ChunkRow EdgeRow FileObjectRow }
    Ok(lines)
}
