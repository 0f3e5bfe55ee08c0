//! Publishing: all or nothing, each name compared, only what the lease keeps, and nothing left behind.

use std::sync::Barrier;

use sealstone::ErrorKind;
use sealstone::engine::{Store, Thing};
use sealstone::ids::LeaseId;
use sealstone::manifest::{Reading, ReceiptRow};
use sealstone::objects::{
    Digest, Expected, Name, NameGeneration, PUBLISH_NAMES_MAX, Present, Publish,
};
use sealstone::protection::{Protection, switch_off};

use super::support::{
    any, as_rows, books_close, content, contents, digest, each, expect, expecting, is_there, kept,
    lease, name, put, put_recipe, rows, shown,
};

fn refused(store: &Store, lease: LeaseId, changes: &[Publish]) -> sealstone::Error {
    let before = rows(store);
    let e = store.objects().publish(lease, changes).unwrap_err();
    assert_eq!(rows(store), before, "something was written: {e}");
    e
}

/// Do many names change together, and is each told with its generation, digest, length and commit?
#[test]
fn obj7_many_names_are_published_at_once() {
    each(701, |_, _, store| {
        let (objects, lease) = (store.objects(), lease(&store));
        put(&store, lease, &[1, 2, 3]);
        let changes = [
            any("a/x", digest(1)),
            any("a/y", digest(2)),
            any("b/x", digest(1)),
            any("b/z", digest(3)),
        ];
        let published = objects.publish(lease, &changes).unwrap();
        assert_eq!(contents(&store), expect(&[("a/x", 1), ("a/y", 2), ("b/x", 1), ("b/z", 3)]));
        for (view, change) in published.names.iter().zip(&changes) {
            assert_eq!(objects.name(&change.name).unwrap().as_ref(), Some(view));
            assert_eq!((&view.name, view.digest), (&change.name, change.digest));
            assert_eq!(view.commit, published.commit);
        }
        assert_eq!((published.names.len(), published.replaced, published.objects), (4, 0, 0));
        assert_eq!(kept(&store), [], "what was published is kept by its names alone");
        books_close(&store);
    });
}

/// Is a publication of which one expectation does not hold refused whole, whichever it is and whatever it
/// expects; and does the error tell what stands?
#[test]
fn obj7_one_name_that_does_not_fit_refuses_all() {
    each(702, |_, _, store| {
        let (objects, lease) = (store.objects(), lease(&store));
        put(&store, lease, &[1, 2, 3]);
        let first = objects.publish(lease, &[any("a/x", digest(1))]).unwrap().names.remove(0);
        let wrong = [
            ("a/x", Expected::Nothing),
            ("a/x", Expected::Digest(digest(2))),
            ("a/x", Expected::Generation(NameGeneration(first.generation.0 + 1))),
            ("a/new", Expected::Digest(digest(1))),
            ("a/new", Expected::Generation(first.generation)),
        ];
        for (text, expected) in wrong {
            for at in 0..3 {
                let mut changes = vec![any("a/1", digest(2)), any("a/2", digest(3))];
                changes.insert(at, expecting(text, expected, digest(2)));
                let e = refused(&store, lease, &changes);
                assert_eq!(e.kind(), ErrorKind::Conflict, "{text} {expected}");
                let present = Present::of(&e).unwrap();
                assert_eq!(present.name, name(text));
                assert_eq!(present.stands, objects.name(&name(text)).unwrap());
                assert!(e.to_string().contains(&present.to_string()), "{e}");
            }
        }
        let right = [
            expecting("a/x", Expected::Digest(digest(1)), digest(2)),
            expecting("a/1", Expected::Nothing, digest(3)),
        ];
        let second = objects.publish(lease, &right).unwrap();
        assert_eq!(second.replaced, 1);
        put(&store, lease, &[1]);
        let by_generation = Expected::Generation(second.names[0].generation);
        objects.publish(lease, &[expecting("a/x", by_generation, digest(1))]).unwrap();
        assert_eq!(contents(&store), expect(&[("a/x", 1), ("a/1", 3)]));
    });
}

/// Is a generation never used twice for a name, also after it was released?
#[test]
fn obj7_a_generation_never_comes_again() {
    each(703, |_, _, store| {
        let (objects, lease) = (store.objects(), lease(&store));
        let mut before = NameGeneration(0);
        for round in 0..4 {
            put(&store, lease, &[1]);
            let published = objects.publish(lease, &[any("a/x", digest(1))]).unwrap();
            assert!(published.names[0].generation > before, "round {round}");
            before = published.names[0].generation;
            if round % 2 == 0 {
                assert!(objects.release(&name("a/x"), &digest(1)).unwrap());
            }
        }
        let stale = expecting("a/x", Expected::Generation(NameGeneration(before.0 - 1)), digest(1));
        put(&store, lease, &[1]);
        assert_eq!(refused(&store, lease, &[stale]).kind(), ErrorKind::Conflict);
    });
}

/// Does what a name stood for go with the transaction that replaces it, its bytes condemned and told, with a
/// receipt and no lease left?
#[test]
fn obj7_what_is_replaced_goes_in_the_same_transaction() {
    each(704, |_, _, store| {
        let (objects, lease) = (store.objects(), lease(&store));
        put(&store, lease, &[1, 2]);
        objects.publish(lease, &[any("a/x", digest(1))]).unwrap();
        let published = objects.publish(lease, &[any("a/x", digest(2))]).unwrap();
        assert_eq!((published.replaced, published.objects), (1, 1));
        assert_eq!(published.bytes > 0, !content(1).is_empty());
        assert!(!is_there(&store, digest(1)), "it is still there");
        assert_eq!(kept(&store), []);
        let snapshot = store.snapshot().unwrap();
        let (_, receipt) = snapshot.last::<ReceiptRow>(..).unwrap().unwrap();
        assert_eq!(
            (receipt.commit, receipt.objects, &*receipt.why),
            (published.commit, 1, "published")
        );
        drop(snapshot);
        books_close(&store);
        // The same again is no replacement.
        put(&store, lease, &[2]);
        let again = objects.publish(lease, &[any("a/x", digest(2))]).unwrap();
        assert_eq!((again.replaced, again.objects), (0, 0));
        assert_eq!(contents(&store), expect(&[("a/x", 2)]));
    });
}

/// Does what is replaced stay while another publication that is still to come names it: another lease, a
/// preparation's row, this very lease into which it was put anew, another name?
#[test]
fn obj7_what_a_pending_publication_names_stays() {
    each(705, |_, _, store| {
        let objects = store.objects();
        for case in 0..4 {
            let (mine, other) = (lease(&store), lease(&store));
            put(&store, mine, &[1, 2]);
            let mut changes = vec![any("a/x", digest(1))];
            if case == 3 {
                changes.push(any("b/x", digest(1)));
            }
            objects.publish(mine, &changes).unwrap();
            match case {
                0 => drop(put(&store, other, &[1])),
                1 => {
                    put(&store, other, &[1]);
                    as_rows(&store, other, false);
                }
                2 => drop(put(&store, mine, &[1])),
                _ => {}
            }
            let published = objects.publish(mine, &[any("a/x", digest(2))]).unwrap();
            assert_eq!((published.replaced, published.objects), (1, 0), "case {case}");
            assert!(is_there(&store, digest(1)), "case {case}");
            // It can still be published by whoever keeps it.
            match case {
                0 | 1 => drop(objects.publish(other, &[any("c/x", digest(1))]).unwrap()),
                2 => drop(objects.publish(mine, &[any("c/x", digest(1))]).unwrap()),
                _ => {}
            }
            assert_eq!(kept(&store), [], "case {case}");
            for (text, n) in [("a/x", 2), ("b/x", 1), ("c/x", 1)] {
                objects.release(&name(text), &digest(n)).unwrap();
            }
            assert!(!is_there(&store, digest(1)), "case {case}");
            assert!(shown(&store).is_empty());
        }
        books_close(&store);
    });
}

/// Does a publication name only what its lease keeps: not what stands without one, what another one keeps,
/// what it kept before, what was abandoned, pieces, or nothing?
#[test]
fn obj8_only_what_the_lease_keeps_is_named() {
    each(706, |_, _, store| {
        let objects = store.objects();
        let (mine, other, gone, pieces) =
            (lease(&store), lease(&store), lease(&store), lease(&store));
        put(&store, mine, &[1, 2]);
        put(&store, other, &[4]);
        put(&store, gone, &[5]);
        put(&store, pieces, &[7]);
        as_rows(&store, pieces, true);
        objects.publish(mine, &[any("a/x", digest(1))]).unwrap();
        store.retire(&[Thing::Lease(gone)], "abandoned").unwrap();
        let cases = [
            (mine, digest(1), ErrorKind::NotFound),
            (mine, digest(4), ErrorKind::NotFound),
            (mine, digest(99), ErrorKind::NotFound),
            (gone, digest(5), ErrorKind::NotFound),
            (LeaseId(9999), digest(2), ErrorKind::NotFound),
            (pieces, digest(7), ErrorKind::Invalid),
        ];
        for (lease, digest_of, kind) in cases {
            let e = refused(&store, lease, &[any("a/bad", digest_of)]);
            assert_eq!(e.kind(), kind, "{e}");
            let e = refused(&store, lease, &[any("a/good", digest(2)), any("a/bad", digest_of)]);
            assert!(e.kind() == kind || lease != mine, "{e}");
        }
        assert_eq!(contents(&store), expect(&[("a/x", 1)]));
        // Once it is no piece any more it can be.
        put(&store, pieces, &[7]);
        objects.publish(pieces, &[any("a/piece", digest(7))]).unwrap();
        assert_eq!(contents(&store), expect(&[("a/x", 1), ("a/piece", 7)]));
    });
}

/// Is a recipe published, read and replaced as any other object, its pieces going with it but for those that
/// others have?
#[test]
fn obj8_a_recipe_is_published_whole() {
    each(707, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        put(&store, mine, &[1, 2, 4, 5]);
        as_rows(&store, mine, true);
        let (first, _) = put_recipe(&store, mine, &[1, 2, 4, 1]);
        let (second, _) = put_recipe(&store, mine, &[4, 5]);
        assert_eq!(refused(&store, mine, &[any("a/p", digest(1))]).kind(), ErrorKind::Invalid);
        objects.publish(mine, &[any("a/1", first), any("a/2", second)]).unwrap();
        store.retire(&[Thing::Lease(mine)], "done").unwrap();
        assert_eq!(shown(&store).len(), 2);
        let mine = lease(&store);
        put(&store, mine, &[3]);
        let published = objects.publish(mine, &[any("a/1", digest(3))]).unwrap();
        assert_eq!(
            (published.replaced, published.objects),
            (1, 3),
            "the recipe and pieces 1 and 2"
        );
        assert!(is_there(&store, digest(4)) && is_there(&store, digest(5)));
        assert!(!is_there(&store, digest(1)) && !is_there(&store, first));
        books_close(&store);
    });
}

/// Without the look at the lease, is what it does not keep published?
#[test]
fn obj8_mutant_published_kept_is_caught() {
    each(708, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        put(&store, mine, &[7]);
        as_rows(&store, mine, true);
        let _off = switch_off(Protection::PublishedKept);
        objects.publish(mine, &[any("a/piece", digest(7))]).unwrap();
        objects.publish(LeaseId(9999), &[any("a/y", digest(7))]).unwrap();
        assert_eq!(
            shown(&store).len(),
            2,
            "a piece is published, and by a lease that is not there"
        );
    });
}

/// Without the comparison, does a publication replace what it did not expect?
#[test]
fn obj7_mutant_expected_compared_is_caught() {
    each(709, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        put(&store, mine, &[1, 2]);
        objects.publish(mine, &[any("a/x", digest(1))]).unwrap();
        let _off = switch_off(Protection::ExpectedCompared);
        objects.publish(mine, &[expecting("a/x", Expected::Nothing, digest(2))]).unwrap();
        assert_eq!(contents(&store), expect(&[("a/x", 2)]));
    });
}

/// Is what no publication may be refused: none, one name twice, too many, a store that is only read?
#[test]
fn obj7_what_cannot_be_is_refused_early() {
    each(710, |disk, layout, store| {
        let mine = lease(&store);
        put(&store, mine, &[1]);
        assert_eq!(refused(&store, mine, &[]).kind(), ErrorKind::Invalid);
        let twice = [any("a/x", digest(1)), any("a/y", digest(1)), any("a/x", digest(1))];
        assert_eq!(refused(&store, mine, &twice).kind(), ErrorKind::Invalid);
        let many: Vec<Publish> =
            (0..=PUBLISH_NAMES_MAX).map(|n| any(&format!("a/{n}"), digest(1))).collect();
        assert_eq!(refused(&store, mine, &many).kind(), ErrorKind::LimitExceeded);
        store.close().unwrap();
        let reader =
            super::support::on(disk, layout).open_read_only(super::support::root()).unwrap();
        let e = reader.objects().publish(mine, &[any("a/x", digest(1))]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::ReadOnly);
    });
}

/// Of 16 threads that publish under one name, each expecting nothing, does one win and tell the others what
/// stands; and of as many that add one to what stands, does none get lost?
#[test]
fn obj7_of_many_that_expect_the_same_one_wins() {
    const THREADS: u64 = 16;
    each(711, |_, _, store| {
        let start = Barrier::new(THREADS as usize);
        let winners: u64 = std::thread::scope(|scope| {
            let race = |n: u64| {
                let (store, start) = (store.clone(), &start);
                move || {
                    let mine = lease(&store);
                    put(&store, mine, &[n]);
                    start.wait();
                    let change = expecting("a/x", Expected::Nothing, digest(n));
                    match store.objects().publish(mine, &[change]) {
                        Ok(_) => 1,
                        Err(e) => {
                            let stands = Present::of(&e).unwrap().stands.clone().unwrap();
                            assert_ne!(stands.digest, digest(n));
                            0
                        }
                    }
                }
            };
            let threads: Vec<_> = (100..100 + THREADS).map(|n| scope.spawn(race(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(winners, 1);
        assert_eq!(shown(&store).len(), 1);
    });
}

/// Are names and namespaces listed in pages, in order, by prefix, each once?
#[test]
fn obj7_names_are_listed_in_pages() {
    each(712, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        put(&store, mine, &[1]);
        let texts = ["a/1", "a/10", "a/2", "a/x/y", "ab/1", "b/1", "b/2", "c!/é", "é/z"];
        let changes: Vec<Publish> = texts.iter().map(|text| any(text, digest(1))).collect();
        objects.publish(mine, &changes).unwrap();
        store.state().put("a", &7u8).unwrap();
        assert_eq!(objects.namespaces("", None, 99).unwrap(), ["a", "ab", "b", "c!", "é"]);
        assert_eq!(objects.namespaces("a", None, 99).unwrap(), ["a", "ab"]);
        assert_eq!(objects.namespaces("a", Some("a"), 99).unwrap(), ["ab"]);
        assert_eq!(objects.namespaces("", Some("ab"), 2).unwrap(), ["b", "c!"]);
        assert_eq!(objects.namespaces("b", Some("a"), 9).unwrap(), ["b"]);
        assert!(objects.namespaces("x", None, 9).unwrap().is_empty());
        assert!(objects.namespaces("", None, 0).unwrap().is_empty());
        let page = |namespace: &str, prefix: &str, after: Option<&str>, at_most| -> Vec<String> {
            let page = objects.names(namespace, prefix, after, at_most).unwrap();
            page.into_iter().map(|view| view.name.to_string()).collect()
        };
        assert_eq!(page("a", "", None, 9), ["a/1", "a/10", "a/2", "a/x/y"]);
        assert_eq!(page("a", "1", None, 9), ["a/1", "a/10"]);
        assert_eq!(page("a", "1", Some("1"), 9), ["a/10"]);
        assert_eq!(page("a", "2", Some("1"), 9), ["a/2"]);
        assert_eq!(page("a", "", Some("10"), 1), ["a/2"]);
        assert_eq!(page("ab", "", None, 9), ["ab/1"]);
        assert!(page("a", "z", None, 9).is_empty() && page("none", "", None, 9).is_empty());
        assert!(page("a", "", None, 0).is_empty());
        assert_eq!(objects.names("a/b", "", None, 1).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(objects.name(&name("a/none")).unwrap(), None);
    });
}

/// Is a name whose key is none told as damage, and no other one hidden by that?
#[test]
fn obj7_a_key_that_is_no_name_is_damage() {
    use sealstone::manifest::{NameKey, NameRow, Namespace};
    each(713, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        let object = put(&store, mine, &[1])[0];
        objects.publish(mine, &[any("a/x", digest(1))]).unwrap();
        let bad = NameKey { namespace: Namespace::OBJECTS, name: "no nul".to_owned() };
        let moved = store.transact(sealstone::vfs::Step::StateCommit, |w| {
            let (_, row) = w.last::<NameRow>(..)?.unwrap();
            w.put(&bad, &NameRow { object, ..row })
        });
        moved.unwrap();
        let e = objects.namespaces("", None, 9).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Damage);
        assert_eq!(objects.names("a", "", None, 9).unwrap().len(), 1);
    });
}

/// Is the digest of a content that was published what `Name` and `Digest` print?
#[test]
fn obj7_a_view_says_what_was_put() {
    each(714, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        put(&store, mine, &[2]);
        let at = Name::new("a", "x").unwrap();
        objects.publish(mine, &[Publish::new(at.clone(), Expected::Nothing, digest(2))]).unwrap();
        let view = objects.name(&at).unwrap().unwrap();
        assert_eq!(view.digest, Digest::of(&content(2)));
        assert_eq!(view.len, content(2).len() as u64);
    });
}
