//! Do files stay what they are through everything that moves their bytes?

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::check::{CheckOptions, Report, SalvageOptions, check, salvage};
use sealstone::engine::{Budget, Layout, Store, Thing, WriteAccess};
use sealstone::format::{framed, layout};
use sealstone::ids::{OwnerId, UniqueId};
use sealstone::manifest::{FileRow, FileState, NameRow, ObjectRow, Place, Reading, RecipeRow};
use sealstone::objects::{Digest, Name};
use sealstone::sealed::{Builder, Extent, Label, place};
use sealstone::vfs::{Disk, RealDisk, Step};

use crate::made::*;

pub const DIRECTORY: (Layout, WriteAccess) = (Layout::Directory, WriteAccess::Single);

/// Words that compress, unlike any other ones.
pub fn words(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 64);
    let mut line = seed;
    while bytes.len() < len {
        line = line.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        bytes.extend(format!("line {:08} of what was measured there\n", line >> 40).bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Stores `contents` compressed, in one file of a store that is a directory, each under its name.
pub fn compressed(store: &Store, root: &Path, contents: &[(Name, Vec<u8>)], unique: u8) {
    let disk: Arc<dyn Disk> = RealDisk::new();
    let id = UniqueId::from_parts(5, [unique; 10]);
    let nobody = OwnerId::from_parts(0, [0; 10]);
    let mut builder = Builder::create(&disk, root, nobody, id, 4 << 10).unwrap();
    let mut made = Vec::new();
    for (name, bytes) in contents {
        let stored = framed::encode(bytes).unwrap();
        let (digest, len) = (Digest::of(bytes), bytes.len() as u64);
        let extent = Extent { digest, len, codec: framed::CODEC, about: &[] };
        made.push((name, digest, len, builder.add(&extent, &stored).unwrap()));
    }
    let commit = store.snapshot().unwrap().counters().unwrap().commit_seq;
    let label = Label { store: store.id(), referrers: Vec::new(), inputs: Vec::new(), commit };
    let built = builder.finish(&label).unwrap();
    place(&disk, root, std::slice::from_ref(&built), small().sealed_folders).unwrap();
    let live = built.len - built.framing;
    let file_row = FileRow {
        digest: built.digest,
        unique: built.unique,
        len: built.len,
        framing: built.framing,
        live,
        dead: 0,
        state: FileState::Sealed,
        sealed: commit,
    };
    let lease = lease(store);
    let objects = store.transact(Step::PublishCommit, |w| {
        let file = w.next_file_id()?;
        w.put(&file, &file_row)?;
        let mut objects = Vec::new();
        for (_, digest, len, at) in &made {
            let (object, place) = (w.next_object_id()?, Place::Extent { file, offset: at.offset });
            let (digest, len, stored_len) = (*digest, *len, at.stored_len);
            let codec = framed::CODEC;
            w.put(&object, &ObjectRow { digest, len, stored_len, codec, place })?;
            let mut row = w.require::<sealstone::manifest::LeaseRow>(&lease)?;
            row.objects.push(object);
            w.put(&lease, &row)?;
            objects.push(object);
        }
        Ok(objects)
    });
    for (object, (under, ..)) in objects.unwrap().value.into_iter().zip(&made) {
        name(store, under, object);
    }
    store.retire(&[Thing::Lease(lease)], "they have names").unwrap();
}

/// Files of every kind, two of them recipes that share pieces with a compressed one among them.
fn filled(store: &Store, root: &Path) -> Vec<(Name, Vec<u8>)> {
    let mut made = one_of_each(store);
    let long = words(1, (2 << 20) + 77);
    let some = vec![
        (named("z/long"), long.clone()),
        (named("z/short"), words(2, 3000)),
        (named("z/gone"), words(3, 300_000)),
    ];
    compressed(store, root, &some, 1);
    let snapshot = store.snapshot().unwrap();
    let of = |bytes: &[u8]| {
        let (object, row) = snapshot.object_of(&Digest::of(bytes)).unwrap().remove(0);
        (object, row.len)
    };
    let tail = noise(77, 5000);
    let lease = lease(store);
    let ids = put(store, lease, std::slice::from_ref(&tail));
    let pieces = [of(&long), (ids[0], 5000), of(&some[1].1)];
    let whole = [long, tail, some[1].1.clone()].concat();
    recipe_of(store, &named("z/of compressed"), Digest::of(&whole), &pieces, 2);
    store.retire(&[Thing::Lease(lease)], "it has a recipe").unwrap();
    drop(snapshot);
    unname(store, &named("z/gone"));
    made.push((named("z/of compressed"), whole));
    made.extend(some.into_iter().take(2));
    made
}

pub fn reads(store: &Store, made: &[(Name, Vec<u8>)]) {
    for (name, bytes) in made {
        let object = store.objects().open(name).unwrap();
        assert_eq!(object.digest(), Digest::of(bytes), "{name}");
        assert!(object.range(0..object.len()).unwrap() == *bytes, "{name}");
        let len = bytes.len() as u64;
        for (from, to) in [(0, 1), (len / 3, len / 2), (len.saturating_sub(2000), len)] {
            let wanted = &bytes[from as usize..to as usize];
            assert!(object.range(from..to).unwrap() == wanted, "{name} {from}..{to}");
        }
        object.verify().unwrap();
    }
}

pub fn looked(root: &Path) -> Report {
    check(root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap()
}

pub fn is_good(root: &Path) {
    let report = looked(root);
    assert!(report.is_good(), "{:#?}", report.findings);
    assert!(report.accounts.unwrap().are_closed());
}

struct Made {
    folder: tempfile::TempDir,
    files: Vec<(Name, Vec<u8>)>,
}

impl Made {
    fn root(&self) -> PathBuf {
        self.folder.path().join("run.stone")
    }
}

fn made() -> (Made, Store) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    let store = options(DIRECTORY).create(&root).unwrap();
    let files = filled(&store, &root);
    (Made { folder, files }, store)
}

/// Are pieces and compressed objects read, and are the ranges right, while compaction moves them?
#[test]
fn obj23_pieces_and_compressed_objects_are_moved_as_they_are() {
    let (made, store) = made();
    reads(&store, &made.files);
    let places = |store: &Store| -> Vec<Place> {
        let rows = store.snapshot().unwrap().list::<ObjectRow>(.., usize::MAX).unwrap();
        rows.into_iter().filter(|(_, row)| row.codec == 1).map(|(_, row)| row.place).collect()
    };
    let before = places(&store);
    let open = store.objects().open(&made.files[4].0).unwrap();
    let done = store.reclaim(Budget::default()).unwrap();
    assert!(done.compacted > 0 && done.unreadable == 0, "{done:?}");
    assert_ne!(places(&store), before);
    reads(&store, &made.files);
    assert!(open.range(0..open.len()).unwrap() == made.files[4].1, "an open file reads on");
    drop(open);
    store.close().unwrap();
    is_good(&made.root());
    let store = options(DIRECTORY).open(made.root()).unwrap();
    reads(&store, &made.files);
}

/// Does one file hold what the directory held, and a directory what one file held?
#[test]
fn obj2_packed_and_unpacked_files_are_the_same() {
    let (made, store) = made();
    store.close().unwrap();
    let go_on = &mut |_| ControlFlow::Continue(());
    let (one, back) = (made.folder.path().join("one.stone"), made.folder.path().join("back.stone"));
    let packed = options(DIRECTORY).pack(made.root(), &one, go_on).unwrap();
    assert!(packed.objects > 10);
    options(DIRECTORY).unpack(&one, &back, go_on).unwrap();
    for root in [&one, &back] {
        is_good(root);
        let store = Store::options().limits(small()).open(root).unwrap();
        reads(&store, &made.files);
        store.reclaim(Budget::default()).unwrap();
        reads(&store, &made.files);
        store.close().unwrap();
        is_good(root);
    }
}

/// Is a backup whole, the second one too, which copies what is new?
#[test]
fn obj2_backups_hold_every_file_full_and_onto_an_earlier_one() {
    let (mut made, store) = made();
    let to = made.folder.path().join("backup.stone");
    let first = store.backup(&to).unwrap();
    let more = [(named("y/more"), words(9, 50_000))];
    compressed(&store, &made.root(), &more, 2);
    recipe(&store, &named("y/pieces"), &[noise(90, 400), noise(91, 7000)], 1);
    let second = store.backup(&to).unwrap();
    assert!(second.files_copied > 0 && second.files_copied < first.files_copied + 3, "{second:?}");
    made.files.extend(more);
    made.files.push((named("y/pieces"), [noise(90, 400), noise(91, 7000)].concat()));
    store.close().unwrap();
    is_good(&to);
    reads(&options(DIRECTORY).open_read_only(&to).unwrap(), &made.files);
    // Of a store that is one file.
    let go_on = &mut |_| ControlFlow::Continue(());
    let (one, copy) = (made.folder.path().join("one.stone"), made.folder.path().join("copy.stone"));
    options(DIRECTORY).pack(made.root(), &one, go_on).unwrap();
    let store = Store::options().limits(small()).open(&one).unwrap();
    store.backup(&copy).unwrap();
    store.close().unwrap();
    is_good(&copy);
    reads(&Store::options().limits(small()).open_read_only(&copy).unwrap(), &made.files);
}

/// Does salvage bring back every file whose bytes are there, by the rows of its snapshot?
#[test]
fn obj9_salvage_brings_files_back_by_the_rows_of_a_snapshot() {
    let (made, store) = made();
    store.close().unwrap();
    std::fs::remove_file(layout::manifest(&made.root())).unwrap();
    let to = made.folder.path().join("new.stone");
    let salvaged = salvage(made.root(), &to, &SalvageOptions::default()).unwrap();
    assert!(salvaged.is_whole(), "{salvaged:#?}");
    is_good(&to);
    let store = options(DIRECTORY).open(&to).unwrap();
    reads(&store, &made.files);
    store.close().unwrap();
}

/// Is a file that misses a piece lost by name in a salvage, and no other?
#[test]
fn obj28_salvage_tells_by_name_which_file_lost_a_piece() {
    let (made, store) = made();
    let snapshot = store.snapshot().unwrap();
    let last = Digest::of(&noise(77, 5000));
    let (_, row) = snapshot.object_of(&last).unwrap().remove(0);
    let Place::Extent { file, .. } = row.place else { panic!("it lies in the manifest") };
    let row = snapshot.require::<FileRow>(&file).unwrap();
    let path = layout::sealed(&made.root(), &row.digest, row.unique, small().sealed_folders);
    drop(snapshot);
    store.close().unwrap();
    std::fs::remove_file(path).unwrap();
    let report = looked(&made.root());
    let told = |word: &str| report.findings.iter().any(|one| one.means.contains(word));
    assert!(report.damages > 0 && told("z/of compressed"), "{:#?}", report.findings);
    let store = options(DIRECTORY).open(made.root()).unwrap();
    for (name, bytes) in &made.files {
        let whole = store.objects().open(name).unwrap().bytes();
        match name.name() {
            "of compressed" => assert!(whole.is_err(), "{name}"),
            _ => assert!(whole.unwrap() == *bytes, "{name}"),
        }
    }
    store.close().unwrap();
    std::fs::remove_file(layout::manifest(&made.root())).unwrap();
    let to = made.folder.path().join("new.stone");
    let salvaged = salvage(made.root(), &to, &SalvageOptions::default()).unwrap();
    let lost: Vec<String> = salvaged.lost.iter().map(ToString::to_string).collect();
    assert!(lost.iter().any(|one| one.contains("z/of compressed")), "{lost:#?}");
    assert_eq!(lost.len(), 1, "{lost:#?}");
    is_good(&to);
    let store = options(DIRECTORY).open(&to).unwrap();
    let left: Vec<_> =
        made.files.iter().filter(|(name, _)| name.name() != "of compressed").cloned().collect();
    reads(&store, &left);
    let names = store.snapshot().unwrap().list::<NameRow>(.., usize::MAX).unwrap();
    assert_eq!(names.len(), left.len());
    let rows = store.snapshot().unwrap().list::<RecipeRow>(.., usize::MAX).unwrap();
    let whole = store.snapshot().unwrap();
    for ((object, _), _) in rows {
        assert!(whole.get::<ObjectRow>(&object).unwrap().is_some());
    }
}
