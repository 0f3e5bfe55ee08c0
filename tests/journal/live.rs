//! A journal that one thread writes and another reads, on a simulated disk and on a real one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sealstone::format::layout;
use sealstone::ids::{CommitSeq, Epoch};
use sealstone::journal::{Expect, Journal, JournalConfig, Level, Registrar, Tail, scan};
use sealstone::vfs::{Disk, RealDisk};

use super::rig::*;

/// A reader beside the writer: is it ever shown less than before, a hole, or damage that is none?
fn follow(disk: Arc<dyn Disk>, root: &Path) {
    let rows = Arc::new(Rows::default());
    let mut limits = limits();
    limits.journal_file_bytes = 64 << 10;
    let config = JournalConfig {
        disk: Arc::clone(&disk),
        root: root.to_owned(),
        store: STORE,
        owner: OWNER,
        epoch: Epoch(1),
        limits,
        commit: Arc::new(|| CommitSeq(0)),
        first_n: 0,
        is_written_by_sync: false,
    };
    let journal = Journal::new(config, Arc::clone(&rows) as Arc<dyn Registrar>);
    let ended = AtomicBool::new(false);
    let scans = AtomicU64::new(0);
    let frames = 1500;
    let see = |shown: u64| {
        let mut records = Vec::new();
        let list = rows.rows.lock().clone();
        for Row { n, salt, end } in list {
            let expect = Expect { store: STORE, owner: OWNER, n, salt: Some(salt), end };
            let path = layout::journal(root, OWNER, n);
            let found = scan(&*disk, &path, &expect, &mut |_, mut group| {
                records.append(&mut group);
                Ok(())
            });
            let tail = found.unwrap().tail;
            assert!(!matches!(tail, Tail::Damaged { .. }), "{tail:?} of file {n}");
        }
        assert!(records.len() as u64 >= shown, "{shown} were shown");
        assert_eq!(records, numbered(0, records.len() as u64));
        records.len() as u64
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut shown = 0;
            while !ended.load(Ordering::Acquire) {
                shown = see(shown);
                scans.fetch_add(1, Ordering::AcqRel);
            }
            shown
        });
        for record in numbered(0, frames) {
            let ticket = journal.enqueue([record]).unwrap();
            let level =
                if ticket.position().is_multiple_of(3) { Level::Durable } else { Level::Written };
            journal.wait(&ticket, level).unwrap();
            // The reader keeps up, so that it meets the writer at many places.
            while scans.load(Ordering::Acquire) < ticket.position() / 4 && !reader.is_finished() {
                std::thread::yield_now();
            }
        }
        ended.store(true, Ordering::Release);
        assert_eq!(see(reader.join().unwrap()), frames);
    });
}

#[test]
fn a_reader_beside_the_writer_sees_a_growing_prefix() {
    follow(Arc::new(fresh_disk(1)), root());
}

#[test]
fn a_reader_beside_the_writer_sees_a_growing_prefix_on_a_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("journal")).unwrap();
    follow(RealDisk::new(), folder.path());
}
