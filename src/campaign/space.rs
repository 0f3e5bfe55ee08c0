//! Crash loops: work, crash, recover, retire, reclaim, again and again on one disk. What the store
//! takes afterwards must not grow.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::finding::{Finding, Rule};
use super::history::Limited;
use super::play::root;
use crate::engine::{Append, Budget, Layout, Options, Store, Thing};
use crate::error::Result;
use crate::ids::{LeaseId, StreamId};
use crate::manifest::{CheckIntegrity, LeaseRow, Reading, StreamRow};
use crate::vfs::Disk;
use crate::vfs::sim::{Profile, Rng, SimDisk};

/// Loops after which the store has taken on its size.
const WARM_UP: u64 = 12;
/// What may come on top: redb gives pages back when it likes.
const SLACK_BYTES: u64 = 256 << 10;

fn options(limited: Limited, disk: &SimDisk) -> Options {
    Store::options()
        .limits(limited.limits())
        .layout(limited.layout())
        .check_integrity(CheckIntegrity::Always)
        .disk(Arc::new(disk.clone()))
}

/// Runs `loops` crash loops on a store directory; the bytes that the store takes in the end.
///
/// # Errors
/// The rule that did not hold.
pub fn crash_loops(seed: u64, loops: u64) -> std::result::Result<u64, Finding> {
    crash_loops_in(Limited::Tiny, seed, loops)
}

/// The same on a store with these bounds, in its layout.
///
/// # Errors
/// As there.
pub fn crash_loops_in(
    limited: Limited,
    seed: u64,
    loops: u64,
) -> std::result::Result<u64, Finding> {
    let fail = |e| Finding::error(Rule::Space, "a crash loop", &e);
    let mut disk = SimDisk::new(seed);
    let made = disk.mkdir(Path::new("/data")).and_then(|()| disk.sync_dir(Path::new("/")));
    made.map_err(|e| Finding::new(Rule::Space, e))?;
    options(limited, &disk).create(root()).and_then(|store| store.close()).map_err(fail)?;
    let mut rng = Rng::new(seed);
    let (mut most, mut last) = (0, 0);
    let mut lately = VecDeque::new();
    for at in 0..loops {
        disk.restart_log();
        work(limited, &disk, &mut rng).map_err(fail)?;
        disk = crashed(&disk, &mut rng);
        last = tidy(limited, &disk).map_err(fail)?;
        lately.push_back(last);
        if at < WARM_UP {
            most = most.max(last);
            continue;
        }
        lately.pop_front();
        // Room that one file was given for a while comes and goes: what never goes is growth.
        let seen = match limited.layout() {
            Layout::Directory => last,
            Layout::SingleFile => lately.iter().copied().min().unwrap_or(last),
        };
        if seen > most + SLACK_BYTES {
            let seen = format!("{seen} bytes after loop {at}, {most} in the first {WARM_UP}");
            return Err(Finding::new(Rule::Space, seen));
        }
    }
    Ok(last)
}

fn work(limited: Limited, disk: &SimDisk, rng: &mut Rng) -> Result<()> {
    let store = options(limited, disk).open(root())?;
    let stream = store.create_stream("s")?;
    for _ in 0..4 + rng.index(8) {
        let payload = vec![rng.below(250) as u8; 50 + rng.index(900)];
        store.append(vec![Append { stream, payload }])?;
    }
    store.barrier()?;
    let lease = store.lease("loop", "a crash loop", None, &[])?;
    let contents = (0..3).map(|_| vec![rng.below(250) as u8; 500 + rng.index(900)]).collect();
    store.put_objects(lease, contents)?;
    store.retire(&[Thing::Lease(lease)], "a crash loop")?;
    store.reclaim(Budget::default())?;
    Ok(())
}

/// The disk after a crash at any event of its log.
fn crashed(disk: &SimDisk, rng: &mut Rng) -> SimDisk {
    let log = disk.events();
    let cut = rng.index(log.len() + 1);
    let mut cursor = log.cursor(Profile::PosixHarshest);
    cursor.advance_to(cut);
    let mut images = cursor.images(rng, 6);
    let at = rng.index(images.len());
    match images.is_empty() {
        true => disk.clone(),
        false => images.swap_remove(at).disk(),
    }
}

/// Recovers, retires everything, reclaims; what is left on the disk.
fn tidy(limited: Limited, disk: &SimDisk) -> Result<u64> {
    let store = options(limited, disk).open(root())?;
    let snapshot = store.snapshot()?;
    let streams = snapshot.list::<StreamRow>(.., usize::MAX)?;
    let leases = snapshot.list::<LeaseRow>(.., usize::MAX)?;
    drop(snapshot);
    let stream = |(id, _): (StreamId, StreamRow)| Thing::Stream(id);
    store.retire(&streams.into_iter().map(stream).collect::<Vec<_>>(), "a crash loop")?;
    let others = leases.into_iter().filter(|(_, row)| row.holder != "journal");
    let lease = |(id, _): (LeaseId, LeaseRow)| Thing::Lease(id);
    store.retire(&others.map(lease).collect::<Vec<_>>(), "a crash loop")?;
    store.reclaim(Budget::default())?;
    let left = store.accounts()?.on_disk;
    store.close()?;
    Ok(left)
}
