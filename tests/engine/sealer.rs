//! The sealer: chunks that become durable behind their caller's back, from several threads.

use std::path::Path;

use sealstone::engine::{ChunkBuild, Store, StreamView, WriteAccess};
use sealstone::ids::{Sequence, StreamId};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng};
use sealstone::vfs::{Disk, Operation};
use sealstone::{ErrorKind, Layout, Limits};

use crate::support::{on, root, sim, small};

const CHUNKS: u64 = 24;

fn threaded() -> Limits {
    let mut limits = small();
    limits.background = true;
    limits
}

/// Two records; every third chunk has the bytes of the first, some fit into the manifest.
fn content(n: u64) -> Vec<u8> {
    match n % 3 {
        0 => vec![7; 300],
        1 => vec![n as u8; 3000 + n as usize],
        _ => vec![n as u8; 40],
    }
}

fn build(stream: StreamId, n: u64) -> ChunkBuild {
    ChunkBuild {
        stream,
        first: Sequence(2 * n),
        records: 2,
        content: content(n),
        about: b"test".to_vec(),
        raw_len: content(n).len() as u64,
        iterations: None,
        times: None,
        payloads: Vec::new(),
    }
}

/// Fails unless the stream holds the first chunks, in order, whole; how many.
fn prefix(store: &Store, stream: StreamId) -> u64 {
    let view: StreamView = store.view(stream).unwrap();
    for (n, (_, row)) in view.chunks.iter().enumerate() {
        assert_eq!(row.first, Sequence(2 * n as u64));
        assert_eq!(store.fetch(row.object).unwrap(), content(n as u64), "chunk {n}");
    }
    view.chunks.len() as u64
}

/// Do chunks of several threads come out in the order in which they were pushed, equal ones stored
/// once, with fewer commits than chunks at most, and nothing left over?
#[test]
fn g5_chunks_come_out_in_the_order_pushed() {
    let alone = (Layout::Directory, WriteAccess::Single);
    let shared = (Layout::Directory, WriteAccess::Shared);
    let one_file = (Layout::SingleFile, WriteAccess::Single);
    let each = |limits: Limits| [alone, shared, one_file].map(|how| (limits.clone(), how));
    for (limits, (layout, access)) in each(threaded()).into_iter().chain(each(small())) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.stone");
        let opening = || Store::options().limits(limits.clone()).layout(layout).access(access);
        let store = opening().open_or_create(&path).unwrap();
        let streams = ["a", "b"].map(|name| store.create_stream(name).unwrap());
        let mut sealer = store.sealer().unwrap();
        for n in 0..CHUNKS {
            for stream in streams {
                sealer.push(build(stream, n)).unwrap();
            }
            if n == CHUNKS / 2 {
                sealer.barrier().unwrap();
                assert_eq!(sealer.published(), 2 * (n + 1));
                assert!(streams.iter().all(|stream| prefix(&store, *stream) == n + 1));
            }
        }
        assert_eq!(sealer.finish().unwrap(), 2 * CHUNKS);
        store.close().unwrap();
        let store = opening().open(&path).unwrap();
        assert!(streams.iter().all(|stream| prefix(&store, *stream) == CHUNKS));
        let accounts = store.accounts().unwrap();
        assert!(accounts.are_closed() && accounts.orphan == 0, "{accounts:?}");
    }
}

/// Is a chunk that does not follow refused at once, and may the right one still come?
#[test]
fn a_chunk_that_does_not_follow_is_refused_alone() {
    let disk = sim(71);
    let store = on(&disk).limits(threaded()).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let mut sealer = store.sealer().unwrap();
    sealer.push(build(stream, 0)).unwrap();
    assert_eq!(sealer.push(build(stream, 2)).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(sealer.push(build(stream, 0)).unwrap_err().kind(), ErrorKind::Invalid);
    sealer.push(build(stream, 1)).unwrap();
    assert_eq!(sealer.finish().unwrap(), 2);
    assert_eq!(prefix(&store, stream), 2);
}

/// Is anything behind a chunk that failed published? Does it end, and is what came before whole?
#[test]
fn g16_nothing_behind_a_failed_chunk_is_published() {
    for at in 0..12 {
        let disk = sim(72 + at);
        let store = on(&disk).limits(threaded()).create(root()).unwrap();
        let stream = store.create_stream("s").unwrap();
        let fault = Fault::new(disk.operations() + 10 * at, FaultKind::Enospc);
        disk.inject(fault.only(Operation::Write).on("tmp").forever());
        let mut sealer = store.sealer().unwrap();
        let failed = (0..CHUNKS).find_map(|n| sealer.push(build(stream, n)).err());
        let failed = failed.or_else(|| sealer.barrier().err());
        let published = sealer.published();
        drop(sealer);
        disk.clear_faults();
        assert_eq!(failed.map(|e| e.kind()), Some(ErrorKind::DiskFull), "fault {at}");
        assert_eq!(prefix(&store, stream), published, "fault {at}");
        assert!(store.accounts().unwrap().are_closed());
    }
}

/// Pushes a long chunk of one stream and then a short one of another, again and again: how often the
/// short one was seen without the long one.
fn seen_alone(rounds: u64, until_seen: bool) -> u64 {
    let disk = sim(73);
    let store = on(&disk).limits(threaded()).create(root()).unwrap();
    let mut alone = 0;
    for round in 0..rounds {
        let [long, short] =
            ["long", "short"].map(|name| store.create_stream(&format!("{name} {round}")).unwrap());
        let mut sealer = store.sealer().unwrap();
        let content = |len: usize| vec![round as u8; len];
        sealer.push(ChunkBuild { content: content(4 << 20), ..build(long, 0) }).unwrap();
        sealer.push(ChunkBuild { content: content(100), ..build(short, 0) }).unwrap();
        while store.view(short).unwrap().chunks.is_empty() {
            std::thread::yield_now();
        }
        alone += u64::from(store.view(long).unwrap().chunks.is_empty());
        // Without the order the count of what is published says nothing.
        drop(sealer);
        if until_seen && alone > 0 {
            break;
        }
    }
    alone
}

/// Is a chunk ever there without one of another stream that was pushed before it?
#[test]
fn g5_a_chunk_waits_for_those_before_it_and_the_mutant_is_caught() {
    assert_eq!(seen_alone(6, false), 0);
    let _off = switch_off(Protection::SealerOrder);
    assert!(seen_alone(200, true) > 0, "nobody saw that the order is gone");
}

/// After a power cut at any moment: is what is there a prefix, whole, and at least what was told?
#[test]
fn p3_g1_a_cut_leaves_a_prefix_of_what_was_pushed() {
    let disk = sim(99);
    disk.sync_dir(Path::new("/")).unwrap();
    let store = on(&disk).limits(threaded()).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let begin = disk.events().len();
    let mut sealer = store.sealer().unwrap();
    let mut told = Vec::new();
    for n in 0..CHUNKS {
        sealer.push(build(stream, n)).unwrap();
        // What was told lies before this place in the log.
        let published = sealer.published();
        told.push((disk.events().len(), published));
    }
    sealer.finish().unwrap();
    let log = disk.events();
    told.push((log.len(), CHUNKS));
    let mut rng = Rng::new(5);
    let mut cursor = log.cursor(Profile::PosixHarshest);
    for cut in (begin..=log.len()).step_by(7) {
        cursor.advance_to(cut);
        let least = told.iter().rev().find(|(at, _)| *at <= cut).map_or(0, |(_, n)| *n);
        for image in cursor.images(&mut rng, 2) {
            let store = on(&image.disk()).open(root()).unwrap();
            let found = prefix(&store, stream);
            assert!(found >= least, "cut {cut}: {found} chunks, {least} were told");
            assert!(store.accounts().unwrap().are_closed(), "cut {cut}");
        }
    }
}
