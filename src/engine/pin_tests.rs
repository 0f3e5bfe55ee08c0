//! Does what a view reads, or an owner claims, stay its own?
#![cfg(feature = "sim")]

use std::collections::BTreeSet;

use super::stage_support::*;
use super::{Append, Budget, Store, WriteAccess};
use crate::error::ErrorKind;
use crate::ids::ObjectId;
use crate::manifest::{
    ClaimKind, FileRow, FileState, GroupRow, PartRow, Reading, ResourceKey, StageRow, Write,
};
use crate::protection::{Protection, switch_off};
use crate::vfs::Step;

fn condemned(store: &Store) -> BTreeSet<u64> {
    let rows = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
    let is = |(_, row): &(_, FileRow)| row.state == FileState::Condemned;
    rows.into_iter().filter(is).map(|(file, _)| file.0).collect()
}

fn consume(store: &Store) {
    let consumed = store.transact(Step::PublishCommit, |w| {
        for (key, _) in w.list::<PartRow>(.., usize::MAX)? {
            w.remove::<PartRow>(&key)?;
        }
        for (key, _) in w.list::<GroupRow>(.., usize::MAX)? {
            w.remove::<GroupRow>(&key)?;
        }
        Ok(())
    });
    consumed.unwrap();
}

/// Does what a view reads stay as long as the view, and no longer? (mutant)
#[test]
fn stg8_what_a_view_reads_is_not_given_back_under_it() {
    for mutant in [false, true] {
        let (world, store, intake) = begun(11, WriteAccess::Single);
        append(&store, intake, &["a", "b"]);
        seal(&store, intake);
        let large = vec![9; 4000];
        store.append(vec![Append { stream: intake, payload: large.clone() }]).unwrap();
        let _off = mutant.then(|| switch_off(Protection::PinHolds));
        let pin = store.pin();
        let snapshot = store.snapshot().unwrap();
        let (_, part) = snapshot.list::<PartRow>(.., 1).unwrap().remove(0);
        pin.keep(&snapshot, [part.object, part.object]).unwrap();
        pin.keep_payloads(&snapshot, &[intake]).unwrap();
        drop(snapshot);
        let (_, tail) = store.unsealed(intake).unwrap();
        let bytes = store.fetch(part.object).unwrap();
        consume(&store);
        let retired = store.transact_retiring(Step::RetireCommit, &[intake], |w| {
            w.remove::<StageRow>(&NAME.to_owned()).map(drop)
        });
        retired.unwrap();
        let wide = store.reclaim(Budget::default()).unwrap();
        if mutant {
            assert_eq!(wide.files, 2);
            assert!(pin.fetch(part.object).is_err(), "it was given back under the view");
            continue;
        }
        assert_eq!((wide.files, wide.is_held), (0, true));
        pin.narrow();
        assert_eq!(store.reclaim(Budget::default()).unwrap().files, 0);
        assert_eq!(condemned(&store).len(), 2);
        assert_eq!(pin.fetch(part.object).unwrap(), bytes);
        assert_eq!(pin.fetch_range(part.object, 1..3).unwrap(), bytes[1..3]);
        assert_eq!(pin.payload_bytes(&tail[0].1).unwrap(), large);
        assert_eq!(store.fetch(part.object).unwrap_err().kind(), ErrorKind::NotFound);
        drop(pin);
        let given = store.reclaim(Budget::default()).unwrap();
        assert_eq!((given.files, given.is_held), (2, false));
        store.close().unwrap();
        looked(&world);
    }
}

/// Does a narrow pin hold its own files alone, also those that compaction empties?
#[test]
fn stg8_a_pin_holds_what_it_keeps_and_nothing_else() {
    let (_, store, _) = begun(12, WriteAccess::Single);
    let lease = |bytes: Vec<Vec<u8>>| {
        let lease = store.lease("l", "test", None, &[]).unwrap();
        (lease, store.put_objects(lease, bytes).unwrap()[0].0)
    };
    let (_, mixed) = lease(vec![vec![1; 2000]]);
    let (other, _) = lease(vec![vec![2; 2000]]);
    let pin = store.pin();
    pin.keep(&store.snapshot().unwrap(), [mixed]).unwrap();
    pin.narrow();
    store.retire(&[super::Thing::Lease(other)], "test").unwrap();
    assert_eq!(store.reclaim(Budget::default()).unwrap().files, 1);
    assert_eq!(pin.fetch(mixed).unwrap(), vec![1; 2000]);
    // Inline bytes are kept with their row.
    let (small, inline) = lease(vec![vec![3; 20]]);
    let pin = store.pin();
    pin.keep(&store.snapshot().unwrap(), [inline]).unwrap();
    store.retire(&[super::Thing::Lease(small)], "test").unwrap();
    assert_eq!(pin.fetch(inline).unwrap(), vec![3; 20]);
    let gone = pin.keep(&store.snapshot().unwrap(), [ObjectId(999)]).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

/// Is a reader told to look again when a writer gave back what it was about to read?
#[test]
fn stg8_another_process_is_told_to_take_a_fresh_view() {
    let (world, store, intake) = begun(13, WriteAccess::Single);
    append(&store, intake, &["a", "b"]);
    seal(&store, intake);
    let reader = options(&world.process(3), WriteAccess::Single).open_read_only(root()).unwrap();
    let pin = reader.pin();
    let snapshot = reader.snapshot().unwrap();
    let (_, part) = snapshot.list::<PartRow>(.., 1).unwrap().remove(0);
    pin.keep(&snapshot, [part.object]).unwrap();
    drop(snapshot);
    consume(&store);
    assert_eq!(store.reclaim(Budget::default()).unwrap().files, 1);
    let told = pin.fetch(part.object).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Conflict, "{told}");
    assert!(told.to_string().contains("fresh view"), "{told}");
}

fn keys(names: &[&str]) -> Vec<ResourceKey> {
    names.iter().map(|name| ResourceKey::from(*name)).collect()
}

fn named(claims: &[super::Claim]) -> Vec<ResourceKey> {
    claims.iter().map(|claim| claim.resource().clone()).collect()
}

/// Are claims taken of what is free alone, and of what the dead held? (mutant)
#[test]
fn stg12_what_a_living_owner_claims_is_passed_over() {
    let (world, one, _) = begun(14, WriteAccess::Shared);
    let two = options(&world.process(2), WriteAccess::Shared).open(root()).unwrap();
    let wanted = keys(&["a", "b", "c", "d"]);
    let yes = |_: &Write<'_>, _: &ResourceKey| Ok(true);
    let first = one.claim_free(&wanted, ClaimKind::Group, 2, &yes).unwrap();
    assert_eq!(named(&first), wanted[..2]);
    let not_c = |_: &Write<'_>, resource: &ResourceKey| Ok(*resource != wanted[2]);
    let second = two.claim_free(&wanted, ClaimKind::Group, 9, &not_c).unwrap();
    assert_eq!(named(&second), wanted[3..]);
    // What we hold ourselves is passed over as well.
    let rest = one.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap();
    assert_eq!(named(&rest), wanted[2..3]);
    let commit = one.info().unwrap().commit;
    assert!(one.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap().is_empty());
    assert_eq!(one.info().unwrap().commit, commit, "nothing is free: nothing is committed");
    {
        let _off = switch_off(Protection::ClaimExclusive);
        let stolen = two.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap();
        assert_eq!(stolen.len(), 4, "both work on them");
        std::mem::forget(stolen);
    }
    world.process(2).kill();
    std::mem::forget(second);
    std::mem::forget((first, rest));
    let freed = one.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap();
    assert_eq!(named(&freed), wanted, "their holder is dead");
    one.release_claims(freed).unwrap();
    assert!(one.claims(9).unwrap().is_empty());
    std::mem::forget(two);
}

/// Is nothing claimed when the rows say no, or cannot be read?
#[test]
fn stg17_a_refusal_claims_nothing() {
    let (_, store, _) = begun(15, WriteAccess::Single);
    let wanted = keys(&["a", "b"]);
    let fails = |_: &Write<'_>, resource: &ResourceKey| match *resource == wanted[1] {
        true => Err(crate::Error::invalid("claim", "b", "no")),
        false => Ok(true),
    };
    let refused = store.claim_free(&wanted, ClaimKind::Group, 9, &fails);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(store.claims(9).unwrap().is_empty());
    let claims = store.claim_free(&wanted, ClaimKind::Group, 1, &|_, _| Ok(true)).unwrap();
    assert_eq!(named(&claims), wanted[..1]);
    drop(claims);
    assert!(store.claims(9).unwrap().is_empty());
}
