//! Two processes that write into one store: names, snapshots and hand-offs of one are those of the other.

use sealstone::ErrorKind;
use sealstone::engine::Store;
use sealstone::objects::{Expected, Present};
use sealstone::vfs::sim::SimDisk;

use super::support::{
    any, books_close, content, contents, digest, expect, expecting, lease, name, put, shared, sim,
};

fn two(seed: u64) -> (SimDisk, [(SimDisk, Store); 2]) {
    let world = sim(seed);
    let open = |pid| {
        let disk = world.process(pid);
        let store = shared(&disk);
        (disk, store)
    };
    let both = [open(1), open(2)];
    (world, both)
}

/// Is a name compared with what the other process published, and told; does each see at once what the other one
/// did; and does what one replaces go though the other one stored it?
#[test]
fn obj7_obj10_two_processes_compare_with_each_other() {
    let (_world, [(_, one), (_, other)]) = two(760);
    let (first, second) = (lease(&one), lease(&other));
    put(&one, first, &[1, 2]);
    put(&other, second, &[4, 5]);
    one.objects().publish(first, &[expecting("a/x", Expected::Nothing, digest(1))]).unwrap();
    let change = expecting("a/x", Expected::Nothing, digest(4));
    let e = other.objects().publish(second, &[change]).unwrap_err();
    assert_eq!(Present::of(&e).unwrap().stands.as_ref().unwrap().digest, digest(1));
    let change = expecting("a/x", Expected::Digest(digest(1)), digest(4));
    let published = other.objects().publish(second, &[change]).unwrap();
    assert_eq!((published.replaced, published.objects), (1, 1));
    for store in [&one, &other] {
        assert_eq!(contents(store), expect(&[("a/x", 4)]));
    }
    assert!(!one.objects().release(&name("a/x"), &digest(1)).unwrap());
    assert!(one.objects().release(&name("a/x"), &digest(4)).unwrap());
    // What a lease keeps can be published by whoever knows the lease.
    one.objects().publish(second, &[any("b/x", digest(5))]).unwrap();
    assert_eq!(contents(&other), expect(&[("b/x", 5)]));
    books_close(&other);
}

/// Is a snapshot open in one process at a time, gone on with by the other once the first died, and read by both
/// while it is claimed and after; and is a hand-off of a dead process decided by the living one?
#[test]
fn obj11_obj12_obj13_what_a_dead_process_began_the_living_one_ends() {
    let (_world, [(disk, one), (_, other)]) = two(761);
    let mine = lease(&one);
    put(&one, mine, &[1, 2, 4]);
    one.objects().publish(mine, &[any("a/x", digest(1)), any("a/y", digest(2))]).unwrap();
    let done = one.objects().snapshot("done").unwrap();
    done.add_namespace("a").unwrap();
    done.commit().unwrap();
    let draft = one.objects().snapshot("s").unwrap();
    draft.add(&name("a/x")).unwrap();
    let change = expecting("a/x", Expected::Digest(digest(1)), digest(4));
    let handoff = one.objects().hand_off(mine, &[change], "bucket", b"k").unwrap();
    let before = |store: &Store| {
        assert_eq!(contents(store), expect(&[("a/x", 1), ("a/y", 2)]));
        let view = store.objects().read_snapshot("done").unwrap();
        assert_eq!(view.open(&name("a/x")).unwrap().bytes().unwrap(), content(1));
        assert_eq!(store.objects().handoffs().unwrap(), std::slice::from_ref(&handoff));
    };
    before(&other);
    let e = other.objects().snapshot("s").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert_eq!(other.objects().retire_snapshot("s", "no").unwrap_err().kind(), ErrorKind::Conflict);
    disk.kill();
    drop((draft, one));
    before(&other);
    let draft = other.objects().snapshot("s").unwrap();
    draft.add(&name("a/y")).unwrap();
    assert_eq!(draft.commit().unwrap().names, 2);
    other.objects().complete(handoff.id, &handoff.evidence("there")).unwrap();
    assert_eq!(contents(&other), expect(&[("a/x", 4), ("a/y", 2)]));
    let view = other.objects().read_snapshot("s").unwrap();
    assert_eq!(view.open(&name("a/x")).unwrap().bytes().unwrap(), content(1));
    books_close(&other);
}
