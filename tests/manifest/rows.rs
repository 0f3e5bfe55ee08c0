//! Rows, their edges, and what happens when the last edge of an object goes.

use std::ops::ControlFlow;

use sealstone::digest::Digest;
use sealstone::error::{Error, ErrorKind};
use sealstone::ids::{GroupId, ObjectId, Ordinal, StageId, StreamId};
use sealstone::manifest::{
    ChunkRow, CountersKey, EdgeKey, EdgeRow, FileObjectRow, FileRow, FileState, GroupRow,
    GroupState, InlineRow, Key, LeaseRow, ObjectRow, Place, Reading, Settled, Table, to_value,
};
use sealstone::vfs::Step;

use crate::support::{World, chunk, chunk_key, contents, object_row, owner, publish};

const STEP: Step = Step::PublishCommit;

/// Does a committed row read back, in this opening and the next, under the right numbers?
#[test]
fn committed_rows_read_back_after_reopening() {
    for world in [World::sim(1).0, World::real()] {
        let manifest = world.open_as(1);
        let done = manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 3)).unwrap();
        assert_eq!((done.commit.0, done.count.0), (3, 1));
        assert_eq!(manifest.commit_seq(), done.commit);
        let before = contents(&manifest.read().unwrap()).unwrap();
        manifest.close().unwrap();
        let manifest = world.open().unwrap();
        assert_eq!(manifest.commit_seq(), done.commit);
        assert_eq!(contents(&manifest.read().unwrap()).unwrap(), before);
        assert_eq!(manifest.meta().store, crate::support::store(1));
    }
}

/// Do the ways to read agree with each other, bounds included?
#[test]
fn get_scan_list_last_and_count_agree() {
    let (world, _) = World::sim(2);
    let manifest = world.open_as(1);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 5)).unwrap();
    let snapshot = manifest.read().unwrap();
    let all = snapshot.list::<ChunkRow>(.., usize::MAX).unwrap();
    assert_eq!(all.len(), 5);
    assert_eq!(snapshot.count(Table::Chunks).unwrap(), 5);
    for (key, row) in &all {
        assert_eq!(snapshot.get::<ChunkRow>(key).unwrap().as_ref(), Some(row));
    }
    assert_eq!(snapshot.list::<ChunkRow>(.., 2).unwrap(), all[..2]);
    assert_eq!(snapshot.list::<ChunkRow>(.., 0).unwrap(), []);
    let middle = chunk_key(1)..chunk_key(4);
    assert_eq!(snapshot.list::<ChunkRow>(middle.clone(), 9).unwrap(), all[1..4]);
    assert_eq!(snapshot.last::<ChunkRow>(middle).unwrap().as_ref(), Some(&all[3]));
    assert_eq!(snapshot.last::<ChunkRow>(chunk_key(9)..).unwrap(), None);
    let inverted = snapshot.list::<ChunkRow>(chunk_key(3)..chunk_key(1), 9).unwrap();
    assert_eq!(inverted, []);
    let mut seen = 0;
    snapshot
        .scan::<ChunkRow>(.., &mut |_, _| {
            seen += 1;
            Ok(if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .unwrap();
    assert_eq!(seen, 3);
    let ended = snapshot.scan::<ChunkRow>(.., &mut |_, _| Err(Error::invalid("a", "b", "c")));
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Invalid);
    let found = snapshot.object_of(&Digest::of(&2u64.to_le_bytes())).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(snapshot.edges_of(found[0].0, 9).unwrap()[0].table, Table::Chunks);
    assert!(snapshot.object_of(&Digest::of(b"none")).unwrap().is_empty());
}

/// G6: can a row refer to an object that is not there, or an object to bytes that are not?
#[test]
fn g6_references_to_nothing_are_refused() {
    let (world, _) = World::sim(3);
    let manifest = world.open_as(1);
    let before = contents(&manifest.read().unwrap()).unwrap();
    let refused = |name: &str, error: Error| {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
        assert_eq!(contents(&manifest.read().unwrap()).unwrap(), before, "{name}");
    };
    let write = |change: &dyn Fn(&mut sealstone::manifest::Write<'_>) -> sealstone::Result<()>| {
        manifest.write(Some(owner(1)), STEP, |w| change(w)).unwrap_err()
    };
    refused("no object", write(&|w| w.put(&chunk_key(0), &chunk(ObjectId(9), 0))));
    refused(
        "no referrer",
        write(&|w| {
            let object = w.next_object_id()?;
            w.put(&object, &InlineRow { bytes: vec![1; 4] })?;
            w.put(&object, &object_row(1, 4, Place::Inline))
        }),
    );
    refused(
        "no inline bytes",
        write(&|w| {
            let object = w.next_object_id()?;
            w.put(&object, &object_row(1, 4, Place::Inline))?;
            w.put(&chunk_key(0), &chunk(object, 0))
        }),
    );
    refused(
        "short inline bytes",
        write(&|w| {
            let object = w.next_object_id()?;
            w.put(&object, &InlineRow { bytes: vec![1; 3] })?;
            w.put(&object, &object_row(1, 4, Place::Inline))?;
            w.put(&chunk_key(0), &chunk(object, 0))
        }),
    );
    refused(
        "no file",
        write(&|w| {
            let object = w.next_object_id()?;
            let place = Place::Extent { file: sealstone::ids::FileId(9), offset: 0 };
            w.put(&object, &object_row(1, 4, place))?;
            w.put(&chunk_key(0), &chunk(object, 0))
        }),
    );
    refused(
        "past the end of its file",
        write(&|w| {
            let (file, objects) = publish(w, 0, 1)?;
            w.put(&objects[0], &object_row(0, 100, Place::Extent { file, offset: 51 }))
        }),
    );
    refused(
        "books that do not close",
        write(&|w| {
            let (file, _) = publish(w, 0, 1)?;
            let row = w.require::<FileRow>(&file)?;
            w.put(&file, &FileRow { live: row.live - 1, ..row })
        }),
    );
    refused(
        "live bytes without an object",
        write(&|w| {
            let (file, objects) = publish(w, 0, 1)?;
            let row = w.require::<FileRow>(&file)?;
            w.put(&file, &FileRow { live: 90, dead: 10, ..row })?;
            w.put(&objects[0], &object_row(0, 100, Place::Extent { file, offset: 50 }))
        }),
    );
    refused(
        "a derived row",
        write(&|w| {
            let edge = EdgeKey { object: ObjectId(1), table: Table::Chunks, key: vec![] };
            w.put(&edge, &EdgeRow)
        }),
    );
    refused(
        "the counters",
        write(&|w| {
            let counters = w.counters()?;
            w.put(&CountersKey, &counters)
        }),
    );
    refused(
        "an object by hand",
        write(&|w| {
            let (_, objects) = publish(w, 0, 1)?;
            w.remove::<ObjectRow>(&objects[0]).map(|_| ())
        }),
    );
}

/// P4: when the last edge of an object goes, do its rows go with it, and do the books of its file
/// close at every step, up to a file in which nothing is left?
#[test]
fn p4_the_last_edge_takes_the_object_and_closes_the_books() {
    let (world, _) = World::sim(4);
    let manifest = world.open_as(1);
    let write = |change: &dyn Fn(&mut sealstone::manifest::Write<'_>) -> sealstone::Result<()>| {
        manifest.write(Some(owner(1)), STEP, |w| change(w)).unwrap().settled
    };
    let done = manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 3)).unwrap();
    assert_eq!(done.settled, Settled::default());
    let (file, objects) = done.value;

    // A second reference keeps an object, whichever goes first.
    let lease = LeaseRow {
        holder: "test".to_owned(),
        purpose: "keep".to_owned(),
        deadline: None,
        objects: vec![objects[0], objects[0]],
    };
    write(&|w| w.put(&sealstone::ids::LeaseId(1), &lease));
    let settled = write(&|w| w.remove::<ChunkRow>(&chunk_key(0)).map(|_| ()));
    assert_eq!(settled, Settled::default());
    let settled = write(&|w| w.remove::<LeaseRow>(&sealstone::ids::LeaseId(1)).map(|_| ()));
    assert_eq!((settled.objects, settled.bytes, settled.files.len()), (1, 100, 0));
    let snapshot = manifest.read().unwrap();
    let books = |file: FileRow| (file.live, file.dead, file.state);
    let row = snapshot.require::<FileRow>(&file).unwrap();
    assert_eq!(books(row), (200, 100, FileState::Sealed));
    assert_eq!(snapshot.get::<ObjectRow>(&objects[0]).unwrap(), None);
    assert_eq!(snapshot.count(Table::FileObjects).unwrap(), 2);
    assert_eq!(snapshot.count(Table::Digests).unwrap(), 2);

    // A row that changes what it refers to gives up what it referred to before.
    let settled = write(&|w| w.put(&chunk_key(1), &chunk(objects[2], 0)));
    assert_eq!((settled.objects, settled.files.len()), (1, 0));
    let settled = write(&|w| w.remove::<ChunkRow>(&chunk_key(1)).map(|_| ()));
    assert_eq!(settled, Settled::default());
    let settled = write(&|w| w.remove::<ChunkRow>(&chunk_key(2)).map(|_| ()));
    assert_eq!((settled.objects, settled.bytes), (1, 100));
    assert_eq!(settled.files, [file]);
    let snapshot = manifest.read().unwrap();
    let row = snapshot.require::<FileRow>(&file).unwrap();
    assert_eq!(books(row), (0, 300, FileState::Condemned));
    for table in [Table::Objects, Table::Edges, Table::FileObjects, Table::Digests] {
        assert_eq!(snapshot.count(table).unwrap(), 0, "{}", table.name());
    }
}

/// Inline bytes go with their object; a reference that moves from row to row in one transaction
/// keeps it.
#[test]
fn inline_objects_go_whole_and_a_moved_reference_keeps_them() {
    let (world, _) = World::sim(5);
    let manifest = world.open_as(1);
    let object = manifest
        .write(Some(owner(1)), STEP, |w| {
            let object = w.next_object_id()?;
            w.put(&object, &InlineRow { bytes: vec![1; 4] })?;
            w.put(&object, &object_row(1, 4, Place::Inline))?;
            w.put(&chunk_key(0), &chunk(object, 0))?;
            Ok(object)
        })
        .unwrap()
        .value;
    let moved = manifest.write(Some(owner(1)), STEP, |w| {
        let old = w.remove::<ChunkRow>(&chunk_key(0))?;
        assert!(!w.has_edges(object)?);
        let to = (StreamId(2), Ordinal(7));
        w.put(&to, &old.unwrap())
    });
    assert_eq!(moved.unwrap().settled, Settled::default());
    let gone = manifest.write(Some(owner(1)), STEP, |w| {
        w.remove::<ChunkRow>(&(StreamId(2), Ordinal(7)))?;
        w.settle()
    });
    let gone = gone.unwrap();
    assert_eq!((gone.value.objects, gone.settled.objects), (1, 1));
    let snapshot = manifest.read().unwrap();
    assert_eq!(snapshot.count(Table::Inline).unwrap(), 0);
    assert_eq!(snapshot.count(Table::Objects).unwrap(), 0);
}

/// Does compaction move an object only from where it thinks that it is, and close both books?
#[test]
fn a_move_closes_the_books_of_both_files() {
    let (world, _) = World::sim(6);
    let manifest = world.open_as(1);
    let done = manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 2)).unwrap();
    let (old, objects) = done.value;
    let retired = manifest.write(Some(owner(1)), STEP, |w| w.remove::<ChunkRow>(&chunk_key(1)));
    assert_eq!(retired.unwrap().settled.objects, 1);
    let done = manifest.write(Some(owner(1)), STEP, |w| {
        let new = w.next_file_id()?;
        let row = w.require::<FileRow>(&old)?;
        // Two objects were copied; one has gone meanwhile.
        w.put(&new, &FileRow { len: 250, framing: 50, live: 0, dead: 200, ..row })?;
        let at = |file, offset| Place::Extent { file, offset };
        assert!(w.move_object(objects[0], at(old, 50), at(new, 50))?);
        assert!(!w.move_object(objects[0], at(old, 50), at(new, 50))?);
        assert!(!w.move_object(objects[1], at(old, 150), at(new, 150))?);
        Ok(new)
    });
    let (new, settled) = {
        let done = done.unwrap();
        (done.value, done.settled)
    };
    assert_eq!(settled.files, [old]);
    let snapshot = manifest.read().unwrap();
    let books = |file| {
        let row = snapshot.require::<FileRow>(&file).unwrap();
        (row.live, row.dead, row.state)
    };
    assert_eq!(books(old), (0, 200, FileState::Condemned));
    assert_eq!(books(new), (100, 100, FileState::Sealed));
    let inside = snapshot.list::<FileObjectRow>(.., 9).unwrap();
    assert_eq!(inside.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), [(new, objects[0])]);
}

/// P10: the books of a file were spoilt. Is that found when they would be carried on, and nothing
/// changed?
#[test]
fn p10_books_that_were_spoilt_are_damage() {
    let (world, _) = World::sim(9);
    let manifest = world.open_as(1);
    let done = manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 3)).unwrap();
    let file = done.value.0;
    for (live, removed) in [(50, 1), (350, 3), (250, 3)] {
        manifest
            .write(Some(owner(1)), STEP, |w| {
                let row = w.require::<FileRow>(&file)?;
                let spoilt = FileRow { live, dead: 400 - live, len: 450, ..row };
                w.put(&file, &spoilt)
            })
            .unwrap();
        let before = contents(&manifest.read().unwrap()).unwrap();
        let refused = manifest.write(Some(owner(1)), STEP, |w| {
            (0..removed).try_for_each(|n| w.remove::<ChunkRow>(&chunk_key(n)).map(|_| ()))
        });
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damage, "{live}: {refused}");
        assert!(refused.place().starts_with("files"), "{refused}");
        assert_eq!(contents(&manifest.read().unwrap()).unwrap(), before);
        assert!(manifest.halt_cause().is_none());
    }
}

/// Is a transaction whose closure errs or panics as if it had never been, numbers included?
#[test]
fn g3_a_failed_closure_changes_nothing() {
    let (world, _) = World::sim(7);
    let manifest = world.open_as(1);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 2)).unwrap();
    let before = contents(&manifest.read().unwrap()).unwrap();
    let refused = manifest.write(Some(owner(1)), STEP, |w| {
        publish(w, 10, 2)?;
        w.remove::<ChunkRow>(&chunk_key(0))?;
        Err::<(), _>(Error::invalid("test", "it", "changed its mind"))
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    let panicked = manifest.write(Some(owner(1)), STEP, |w| {
        publish(w, 20, 2)?;
        if w.counters()?.object > ObjectId(0) {
            panic!("a bug in a closure, on purpose");
        }
        Ok(())
    });
    let panicked = panicked.unwrap_err();
    assert_eq!(panicked.kind(), ErrorKind::CallerPanicked);
    assert!(panicked.cause().contains("on purpose"), "{panicked}");
    assert_eq!(contents(&manifest.read().unwrap()).unwrap(), before);
    // The handle goes on, and the next opening has nothing to repair.
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 30, 1)).unwrap();
    manifest.close().unwrap();
    world.open().unwrap();
}

/// May a scan be changed under its own feet? The borrow checker says no; does redb agree that the
/// rows of a transaction are those that it wrote?
#[test]
fn a_transaction_reads_what_it_wrote() {
    let (world, _) = World::sim(8);
    let manifest = world.open_as(1);
    let done = manifest.write(Some(owner(1)), STEP, |w| {
        let (file, objects) = publish(w, 0, 2)?;
        assert_eq!(w.count(Table::Chunks)?, 2);
        assert_eq!(w.last::<ChunkRow>(..)?.unwrap().1.object, objects[1]);
        assert!(!w.insert_absent(&chunk_key(0), &chunk(objects[1], 0))?);
        assert_eq!(w.get::<ChunkRow>(&chunk_key(0))?.unwrap().object, objects[0]);
        assert_eq!(w.list::<FileObjectRow>(.., 9)?.len(), 2);
        Ok((file, w.commit_seq()))
    });
    let done = done.unwrap();
    assert_eq!(done.value.1, done.commit);
}

/// Is a row refused that could be written and not be read again, with everything else of its transaction?
#[test]
fn g6_what_would_not_read_again_is_not_written() {
    let (world, _) = World::sim(9);
    let manifest = world.open_as(1);
    let group = |rows| GroupRow {
        key: Vec::new(),
        state: GroupState::Open,
        rows,
        batches: 1,
        len: 1,
        first_at: None,
        last_at: None,
        failures: 0,
        failure: None,
    };
    let key = (StageId(1), GroupId(1));
    for rows in [(1 << 60) + 1, u64::MAX] {
        let refused = manifest.write(Some(owner(1)), STEP, |w| w.put(&key, &group(rows)));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::LimitExceeded);
        let refused = to_value(&key.to_bytes(), &group(rows)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
    }
    assert_eq!(manifest.read().unwrap().count(Table::Groups).unwrap(), 0);
    manifest.write(Some(owner(1)), STEP, |w| w.put(&key, &group(1 << 60))).unwrap();
    assert_eq!(manifest.read().unwrap().get::<GroupRow>(&key).unwrap(), Some(group(1 << 60)));
}
