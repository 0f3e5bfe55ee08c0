//! Does one file that the disk does not read, or does not let go of, stop nothing but itself?

use sealstone::ErrorKind;
use sealstone::engine::{Budget, Layout, ScrubBudget, Store, Thing};
use sealstone::ids::FileId;
use sealstone::manifest::{
    FileRow, InlineRow, LeaseRow, ObjectRow, Piece, Place, Reading, RecipeRow, Table,
};
use sealstone::vfs::sim::{Fault, FaultKind};
use sealstone::vfs::{Access, Disk, Operation, write_all_at};

use super::support::*;

/// The file in which content `n` lies, and its name on the disk.
fn file_of(store: &Store, n: u64) -> (FileId, FileRow, String) {
    let rows = store.snapshot().unwrap();
    let (_, row) = rows.object_of(&digest(n)).unwrap().remove(0);
    let Place::Extent { file, .. } = row.place else { panic!("{row:?}") };
    let row = rows.require::<FileRow>(&file).unwrap();
    let name = format!("{}-{}", row.digest, row.unique);
    (file, row, name)
}

/// A file of four contents, of which two have names and two are dead.
fn half_dead(store: &Store, numbers: [u64; 4]) {
    let (lease, objects) = put(store, &numbers);
    for (n, object) in numbers.iter().zip(&objects).take(2) {
        set_name(store, &format!("files/{n}"), *object);
    }
    store.retire(&[Thing::Lease(lease)], "named").unwrap();
}

/// Is a file whose sector the disk refuses told by a scrub as one that is damaged, with who loses, and the files
/// behind it read and rewritten all the same; and is the same content read where it was stored again?
#[test]
fn obj23_obj28_a_refused_sector_stops_nothing_behind_it() {
    let disk = sim(41);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    for numbers in [[1, 2, 4, 5], [7, 8, 10, 11], [13, 14, 16, 17]] {
        half_dead(&store, numbers);
    }
    let files = count(&store, Table::Files);
    let (bad, _, called) = file_of(&store, 1);
    let fault = Fault::new(disk.operations(), FaultKind::Eio).forever();
    disk.inject(fault.on(&called).only(Operation::Read));
    for _ in 0..2 {
        let done = store.scrub(ScrubBudget::default()).unwrap();
        assert_eq!((done.is_done, done.files), (true, files));
        assert_eq!((done.findings.len(), &done.damaged[..]), (1, &[bad][..]), "{done:?}");
        let finding = &done.findings[0];
        assert_eq!((finding.file, finding.error.kind()), (bad, ErrorKind::Io));
        assert!(finding.objects.iter().any(|(_, d)| *d == digest(1)), "{finding:?}");
        assert!(format!("{:?}", finding.losers).contains("files\\01"), "{finding:?}");
    }
    let budget = Budget { dead_percent: Some(1), ..Budget::default() };
    let done = store.reclaim(budget).unwrap();
    assert_eq!((done.compacted, done.unreadable), (2, 1), "{done:?}");
    assert_eq!(file_of(&store, 1).0, bad);
    // The same content, elsewhere.
    let open = || store.objects().open(&name("files/1")).unwrap().bytes();
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Io);
    let again = store.transact(sealstone::vfs::Step::LeaseCommit, |w| {
        let (object, lease) = (w.next_object_id()?, w.next_lease_id()?);
        let (bytes, digest) = (content(1), digest(1));
        let len = bytes.len() as u64;
        w.put(&object, &InlineRow { bytes })?;
        let place = Place::Inline;
        w.put(&object, &ObjectRow { digest, len, stored_len: len, codec: 0, place })?;
        let (holder, purpose) = ("test".to_owned(), "again".to_owned());
        w.put(&lease, &LeaseRow { holder, purpose, deadline: None, objects: vec![object] })
    });
    again.unwrap();
    assert_eq!(open().unwrap(), content(1));
    // What is no matter of its bytes is an error as before.
    disk.clear_faults();
    disk.inject(Fault::new(disk.operations(), FaultKind::Eio).forever().on("manifest"));
    assert!(store.reclaim(budget).is_err());
}

/// Is an orphan that the disk does not let go of counted and left to the next reclaim, and all else done?
#[test]
fn obj21_an_orphan_that_stays_stops_no_reclaim() {
    let disk = sim(42);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    half_dead(&store, [1, 2, 4, 5]);
    file(&store, "files/gone", 7);
    store.objects().retire(&[gone("files/gone")], "gone").unwrap();
    let (_, row, called) = file_of(&store, 1);
    let unique: String = row.unique.to_string().chars().rev().collect();
    let orphan = format!("{}-0{}", row.digest, &unique[1..]);
    assert_ne!(orphan, called);
    let path = root().join("sealed").join("00").join(&orphan);
    write_all_at(&*disk.open(&path, Access::CreateNew).unwrap(), b"something", 0).unwrap();
    let fault = Fault::new(disk.operations(), FaultKind::Eio).forever();
    disk.inject(fault.on(&orphan).only(Operation::Unlink));
    for files in [1, 0] {
        let done = store.reclaim(Budget::default()).unwrap();
        let told = (done.orphans, done.not_unlinked, done.is_more_left);
        assert_eq!((told, done.files > 0), ((0, 1, true), files > 0), "{done:?}");
    }
    let told = store.health().warnings;
    assert!(format!("{told:?}").contains(&orphan), "{told:?}");
    disk.clear_faults();
    let done = store.reclaim(Budget::default()).unwrap();
    assert_eq!((done.orphans, done.orphan_bytes, done.not_unlinked), (1, 9, 0));
}

/// Is a whole that would be far longer than what is stored of it refused at once, and read in ranges?
#[test]
fn obj2_a_few_bytes_never_become_gigabytes_at_once() {
    each(44, |_, _, store| {
        let (bytes, lease) = (vec![7; 2 << 20], store.lease("test", "piece", None, &[]).unwrap());
        let len = bytes.len() as u64;
        let piece = store.put_objects(lease, vec![bytes.clone()]).unwrap()[0].0;
        let made = store.transact(sealstone::vfs::Step::LeaseCommit, |w| {
            let (object, lease) = (w.next_object_id()?, w.next_lease_id()?);
            let pieces = vec![Piece { object: piece, len }; 1024];
            w.put(&(object, 0), &RecipeRow { pieces })?;
            let (digest, len) = (digest(2), 1024 * len);
            let place = Place::Recipe;
            w.put(&object, &ObjectRow { digest, len, stored_len: 0, codec: 0, place })?;
            let (holder, purpose) = ("test".to_owned(), "long".to_owned());
            let lease_row = LeaseRow { holder, purpose, deadline: None, objects: vec![object] };
            w.put(&lease, &lease_row)?;
            Ok(object)
        });
        let object = made.unwrap().value;
        let refused = store.fetch(object).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
        assert_eq!(store.fetch_range(object, len..2 * len).unwrap(), bytes);
    });
}
