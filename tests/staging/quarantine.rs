//! Parts that do not read: what of them is used, what is put aside, and what comes back.

use std::path::PathBuf;
use std::sync::Arc;

use sealstone::engine::{Layout, Store};
use sealstone::format::layout;
use sealstone::manifest::{FileRow, ObjectRow, PartRow, Place, Reading};
use sealstone::staging::{ConvertOptions, PlanOptions, Ready, Stage};
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk};
use sealstone::vfs::{Access, Disk, Operation, Step};
use sealstone::{ErrorKind, digest::Digest};

use crate::gate::GateDisk;
use crate::support::{NAME, on, put, root, shape, sim, small, with};
use crate::words::{
    At, Do, all, claims, convert, convert_well, held, is_tidy, long, published, refusal, words,
};

/// A stage with one detached group of three parts, the second of three batches; and its texts.
struct Staged {
    disk: SimDisk,
    store: Store,
    stage: Stage,
    texts: Vec<String>,
}

fn staged(seed: u64) -> Staged {
    let disk = sim(seed);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    for part in 0..3 {
        for batch in 0..3 {
            put(&stage, "a", 1, &format!("part {part} batch {batch} {}", long("word", 40)));
        }
        stage.seal().unwrap();
    }
    stage.flush(&Ready::All).unwrap();
    let texts = all(&stage);
    Staged { disk, store, stage, texts }
}

/// The file of part number `n`, and where in it the part's bytes begin.
fn file_of(store: &Store, n: usize) -> (PathBuf, u64, u64) {
    let snapshot = store.snapshot().unwrap();
    let parts = snapshot.list::<PartRow>(.., usize::MAX).unwrap();
    let object = snapshot.require::<ObjectRow>(&parts[n].1.object).unwrap();
    let Place::Extent { file, offset } = object.place else { panic!("it lies in the manifest") };
    let row = snapshot.require::<FileRow>(&file).unwrap();
    (layout::sealed(&root(), &row.digest, row.unique, 2), offset, object.stored_len)
}

fn read(disk: &SimDisk, path: &std::path::Path) -> Vec<u8> {
    let file = disk.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

fn write(disk: &SimDisk, path: &std::path::Path, bytes: &[u8]) {
    let file = match disk.meta(path).unwrap() {
        Some(_) => disk.open(path, Access::ReadWrite).unwrap(),
        None => disk.open(path, Access::CreateNew).unwrap(),
    };
    file.set_len(0).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_all().unwrap();
}

/// Opened anew: no file is open, and nothing is remembered.
fn again(staged: Staged) -> Staged {
    let Staged { disk, store, stage, texts } = staged;
    drop((store, stage));
    let store = on(&disk, Layout::Directory).open(root()).unwrap();
    let stage = store.stage(NAME).unwrap();
    Staged { disk, store, stage, texts }
}

/// What a damaged second part gives: texts of it that were used, and that its rest comes back, when it is
/// whole again, exactly once.
fn damaged(staged: Staged, change: impl Fn(&[u8], usize) -> Option<Vec<u8>>) -> usize {
    let (path, offset, _) = file_of(&staged.store, 1);
    let whole = read(&staged.disk, &path);
    match change(&whole, offset as usize) {
        Some(bytes) => write(&staged.disk, &path, &bytes),
        None => staged.disk.unlink(&path).unwrap(),
    }
    let staged = again(staged);
    let Staged { disk, store, stage, texts } = &staged;
    let count = stage.view().unwrap().rows();
    // A conversion that fails puts nothing aside.
    convert(stage, &words(|_| Err(refusal())));
    assert!(stage.quarantine().unwrap().is_empty());
    let made = convert(stage, &crate::words::Words::plain()).remove(0).made.unwrap();
    let used = published(stage);
    assert_eq!(made.quarantined, stage.quarantine().unwrap());
    let [aside] = &made.quarantined[..] else { panic!("{made:?}") };
    assert!(!aside.reason.is_empty() && aside.batches + used.len() as u64 == 9, "{aside:?}");
    assert!(used.iter().all(|text| texts.contains(text)));
    assert_eq!(used.iter().filter(|text| !text.starts_with("part 1")).count(), 6, "a sibling");
    // Not a row is missing in the count, and what does not read is told.
    let view = stage.view().unwrap();
    assert_eq!(view.rows(), count);
    assert_eq!(held(&view).1, 1);
    drop(view);
    assert_eq!(claims(store), Vec::<String>::new());
    assert!(stage.plan(&Default::default()).unwrap().is_empty());
    // What is there of it is given as it is.
    let there = disk.meta(&path).unwrap().map_or(0, |meta| meta.len);
    match stage.export_quarantined(aside.id) {
        Ok(exported) => assert!(exported.iter().all(|(_, bytes)| bytes.len() as u64 <= there)),
        Err(e) => assert!(e.kind() == ErrorKind::Damage && e.cause().contains("no byte"), "{e}"),
    }
    // Tried again it comes here again; whole again it is used, from where it was torn.
    stage.retry(aside.id).unwrap();
    assert_eq!(stage.retry(aside.id).unwrap_err().kind(), ErrorKind::NotFound);
    convert(stage, &crate::words::Words::plain());
    let second = stage.quarantine().unwrap();
    assert_eq!((second.len(), second[0].batches), (1, aside.batches));
    assert_eq!(published(stage), used);
    write(disk, &path, &whole);
    disk.sync_dir(path.parent().unwrap()).unwrap();
    let count_used = used.iter().filter(|text| text.starts_with("part 1")).count();
    let staged = again(staged);
    staged.stage.retry(second[0].id).unwrap();
    convert_well(&staged.stage);
    assert_eq!(published(&staged.stage), staged.texts);
    assert!(staged.stage.quarantine().unwrap().is_empty());
    is_tidy(&staged.store, &staged.stage);
    count_used
}

/// Of a part that was cut anywhere, or is empty, or gone: is every whole batch before the tear used, the
/// rest put aside and told, and its siblings converted; and comes the rest back when its bytes do?
#[test]
fn stg14_of_a_torn_part_the_whole_batches_are_used() {
    assert_eq!(damaged(staged(81), |_, _| None), 0);
    assert_eq!(damaged(staged(82), |_, _| Some(Vec::new())), 0);
    let (_, offset, len) = file_of(&staged(83).store, 1);
    let mut used = Vec::new();
    for tenth in 0..10 {
        let cut = (offset + len * tenth / 10) as usize;
        used.push(damaged(staged(83), |whole, _| Some(whole[..cut].to_vec())));
    }
    assert!(used.is_sorted() && used[0] == 0 && used[9] == 2, "{used:?}");
    assert!(used.contains(&1), "{used:?}");
}

/// Is a part that does not decode in its middle an error for that part, of which nothing is used and nothing
/// skipped, while its siblings are converted?
#[test]
fn stg15_of_a_part_wrong_in_its_middle_nothing_is_used() {
    let (_, _, len) = file_of(&staged(84).store, 1);
    for at in [70, len / 4, len / 2] {
        let used = damaged(staged(84), |whole, offset| {
            let mut bytes = whole.to_vec();
            bytes[offset + at as usize] ^= 4;
            Some(bytes)
        });
        assert_eq!(used, 0, "byte {at} of {len}");
    }
}

/// Does a block whose checksum alone is wrong lose nothing, since each batch has one of its own?
#[test]
fn stg14_a_wrong_checksum_of_a_block_loses_no_batch() {
    let staged = staged(85);
    let (path, offset, len) = file_of(&staged.store, 1);
    let mut bytes = read(&staged.disk, &path);
    // The last block's own checksum.
    let blocks = len.div_ceil(512);
    let at = (offset + len + blocks * 4 - 1) as usize;
    bytes[at] ^= 1;
    write(&staged.disk, &path, &bytes);
    let staged = again(staged);
    assert_eq!(
        staged.store.fetch(part_object(&staged.store)).unwrap_err().kind(),
        ErrorKind::Damage
    );
    convert_well(&staged.stage);
    assert_eq!(published(&staged.stage), staged.texts);
    assert!(staged.stage.quarantine().unwrap().is_empty());
}

fn part_object(store: &Store) -> sealstone::ids::ObjectId {
    store.snapshot().unwrap().list::<PartRow>(.., usize::MAX).unwrap()[1].1.object
}

/// A part that the disk refuses to read: does its group fail and stay, and after it failed often enough, is
/// the part put aside, so that its siblings are not held up for ever?
#[test]
fn stg14_what_the_disk_refuses_for_good_is_put_aside() {
    let staged = staged(86);
    let (path, _, _) = file_of(&staged.store, 1);
    let staged = again(staged);
    let Staged { disk, store, stage, texts } = &staged;
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let refused = Fault::new(disk.operations(), FaultKind::Eio).only(Operation::Read);
    disk.inject(refused.on(&name).forever());
    for _ in 0..2 {
        let failed = convert(stage, &crate::words::Words::plain()).remove(0);
        assert_eq!(failed.made.unwrap_err().kind(), ErrorKind::Io);
        assert!(stage.quarantine().unwrap().is_empty() && published(stage).is_empty());
    }
    let made = convert(stage, &crate::words::Words::plain()).remove(0).made.unwrap();
    assert_eq!((made.quarantined.len(), published(stage).len()), (1, 6));
    disk.clear_faults();
    stage.retry(made.quarantined[0].id).unwrap();
    convert_well(stage);
    assert_eq!(&published(stage), texts);
    is_tidy(store, stage);
}

/// Are the bytes that are put aside those that were there?
#[test]
fn stg14_the_bytes_of_what_is_put_aside_are_those_that_were_there() {
    let staged = staged(87);
    let snapshot = staged.store.snapshot().unwrap();
    let object = part_object(&staged.store);
    let digest = snapshot.require::<ObjectRow>(&object).unwrap().digest;
    drop(snapshot);
    let part = staged.store.fetch(object).unwrap();
    assert_eq!(Digest::of(&part), digest);
    let (path, offset, _) = file_of(&staged.store, 1);
    let mut bytes = read(&staged.disk, &path);
    bytes[offset as usize + 100] ^= 4;
    write(&staged.disk, &path, &bytes);
    let staged = again(staged);
    let made = convert(&staged.stage, &crate::words::Words::plain()).remove(0).made.unwrap();
    let exported = staged.stage.export_quarantined(made.quarantined[0].id).unwrap();
    let mut expected = part;
    expected[100] ^= 4;
    assert_eq!(exported, [(Digest::of(&expected), expected.clone())]);
    // P7: its file is gone when it is tried again, and what was saved is still given.
    staged.stage.retry(made.quarantined[0].id).unwrap();
    staged.store.reclaim(Default::default()).unwrap();
    staged.disk.unlink(&path).unwrap();
    let staged = again(staged);
    let made = convert(&staged.stage, &crate::words::Words::plain()).remove(0).made.unwrap();
    staged.store.reclaim(Default::default()).unwrap();
    let exported = staged.stage.export_quarantined(made.quarantined[0].id).unwrap();
    assert_eq!(exported, [(Digest::of(&expected), expected)]);
}

/// Are batches that lie in objects of their own exported with the part that names them?
#[test]
fn stg14_what_a_part_names_is_exported_with_it() {
    let disk = sim(88);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    let large = long("large", 2000);
    put(&stage, "a", 1, &large);
    put(&stage, "a", 1, &long("small", 40));
    stage.flush(&Ready::All).unwrap();
    let (path, offset, len) = file_of(&store, 0);
    let mut bytes = read(&disk, &path);
    bytes[(offset + len / 2) as usize] ^= 4;
    write(&disk, &path, &bytes);
    let staged = again(Staged { disk, store, stage, texts: Vec::new() });
    let made = convert(&staged.stage, &crate::words::Words::plain()).remove(0).made.unwrap();
    let exported = staged.stage.export_quarantined(made.quarantined[0].id).unwrap();
    assert_eq!(exported.len(), 2);
    assert!(exported[1].1.ends_with(large.as_bytes()));
    assert_eq!(Digest::of(&exported[1].1), exported[1].0);
}

/// While a group of which nothing was used waits for its transaction, another one makes the stage's schema
/// longer: does it stay so?
#[test]
fn stg28_what_is_put_aside_takes_no_schema_back() {
    let staged = staged(89);
    put(&staged.stage, "b", 1, "other words");
    staged.stage.flush(&Ready::All).unwrap();
    let (path, offset, _) = file_of(&staged.store, 1);
    let mut bytes = read(&staged.disk, &path);
    bytes[offset as usize + 100] ^= 4;
    write(&staged.disk, &path, &bytes);
    let Staged { disk, store, stage, .. } = staged;
    drop((store, stage));
    let gate = GateDisk::new(Arc::new(disk.clone()));
    let store = with(Arc::new(gate.clone()), Layout::Directory, small()).open(root()).unwrap();
    let stage = store.stage(NAME).unwrap();
    let one = PlanOptions { groups_max: 1, ..PlanOptions::default() };
    let first = stage.plan(&one).unwrap();
    let second = stage.plan(&one).unwrap();
    assert_eq!((first.len(), second.len()), (1, 1));
    gate.at_step(Step::QuarantineCommit, move || {
        let told = words(|at| Ok(if at == At::Schema { Do::Nothing } else { Do::GoOn }));
        second.convert(&told, &ConvertOptions::default()).unwrap().remove(0).made.unwrap();
    });
    let nothing = words(|at| Ok(if at == At::Written { Do::Nothing } else { Do::GoOn }));
    let made = first.convert(&nothing, &ConvertOptions::default()).unwrap().remove(0).made.unwrap();
    assert_eq!((made.quarantined.len(), made.outputs.len()), (1, 0));
    assert_eq!(stage.schema().unwrap(), b"other words");
}
