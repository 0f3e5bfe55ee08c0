//! Power cuts and kills at every disk operation: names, snapshots and hand-offs are as they were before the act
//! under way or as they are after it, and nothing else.

use std::collections::BTreeMap;

use sealstone::engine::{Budget, Layout, Store, Thing};
use sealstone::ids::LeaseId;
use sealstone::manifest::{ObjectRow, ObjectSnapshotState, Reading, SnapshotNameRow};
use sealstone::objects::{
    Digest, Expected, NameGeneration, NameHandoff, SnapshotDraft, SnapshotInfo,
};
use sealstone::vfs::sim::{Image, Profile, Rng, SimDisk};

use super::support::{
    LAYOUTS, any, books_close, bytes_of_object, digest, expecting, kept, lease, name, on, put,
    root, shown, sim,
};

/// All that the face knows, every byte of it read.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    names: BTreeMap<String, (NameGeneration, Vec<u8>)>,
    snapshots: Vec<SnapshotInfo>,
    in_snapshots: Vec<(String, Vec<u8>)>,
    handoffs: Vec<NameHandoff>,
    kept: Vec<(LeaseId, Digest)>,
}

pub fn known(store: &Store) -> Known {
    let (objects, snapshot) = (store.objects(), store.snapshot().unwrap());
    let in_snapshots = snapshot.list::<SnapshotNameRow>(.., usize::MAX).unwrap();
    let in_snapshots = in_snapshots
        .into_iter()
        .map(|(key, row)| (format!("{key:?}"), bytes_of_object(store, row.object)))
        .collect();
    let digest_of = |object| snapshot.require::<ObjectRow>(&object).unwrap().digest;
    let kept = kept(store).into_iter().map(|(lease, object)| (lease, digest_of(object))).collect();
    for handoff in objects.handoffs().unwrap() {
        for change in handoff.changes {
            let object = objects.get(&change.digest).unwrap();
            assert_eq!(object.bytes().unwrap().len() as u64, change.len, "it is pinned");
        }
    }
    Known {
        names: shown(store),
        snapshots: objects.snapshots().unwrap(),
        in_snapshots,
        handoffs: objects.handoffs().unwrap(),
        kept,
    }
}

const ACTS: u64 = 17;

/// What is under way between acts.
#[derive(Default)]
struct Life {
    lease: Option<LeaseId>,
    draft: Option<SnapshotDraft>,
    handoff: Option<NameHandoff>,
}

impl Life {
    /// Each act is one transaction that changes what is known, or none.
    fn act(&mut self, store: &Store, n: u64) {
        let objects = store.objects();
        let mine = *self.lease.get_or_insert_with(|| lease(store));
        match n {
            0 => drop(put(store, mine, &[1, 2, 3, 4])),
            1 => {
                objects.publish(mine, &[any("a/x", digest(1)), any("a/y", digest(2))]).unwrap();
            }
            2 => self.draft = Some(objects.snapshot("s").unwrap()),
            3 => drop(self.draft.as_ref().map(|draft| draft.add_namespace("a").unwrap())),
            4 => drop(put(store, mine, &[5, 6])),
            5 => {
                let expected = Expected::Digest(digest(1));
                let changes = [expecting("a/x", expected, digest(5)), any("b/new", digest(5))];
                objects.publish(mine, &changes).unwrap();
            }
            6 => drop(self.draft.take().map(|draft| draft.commit().unwrap())),
            7 => {
                let changes = [any("b/z", digest(3)), any("a/y", digest(4))];
                self.handoff = Some(objects.hand_off(mine, &changes, "bucket", b"k").unwrap());
            }
            8 => drop(store.reclaim(Budget::default()).unwrap()),
            9 => {
                let handoff = self.handoff.take().unwrap();
                objects.complete(handoff.id, &handoff.evidence("there")).unwrap();
            }
            10 => {
                let changes = [any("a/x", digest(6))];
                self.handoff = Some(objects.hand_off(mine, &changes, "bucket", b"k").unwrap());
            }
            11 => {
                let handoff = self.handoff.take().unwrap();
                assert!(objects.roll_back(handoff.id, "no").unwrap());
            }
            12 => assert!(objects.release(&name("a/y"), &digest(4)).unwrap()),
            13 => assert!(objects.retire_snapshot("s", "old").unwrap()),
            14 => drop(store.retire(&[Thing::Lease(mine)], "done").unwrap()),
            15 => assert!(objects.release(&name("a/x"), &digest(5)).unwrap()),
            _ => drop(store.reclaim(Budget::default()).unwrap()),
        }
    }
}

fn play(disk: &SimDisk, layout: Layout) -> Vec<Known> {
    let store = on(disk, layout).create(root()).unwrap();
    let mut life = Life { lease: Some(lease(&store)), ..Life::default() };
    disk.restart_log();
    let mut states = vec![known(&store)];
    for n in 0..ACTS {
        disk.note(n.to_le_bytes());
        life.act(&store, n);
        states.push(known(&store));
    }
    disk.note(ACTS.to_le_bytes());
    states
}

/// The image shows what was known before the act under way or after it, to a reader and to a writer, and again when
/// it is opened once more; and what is pending can be gone on with.
fn judge(image: &Image, layout: Layout, states: &[Known], act: usize) {
    let disk = image.disk();
    let at = || format!("{layout:?}, act {act}, {}", image.outcomes());
    let which = |seen: &Known| {
        let found = (act..states.len().min(act + 2)).rev().find(|k| states[*k] == *seen);
        found.unwrap_or_else(|| panic!("{}: {seen:#?}", at()))
    };
    let reader = on(&disk, layout).open_read_only(root());
    let reader = reader.unwrap_or_else(|e| panic!("{}: {e:?}", at()));
    let read = which(&known(&reader));
    drop(reader);
    let store = on(&disk, layout).open(root()).unwrap();
    let seen = which(&known(&store));
    assert!(seen >= read, "{}: a reader was shown more", at());
    books_close(&store);
    let objects = store.objects();
    assert!(store.claims(9).unwrap().is_empty(), "{}", at());
    for handoff in objects.handoffs().unwrap() {
        objects.complete(handoff.id, &handoff.evidence("there")).unwrap();
    }
    for info in objects.snapshots().unwrap() {
        if info.state == ObjectSnapshotState::Open {
            let draft = objects.snapshot(&info.name).unwrap();
            draft.add_namespace("a").unwrap();
            draft.commit().unwrap();
        }
        assert!(objects.retire_snapshot(&info.name, "done").unwrap(), "{}", at());
    }
    books_close(&store);
    disk.kill();
}

/// Are names, snapshots and hand-offs whole and as acknowledged, and every byte behind them there, wherever the power
/// goes or the process is killed?
#[test]
fn obj7_obj9_obj11_obj12_a_cut_leaves_all_or_nothing() {
    cut(770, LAYOUTS[0]);
}

/// The same in one file.
#[test]
fn obj7_obj9_obj11_obj12_a_cut_leaves_all_or_nothing_in_one_file() {
    cut(771, LAYOUTS[1]);
}

fn cut(seed: u64, layout: Layout) {
    let disk = sim(seed);
    let states = play(&disk, layout);
    for act in [1, 3, 5, 6, 7, 9, 10, 11, 12, 13, 14] {
        assert_ne!(states[act], states[act + 1], "act {act} does something");
    }
    let log = disk.events();
    let (mut rng, mut images) = (Rng::new(seed), 0);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            let last = cursor.notes().last().map(|n| u64::from_le_bytes(n[..].try_into().unwrap()));
            for image in cursor.images(&mut rng, 1) {
                images += 1;
                judge(&image, layout, &states, last.unwrap_or(0) as usize);
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    println!("{images} images of {} events", log.len());
    assert!(images > 200, "{images}");
}
