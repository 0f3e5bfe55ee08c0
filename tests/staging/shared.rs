//! Several processes and one stage: what the living hold stays theirs, what the dead left is taken over
//! once, and recovery and flush exclude one another.

use sealstone::engine::Store;
use sealstone::format::layout;
use sealstone::manifest::{ClaimKind, JournalRow, Reading, ResourceKey, StageRow};
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{Level, Produced, Ready, Stage};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk};
use sealstone::{ErrorKind, Result};

use crate::support::{
    At, NAME, batch, batches, books_close, key, put, root, shape, shared, sim, texts,
};

fn intakes(store: &Store) -> usize {
    let row = store.snapshot().unwrap().get::<StageRow>(&NAME.to_owned()).unwrap().unwrap();
    row.intakes.len()
}

/// A world, and two of its processes that have the stage open.
fn two(seed: u64) -> (SimDisk, [(SimDisk, Store, Stage); 2]) {
    let world = sim(seed);
    let open = |pid| {
        let disk = world.process(pid);
        let store = shared(&disk);
        let stage = store.stage_or_create(NAME, &shape()).unwrap();
        (disk, store, stage)
    };
    let both = [open(1), open(2)];
    (world, both)
}

fn durable(stage: &Stage, text: &str) {
    let appended = stage.append(&key("a", 1), batch(text), None).unwrap();
    stage.wait(&appended.ticket, Level::Durable).unwrap();
}

fn send(stage: &Stage, producer: &str, sequence: u64) -> Result<bool> {
    let produced = Produced::new(producer, sequence).at(sequence.to_le_bytes());
    let text = format!("{producer}-{sequence}");
    Ok(stage.append(&key("a", 1), batch(&text), Some(&produced))?.is_repeat)
}

/// Do two processes append and flush side by side, each sealing its own, with each batch seen once by
/// both; and does the flush of one leave the tail of the other, which lives, alone?
#[test]
fn stg12_a_living_owner_keeps_its_tail() {
    let (_world, [(_, one, first), (_, other, second)]) = two(61);
    durable(&first, "of one");
    durable(&second, "of two");
    assert_eq!(intakes(&one), 2);
    for store in [&one, &other] {
        assert_eq!(texts(store), ["of one", "of two"]);
    }
    let flushed = second.flush(&Ready::All).unwrap();
    assert_eq!((flushed.batches, flushed.detached.len()), (1, 1));
    let places: Vec<_> = batches(&one).into_iter().map(|(at, _, text)| (at, text)).collect();
    assert_eq!(places[1], (At::Tail, "of one".to_owned()));
    // Opening the stage again, here or there, takes nothing either.
    drop(second);
    let second = other.stage(NAME).unwrap();
    assert_eq!(intakes(&one), 2);
    durable(&first, "more");
    first.flush(&Ready::All).unwrap();
    durable(&second, "last");
    assert_eq!(texts(&one), ["last", "more", "of one", "of two"]);
    let rows: u64 = first.groups().unwrap().iter().map(|group| group.rows).sum();
    assert_eq!(rows, 6);
    books_close(&other);
}

/// Is what a dead process had accepted durably sealed by the next that opens or flushes, once; and when two
/// come, by one of them?
#[test]
fn stg12_stg16_what_a_dead_owner_left_is_taken_over_once() {
    let (world, [(disk, one, first), (_, other, second)]) = two(62);
    durable(&first, "left");
    assert!(!send(&first, "p", 3).unwrap());
    first.barrier().unwrap();
    disk.kill();
    drop((one, first));
    durable(&second, "mine");
    let flushed = second.flush(&Ready::All).unwrap();
    assert_eq!(flushed.batches, 3);
    assert_eq!(intakes(&other), 1);
    assert_eq!(second.flush(&Ready::All).unwrap(), Default::default());
    let third = shared(&world.process(3));
    let stage = third.stage(NAME).unwrap();
    assert_eq!(texts(&third), ["left", "mine", "p-3"]);
    assert!(send(&stage, "p", 3).unwrap(), "it was taken before its process died");
    assert!(!send(&stage, "p", 4).unwrap());
    // Closed, it leaves its tail to whoever opens next.
    stage.barrier().unwrap();
    drop(stage);
    third.close().unwrap();
    let fourth = shared(&world.process(4));
    let stage = fourth.stage(NAME).unwrap();
    assert_eq!(stage.progress("p").unwrap().unwrap().sequence, 4);
    stage.flush(&Ready::All).unwrap();
    assert_eq!(texts(&other), ["left", "mine", "p-3", "p-4"]);
    books_close(&fourth);
}

/// Do recovery and flush exclude one another: is a flush refused, and does opening go on without taking
/// anything, while another process is at it?
#[test]
fn stg13_recovery_and_flush_exclude_one_another() {
    let (world, [(disk, one, first), (_, other, second)]) = two(63);
    durable(&first, "left");
    disk.kill();
    drop((one, first));
    let held = ResourceKey::of_stage(second.id());
    let claim = other.claim(&held, ClaimKind::Stage).unwrap();
    let third = shared(&world.process(3));
    let stage = third.stage(NAME).unwrap();
    let e = stage.flush(&Ready::All).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert_eq!(texts(&third), ["left"]);
    assert!(batches(&third).iter().all(|(at, ..)| *at == At::Tail));
    assert_eq!(third.remove_stage(NAME, "no").unwrap_err().kind(), ErrorKind::Conflict);
    drop(claim);
    assert_eq!(stage.flush(&Ready::All).unwrap().batches, 1);
    assert_eq!(texts(&other), ["left"]);
}

/// Has a producer one process at a time: refused to others while it lives, free once it let go, closed or
/// died, with its numbers known to whoever comes next?
#[test]
fn stg31_a_producer_is_held_by_one_process() {
    let (world, [(_, one, first), (disk, other, second)]) = two(64);
    assert!(!send(&first, "p", 1).unwrap());
    let e = send(&second, "p", 2).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert!(!send(&second, "q", 1).unwrap());
    first.release_producer("p").unwrap();
    // Still in the tail of the first, which lives.
    assert_eq!(second.progress("p").unwrap().unwrap().sequence, 1);
    assert!(send(&second, "p", 1).unwrap());
    assert!(!send(&second, "p", 2).unwrap());
    assert_eq!(send(&first, "p", 3).unwrap_err().kind(), ErrorKind::Conflict);
    // Sealed in the other order, they count the same.
    second.seal().unwrap();
    first.seal().unwrap();
    let p = first.progress("p").unwrap().unwrap();
    assert_eq!((p.sequence, p.batches, &p.position[..]), (2, 2, &2u64.to_le_bytes()[..]));
    assert!(!send(&second, "p", 3).unwrap());
    second.barrier().unwrap();
    disk.kill();
    drop((other, second));
    assert!(send(&first, "p", 3).unwrap(), "taken over with its numbers");
    assert!(!send(&first, "p", 4).unwrap());
    assert!(!send(&first, "q", 2).unwrap());
    first.flush(&Ready::All).unwrap();
    drop(first);
    one.close().unwrap();
    let third = shared(&world.process(3));
    let stage = third.stage(NAME).unwrap();
    assert!(send(&stage, "p", 4).unwrap());
    assert!(!send(&stage, "p", 5).unwrap());
    assert_eq!(texts(&third).len(), 7);
}

/// Is a stage that another process appends to kept, and free to be removed once that one is gone?
#[test]
fn stg12_a_stage_that_another_process_appends_to_is_not_removed() {
    let (_world, [(disk, one, first), (_, other, _second)]) = two(65);
    durable(&first, "mine");
    let e = other.remove_stage(NAME, "no").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert_eq!(texts(&one), ["mine"]);
    put(&first, "a", 1, "more");
    first.barrier().unwrap();
    disk.kill();
    drop((one, first));
    other.remove_stage(NAME, "yes").unwrap();
    assert!(other.stages().unwrap().is_empty());
    assert!(other.claims(10).unwrap().is_empty());
}

/// Flips a bit of `text` where it lies in a journal, with whole frames behind it.
fn damage(world: &SimDisk, store: &Store, text: &str) {
    let snapshot = store.snapshot().unwrap();
    let mut damaged = 0;
    for ((owner, n), _) in snapshot.list::<JournalRow>(.., usize::MAX).unwrap() {
        let Ok(file) = world.open(&layout::journal(&root(), owner, n), Access::ReadWrite) else {
            continue;
        };
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        let Some(at) = bytes.windows(text.len()).position(|one| one == text.as_bytes()) else {
            continue;
        };
        file.write_at(&[bytes[at] ^ 1], at as u64).unwrap();
        file.sync_all().unwrap();
        damaged += 1;
    }
    assert_eq!(damaged, 1);
}

/// Does a living process open the stage, append to it and flush it though the journal of a dead one does not
/// read; is that told; and is the stage kept from being removed, for that reason?
#[test]
fn stg12_stg14_a_dead_owner_whose_journal_does_not_read_stops_nobody() {
    let (world, [(disk, one, first), (_, other, second)]) = two(66);
    (0..5).for_each(|n| durable(&first, &format!("left {n}")));
    disk.kill();
    drop((one, first));
    damage(&world.process(9), &other, "left 1");
    durable(&second, "mine");
    assert_eq!(second.flush(&Ready::All).unwrap().batches, 1);
    let told = other.health().warnings;
    assert!(told.iter().any(|e| e.kind() == ErrorKind::Damage), "{told:?}");
    drop(second);
    let second = other.stage(NAME).unwrap();
    durable(&second, "more");
    assert_eq!(second.flush(&Ready::All).unwrap().batches, 1);
    assert_eq!(intakes(&other), 2, "what does not read stays");
    // And does a new process open the store, the stage, and go on?
    let third = shared(&world.process(3));
    assert!(third.health().warnings.iter().any(|e| e.kind() == ErrorKind::Damage));
    let stage = third.stage(NAME).unwrap();
    durable(&stage, "third");
    assert_eq!(stage.flush(&Ready::All).unwrap().batches, 1);
    let view = stage.view();
    assert!(view.is_err() || view.unwrap().rows() > 0);
    drop(stage);
    third.close().unwrap();
    drop(second);
    assert_eq!(other.remove_stage(NAME, "no").unwrap_err().kind(), ErrorKind::Damage);
}

/// Is a producer that sends nothing any more let go of, once all that it sent is sealed, so that another process
/// can append for it without a word of the first; and is one that goes on kept?
#[test]
fn stg31_an_idle_producer_is_let_go_of() {
    let (_world, [(_, one, first), (_, _other, second)]) = two(70);
    for producer in ["idle", "busy", "unsealed"] {
        assert!(!send(&first, producer, 1).unwrap());
    }
    first.seal().unwrap();
    assert_eq!(send(&second, "idle", 2).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!send(&first, "busy", 2).unwrap());
    first.seal().unwrap();
    assert!(!send(&first, "busy", 3).unwrap());
    assert_eq!(send(&second, "busy", 4).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!send(&second, "idle", 2).unwrap());
    assert!(send(&second, "idle", 1).unwrap(), "it is known what the first took");
    assert_eq!(send(&first, "idle", 3).unwrap_err().kind(), ErrorKind::Conflict);
    second.barrier().unwrap();
    first.barrier().unwrap();
    let of = |name: &str| {
        one.claims(99).unwrap().iter().filter(|c| c.resource.to_string().ends_with(name)).count()
    };
    assert_eq!((of("idle"), of("busy"), of("unsealed")), (1, 1, 0));
}

/// Mutant: a producer has any number of processes. A number of it must be taken twice.
#[test]
fn stg10_mutant_stage_producer_claim_is_caught() {
    let twice = || {
        let (_world, [(_, one, first), (_, _other, second)]) = two(67);
        let _ = (send(&first, "p", 1), first.barrier());
        let _ = (send(&second, "p", 1), send(&second, "p", 2), second.barrier());
        let _ = (send(&first, "p", 2), first.barrier());
        texts(&one).iter().filter(|text| *text == "p-2").count() == 2
    };
    assert!(!twice());
    let _off = switch_off(Protection::StageProducerClaim);
    assert!(twice());
}

/// Mutant: who flushes asks nobody. A flush must go on while another process holds the stage.
#[test]
fn stg13_mutant_stage_claim_is_caught() {
    let flushes = || {
        let (_world, [(_, _one, first), (_, other, second)]) = two(68);
        durable(&second, "mine");
        let _claim = other.claim(&ResourceKey::of_stage(second.id()), ClaimKind::Stage).unwrap();
        durable(&first, "more");
        first.flush(&Ready::All).is_ok()
    };
    assert!(!flushes());
    let _off = switch_off(Protection::StageClaim);
    assert!(flushes());
}

/// Mutant: intakes are adopted whoever holds them. What a living process holds must be taken from it, or the
/// flush fail.
#[test]
fn stg12_mutant_stage_adoption_is_caught() {
    let leaves_it = || {
        let (world, [(disk, one, first), (_, _other, second)]) = two(69);
        durable(&first, "left");
        durable(&second, "mine");
        let third = shared(&world.process(3));
        let stage = third.stage(NAME).unwrap();
        disk.kill();
        drop((one, first));
        let flushed = stage.flush(&Ready::All).map(|flushed| flushed.batches).unwrap_or(0);
        flushed == 1 && texts(&third) == ["left", "mine"] && second.flush(&Ready::All).is_ok()
    };
    assert!(leaves_it());
    let _off = switch_off(Protection::StageAdoption);
    assert!(!leaves_it());
}
