//! What the suite shares: small stores on a simulated disk, and every batch that a stage holds.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Layout, Options, Store, WriteAccess};
use sealstone::format::staged::{Content, PartEnd, decode_batch, scan_part};
use sealstone::ids::{GroupId, PartId};
use sealstone::journal::Payload;
use sealstone::manifest::{
    CheckIntegrity, GroupRow, GroupState, PartRow, Reading, Snapshot, StageRow,
};
use sealstone::staging::{Batch, Key, KeyPart, KeyShape, Stage};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;
use sealstone::{Limits, Result};

pub const NAME: &str = "nginx";
pub const LAYOUTS: [Layout; 2] = [Layout::Directory, Layout::SingleFile];

pub fn small() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 0;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.payload_inline_bytes_max = 2000;
    limits.object_inline_bytes_max = 64;
    limits.block_bytes = 512;
    limits.background = false;
    limits
}

pub fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

pub fn with(disk: Arc<dyn Disk>, layout: Layout, limits: Limits) -> Options {
    Store::options()
        .limits(limits)
        .layout(layout)
        .check_integrity(CheckIntegrity::Always)
        .disk(disk)
}

pub fn on(disk: &SimDisk, layout: Layout) -> Options {
    with(Arc::new(disk.clone()), layout, small())
}

/// A store of each layout, on a disk of its own, with a stage.
pub fn each(seed: u64, mut test: impl FnMut(&SimDisk, Layout, Store, Stage)) {
    for layout in LAYOUTS {
        let disk = sim(seed);
        let store = on(&disk, layout).create(root()).unwrap();
        let stage = store.create_stage(NAME, &shape()).unwrap();
        test(&disk, layout, store, stage);
    }
}

/// A process of a world in which several write.
pub fn shared(disk: &SimDisk) -> Store {
    let options = with(Arc::new(disk.clone()), Layout::Directory, small());
    options.access(WriteAccess::Shared).open_or_create(root()).unwrap()
}

/// Opens what was left, for writing.
pub fn reopen(disk: &SimDisk, layout: Layout) -> (Store, Stage) {
    let store = on(disk, layout).open(root()).unwrap();
    let stage = store.stage(NAME).unwrap();
    (store, stage)
}

pub fn shape() -> KeyShape {
    KeyShape::new().text("schema").minute("minute")
}

pub fn key(schema: &str, minute: i64) -> Key {
    Key::new([KeyPart::Text(schema.to_owned()), KeyPart::Minute(minute)])
}

/// Appends one batch with one row for each word.
pub fn put(stage: &Stage, schema: &str, minute: i64, text: &str) {
    put_as(stage, schema, minute, text).unwrap();
}

pub fn put_as(stage: &Stage, schema: &str, minute: i64, text: &str) -> Result<()> {
    stage.append(&key(schema, minute), batch(text), None).map(drop)
}

pub fn batch(text: &str) -> Batch {
    Batch::opaque(text, text.split(' ').count() as u64)
}

/// Where a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    Part(GroupId),
    Tail,
}

/// Every batch of the stage of this name, by its place: key and text.
pub fn batches(store: &Store) -> Vec<(At, String, String)> {
    let snapshot = store.snapshot().unwrap();
    let row = snapshot.get::<StageRow>(&NAME.to_owned()).unwrap().unwrap();
    let mut all = Vec::new();
    let of_stage = (row.stage, GroupId(0))..=(row.stage, GroupId(u64::MAX));
    for ((_, id), group) in snapshot.list::<GroupRow>(of_stage, usize::MAX).unwrap() {
        let (mut rows, mut count, mut len) = (0, 0, 0);
        for (part, bytes) in parts(store, &snapshot, id) {
            let scan = scan_part(&bytes);
            assert!(matches!(scan.end, PartEnd::Whole), "{:?}", scan.end);
            assert_eq!(scan.frames.len() as u64, part.batches);
            for frame in &scan.frames {
                assert_eq!(frame.head.key, &group.key[..]);
                (rows, count, len) = (rows + frame.head.rows, count + 1, len + frame.len());
                let text = match frame.content {
                    Content::Inline(bytes) => bytes.to_vec(),
                    Content::Object { digest, skip, .. } => {
                        let (object, _) = snapshot.object_of(&digest).unwrap()[0];
                        assert!(part.payloads.contains(&object));
                        store.fetch(object).unwrap().split_off(skip as usize)
                    }
                };
                all.push((At::Part(id), text_of(frame.head.key), text_of_bytes(text)));
            }
        }
        assert_eq!((rows, count, len), (group.rows, group.batches, group.len));
    }
    for intake in row.intakes {
        for (_, payload) in store.view(intake).unwrap().tail {
            let bytes = match &payload {
                Payload::Inline(bytes) => bytes.to_vec(),
                other => store.payload_bytes(other).unwrap(),
            };
            let (head, text) = decode_batch(&bytes).unwrap();
            all.push((At::Tail, text_of(head.key), text_of_bytes(text.to_vec())));
        }
    }
    all.sort();
    all
}

fn text_of(key: &[u8]) -> String {
    Key::from_bytes(key).unwrap().to_string()
}

fn text_of_bytes(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// The texts alone.
pub fn texts(store: &Store) -> Vec<String> {
    let mut texts: Vec<String> = batches(store).into_iter().map(|(_, _, text)| text).collect();
    texts.sort();
    texts
}

pub fn groups(snapshot: &Snapshot) -> Vec<(GroupId, GroupRow)> {
    let rows = snapshot.list::<GroupRow>(.., usize::MAX).unwrap();
    rows.into_iter().map(|((_, id), row)| (id, row)).collect()
}

pub fn detached(store: &Store) -> BTreeMap<GroupId, GroupRow> {
    let groups = groups(&store.snapshot().unwrap());
    groups.into_iter().filter(|(_, row)| row.state != GroupState::Open).collect()
}

/// The parts of a group with their bytes.
pub fn parts(store: &Store, snapshot: &Snapshot, group: GroupId) -> Vec<(PartRow, Vec<u8>)> {
    let range = (group, PartId(0))..=(group, PartId(u64::MAX));
    let rows = snapshot.list::<PartRow>(range, usize::MAX).unwrap();
    rows.into_iter().map(|(_, row)| (row.clone(), store.fetch(row.object).unwrap())).collect()
}

/// Every byte is accounted for, and reclaim takes nothing that counts.
pub fn books_close(store: &Store) {
    assert!(store.accounts().unwrap().are_closed());
    let before = batches(store);
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(batches(store), before, "reclaim took something");
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.orphan == 0 && accounts.condemned == 0);
}

/// What `check` finds in a store that is closed; nothing where that is good.
pub fn findings(disk: &SimDisk) -> Vec<String> {
    let options = CheckOptions { disk: Some(Arc::new(disk.clone())), ..CheckOptions::default() };
    let report = check(root(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let all = report.findings.iter().map(|finding| format!("{finding:?}"));
    if report.is_good() { Vec::new() } else { all.collect() }
}
