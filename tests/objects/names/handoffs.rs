//! Hand-offs of names: pending until evidence that is exactly theirs completes them, or they are rolled back.

use sealstone::ErrorKind;
use sealstone::engine::{Budget, Store, Thing};
use sealstone::ids::CommitSeq;
use sealstone::manifest::{HANDOFF_NAMES_MAX, Reading, ReceiptRow};
use sealstone::objects::{
    Evidence, Expected, HandoffId, NameGeneration, NameHandoff, Present, Publish,
};
use sealstone::protection::{Protection, switch_off};

use super::support::{
    any, as_rows, books_close, content, contents, digest, each, expect, expecting, is_there, kept,
    lease, name, on, put, root, rows, shown,
};

/// a/x stands for 1; a hand-off lets it stand for 2, and b/y for 4.
fn pending(store: &Store) -> NameHandoff {
    let mine = lease(store);
    put(store, mine, &[1, 2, 4]);
    let objects = store.objects();
    objects.publish(mine, &[any("a/x", digest(1))]).unwrap();
    let changes = [
        expecting("a/x", Expected::Digest(digest(1)), digest(2)),
        expecting("b/y", Expected::Nothing, digest(4)),
    ];
    objects.hand_off(mine, &changes, "bucket", b"put it at k").unwrap()
}

/// Are names as before while a hand-off is pending, for readers of every process, also behind snapshots and under
/// a held claim; does it say exactly what it is about; and do names change with its completion, together?
#[test]
fn obj12_obj13_a_hand_off_is_pending_until_it_is_completed() {
    each(740, |disk, layout, store| {
        let objects = store.objects();
        let handoff = pending(&store);
        let draft = objects.snapshot("s").unwrap();
        draft.add(&name("a/x")).unwrap();
        draft.commit().unwrap();
        // Open, it holds a claim: no reader cares.
        let _claimed = objects.snapshot("other").unwrap();
        let x = objects.name(&name("a/x")).unwrap().unwrap();
        assert_eq!(handoff.changes.len(), 2);
        let (first, second) = (&handoff.changes[0], &handoff.changes[1]);
        assert_eq!((&first.name, first.expected), (&name("a/x"), Some(x.generation)));
        assert_eq!((first.digest, first.len), (digest(2), content(2).len() as u64));
        assert_eq!((&second.name, second.expected), (&name("b/y"), None));
        assert_eq!((&*handoff.target, &handoff.intent[..]), ("bucket", &b"put it at k"[..]));
        assert_eq!(objects.handoffs().unwrap(), std::slice::from_ref(&handoff));
        assert_eq!(objects.handoff(handoff.id).unwrap(), Some(handoff.clone()));
        let before = |store: &Store| {
            assert_eq!(contents(store), expect(&[("a/x", 1)]), "pending is not complete");
            let view = store.objects().read_snapshot("s").unwrap();
            assert_eq!(view.open(&name("a/x")).unwrap().bytes().unwrap(), content(1));
        };
        before(&store);
        let reader = on(&disk.process(2), layout).open_read_only(root()).unwrap();
        before(&reader);
        // A reader that looked before goes on with what it saw.
        let paused = reader.objects().open(&name("a/x")).unwrap();
        let done = objects.complete(handoff.id, &handoff.evidence("etag 7")).unwrap();
        assert_eq!((done.names.len(), done.replaced), (2, 1));
        assert_eq!(paused.bytes().unwrap(), content(1));
        for store in [&store, &reader] {
            assert_eq!(contents(store), expect(&[("a/x", 2), ("b/y", 4)]));
            assert!(store.objects().handoffs().unwrap().is_empty());
        }
        assert_eq!(kept(&store), [], "what is named is not leased any more");
        let snapshot = store.snapshot().unwrap();
        let (_, receipt) = snapshot.last::<ReceiptRow>(..).unwrap().unwrap();
        assert_eq!(receipt.commit, done.commit);
        assert!(receipt.what.contains("bucket") && receipt.why.contains("etag 7"), "{receipt:?}");
        drop(snapshot);
        // Decided, for ever.
        let again = objects.complete(handoff.id, &handoff.evidence("")).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::NotFound);
        assert!(!objects.roll_back(handoff.id, "no").unwrap());
        assert_eq!(contents(&store), expect(&[("a/x", 2), ("b/y", 4)]));
        drop((paused, reader));
        books_close(&store);
    });
}

/// Does a pending hand-off survive a crash, with all that it says and all that it pins, the lease gone or not; and
/// is it completed then by evidence that was written down outside?
#[test]
fn obj12_a_pending_hand_off_survives_a_crash_and_pins() {
    each(741, |disk, layout, store| {
        let handoff = pending(&store);
        let outside = handoff.evidence("there").to_bytes().unwrap();
        let leases: Vec<_> =
            kept(&store).into_iter().map(|(lease, _)| Thing::Lease(lease)).collect();
        store.retire(&leases[..1], "abandoned").unwrap();
        store.reclaim(Budget::default()).unwrap();
        disk.kill();
        drop(store);
        let store = on(&disk.process(2), layout).open(root()).unwrap();
        let objects = store.objects();
        assert_eq!(objects.handoffs().unwrap(), std::slice::from_ref(&handoff));
        assert_eq!(contents(&store), expect(&[("a/x", 1)]));
        assert!(is_there(&store, digest(2)) && is_there(&store, digest(4)), "pinned");
        let evidence = Evidence::from_bytes(&outside).unwrap();
        assert_eq!(evidence, handoff.evidence("there"));
        let damaged = |len: usize| Evidence::from_bytes(&outside[..len]).is_err();
        assert!((0..outside.len()).all(damaged));
        objects.complete(handoff.id, &evidence).unwrap();
        assert_eq!(contents(&store), expect(&[("a/x", 2), ("b/y", 4)]));
        assert!(!is_there(&store, digest(1)));
        books_close(&store);
    });
}

/// Does rolling back remove only what is the hand-off's own: names stay, and so does what a lease, a name or another
/// hand-off keeps; with a receipt?
#[test]
fn obj12_rolling_back_removes_only_its_own() {
    each(742, |_, _, store| {
        let objects = store.objects();
        let handoff = pending(&store);
        let lease_of = kept(&store)[0].0;
        let mine = lease(&store);
        put(&store, mine, &[4, 5]);
        as_rows(&store, mine, false);
        let other = objects.hand_off(mine, &[any("c/z", digest(5))], "bucket", b"").unwrap();
        store.retire(&[Thing::Lease(lease_of)], "abandoned").unwrap();
        assert!(objects.roll_back(handoff.id, "the bucket said no").unwrap());
        assert!(!objects.roll_back(handoff.id, "again").unwrap());
        assert_eq!(contents(&store), expect(&[("a/x", 1)]));
        assert!(!is_there(&store, digest(2)), "nothing else kept it");
        assert!(is_there(&store, digest(4)), "a lease keeps it");
        assert_eq!(objects.handoffs().unwrap(), std::slice::from_ref(&other));
        let e = objects.complete(handoff.id, &handoff.evidence("late")).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
        let receipts = store.snapshot().unwrap().list::<ReceiptRow>(.., 99).unwrap();
        let told = receipts.iter().filter(|(_, row)| row.why.contains("the bucket said no"));
        assert_eq!(told.count(), 1);
        store.retire(&[Thing::Lease(mine)], "abandoned").unwrap();
        assert!(is_there(&store, digest(5)), "the other one pins it");
        assert!(objects.roll_back(other.id, "no").unwrap());
        assert!(!is_there(&store, digest(5)));
        books_close(&store);
    });
}

/// Evidence that is not exactly of `handoff`, each in one point.
fn wrong(handoff: &NameHandoff, other: &NameHandoff) -> Vec<Evidence> {
    let right = handoff.evidence("there");
    let mut wrong: Vec<Evidence> = (0..8).map(|_| right.clone()).collect();
    wrong[0].handoff = HandoffId(right.handoff.0 + 1);
    wrong[1].generation = CommitSeq(right.generation.0 + 1);
    wrong[2].generation = CommitSeq(right.generation.0 - 1);
    wrong[3].changes.pop();
    wrong[4].changes.reverse();
    wrong[5].changes[0].expected = wrong[5].changes[0].expected.map(|g| NameGeneration(g.0 + 1));
    wrong[6].changes[0].digest = digest(4);
    wrong[7].changes[0].name = name("a/other");
    wrong.push(other.evidence("there"));
    wrong
}

/// Is evidence refused that is of another hand-off, of another generation, or of other names, expectations or
/// digests; with nothing changed; and is it taken when it is exact?
#[test]
fn obj13_evidence_of_anything_else_is_refused() {
    each(743, |_, _, store| {
        let objects = store.objects();
        let handoff = pending(&store);
        let (lease_of, _) = kept(&store)[0];
        // The same names to the same place, prepared again: another generation of it.
        let again = [
            expecting("a/x", Expected::Digest(digest(1)), digest(2)),
            expecting("b/y", Expected::Nothing, digest(4)),
        ];
        let other = objects.hand_off(lease_of, &again, "bucket", b"put it at k").unwrap();
        assert_eq!(other.changes, handoff.changes);
        let before = rows(&store);
        for evidence in wrong(&handoff, &other) {
            let e = objects.complete(handoff.id, &evidence).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Invalid, "{evidence:?}");
            assert_eq!(rows(&store), before, "{evidence:?}");
        }
        assert_eq!(
            objects.complete(HandoffId(999), &handoff.evidence("")).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        objects.complete(handoff.id, &handoff.evidence("there")).unwrap();
        // The other one expects what stands no more.
        let before = rows(&store);
        let e = objects.complete(other.id, &other.evidence("there")).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert_eq!(Present::of(&e).unwrap().stands, objects.name(&name("a/x")).unwrap());
        assert_eq!(rows(&store), before);
        assert!(objects.roll_back(other.id, "it was there already").unwrap());
        assert_eq!(contents(&store), expect(&[("a/x", 2), ("b/y", 4)]));
        books_close(&store);
    });
}

/// Without the comparison, does evidence of something else complete a hand-off?
#[test]
fn obj13_mutant_evidence_exact_is_caught() {
    each(744, |_, _, store| {
        let handoff = pending(&store);
        let _off = switch_off(Protection::EvidenceExact);
        let mut evidence = handoff.evidence("there");
        evidence.generation = CommitSeq(0);
        store.objects().complete(handoff.id, &evidence).unwrap();
        assert_eq!(contents(&store), expect(&[("a/x", 2), ("b/y", 4)]), "it was taken for done");
    });
}

/// Without the row, is nothing known of what was begun outside, and what it names gone with its lease?
#[test]
fn obj12_mutant_name_handoff_prepared_is_caught() {
    each(745, |disk, layout, store| {
        let off = switch_off(Protection::NameHandoffPrepared);
        let handoff = pending(&store);
        drop(off);
        let (lease_of, _) = kept(&store)[0];
        store.retire(&[Thing::Lease(lease_of)], "abandoned").unwrap();
        disk.kill();
        drop(store);
        let store = on(&disk.process(2), layout).open(root()).unwrap();
        assert!(store.objects().handoffs().unwrap().is_empty() && !is_there(&store, digest(2)));
        let e = store.objects().complete(handoff.id, &handoff.evidence("there")).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
    });
}

/// Is what was replaced kept while a pending hand-off names it (OBJ7), and are hand-offs that cannot be refused
/// with nothing written?
#[test]
fn obj7_obj12_what_a_hand_off_names_stays_and_bad_ones_are_refused() {
    each(746, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        put(&store, mine, &[1, 2]);
        objects.publish(mine, &[any("a/x", digest(1))]).unwrap();
        put(&store, mine, &[1]);
        let handoff = objects.hand_off(mine, &[any("c/x", digest(1))], "bucket", b"").unwrap();
        let published = objects.publish(mine, &[any("a/x", digest(2))]).unwrap();
        assert_eq!((published.replaced, published.objects), (1, 0));
        store.retire(&[Thing::Lease(mine)], "done").unwrap();
        assert!(is_there(&store, digest(1)));
        objects.complete(handoff.id, &handoff.evidence("")).unwrap();
        assert_eq!(contents(&store), expect(&[("a/x", 2), ("c/x", 1)]));
        let mine = lease(&store);
        put(&store, mine, &[5]);
        let before = rows(&store);
        let good = any("a/new", digest(5));
        let many: Vec<Publish> =
            (0..=HANDOFF_NAMES_MAX).map(|n| any(&format!("a/{n}"), digest(5))).collect();
        let long = vec![0; (64 << 10) + 1];
        let cases: [(&[Publish], &str, &[u8], ErrorKind); 8] = [
            (&[], "t", b"", ErrorKind::Invalid),
            (&[good.clone(), good.clone()], "t", b"", ErrorKind::Invalid),
            (&many, "t", b"", ErrorKind::LimitExceeded),
            (std::slice::from_ref(&good), " ", b"", ErrorKind::Invalid),
            (std::slice::from_ref(&good), &"t".repeat(1025), b"", ErrorKind::LimitExceeded),
            (std::slice::from_ref(&good), "t", &long, ErrorKind::LimitExceeded),
            (&[good.clone(), any("a/bad", digest(2))], "t", b"", ErrorKind::NotFound),
            (
                &[good.clone(), expecting("a/x", Expected::Nothing, digest(5))],
                "t",
                b"",
                ErrorKind::Conflict,
            ),
        ];
        for (changes, target, intent, kind) in cases {
            let e = objects.hand_off(mine, changes, target, intent).unwrap_err();
            assert_eq!(e.kind(), kind, "{e}");
            assert_eq!(rows(&store), before, "{e}");
        }
        assert_eq!(shown(&store).len(), 2);
    });
}
