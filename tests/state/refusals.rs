//! What is refused, and that it changes nothing.

use std::sync::Arc;

use sealstone::state::{
    BATCH_CHANGES_MAX, NAME_BYTES_MAX, NameGeneration, Present, VALUE_BYTES_MAX,
};
use sealstone::vfs::sim::{Fault, FaultKind};
use sealstone::{ErrorKind, Store};

use crate::support::{on, root, shown, sim};

/// Is every bad argument told by its kind, with nothing changed?
#[test]
fn bad_arguments_change_nothing() {
    let disk = sim(1);
    let store = on(&disk, 2).create(root()).unwrap();
    let state = store.state();
    state.put("kept", &1u8).unwrap();
    let before = shown(&state);
    let kind = |e: sealstone::Error| e.kind();
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    assert_eq!(kind(state.put(" \t", &1u8).unwrap_err()), ErrorKind::Invalid);
    assert_eq!(kind(state.put(&long, &1u8).unwrap_err()), ErrorKind::LimitExceeded);
    assert_eq!(kind(state.get::<u8>("").unwrap_err()), ErrorKind::Invalid);
    assert_eq!(kind(state.get::<u8>("absent").unwrap_err()), ErrorKind::NotFound);
    assert_eq!(kind(state.get_bytes("absent").unwrap_err()), ErrorKind::NotFound);
    let never = NameGeneration(u64::MAX);
    assert_eq!(kind(state.get_at::<u8>("kept", never).unwrap_err()), ErrorKind::NotFound);
    assert_eq!(kind(state.batch().commit().unwrap_err()), ErrorKind::Invalid);
    let twice = state.batch().put("x", &1u8).remove("x").commit();
    assert_eq!(kind(twice.unwrap_err()), ErrorKind::Invalid);
    // One bad change, and none of the others is made.
    let mixed = state.batch().put("good", &1u8).put("", &1u8).put("other", &1u8).commit();
    assert_eq!(kind(mixed.unwrap_err()), ErrorKind::Invalid);
    let huge = vec![0; VALUE_BYTES_MAX + 1];
    assert_eq!(kind(state.put_bytes("huge", &huge).unwrap_err()), ErrorKind::LimitExceeded);
    let mut many = state.batch();
    for at in 0..=BATCH_CHANGES_MAX {
        many = many.put(&format!("many/{at}"), &at);
    }
    assert_eq!(kind(many.commit().unwrap_err()), ErrorKind::LimitExceeded);
    assert_eq!(shown(&state), before);
    assert!(!state.remove("absent").unwrap());
    assert!(state.versions("absent").unwrap().is_empty());
    state.put(&"n".repeat(NAME_BYTES_MAX), &1u8).unwrap();
    state.put("many\nlines \u{1F5FF}", &1u8).unwrap();
}

/// Does a conflict say what stands there, so that the caller can go on?
#[test]
fn a_conflict_tells_what_is_present() {
    let disk = sim(2);
    let store = on(&disk, 0).create(root()).unwrap();
    let state = store.state();
    let first = state.compare_and_set("x", None, &1u8).unwrap();
    let conflict = state.compare_and_set("x", None, &2u8).unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    assert_eq!(Present::of(&conflict).unwrap().generation, Some(first));
    let second = state.compare_and_set("x", Some(first), &2u8).unwrap();
    let conflict = state.compare_and_set("x", Some(first), &3u8).unwrap_err();
    assert_eq!(Present::of(&conflict).unwrap().generation, Some(second));
    assert!(conflict.to_string().contains(&second.to_string()), "{conflict}");
    assert!(state.remove("x").unwrap());
    let gone = state.compare_and_set("x", Some(second), &3u8).unwrap_err();
    assert_eq!(Present::of(&gone).unwrap().generation, None);
    // Removed and put again: the old generation is not taken for the new one.
    let third = state.put("x", &1u8).unwrap();
    assert!(third > second);
    assert!(state.compare_and_set("x", Some(first), &9u8).is_err());
    assert!(state.batch().expect("x", Some(second)).put("y", &1u8).commit().is_err());
    assert!(state.find::<u8>("y").unwrap().is_none());
}

/// Is a disk that fills up an error that leaves the state as it was, while removing still works?
#[test]
fn g16_a_full_disk_leaves_the_state_as_it_was() {
    let disk = sim(3);
    let mut limits = crate::support::small(4);
    limits.ballast_bytes = 128 << 10;
    limits.low_water_bytes = 256 << 10;
    let store = on(&disk, 4).limits(limits).create(root()).unwrap();
    let state = store.state();
    state.put_bytes("a", &[7; 3000]).unwrap();
    disk.set_capacity(Some(disk.used() + (512 << 10)));
    let mut full = None;
    for n in 0..2000u32 {
        if let Err(e) = state.put_bytes(&format!("more/{}", n % 50), &[n as u8; 2000]) {
            full = Some(e);
            break;
        }
    }
    let full = full.expect("the disk is never full");
    assert_eq!(full.kind(), ErrorKind::DiskFull, "{full:?}");
    assert_eq!(state.get_bytes("a").unwrap(), [7; 3000]);
    assert!(state.remove("a").unwrap(), "removing works on a full disk");
    let left = shown(&state);
    drop((state, store));
    let store = on(&disk, 4).open(root()).unwrap();
    assert_eq!(shown(&store.state()), left);
}

/// Does a commit that fails halt the store, with the outcome called unknown, and nothing half done?
#[test]
fn p8_g3_a_failed_commit_is_unknown_and_whole_after_reopening() {
    for after in 1..40 {
        let disk = sim(100 + after);
        let store = on(&disk, 2).create(root()).unwrap();
        let state = store.state();
        state.batch().put_bytes("a", b"old").put_bytes("b", b"old").commit().unwrap();
        disk.inject(Fault::new(disk.operations() + after, FaultKind::Eio));
        let done = state.batch().put_bytes("a", &[1; 900]).put_bytes("b", &[2; 900]).commit();
        let Err(failed) = &done else { continue };
        let known = [ErrorKind::Io, ErrorKind::OutcomeUnknown, ErrorKind::Halted];
        assert!(known.contains(&failed.kind()), "{failed:?}");
        disk.kill();
        drop((state, store));
        let disk = disk.process(2);
        let store = on(&disk, 2).open(root()).unwrap();
        let a = store.state().get_bytes("a").unwrap();
        let b = store.state().get_bytes("b").unwrap();
        assert!((a == b"old" && b == b"old") || (a == [1; 900] && b == [2; 900]), "a part");
        if failed.kind() == ErrorKind::Io {
            assert_eq!(a, b"old", "a failure was called one, and took place");
        }
    }
}

/// Does a store opened for reading read all and change nothing?
#[test]
fn g20_a_reader_is_refused_every_change() {
    let disk = sim(5);
    let store = on(&disk, 2).create(root()).unwrap();
    store.state().put("x", &1u8).unwrap();
    store.close().unwrap();
    let reader: Store = on(&disk, 2).disk(Arc::new(disk.clone())).open_read_only(root()).unwrap();
    let state = reader.state();
    assert_eq!(state.get::<u8>("x").unwrap(), 1);
    assert_eq!(state.put("x", &2u8).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(state.remove("x").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(state.batch().remove("x").commit().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(state.get::<u8>("x").unwrap(), 1);
}
