//! Does a scrub read every sealed file, a budget at a time, and tell what is damaged and who loses by it?

use sealstone::engine::{Layout, ScrubBudget, Store};
use sealstone::manifest::{ObjectRow, Place, Reading, ScrubRow, Table};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, read_exact_at, write_all_at};

use super::support::*;

fn sealed_files(disk: &SimDisk) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for folder in ["00", "01"] {
        let folder = root().join("sealed").join(folder);
        for entry in disk.list(&folder).unwrap() {
            found.push(folder.join(entry.name));
        }
    }
    found
}

/// Is each file read once a pass, however small the budget, and nothing left of a pass without damage?
#[test]
fn obj28_a_pass_reads_each_file_once() {
    each(1, |_, _, store| {
        family(&store);
        let files = count(&store, Table::Files);
        assert!(files > 1);
        let (mut read, mut calls) = (0, 0);
        loop {
            let done = store.scrub(ScrubBudget { bytes: 1 }).unwrap();
            assert!(done.findings.is_empty());
            (read, calls) = (read + done.files, calls + 1);
            if done.is_done {
                break;
            }
            assert_eq!(count(&store, Table::Scrub), 1, "how far it came is remembered");
        }
        assert_eq!((read, calls), (files, files + 1));
        assert_eq!(count(&store, Table::Scrub), 0);
        let done = store.scrub(ScrubBudget::default()).unwrap();
        assert_eq!((done.files, done.is_done), (files, true));
    });
}

/// Is a flipped byte, and a file that is missing, told with its file, its objects and the names that lose by
/// it; and remembered until the next pass?
#[test]
fn obj28_damage_is_told_with_the_names_that_lose() {
    for missing in [false, true] {
        let disk = sim(2);
        let store = on(&disk, Layout::Directory).create(root()).unwrap();
        recipe(&store, "files/a", &[1, 2, 4]);
        recipe(&store, "files/b", &[7, 8]);
        let (_, row) = of(&store, 4);
        let Place::Extent { file, .. } = row.place else { panic!("{row:?}") };
        let damaged = sealed_files(&disk).into_iter().find(|path| {
            let file = disk.open(path, Access::ReadWrite).unwrap();
            let len = file.len().unwrap() as usize;
            let mut bytes = vec![0; len];
            read_exact_at(&*file, &mut bytes, 0).unwrap();
            let at = bytes.windows(32).position(|w| w == &content(4)[600..632]);
            let Some(at) = at else { return false };
            if missing {
                disk.unlink(path).unwrap();
            } else {
                write_all_at(&*file, &[bytes[at] ^ 1], at as u64).unwrap();
                file.sync_data().unwrap();
            }
            true
        });
        assert!(damaged.is_some());
        drop(store);
        let store = on(&disk.process(2), Layout::Directory).open(root()).unwrap();
        let done = store.scrub(ScrubBudget::default()).unwrap();
        assert!(done.is_done);
        assert_eq!(done.findings.len(), 1, "{done:?}");
        let finding = &done.findings[0];
        assert_eq!((finding.file, &done.damaged[..]), (file, &[file][..]));
        assert!(finding.objects.iter().any(|(_, d)| *d == digest(4)), "{finding:?}");
        assert_eq!(missing, finding.objects.len() > 1, "{finding:?}");
        let losers = format!("{:?}", finding.losers);
        assert!(losers.contains("files\\0a") && !losers.contains("files\\0b"), "{losers}");
        // Told until the next pass, and not repaired in place.
        let row = store.snapshot().unwrap().get::<ScrubRow>(&0).unwrap().unwrap();
        assert_eq!(row.damaged, [file]);
        assert_eq!(store.scrub(ScrubBudget { bytes: 1 }).unwrap().files, 1);
        store.objects().retire(&[gone("files/a"), gone("files/b")], "lost").unwrap();
        store.reclaim(Default::default()).unwrap();
        while !store.scrub(ScrubBudget::default()).unwrap().is_done {}
        let done = store.scrub(ScrubBudget::default()).unwrap();
        assert!(done.is_done && done.damaged.is_empty());
        assert_eq!(count(&store, Table::Scrub), 0);
    }
}

fn of(store: &Store, n: u64) -> (sealstone::ids::ObjectId, ObjectRow) {
    store.snapshot().unwrap().object_of(&digest(n)).unwrap().remove(0)
}
