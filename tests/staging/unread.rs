//! Unsealed records that are no batch, or do not read: does everything else go on, and is nothing dropped?

use sealstone::engine::{Append, Layout, Store};
use sealstone::format::layout;
use sealstone::format::staged::{BatchHead, Form, encode_batch};
use sealstone::ids::StreamId;
use sealstone::journal::Level;
use sealstone::manifest::{FileRow, ObjectRow, Place, QuarantineRow, Reading, StageRow};
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{GroupId, Produced, QuarantineId, Ready, Stage};
use sealstone::vfs::{Access, Disk};
use sealstone::{ErrorKind, digest::Digest};

use crate::support::{NAME, batch, each, key, on, put, reopen, root, shape, sim};
use crate::words::{convert_well, held, long, published};

fn intake(store: &Store) -> StreamId {
    let row = store.snapshot().unwrap().get::<StageRow>(&NAME.to_owned()).unwrap().unwrap();
    row.intakes[0]
}

/// The record of a batch of one row under `key`.
fn record(key: &[u8], rows: u64) -> Vec<u8> {
    let head = BatchHead { form: Form::Opaque, rows, at: None, key, producer: None };
    encode_batch(&head, b"x").unwrap()
}

/// Records with right checksums that are no batch of the stage.
fn hostile() -> Vec<Vec<u8>> {
    let whole = record(&key("a", 1).to_bytes(), 1);
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    vec![
        b"no batch".to_vec(),
        whole[..20].to_vec(),
        changed(0, 0),
        changed(2, 0xff),
        changed(4, 0xff),
        record(b"no key", 1),
        record(&[], 1),
        record(&key("a", 1).to_bytes(), u64::MAX),
    ]
}

fn exported(stage: &Stage, id: QuarantineId) -> Vec<Vec<u8>> {
    stage.export_quarantined(id).unwrap().into_iter().map(|(_, bytes)| bytes).collect()
}

fn send(stage: &Stage, sequence: u64) {
    let produced = Produced::new("p", sequence);
    stage.append(&key("a", 1), batch(&format!("sent-{sequence}")), Some(&produced)).unwrap();
}

/// Everything is there but for `unread` records, which a view tells in their place, and lists and producers
/// count what reads.
fn goes_on(stage: &Stage, texts: &[&str], unread: usize) {
    let view = stage.view().unwrap();
    assert_eq!(held(&view), (texts.iter().map(|text| (*text).to_owned()).collect(), unread));
    let rows: u64 = texts.iter().map(|text| text.split(' ').count() as u64).sum();
    assert_eq!(view.rows(), rows);
    assert_eq!(stage.groups().unwrap().iter().map(|group| group.rows).sum::<u64>(), rows);
    let sent = texts.iter().filter(|text| text.starts_with("sent")).count();
    assert_eq!(stage.producers().unwrap()[0].batches, sent as u64);
}

/// Do a view, lists, producers, appends and a flush go on past records that are no batch; are these put
/// aside with their bytes, in the order in which they came; and is the store as good as any then?
#[test]
fn stg14_records_that_are_no_batch_are_put_aside() {
    each(81, |disk, layout, store, stage| {
        put(&stage, "a", 1, "one two");
        send(&stage, 1);
        for payload in hostile() {
            let group = vec![Append { stream: intake(&store), payload }];
            store.wait(&store.append(group).unwrap().ticket, Level::Durable).unwrap();
        }
        send(&stage, 2);
        let texts = ["one two", "sent-1", "sent-2"];
        goes_on(&stage, &texts, hostile().len());
        stage.barrier().unwrap();
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        goes_on(&stage, &texts, hostile().len());
        send(&stage, 3);
        let flushed = stage.flush(&Ready::All).unwrap();
        assert_eq!((flushed.batches, flushed.detached.len()), (4, 1));
        let aside = stage.quarantine().unwrap();
        assert_eq!(aside.len(), hostile().len());
        for (one, bytes) in aside.iter().zip(hostile()) {
            assert_eq!((one.group, one.rows, one.batches), (GroupId(0), 0, 1));
            assert!(!one.reason.is_empty());
            assert_eq!(exported(&stage, one.id), [bytes]);
            assert_eq!(stage.retry(one.id).unwrap_err().kind(), ErrorKind::Invalid);
        }
        goes_on(&stage, &["one two", "sent-1", "sent-2", "sent-3"], hostile().len());
        assert_eq!(stage.seal().unwrap(), Default::default(), "they are put aside once");
        convert_well(&stage);
        assert_eq!(published(&stage).len(), 4);
        store.reclaim(Default::default()).unwrap();
        assert!(store.accounts().unwrap().are_closed());
        assert_eq!(exported(&stage, aside[0].id), hostile()[..1]);
        store.remove_stage(NAME, "done").unwrap();
    });
}

/// Mutant: records that are no batch leave their intake for nowhere. They must be missed.
#[test]
fn stg14_mutant_stage_record_aside_is_caught() {
    let unread_after = || {
        let mut unread = 0;
        each(83, |_, _, store, stage| {
            put(&stage, "a", 1, "one");
            let group = vec![Append { stream: intake(&store), payload: hostile().remove(0) }];
            store.wait(&store.append(group).unwrap().ticket, Level::Durable).unwrap();
            stage.flush(&Ready::All).unwrap();
            unread += held(&stage.view().unwrap()).1;
        });
        unread
    };
    assert_eq!(unread_after(), 2);
    let _off = switch_off(Protection::StageRecordAside);
    assert_eq!(unread_after(), 0);
}

/// And past a large batch whose beginning is damaged before it is sealed into a part: is what is there of it
/// kept, as well as the object itself, and read as soon as that reads?
#[test]
fn stg14_a_large_batch_that_does_not_read_is_put_aside() {
    let disk = sim(82);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    send(&stage, 1);
    put(&stage, "a", 1, &long("large", 900));
    stage.barrier().unwrap();
    let snapshot = store.snapshot().unwrap();
    let (object, whole) = snapshot.list::<ObjectRow>(.., 9).unwrap().remove(0);
    let Place::Extent { file, offset } = whole.place else { panic!("it lies in the manifest") };
    let file = snapshot.require::<FileRow>(&file).unwrap();
    let path = layout::sealed(&root(), &file.digest, file.unique, 2);
    drop(snapshot);
    let flip = || {
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, offset + 10).unwrap();
        file.write_at(&[byte[0] ^ 1], offset + 10).unwrap();
        file.sync_all().unwrap();
    };
    drop((store, stage));
    flip();
    let (store, stage) = reopen(&disk, Layout::Directory);
    goes_on(&stage, &["sent-1"], 1);
    assert_eq!(stage.flush(&Ready::All).unwrap().batches, 1);
    goes_on(&stage, &["sent-1"], 1);
    let [aside] = &stage.quarantine().unwrap()[..] else { panic!() };
    assert_eq!(exported(&stage, aside.id).len(), 1);
    assert!(store.health().warnings.iter().any(|e| e.kind() == ErrorKind::Damage));
    store.reclaim(Default::default()).unwrap();
    // The object stands, for whoever can mend it.
    flip();
    let row = store.snapshot().unwrap().list::<QuarantineRow>(.., 9).unwrap().remove(0).1;
    assert_eq!(row.part.object, object);
    assert_eq!(Digest::of(&store.fetch(object).unwrap()), whole.digest);
}
