//! Rows that contradict each other, written into the manifest behind the store's back.

use redb::ReadableTable;
use sealstone::digest::Digest;
use sealstone::ids::{
    CheckpointId, CommitSeq, Epoch, FileId, ObjectId, Ordinal, OwnerId, Sequence, StreamId,
};
use sealstone::manifest::*;

use crate::support::{fill, text};
use crate::tamper::{Bench, assert_told, looked};

fn in_file(row: &ObjectRow) -> Option<FileId> {
    match row.place {
        Place::Extent { file, .. } => Some(file),
        Place::Inline | Place::Recipe => None,
    }
}

/// Are edges and index rows that are missing, or too many, told from either side?
#[test]
fn edges_and_indexes_are_told_from_both_sides() {
    let bench = Bench::of(|store| fill(store, 21));
    let report = bench.tampered(|t| {
        let edge = EdgeKey { object: ObjectId(1), table: Table::Leases, key: vec![0; 8] };
        t.put(&edge, &EdgeRow);
    });
    assert_told(&report, &["edges EdgeKey"]);
    let report = bench.tampered(|t| {
        let (key, _) = t.rows::<ChunkRow>()[0].clone();
        let edge = EdgeKey { object: ObjectId(2), table: Table::Chunks, key: key.to_bytes() };
        assert_ne!(t.rows::<ChunkRow>()[0].1.object, ObjectId(2));
        t.put(&edge, &EdgeRow);
    });
    assert_told(&report, &["edges EdgeKey"]);
    let report = bench.tampered(|t| {
        let (key, _) =
            t.rows::<EdgeRow>().into_iter().find(|(e, _)| e.table == Table::Chunks).unwrap();
        t.remove::<EdgeRow>(&key);
    });
    assert_told(&report, &["chunks (", "objects ObjectId"]);
    let report = bench.tampered(|t| {
        let (digest, _) = t.rows::<DigestRow>()[0];
        t.remove::<DigestRow>(&digest);
        t.put(&(7, ObjectId(3)), &DigestRow);
        let (lies, _) = t.rows::<FileObjectRow>()[0];
        t.remove::<FileObjectRow>(&lies);
        t.put(&(FileId(77), ObjectId(3)), &FileObjectRow);
    });
    assert_told(&report, &["digests (7", "file_objects (FileId(77)", "objects ObjectId"]);
    let report = bench.tampered(|t| {
        let (object, _) =
            t.rows::<ObjectRow>().into_iter().find(|(_, row)| in_file(row).is_none()).unwrap();
        t.remove::<ObjectRow>(&object);
    });
    assert_told(&report, &["inline ObjectId", "leases LeaseId", "digests ("]);
}

/// Are bytes that are missing or differ, and books that do not close, told?
#[test]
fn objects_and_books_are_told() {
    let bench = Bench::of(|store| fill(store, 21));
    let report = bench.tampered(|t| {
        let (object, _) = t.rows::<InlineRow>()[0].clone();
        t.remove::<InlineRow>(&object);
    });
    assert_told(&report, &["objects ObjectId"]);
    let report = bench.tampered(|t| {
        t.change::<InlineRow>(|_| true, |row| row.bytes[0] ^= 1);
    });
    assert_told(&report, &["inline ObjectId"]);
    let report = bench.tampered(|t| {
        t.change::<FileRow>(
            |row| row.live > 0,
            |row| (row.live, row.dead) = (row.live - 1, row.dead + 1),
        );
        t.change::<FileRow>(|row| row.live == 0, |row| row.state = FileState::Sealed);
    });
    assert_told(&report, &["files FileId"]);
    assert!(report.damages >= 2, "{}", text(&report));
    let report = bench.tampered(|t| {
        t.change::<FileRow>(|row| row.live > 0, |row| row.state = FileState::Condemned);
    });
    assert_told(&report, &["files FileId"]);
    // A row that points elsewhere in its file, or at another digest.
    let report = bench.tampered(|t| {
        t.change::<ObjectRow>(
            |row| in_file(row).is_some(),
            |row| {
                if let Place::Extent { offset, .. } = &mut row.place {
                    *offset += 8;
                }
            },
        );
    });
    assert!(report.damages > 0, "{}", text(&report));
    let report = bench.tampered(|t| {
        t.change::<ObjectRow>(
            |row| in_file(row).is_some(),
            |row| row.digest = Digest([row.digest.0[0]; 32]),
        );
    });
    assert!(report.damages > 0, "{}", text(&report));
}

/// Are streams whose chunks, cuts, tails or checkpoints do not fit told?
#[test]
fn streams_that_do_not_fit_are_told() {
    let bench = Bench::of(|store| fill(store, 21));
    let at = |stream: u64, ordinal: u64| (StreamId(stream), Ordinal(ordinal));
    for ordinal in [0, 1] {
        let report = bench.tampered(|t| t.remove::<ChunkRow>(&at(2, ordinal)));
        let told = if ordinal == 0 { "chunks (StreamId(2)" } else { "streams StreamId(2)" };
        assert_told(&report, &[told]);
    }
    let report = bench.tampered(|t| {
        t.change::<StreamRow>(|row| row.name == "c", |row| row.sealed_upto = Sequence(17));
    });
    assert_told(&report, &["streams StreamId(3)"]);
    let report = bench.tampered(|t| {
        t.change::<StreamRow>(|row| row.name == "c", |row| row.sealed_upto = Sequence(9));
    });
    assert_told(&report, &["streams StreamId(3)"]);
    let report = bench.tampered(|t| {
        t.change::<StreamRow>(|row| row.name == "a", |row| row.cuts.clear());
    });
    assert_told(&report, &["streams StreamId(1)"]);
    let report = bench.tampered(|t| {
        t.change::<CheckpointRow>(|_| true, |row| row.cursors[1].end = Sequence(31));
    });
    assert_told(&report, &["checkpoints (1"]);
    let report = bench.tampered(|t| {
        t.change::<ChunkRow>(|_| true, |row| row.records += 1);
    });
    assert_told(&report, &["chunks (StreamId(1)"]);
}

/// Are numbers that would be given twice, and claims of nobody, told?
#[test]
fn counters_owners_and_claims_are_told() {
    let bench = Bench::of(|store| fill(store, 21));
    let report = bench.tampered(|t| {
        t.counters(|row| {
            row.object = ObjectId(1);
            row.file = FileId(1);
            row.stream = StreamId(1);
            row.checkpoint = CheckpointId(1);
            row.epoch = Epoch(0);
        });
    });
    let counters = ["object", "file", "stream", "checkpoint", "epoch"];
    assert_told(
        &report,
        &counters.map(|name| format!("counter {name}")).each_ref().map(|s| &s[..]),
    );
    let report = bench.tampered(|t| {
        let (_, owner) = t.rows::<OwnerRow>()[0].clone();
        t.put(&OwnerId::from_parts(1, [9; 10]), &owner);
        let claim = ClaimRow {
            owner: OwnerId::from_parts(2, [8; 10]),
            epoch: Epoch(1),
            kind: ClaimKind::Build,
            since: None,
            taken: CommitSeq(1),
        };
        t.put(&ResourceKey::from("nobody"), &claim);
    });
    assert_told(&report, &["owners OwnerId", "claims ResourceKey"]);
}

/// Is a row that does not decode told, and the one behind it looked at?
#[test]
fn g12_a_row_that_does_not_decode_is_told() {
    let bench = Bench::of(|store| fill(store, 21));
    for table in
        [Table::Streams, Table::Chunks, Table::Objects, Table::Files, Table::Edges, Table::Journals]
    {
        let report = bench.tampered(|t| {
            let mut table = t.table(table);
            let (key, mut value) = {
                let (key, value) = table.first().unwrap().unwrap();
                (key.value().to_vec(), value.value().to_vec())
            };
            value[0] ^= 1;
            table.insert(&key[..], &value[..]).unwrap();
        });
        assert_told(&report, &[table.name()]);
        assert!(report.looked_at.rows > 60);
    }
    let report = bench.tampered(|t| {
        t.table(Table::Streams).insert(&[1u8, 2][..], &[3u8][..]).unwrap();
    });
    assert!(report.damages > 0, "{}", text(&report));
}

/// Is it told when no row says that a journal is needed, although records lie in it alone? (The next
/// reclaim would take it.)
#[test]
fn a_journal_that_no_row_calls_needed_is_told() {
    let bench = Bench::of(|store| fill(store, 21));
    let report = looked(&bench.root());
    assert!(report.is_good(), "{}", text(&report));
    let report = bench.tampered(|t| {
        assert!(t.rows::<JournalRow>().iter().any(|(_, row)| !row.needed.is_empty()));
        for (key, mut row) in t.rows::<JournalRow>() {
            row.needed.clear();
            t.put(&key, &row);
        }
    });
    assert!(text(&report).contains("no journal's row says that it is needed"), "{}", text(&report));
    let report = bench.tampered(|t| {
        let of = |row: &JournalRow| row.needed.iter().any(|(_, last)| last.0 > 0);
        t.change::<JournalRow>(of, |row| row.needed.iter_mut().for_each(|(_, last)| last.0 -= 1));
    });
    assert!(text(&report).contains("no journal's row says that it is needed"), "{}", text(&report));
}
