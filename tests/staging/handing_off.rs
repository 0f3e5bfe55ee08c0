//! Handing outputs to an outside system: is each there once and whole, or not there and known not to be,
//! whatever goes wrong on the way?

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::digest::Digest;
use sealstone::engine::{Options, Store, WriteAccess};
use sealstone::ids::OutputId;
use sealstone::manifest::{HandoffRow, HandoffState, OutputRow, Reading};
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{
    Batch, DirectoryTarget, Key, KeyPart, KeyShape, Offer, OutputReader, Stage, Target,
};
use sealstone::vfs::sim::{Fault, FaultKind, Image, Profile, Rng, SimDisk, SyncFailure};
use sealstone::vfs::{
    Access, Disk, EntryKind, Operation, RealDisk, Step, TraceDisk, read_whole, write_all_at,
};
use sealstone::{Error, ErrorKind, Limits, Result};

const ROOT: &str = "/run.stone";
const OUT: &str = "/out";

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.background = false;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.manifest_cache_bytes = 1 << 20;
    limits.ballast_bytes = 0;
    limits
}

fn options(disk: Arc<dyn Disk>) -> Options {
    Store::options().limits(limits()).disk(disk)
}

fn on(disk: &SimDisk) -> Options {
    options(Arc::new(disk.clone()))
}

fn target(disk: &SimDisk) -> DirectoryTarget {
    DirectoryTarget::new(OUT).disk(Arc::new(disk.clone()))
}

fn staged(store: &Store) -> Stage {
    store.stage_or_create("logs", &KeyShape::new().text("host")).unwrap()
}

/// What output number `n` holds: some lie in files, one in the manifest.
fn content(n: u64) -> Vec<u8> {
    n.to_le_bytes().repeat(if n == 1 { 5 } else { 200 + n as usize })
}

/// An output as a conversion leaves it.
fn output(stage: &Stage, store: &Store, host: &str, content: &[u8]) -> OutputId {
    let lease = store.lease("test", "output", None, &[]).unwrap();
    let object = store.put_objects(lease, vec![content.to_vec()]).unwrap()[0].0;
    let key = Key::new([KeyPart::Text(host.to_owned())]).to_bytes();
    let committed = store.transact(Step::StageCommit, |w| {
        let id = w.next_output_id()?;
        let row = OutputRow {
            object,
            key: key.clone(),
            groups: Vec::new(),
            merged: Vec::new(),
            rows: 1,
            len: content.len() as u64,
            form: "bin".to_owned(),
            schema: Vec::new(),
            at: None,
        };
        w.put(&(stage.id(), id), &row)?;
        Ok(id)
    });
    let id = committed.unwrap().value;
    store.retire(&[sealstone::engine::Thing::Lease(lease)], "test").unwrap();
    id
}

/// A store with `outputs` outputs, of hosts h1, h2 ..., in a world whose log begins now.
fn world(seed: u64, outputs: u64) -> (SimDisk, Store, Stage, Vec<OutputId>) {
    let disk = SimDisk::new(seed);
    let store = on(&disk).create(ROOT).unwrap();
    let stage = staged(&store);
    let ids = (1..=outputs).map(|n| output(&stage, &store, &format!("h{n}"), &content(n)));
    let ids = ids.collect();
    disk.restart_log();
    (disk, store, stage, ids)
}

/// The names in the directory.
fn names(disk: &dyn Disk) -> Vec<String> {
    if disk.meta(Path::new(OUT)).unwrap().is_none() {
        return Vec::new();
    }
    let mut names: Vec<_> =
        disk.list(Path::new(OUT)).unwrap().into_iter().map(|e| e.name).collect();
    names.sort();
    names
}

fn bytes(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open(&Path::new(OUT).join(name), Access::Read).unwrap();
    read_whole(&*file, 1 << 20).unwrap()
}

fn is_temporary(name: &str) -> bool {
    name.starts_with(".sealstone-")
}

/// Whether output `n` of the world stands in the directory, once and whole; what is wrong if not.
fn check_there(disk: &dyn Disk, outputs: u64) -> Result<(), String> {
    let names = names(disk);
    if names.len() as u64 != outputs {
        return Err(format!("{names:?} are there"));
    }
    for n in 1..=outputs {
        let found = names.iter().filter(|name| name.starts_with(&format!("host=h{n}-"))).count();
        if found != 1 {
            return Err(format!("output {n} is there {found} times"));
        }
    }
    match names.iter().find(|name| (1..=outputs).all(|n| content(n) != bytes(disk, name))) {
        Some(name) => Err(format!("{name} holds something else")),
        None => Ok(()),
    }
}

fn states(stage: &Stage) -> Vec<HandoffState> {
    stage.handoffs().unwrap().into_iter().map(|one| one.state).collect()
}

fn place_file(disk: &dyn Disk, name: &str, content: &[u8]) {
    if disk.meta(Path::new(OUT)).unwrap().is_none() {
        disk.mkdir(Path::new(OUT)).unwrap();
    }
    let file = disk.open(&Path::new(OUT).join(name), Access::CreateNew).unwrap();
    write_all_at(&*file, content, 0).unwrap();
}

/// The name that the file of the first output gets, learnt in another world of the same seed.
fn name_of_first(seed: u64) -> String {
    let (disk, _store, stage, ids) = world(seed, 1);
    stage.hand_off(ids[0], &target(&disk)).unwrap();
    names(&disk).remove(0)
}

/// Is an output there once and whole, durable, known to be, with its key in its name; and is a second
/// call told so without a byte written?
#[test]
fn stg34_an_output_is_handed_off_once() {
    let dir = tempfile::tempdir().unwrap();
    let traced = Arc::new(TraceDisk::new(RealDisk::new()));
    let out = dir.path().join("out");
    let target = DirectoryTarget::new(&out).disk(traced.clone()).ending("data").mode(0o640);
    let store = options(RealDisk::new()).create(dir.path().join("run.stone")).unwrap();
    let stage = staged(&store);
    let ids: Vec<_> = (1..=3).map(|n| output(&stage, &store, "../h/x y", &content(n))).collect();
    for (id, n) in ids.iter().zip(1..) {
        let done = stage.hand_off(*id, &target).unwrap();
        assert!(!done.is_repeat && done.output == *id);
        let told = String::from_utf8(done.evidence).unwrap();
        assert!(told.ends_with(&Digest::of(&content(n)).to_string()), "{told}");
        let name = told.split(' ').next().unwrap();
        let begins = format!("host=..%252fh%252fx%2520y-{id}-");
        assert!(name.starts_with(&begins) && name.ends_with(".data"), "{name}");
        assert_eq!(std::fs::read(out.join(name)).unwrap(), content(n));
        let meta = RealDisk::new().meta(&out.join(name)).unwrap().unwrap();
        assert_eq!((meta.mode, meta.kind), (0o640, EntryKind::File));
    }
    let calls = traced.take_calls();
    for (at, call) in calls.iter().enumerate().filter(|(_, c)| c.operation == Operation::Link) {
        let before = &calls[..at];
        let synced =
            before.iter().any(|c| c.operation == Operation::SyncAll && c.path == call.path);
        let after = calls[at..].iter().find(|c| c.operation == Operation::SyncDir);
        assert!(synced && after.is_some_and(|c| c.path == out), "{call:?}");
    }
    let again = stage.hand_off(ids[0], &target).unwrap();
    assert!(again.is_repeat && !again.evidence.is_empty());
    assert_eq!(traced.take_calls(), []);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 3);
    assert_eq!(states(&stage), [HandoffState::Done; 3]);
    assert!(store.claims(10).unwrap().is_empty());
    let nothing = stage.hand_off(OutputId(99), &target).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::NotFound);
    assert!(stage.resume_handoffs(&target).unwrap().is_empty());
    // To another target it is another hand-off.
    let other = DirectoryTarget::new(dir.path().join("other"));
    assert!(!stage.hand_off(ids[0], &other).unwrap().is_repeat);
    assert_eq!(stage.handoffs().unwrap().len(), 4);
}

/// What a crash left of the hand-offs of a world of `outputs`, and what goes on from it.
fn examine(image: &Image, outputs: u64, reserves: bool) -> Result<(), String> {
    let disk = image.disk();
    if reserves {
        disk.inject(Fault::new(0, FaultKind::LinkUnsupported).forever());
    }
    let store = on(&disk).open(ROOT).map_err(|e| format!("open: {e:?}"))?;
    let stage = staged(&store);
    let known = stage.handoffs().unwrap();
    let seen = names(&disk);
    for name in seen.iter().filter(|name| !is_temporary(name)) {
        let held = bytes(&disk, name);
        let is_whole = (1..=outputs).any(|n| held == content(n)) || (reserves && held.is_empty());
        if !is_whole {
            return Err(format!("{name} has {} bytes", held.len()));
        }
        let is_known = known.iter().any(|one| {
            let intent = String::from_utf8_lossy(&one.intent).into_owned();
            intent.contains(name.as_str())
        });
        if !is_known {
            return Err(format!("{name} is there, and nobody knows why"));
        }
    }
    if seen.iter().any(|name| is_temporary(name))
        && known.iter().all(|one| one.state != HandoffState::Prepared)
    {
        return Err(format!("nobody will take away {seen:?}"));
    }
    // The next pass.
    disk.restart_log();
    let target = target(&disk);
    for one in stage.resume_handoffs(&target).unwrap() {
        one.result.map_err(|e| format!("resume: {e:?}"))?;
    }
    for output in 1..=outputs {
        stage.hand_off(OutputId(output), &target).map_err(|e| format!("again: {e:?}"))?;
    }
    check_there(&disk, outputs)?;
    let decided = states(&stage).iter().all(|state| *state == HandoffState::Done);
    if !decided || known.len() as u64 > outputs || !store.claims(9).unwrap().is_empty() {
        return Err(format!("{:?}", stage.handoffs().unwrap()));
    }
    if !store.accounts().unwrap().are_closed() {
        return Err("the books do not close".to_owned());
    }
    // Done is for ever: whatever was not synced by then goes.
    let log = disk.events();
    let mut cursor = log.cursor(Profile::PosixHarshest);
    cursor.advance_to(log.len());
    let lost = cursor.image(&[]);
    check_there(&lost.disk(), outputs).map_err(|e| format!("a second cut: {e}"))
}

/// Cuts a run that hands `outputs` outputs off everywhere, and says what is wrong first.
fn cut_everywhere(seed: u64, outputs: u64, reserves: bool, depth: usize) -> (u64, Option<String>) {
    let (disk, _store, stage, ids) = world(seed, outputs);
    if reserves {
        disk.inject(Fault::new(0, FaultKind::LinkUnsupported).forever());
    }
    for id in ids {
        stage.hand_off(id, &target(&disk)).unwrap();
    }
    let (log, mut rng, mut images) = (disk.events(), Rng::new(seed), 0);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            for image in cursor.images(&mut rng, depth) {
                images += 1;
                if let Err(wrong) = examine(&image, outputs, reserves) {
                    return (images, Some(format!("seed {seed}, {}: {wrong}", image.outcomes())));
                }
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    (images, None)
}

/// Wherever the power goes or the process dies: is a file there once and whole or not there, is it known
/// what may be half done, does the next pass finish it and leave no temporary name, and is what is done
/// done for ever?
#[test]
fn stg34_a_cut_at_every_step_leaves_it_once_or_not_at_all() {
    let (images, wrong) = cut_everywhere(71, 2, false, 3);
    println!("{images} images");
    assert_eq!(wrong, None);
    assert!(images > 300);
}

/// The same where the file system gives no second names.
#[test]
fn stg34_a_cut_where_there_are_no_links() {
    let (images, wrong) = cut_everywhere(72, 1, true, 3);
    assert_eq!(wrong, None);
    assert!(images > 150);
}

/// Would it be seen if nothing were durable before the outside is touched?
#[test]
fn stg34_without_an_intent_a_cut_is_not_survived() {
    let _off = switch_off(Protection::HandoffPrepared);
    let (images, wrong) = cut_everywhere(73, 1, false, 2);
    println!("{images} images: {wrong:?}");
    assert!(wrong.is_some());
}

/// Whether an output that somebody put there, whole and not synced, is there for good once it is done.
fn found_and_kept(seed: u64) -> Result<(), String> {
    let name = name_of_first(seed);
    let (disk, _store, stage, ids) = world(seed, 1);
    place_file(&disk, &name, &content(1));
    stage.hand_off(ids[0], &target(&disk)).map_err(|e| e.chain())?;
    let log = disk.events();
    let mut cursor = log.cursor(Profile::PosixHarshest);
    cursor.advance_to(log.len());
    check_there(&cursor.image(&[]).disk(), 1)
}

/// Is what is found there made durable before it counts, and is it seen if it is not?
#[test]
fn stg34_what_is_found_is_synced_before_it_counts() {
    assert_eq!(found_and_kept(80), Ok(()));
    let _off = switch_off(Protection::HandoffSynced);
    assert!(found_and_kept(80).is_err());
}

/// Whatever fails once in the directory: is the failure told and written down, the other output right,
/// and the next pass without a trace of it?
#[test]
fn stg34_one_failure_leaves_the_others_right_and_is_retried() {
    let mut struck = 0;
    // A disk that stays full fails the others, too, and a file that never syncs again is never done.
    let lasts = [FaultKind::EnospcUntilFreed, FaultKind::SyncFails(SyncFailure::NeverAgain)];
    for kind in FaultKind::ALL.into_iter().filter(|kind| !lasts.contains(kind)) {
        for n in 0.. {
            let (disk, store, stage, ids) = world(74, 2);
            let fault = Fault::new(disk.operations() + n, kind).on(OUT);
            disk.inject(fault);
            let first = stage.hand_off(ids[0], &target(&disk));
            let Some(fired) = disk.fired().first().cloned() else { break };
            struck += 1;
            let case = format!("{kind:?} at {fired:?}: {first:?}");
            disk.clear_faults();
            let known = stage.handoffs().unwrap();
            match &first {
                Ok(_) => assert_eq!(known[0].state, HandoffState::Done, "{case}"),
                Err(e) if known.is_empty() => assert_eq!(fired.what, Operation::Read, "{case} {e}"),
                Err(_) => {
                    assert_eq!(known[0].state, HandoffState::Prepared, "{case}");
                    assert!(known[0].failure.is_some(), "{case}");
                }
            }
            assert!(store.claims(9).unwrap().is_empty(), "{case}");
            stage.hand_off(ids[1], &target(&disk)).unwrap();
            for one in stage.resume_handoffs(&target(&disk)).unwrap() {
                one.result.unwrap();
            }
            let again = stage.hand_off(ids[0], &target(&disk)).unwrap();
            assert!(again.is_repeat || known.is_empty(), "{case}");
            check_there(&disk, 2).unwrap_or_else(|e| panic!("{case}: {e}"));
            assert_eq!(states(&stage), [HandoffState::Done; 2], "{case}");
        }
    }
    println!("{struck} struck");
    assert!(struck > 40, "{struck}");
}

/// Is a file of the same name and length with other bytes neither replaced nor taken for ours, and one
/// with the same bytes what was wanted?
#[test]
fn stg34_evidence_is_read_and_a_name_shows_nothing() {
    let name = name_of_first(75);
    let mut foreign = content(1);
    foreign[0] ^= 1;
    for held in [foreign.clone(), b"short".to_vec(), Vec::new()] {
        let (disk, store, stage, ids) = world(75, 2);
        place_file(&disk, &name, &held);
        let refused = stage.hand_off(ids[0], &target(&disk)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Exists, "{refused:?}");
        assert_eq!(bytes(&disk, &name), held);
        stage.hand_off(ids[1], &target(&disk)).unwrap();
        assert_eq!(states(&stage), [HandoffState::Prepared, HandoffState::Done]);
        assert!(names(&disk).iter().all(|name| !is_temporary(name)));
        // Moved away, it goes on.
        disk.unlink(&Path::new(OUT).join(&name)).unwrap();
        let resumed = stage.resume_handoffs(&target(&disk)).unwrap();
        assert!(resumed[0].result.is_ok() && resumed[0].output == ids[0]);
        check_there(&disk, 2).unwrap();
        assert!(store.claims(9).unwrap().is_empty());
    }
    let (disk, _store, stage, ids) = world(75, 1);
    place_file(&disk, &name, &content(1));
    stage.hand_off(ids[0], &target(&disk)).unwrap();
    check_there(&disk, 1).unwrap();

    let _off = switch_off(Protection::HandoffEvidence);
    let (disk, _store, stage, ids) = world(75, 1);
    place_file(&disk, &name, &foreign);
    let fooled = stage.hand_off(ids[0], &target(&disk));
    assert!(fooled.is_ok() && check_there(&disk, 1).is_err(), "the mutant was not seen");
}

/// Is a hand-off that was given up gone outside, its file only if it is ours; and can it begin anew?
#[test]
fn stg34_a_roll_back_takes_away_what_is_ours() {
    let name = name_of_first(76);
    // The directory took the file, and failed then.
    let (disk, store, stage, ids) = world(76, 1);
    let fault = Fault::new(0, FaultKind::Eio).on(OUT).only(Operation::Unlink);
    disk.inject(fault);
    stage.hand_off(ids[0], &target(&disk)).unwrap_err();
    assert_eq!(names(&disk).len(), 2);
    let id = stage.handoffs().unwrap()[0].id;
    let other = DirectoryTarget::new("/elsewhere").disk(Arc::new(disk.clone()));
    assert_eq!(stage.roll_back(id, &other).unwrap_err().kind(), ErrorKind::Invalid);
    stage.roll_back(id, &target(&disk)).unwrap();
    stage.roll_back(id, &target(&disk)).unwrap();
    assert_eq!((names(&disk), states(&stage)), (Vec::new(), vec![HandoffState::RolledBack]));
    let done = stage.hand_off(ids[0], &target(&disk)).unwrap();
    assert!(done.id > id && check_there(&disk, 1).is_ok());
    let refused = stage.roll_back(done.id, &target(&disk)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(store.claims(9).unwrap().is_empty());

    let (disk, _store, stage, ids) = world(76, 1);
    place_file(&disk, &name, b"somebody else's");
    stage.hand_off(ids[0], &target(&disk)).unwrap_err();
    let id = stage.handoffs().unwrap()[0].id;
    stage.roll_back(id, &target(&disk)).unwrap();
    assert_eq!(bytes(&disk, &name), b"somebody else's");
}

/// What a roll back leaves of a file with the same name and the same bytes that another store put there.
fn rolled_back_beside_another_store(seed: u64) -> (Vec<String>, ErrorKind) {
    let name = name_of_first(seed);
    let (disk, _store, stage, ids) = world(seed, 1);
    place_file(&disk, &name, &content(1));
    // It is found, and the sync of its directory fails.
    disk.inject(Fault::new(disk.operations(), FaultKind::Eio).on(OUT).only(Operation::SyncDir));
    stage.hand_off(ids[0], &target(&disk)).unwrap_err();
    disk.clear_faults();
    let id = stage.handoffs().unwrap()[0].id;
    let told = stage.roll_back(id, &target(&disk)).map_err(|e| e.kind());
    (names(&disk), told.err().unwrap_or(ErrorKind::Closed))
}

/// Two stores (one of them a restored backup) hand the same output to one directory: does a roll back of
/// the one leave the file that the other one published?
#[test]
fn stg34_a_roll_back_leaves_what_another_store_put_there() {
    let (left, told) = rolled_back_beside_another_store(81);
    assert_eq!((left.len(), told), (1, ErrorKind::Exists));
    {
        let _off = switch_off(Protection::HandoffOwn);
        assert!(rolled_back_beside_another_store(81).0.is_empty(), "the mutant was not seen");
    }
    // An empty file is nobody's reservation where there are links.
    let name = name_of_first(82);
    let (disk, _store, stage, ids) = world(82, 1);
    place_file(&disk, &name, b"");
    stage.hand_off(ids[0], &target(&disk)).unwrap_err();
    stage.roll_back(stage.handoffs().unwrap()[0].id, &target(&disk)).unwrap();
    assert_eq!((names(&disk), states(&stage)), (vec![name], vec![HandoffState::RolledBack]));
}

/// Links that the second attempt makes, after the directory did not sync in the first.
fn links_after_a_failed_sync(seed: u64) -> usize {
    let (disk, _store, stage, ids) = world(seed, 1);
    let traced = Arc::new(TraceDisk::new(Arc::new(disk.clone())));
    let target = DirectoryTarget::new(OUT).disk(traced.clone());
    disk.inject(Fault::new(0, FaultKind::Eio).on(OUT).only(Operation::SyncDir));
    stage.hand_off(ids[0], &target).unwrap_err();
    disk.clear_faults();
    traced.take_calls();
    assert!(stage.resume_handoffs(&target).unwrap()[0].result.is_ok());
    check_there(&disk, 1).unwrap();
    traced.take_calls().iter().filter(|call| call.operation == Operation::Link).count()
}

/// Is a directory whose sync failed never taken for durable because a second sync says so?
#[test]
fn stg34_after_a_failed_sync_the_name_is_given_anew() {
    assert_eq!(links_after_a_failed_sync(83), 1);
    let _off = switch_off(Protection::HandoffAnew);
    assert_eq!(links_after_a_failed_sync(83), 0, "the mutant was not seen");
}

/// Is `out/` the same target as `out`, and a mode that could not be read back refused before anything?
#[test]
fn stg34_one_directory_is_one_target() {
    let (disk, _store, stage, ids) = world(84, 1);
    let at = |path: &str| DirectoryTarget::new(path).disk(Arc::new(disk.clone()));
    for mode in [0, 0o044] {
        let refused = stage.hand_off(ids[0], &at(OUT).mode(mode)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    assert!(stage.handoffs().unwrap().is_empty());
    stage.hand_off(ids[0], &at("/out/")).unwrap();
    assert!(stage.hand_off(ids[0], &at("/./out")).unwrap().is_repeat);
}

/// Does a row that counts billions of attempts cost no billions of calls?
#[test]
fn stg34_many_attempts_are_tidied_at_once() {
    let (disk, store, stage, ids) = world(85, 1);
    let fails = || Err(Error::new(ErrorKind::Io, "put", "x", "once"));
    stage.hand_off(ids[0], &Then { inner: target(&disk), first: &fails }).unwrap_err();
    let id = stage.handoffs().unwrap()[0].id;
    let many = store.transact(Step::StageCommit, |w| {
        let mut row = w.get::<HandoffRow>(&id)?.unwrap();
        row.tries = u32::MAX - 1;
        w.put(&id, &row)
    });
    many.unwrap();
    let before = disk.operations();
    assert!(stage.resume_handoffs(&target(&disk)).unwrap()[0].result.is_ok());
    assert!(disk.operations() - before < 1000);
    check_there(&disk, 1).unwrap();
}

/// Is a target that takes everything and shows nothing a failure, and not somebody else at work?
#[test]
fn stg34_a_target_that_shows_nothing_failed() {
    struct Nothing;
    impl Target for Nothing {
        fn name(&self) -> String {
            "nothing".to_owned()
        }
        fn intent(&self, _: &Offer) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
        fn put(&self, _: &[u8], _: u32, _: &mut OutputReader) -> Result<()> {
            Ok(())
        }
        fn evidence(&self, _: &[u8]) -> Result<Option<Vec<u8>>> {
            Ok(None)
        }
        fn remove(&self, _: &[u8]) -> Result<()> {
            Ok(())
        }
    }
    let (_disk, _store, stage, ids) = world(86, 1);
    assert_eq!(stage.hand_off(ids[0], &Nothing).unwrap_err().kind(), ErrorKind::Damage);
}

/// A hand-off fails, and so does writing that down: is the first told by the call, the second by the next?
#[test]
fn stg11_a_failure_that_could_not_be_written_down_is_told() {
    let disk = SimDisk::new(87);
    let mut with_ballast = limits();
    with_ballast.ballast_bytes = 64 << 10;
    let store = on(&disk).limits(with_ballast).create(ROOT).unwrap();
    let stage = staged(&store);
    let id = output(&stage, &store, "h1", &content(1));
    let sick = || {
        disk.set_capacity(Some(1));
        disk.inject(Fault::new(0, FaultKind::Eio).forever().on("ballast").only(Operation::Unlink));
        Err(Error::new(ErrorKind::Io, "put", "x", "the target's own"))
    };
    let told = stage.hand_off(id, &Then { inner: target(&disk), first: &sick }).unwrap_err();
    assert_eq!(told.operation(), "put");
    disk.clear_faults();
    disk.set_capacity(None);
    let key = Key::new([KeyPart::Text("h".to_owned())]);
    let next = stage.append(&key, Batch::opaque("a", 1), None).unwrap_err();
    assert_eq!(next.operation(), "release", "{next:?}");
    stage.append(&key, Batch::opaque("a", 1), None).unwrap();
}

/// A target whose `put` does something else first.
struct Then<'a> {
    inner: DirectoryTarget,
    first: &'a dyn Fn() -> Result<()>,
}

impl Target for Then<'_> {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn intent(&self, offer: &Offer) -> Result<Vec<u8>> {
        self.inner.intent(offer)
    }
    fn tidy(&self, intent: &[u8], attempt: u32) -> Result<()> {
        self.inner.tidy(intent, attempt)
    }
    fn put(&self, intent: &[u8], attempt: u32, bytes: &mut OutputReader) -> Result<()> {
        (self.first)()?;
        self.inner.put(intent, attempt, bytes)
    }
    fn evidence(&self, intent: &[u8]) -> Result<Option<Vec<u8>>> {
        self.inner.evidence(intent)
    }
    fn remove(&self, intent: &[u8]) -> Result<()> {
        self.inner.remove(intent)
    }
}

/// Does a claim outlive an upload, however slow, in another process and in this one, through all that
/// others do to take it; and is it done once?
#[test]
fn stg34_a_claim_outlives_a_slow_upload() {
    let disk = SimDisk::new(77);
    let (here, there) = (disk.process(1), disk.process(2));
    let open = |disk: &SimDisk| on(disk).access(WriteAccess::Shared).open_or_create(ROOT).unwrap();
    let store = open(&here);
    let stage = staged(&store);
    let id = output(&stage, &store, "h1", &content(1));
    let puts = Cell::new(0);
    let during = || {
        puts.set(puts.get() + 1);
        disk.pass_time(1 << 60);
        // Others come, look for what the dead left, and go.
        for _ in 0..2 {
            let other = open(&there);
            let seen = staged(&other);
            assert!(seen.resume_handoffs(&target(&there)).unwrap().is_empty());
            let refused = seen.hand_off(id, &target(&there)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict);
            assert!(refused.cause().contains("held by process 1"), "{refused}");
            let listed = seen.handoffs().unwrap();
            assert_eq!(listed[0].state, HandoffState::Prepared);
            assert!(seen.roll_back(listed[0].id, &target(&there)).is_err());
            other.close().unwrap();
        }
        let refused = stage.hand_off(id, &target(&here)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        Ok(())
    };
    let slow = Then { inner: target(&here), first: &during };
    assert!(!stage.hand_off(id, &slow).unwrap().is_repeat);
    let other = open(&there);
    assert!(staged(&other).hand_off(id, &target(&there)).unwrap().is_repeat);
    assert_eq!((puts.get(), states(&stage)), (1, vec![HandoffState::Done]));
    check_there(&disk, 1).unwrap();
}

/// Is what a killed process began taken over by one that lives, and finished once?
#[test]
fn stg34_what_a_dead_process_began_is_resumed_by_another() {
    let disk = SimDisk::new(78);
    let (here, there) = (disk.process(1), disk.process(2));
    let open = |disk: &SimDisk| on(disk).access(WriteAccess::Shared).open_or_create(ROOT).unwrap();
    let (store, other) = (open(&here), open(&there));
    let stage = staged(&store);
    let id = output(&stage, &store, "h1", &content(1));
    let dies = || {
        here.kill();
        Err(Error::new(ErrorKind::Io, "put", "x", "killed"))
    };
    stage.hand_off(id, &Then { inner: target(&here), first: &dies }).unwrap_err();
    let resumed = staged(&other).resume_handoffs(&target(&there)).unwrap();
    assert!(resumed.len() == 1 && resumed[0].result.is_ok(), "{resumed:?}");
    check_there(&disk, 1).unwrap();
    assert!(staged(&other).hand_off(id, &target(&there)).unwrap().is_repeat);
    assert!(other.claims(9).unwrap().is_empty());
}

/// Is a panic of the target an error of its hand-off, which is free again and pins its bytes?
#[test]
fn stg34_a_panicking_target_loses_nothing() {
    let (disk, store, stage, ids) = world(79, 2);
    let panics = || panic!("the target's own fault");
    let target_that_panics = Then { inner: target(&disk), first: &panics };
    let told = stage.hand_off(ids[0], &target_that_panics).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::CallerPanicked);
    let listed = stage.handoffs().unwrap();
    assert!(listed[0].failure.as_ref().unwrap().contains("panicked"), "{listed:?}");
    assert!(store.claims(9).unwrap().is_empty());
    // The output goes, its hand-off is not decided: its bytes stay until it is.
    let key = (stage.id(), ids[0]);
    store.transact(Step::StageCommit, |w| w.remove::<OutputRow>(&key)).unwrap();
    store.reclaim(Default::default()).unwrap();
    let resumed = stage.resume_handoffs(&target(&disk)).unwrap();
    assert!(resumed[0].result.is_ok(), "{resumed:?}");
    stage.hand_off(ids[1], &target(&disk)).unwrap();
    check_there(&disk, 2).unwrap();
}

/// Do two that hand the same output over at once make one file, and tell one of them?
#[test]
fn stg4_two_that_hand_over_at_once_make_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = options(RealDisk::new()).create(dir.path().join("run.stone")).unwrap();
    let stage = staged(&store);
    let out: PathBuf = dir.path().join("out");
    for n in 0..6 {
        let id = output(&stage, &store, "h", &content(n));
        let results: Vec<_> = std::thread::scope(|scope| {
            let spawn = |_| scope.spawn(|| stage.hand_off(id, &DirectoryTarget::new(&out)));
            let all: Vec<_> = (0..3).map(spawn).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let new = results.iter().filter(|r| r.as_ref().is_ok_and(|done| !done.is_repeat)).count();
        assert_eq!(new, 1, "{results:?}");
        let refused = |e: &Error| e.kind() == ErrorKind::Conflict;
        assert!(results.iter().all(|r| r.as_ref().map_or_else(refused, |_| true)), "{results:?}");
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 6);
}
