//! How many syncs an acknowledgement takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::Limits;
use sealstone::engine::{Append, ChunkBuild, Options, Store};
use sealstone::ids::{Sequence, StreamId};
use sealstone::manifest::StreamRow;
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Counts, Disk, RealDisk, Step, TraceDisk};

pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 4;
    limits.ballast_bytes = 0;
    limits.journal_prewrite_bytes = 64 << 10;
    // HEAD is rewritten now and then, which is one sync more; not here.
    limits.head_commits = 1 << 40;
    limits.background = false;
    limits
}

pub fn options(disk: Arc<dyn Disk>) -> Options {
    Store::options().limits(limits()).disk(disk)
}

pub fn sim(seed: u64) -> (SimDisk, PathBuf) {
    let disk = SimDisk::new(seed);
    disk.stop_log();
    disk.mkdir(Path::new("/data")).unwrap();
    (disk, PathBuf::from("/data/run.stone"))
}

fn streams(store: &Store, n: u64) -> Vec<StreamId> {
    let made = store.transact(Step::PublishCommit, |w| {
        (0..n)
            .map(|k| {
                let stream = w.next_stream_id()?;
                let row = StreamRow { name: format!("s{k}"), ..StreamRow::default() };
                w.put(&stream, &row)?;
                Ok(stream)
            })
            .collect::<sealstone::Result<Vec<_>>>()
    });
    made.unwrap().value
}

fn make_dirty(store: &Store, streams: &[StreamId]) {
    for &stream in streams {
        store.append(vec![Append { stream, payload: vec![7; 100] }]).unwrap();
    }
}

fn barrier_syncs_once(store: &Store, counts: &dyn Fn() -> Counts, disk: &str) {
    let all = streams(store, 1000);
    // The first barrier also begins the journal file.
    make_dirty(store, &all[..1]);
    store.barrier().unwrap();
    for n in [1, 10, 1000] {
        make_dirty(store, &all[..n]);
        let before = counts();
        store.barrier().unwrap();
        let took = counts().since(&before);
        println!(
            "{disk}: barrier after {n} dirty streams: {} data sync, {} writes",
            took.sync_data, took.writes
        );
        assert_eq!((took.sync_data, took.syncs()), (1, 1), "{n} streams");
        let before = counts();
        store.barrier().unwrap();
        let again = counts().since(&before);
        assert_eq!((again.syncs(), again.mutations()), (0, 0), "a barrier on nothing new did I/O");
    }
}

/// Does a barrier take exactly one data sync, however many streams are dirty? (P1)
#[test]
fn p1_a_barrier_is_one_data_sync_for_any_number_of_streams() {
    let (disk, root) = sim(1);
    let store = options(Arc::new(disk.clone())).create(&root).unwrap();
    barrier_syncs_once(&store, &|| disk.counts(), "simulated");
    drop(store);
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(TraceDisk::counting(RealDisk::new()));
    let store = options(disk.clone()).create(dir.path().join("run.stone")).unwrap();
    barrier_syncs_once(&store, &|| disk.counts(), "real");
}

fn builds(store: &Store, streams: &[StreamId], round: u8) -> Vec<ChunkBuild> {
    let build = |stream: &StreamId| {
        // Above the inline limit, and each another one.
        let mut content = vec![round; 5000];
        content[..8].copy_from_slice(&stream.0.to_le_bytes());
        ChunkBuild {
            stream: *stream,
            first: Sequence(store.view(*stream).unwrap().record_count()),
            records: 10,
            raw_len: 5000,
            content,
            about: Vec::new(),
            iterations: None,
            times: None,
            payloads: Vec::new(),
        }
    };
    streams.iter().map(build).collect()
}

/// Does publishing many chunks in one go take as many syncs as publishing one?
#[test]
fn p4_the_syncs_of_a_publication_do_not_grow_with_its_chunks() {
    let (disk, root) = sim(2);
    let store = options(Arc::new(disk.clone())).create(&root).unwrap();
    let all = streams(&store, 1000);
    store.publish_chunks(builds(&store, &all, 0)).unwrap();
    let mut took = Vec::new();
    for (round, n) in [1, 10, 100, 1000, 1000, 1].into_iter().enumerate() {
        let builds = builds(&store, &all[..n], round as u8 + 1);
        let before = disk.counts();
        store.publish_chunks(builds).unwrap();
        let counts = disk.counts().since(&before);
        println!(
            "{n} chunks in one publication: {} syncs ({} of files, {} of directories), {} files, \
             {} writes",
            counts.syncs(),
            counts.sync_data + counts.sync_all,
            counts.sync_dir,
            counts.creates,
            counts.writes
        );
        took.push(counts.syncs());
    }
    // A manifest that grows syncs its new length, once, whatever it grows for: the same again does
    // not.
    assert!(took[3] <= took[0] + 1, "{took:?}");
    took.remove(3);
    assert!(took.iter().all(|syncs| *syncs == took[0]), "{took:?}");
}

/// The names of all streams.
pub fn names(store: &Store) -> Vec<String> {
    use sealstone::manifest::Reading;
    let rows = store.snapshot().unwrap().list::<StreamRow>(.., usize::MAX).unwrap();
    rows.into_iter().map(|(_, row)| row.name).collect()
}
