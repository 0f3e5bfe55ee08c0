//! Are retired files found by nobody at once, and taken apart in transactions of bounded size, also after a
//! crash?

use sealstone::engine::{Budget, Store};
use sealstone::manifest::{NameRow, ObjectRow, Reading, RetiringRow, Table};
use sealstone::objects::Subject;
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::Step;

use super::support::*;

/// The first transaction, and none of those that follow it.
fn switched(store: &Store, text: &str) {
    store
        .transact(Step::RetireSwitch, |w| {
            w.take_apart_later();
            w.remove::<NameRow>(&key(text)).map(drop)
        })
        .unwrap();
}

/// Do bounded transactions end where one does, whatever their size?
#[test]
fn obj15_bounded_ends_as_one_transaction_does() {
    for layout in LAYOUTS {
        let one = on(&sim(1), layout).create(root()).unwrap();
        family(&one);
        let whole = one.objects().retire(&all_of_it(), "all").unwrap();
        for references in [1, 5, 9, 1000] {
            let store = on(&sim(1), layout).create(root()).unwrap();
            family(&store);
            let stays = recipe(&store, "files/stays", &[5, 6, 7]);
            let done = store.objects().retire_bounded(&all_of_it(), references, "all").unwrap();
            assert!(!done.is_more_left);
            assert_eq!(done.things, whole.things);
            // Three pieces stay with the file that stays.
            assert_eq!(done.objects, whole.objects - 3, "{references}");
            if references == 1 {
                assert!(done.transactions > 6, "{}", done.transactions);
            }
            bytes_of(&store, stays);
            let done = store.objects().retire(&[gone("files/stays")], "too").unwrap();
            assert_eq!(done.objects, 4);
            for table in [Table::Objects, Table::Edges, Table::Recipes, Table::Retiring] {
                assert_eq!(count(&store, table), 0, "{}", table.name());
            }
            store.reclaim(Budget::default()).unwrap();
            assert!(store.accounts().unwrap().are_closed());
        }
    }
}

/// Does nobody find what is being taken apart; and is the same content, put meanwhile, another object that
/// stays?
#[test]
fn obj15_what_is_being_taken_apart_is_found_by_nobody() {
    each(2, |disk, layout, store| {
        let object = recipe(&store, "files/a", &[0, 1, 2, 3, 4, 5, 6]);
        let whole = store.snapshot().unwrap().require::<ObjectRow>(&object).unwrap().digest;
        switched(&store, "files/a");
        assert_eq!(count(&store, Table::Retiring), 1);
        assert!(store.snapshot().unwrap().object_of(&whole).unwrap().is_empty());
        assert!(shown(&store).is_empty());
        let told = format!("{:?}", store.why(&Subject::Object(whole)).unwrap());
        assert!(told.contains("Retiring("), "{told}");
        // Nothing may refer to it any more.
        let refused = store.lease("late", "comes too late", None, &[object]);
        assert!(refused.is_err());
        let again = recipe(&store, "files/a", &[0, 1, 2, 3, 4, 5, 6]);
        assert_ne!(again, object);
        store.objects().go_on_retiring(3).unwrap();
        bytes_of(&store, again);
        disk.kill();
        drop(store);
        let disk = disk.process(2);
        let store = on(&disk, layout).open(root()).unwrap();
        store.close().unwrap();
        checked(&disk);
        let store = on(&disk, layout).open(root()).unwrap();
        assert_eq!(count(&store, Table::Retiring), 1, "as far as it came");
        let done = store.reclaim(Budget::default()).unwrap();
        assert_eq!((done.recipes, count(&store, Table::Retiring)), (1, 0));
        bytes_of(&store, again);
        store.close().unwrap();
        checked(&disk);
    });
}

/// Would a recipe that is still found lose what a new name refers to?
#[test]
fn obj15_a_retired_recipe_that_is_found_again_loses_a_name() {
    let disk = sim(3);
    let store = on(&disk, LAYOUTS[0]).create(root()).unwrap();
    let object = recipe(&store, "files/a", &[0, 1, 2, 3, 4, 5, 6]);
    let whole = store.snapshot().unwrap().require::<ObjectRow>(&object).unwrap().digest;
    let _off = switch_off(Protection::RetiringUnfound);
    switched(&store, "files/a");
    let found = store.snapshot().unwrap().object_of(&whole).unwrap();
    assert_eq!(found[0].0, object, "it is found again");
    set_name(&store, "files/b", object);
    store.objects().go_on_retiring(1000).unwrap();
    let row = store.snapshot().unwrap().get::<ObjectRow>(&object).unwrap();
    assert!(row.is_none(), "and a name refers to nothing");
}

/// Would a retirement that a crash cut stay half done for ever?
#[test]
fn obj27_a_bounded_retirement_that_nobody_goes_on_with_stays() {
    let disk = sim(4);
    let store = on(&disk, LAYOUTS[0]).create(root()).unwrap();
    recipe(&store, "files/a", &[0, 1, 2, 3, 4, 5, 6]);
    switched(&store, "files/a");
    {
        let _off = switch_off(Protection::RetiringResumed);
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(count(&store, Table::Retiring), 1);
        assert!(count(&store, Table::Objects) > 1);
    }
    let few = Budget { references: 1, ..Budget::default() };
    let done = store.reclaim(few).unwrap();
    assert!(done.is_more_left && done.references >= 1, "{done:?}");
    store.reclaim(Budget::default()).unwrap();
    assert_eq!((count(&store, Table::Retiring), count(&store, Table::Objects)), (0, 0));
}

/// Is a row that says that something retires believed only where no other row contradicts it: nothing goes that a
/// name refers to, or that has bytes of its own, and what does retire goes all the same?
#[test]
fn obj15_obj18_a_retiring_row_that_others_contradict_takes_nothing() {
    each(43, |_, _, store| {
        let named = recipe(&store, "files/a", &[0, 1, 2, 3, 4, 5, 6]);
        let plain = file(&store, "files/b", 7);
        let (_, loose) = put(&store, &[8]);
        recipe(&store, "files/c", &[10, 11, 13, 14]);
        switched(&store, "files/c");
        let forged = store.transact(Step::LeaseCommit, |w| {
            let commit = w.commit_seq();
            for object in [named, plain, loose[0]] {
                w.put(&object, &RetiringRow { commit })?;
            }
            Ok(())
        });
        forged.unwrap();
        let before = shown(&store);
        for recipes in [1, 0] {
            let done = store.reclaim(Budget::default()).unwrap();
            assert_eq!((done.recipes, done.is_more_left), (recipes, true), "{done:?}");
        }
        assert_eq!(shown(&store), before);
        bytes_of(&store, loose[0]);
        assert!(store.accounts().unwrap().are_closed());
        assert_eq!(count(&store, Table::Retiring), 3);
        let told = format!("{:?}", store.health().warnings);
        assert!(told.contains("3 retiring objects"), "{told}");
    });
}
