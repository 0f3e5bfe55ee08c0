//! A backup beside several writers.

use sealstone::engine::{Append, BackupOptions, BackupProgress, Budget, Store, WriteAccess};
use sealstone::ids::StreamId;
use sealstone::vfs::sim::SimDisk;
use std::ops::ControlFlow;

use crate::backup::{assert_good, to};
use crate::support::{append, chunk, on, read, root, sim};

fn open(disk: &SimDisk, pid: u32) -> Store {
    on(&disk.process(pid)).access(WriteAccess::Shared).open(root()).unwrap()
}

/// Beside two owners who both write while it is made: does the backup hold what both had
/// acknowledged before, is it good, and does each owner's stream go on at its tail in it?
#[test]
fn g3_a_backup_beside_two_owners_holds_what_both_acknowledged() {
    let disk = sim(80);
    on(&disk).create(root()).unwrap().close().unwrap();
    let owners = [open(&disk, 11), open(&disk, 12)];
    let streams: [StreamId; 2] =
        [owners[0].create_stream("a").unwrap(), owners[1].create_stream("b").unwrap()];
    for round in 0..4u8 {
        for (store, stream) in owners.iter().zip(streams) {
            for n in 0..5 {
                append(store, stream, &[round * 10 + n; 200]);
            }
            store.publish_chunks(vec![chunk(store, stream, 3)]).unwrap();
            store.barrier().unwrap();
        }
        let before: Vec<_> = owners.iter().zip(streams).map(|(s, id)| read(s, id)).collect();
        let mut meanwhile = |_: BackupProgress| {
            for (store, stream) in owners.iter().zip(streams) {
                append(store, stream, &[99; 100]);
                store.publish_chunks(vec![chunk(store, stream, 1)]).unwrap();
                store.reclaim(Budget::default()).unwrap();
            }
            ControlFlow::Continue(())
        };
        // From each of them in turn.
        let from = &owners[usize::from(round % 2)];
        from.backup_with(to(), &BackupOptions::default(), &mut meanwhile).unwrap();
        assert_good(&disk, &to());
        let copy = on(&disk.process(20)).open_read_only(to()).unwrap();
        for (stream, before) in streams.into_iter().zip(before) {
            let has = read(&copy, stream);
            assert_eq!(has[..before.len()], before, "round {round}");
        }
    }
    let copy = on(&disk.process(21)).allow_shared_root(true).open(to()).unwrap();
    for stream in streams {
        let rows = copy.view(stream).unwrap().record_count();
        let next = copy.append(vec![Append { stream, payload: vec![1; 10] }]).unwrap();
        assert_eq!(next.sequences[0].0, rows);
    }
    copy.close().unwrap();
    assert_good(&disk, &to());
}
