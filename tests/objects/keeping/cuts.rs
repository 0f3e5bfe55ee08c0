//! Power cuts and kills at every operation of a retirement, a bounded one, a reclaim with compaction and a
//! scrub: what stands reads, what goes went whole, and whoever goes on ends where all others do.

use std::collections::BTreeMap;

use sealstone::engine::{Budget, Layout, ScrubBudget, Store};
use sealstone::manifest::Table;
use sealstone::vfs::sim::{Image, Profile, Rng, SimDisk};

use super::support::*;

const EAGER: Budget =
    Budget { files: 10_000, copy_bytes: 1 << 30, references: 3, dead_percent: Some(1) };

fn begin(disk: &SimDisk, layout: Layout) -> Store {
    let store = on(disk, layout).create(root()).unwrap();
    family(&store);
    recipe(&store, "files/stays", &[1, 3, 5, 40]);
    store
}

/// Which of the names are there; all of them read.
fn there(store: &Store) -> BTreeMap<String, Vec<u8>> {
    shown(store)
}

/// Plays `act` on a store of its own, and cuts the power wherever `one_in` says.
fn cut(seed: u64, layout: Layout, act: fn(&Store), one_in: u64, judge: &dyn Fn(&Store)) -> u64 {
    let disk = sim(seed);
    let store = begin(&disk, layout);
    disk.restart_log();
    act(&store);
    drop(store);
    disk.kill();
    let log = disk.events();
    let (mut rng, mut images) = (Rng::new(seed), 0);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        let mut turn = 0u64;
        loop {
            turn += 1;
            if turn.is_multiple_of(one_in) {
                for image in cursor.images(&mut rng, 1) {
                    images += 1;
                    look_at(&image, layout, judge);
                }
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    println!("{images} images of {} events", log.len());
    images
}

fn look_at(image: &Image, layout: Layout, judge: &dyn Fn(&Store)) {
    let disk = image.disk();
    let store = on(&disk, layout).open(root()).unwrap();
    assert!(store.accounts().unwrap().are_closed(), "{}", image.outcomes());
    let names = there(&store);
    assert!(names.contains_key("files/stays"), "{}", image.outcomes());
    let whole = names.len();
    assert!(whole == 1 || whole == 7, "{whole} names: {}", image.outcomes());
    judge(&store);
    // Whoever goes on ends where all others do.
    store.objects().retire(&all_of_it(), "again").unwrap();
    while store.reclaim(EAGER).unwrap().is_more_left {}
    store.scrub(ScrubBudget::default()).unwrap();
    assert_eq!(there(&store).len(), 1);
    assert_eq!(count(&store, Table::Retiring) + count(&store, Table::Scrub), 0);
    assert_eq!(objects(&store), 5, "{}", image.outcomes());
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed());
    assert_eq!((accounts.dead, accounts.condemned, accounts.orphan), (0, 0, 0));
    store.close().unwrap();
    checked(&disk);
}

/// Is a batch there or gone, whole, wherever the power goes?
#[test]
fn obj16_a_cut_leaves_all_of_a_batch_or_nothing() {
    for layout in LAYOUTS {
        let act = |store: &Store| drop(store.objects().retire(&all_of_it(), "all").unwrap());
        assert!(cut(1, layout, act, 1, &|_| ()) > 20);
    }
}

/// Is a bounded retirement gone on with, wherever the power goes?
#[test]
fn obj16_a_cut_bounded_retirement_is_gone_on_with() {
    for layout in LAYOUTS {
        let act = |store: &Store| {
            store.objects().retire_bounded(&all_of_it(), 5, "all").unwrap();
        };
        let judge = |store: &Store| {
            // What nobody finds is not half there.
            let half = count(store, Table::Retiring) > 0;
            assert!(!half || there(store).len() == 1);
        };
        assert!(cut(2, layout, act, 3, &judge) > 20);
    }
}

/// Does every live object read, wherever the power goes in a reclaim that rewrites files?
#[test]
fn obj23_a_cut_reclaim_leaves_every_live_object() {
    for layout in LAYOUTS {
        let act = |store: &Store| {
            store.objects().retire(&all_of_it(), "all").unwrap();
            store.objects().retire_bounded(&all_of_it(), 5, "all").unwrap();
            let done = store.reclaim(EAGER).unwrap();
            assert!(done.files > 0 && done.compacted > 0, "{done:?}");
        };
        assert!(cut(3, layout, act, 4, &|_| ()) > 20);
    }
}

/// Does a scrub that is cut off change nothing, and go on?
#[test]
fn obj28_a_cut_scrub_goes_on() {
    for layout in LAYOUTS {
        let act = |store: &Store| {
            while !store.scrub(ScrubBudget { bytes: 1 }).unwrap().is_done {}
        };
        let judge = |store: &Store| {
            let found = store.scrub(ScrubBudget::default()).unwrap();
            assert!(found.is_done && found.findings.is_empty() && found.damaged.is_empty());
        };
        assert!(cut(4, layout, act, 5, &judge) > 10);
    }
}

/// Do reads give the right bytes while files are rewritten and unlinked under them?
#[test]
fn obj23_reads_between_the_steps_of_compaction_are_right() {
    each(5, |_, _, store| {
        let before = {
            family(&store);
            recipe(&store, "files/stays", &[1, 3, 5, 40]);
            shown(&store)["files/stays"].clone()
        };
        for text in FAMILY {
            store.objects().retire(&[gone(text)], "one by one").unwrap();
            assert_eq!(shown(&store)["files/stays"], before);
            let one = Budget { files: 1, ..EAGER };
            while store.reclaim(one).unwrap().is_more_left {
                assert_eq!(shown(&store)["files/stays"], before);
            }
        }
    });
}
