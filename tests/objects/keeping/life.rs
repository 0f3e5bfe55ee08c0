//! Is nothing left of a life once everything in it went?

use sealstone::engine::{Budget, Layout};
use sealstone::manifest::Table;
use sealstone::objects::Gone;
use sealstone::vfs::Disk;

use super::support::*;

/// After a whole life, is every table empty but for meta, owners and receipts, does no payload file remain,
/// does check pass, and is the manifest as small as a new one?
#[test]
fn obj27_nothing_is_left_of_a_life() {
    each(1, |disk, layout, store| {
        let empty = {
            let disk = sim(2);
            let store = on(&disk, layout).create(root()).unwrap();
            store.close().unwrap();
            on(&disk, layout).compact(root()).unwrap();
            size(&disk, layout)
        };
        for round in 0..3 {
            family(&store);
            let numbers: Vec<u64> = (0..400).collect();
            let object = recipe(&store, "files/large", &numbers);
            snapshot(&store, "snap", false, object);
            preparation(&store, "prep", object);
            let id = handoff(&store, "files/out", object);
            let things = [
                gone("files/large"),
                Gone::Snapshot("snap".to_owned()),
                Gone::Preparation("prep".to_owned()),
                Gone::Handoff(id),
            ];
            let things = [&things[..], &all_of_it()].concat();
            match round {
                1 => store.objects().retire_bounded(&things, 50, "all"),
                _ => store.objects().retire(&things, "all"),
            }
            .unwrap();
            while store.reclaim(Budget::default()).unwrap().is_more_left {}
            store.scrub(Default::default()).unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        for table in Table::ALL.iter().copied() {
            use sealstone::manifest::Reading;
            let stays = [Table::Meta, Table::Owners, Table::Receipts];
            let of_layout = [Table::Frames, Table::Pages, Table::Bodies, Table::Journals];
            if !stays.contains(&table) && !of_layout.contains(&table) {
                assert_eq!(snapshot.count(table).unwrap(), 0, "{}", table.name());
            }
        }
        drop(snapshot);
        let accounts = store.accounts().unwrap();
        assert!(accounts.are_closed());
        assert_eq!(
            (accounts.live, accounts.dead, accounts.condemned, accounts.orphan),
            (0, 0, 0, 0)
        );
        let usage = store.du().unwrap();
        assert_eq!((usage.shared, usage.inline, usage.retiring), (0, 0, 0));
        assert!(usage.namespaces.is_empty());
        store.close().unwrap();
        checked(disk);
        on(disk, layout).compact(root()).unwrap();
        let size = size(disk, layout);
        assert!(size <= 2 * empty, "{size} bytes, a new one has {empty}");
    });
}

fn size(disk: &sealstone::vfs::sim::SimDisk, layout: Layout) -> u64 {
    let path = match layout {
        Layout::SingleFile => root(),
        _ => root().join("manifest.redb"),
    };
    disk.meta(&path).unwrap().unwrap().len
}

/// Does `du` tell what is shared, what is dead and what lies under each namespace?
#[test]
fn obj26_du_tells_what_takes_the_bytes() {
    each(3, |_, _, store| {
        family(&store);
        file(&store, "other/x", 61);
        let usage = store.du().unwrap();
        assert!(usage.accounts.are_closed());
        // Pieces 0 to 9: two thirds of them in files, all in two recipes at least.
        let of = |n: u64| content(n).len() as u64;
        assert_eq!(usage.shared, (0..10).map(of).sum::<u64>());
        let names: Vec<_> =
            usage.namespaces.iter().map(|n| (n.namespace.as_str(), n.names)).collect();
        assert_eq!(names, [("files", 6), ("other", 1)]);
        assert_eq!(usage.namespaces[1].bytes, 700);
        assert!(usage.inline >= 40 * 4);
        store.objects().retire(&all_of_it(), "all").unwrap();
        let usage = store.du().unwrap();
        assert!(usage.accounts.condemned > 0 && usage.shared == 0);
        assert_eq!(usage.namespaces.len(), 1);
    });
}
