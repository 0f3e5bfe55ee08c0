//! Scenarios beyond the contract with the medium: stale blocks, flipped bytes, files put back, a
//! drive that gives up or lies once. Each must be told as an error, or must not matter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::verify_objects;
use super::content::Content;
use super::finding::{Finding, Rule};
use super::history::Limited;
use super::liar::{Liar, Lie};
use super::model::Bytes;
use super::play::root;
use super::tamper_copy::{bad_backup, bad_manifest_copy};
use super::tamper_file;
use crate::engine::{Append, Budget, Options, Store, Thing};
use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::HEADER_BYTES;
use crate::format::layout;
use crate::ids::StreamId;
use crate::journal::Level;
use crate::manifest::CheckIntegrity;
use crate::vfs::sim::{Outcome, Outcomes, Profile, SimDisk};
use crate::vfs::{Access, Disk, read_whole, write_all_at};

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tamper {
    /// An older manifest is put back.
    OldManifest,
    /// Bytes of durable frames are flipped, one after the other.
    FlippedFrame,
    /// Behind the end of a journal lie frames of an older one.
    StaleFrames,
    /// The copy that compaction makes is not what was written.
    BadCopy,
    /// The copy of a manifest is not what was written.
    BadManifestCopy,
    /// A file of a backup is not what was copied.
    BadBackup,
    /// A sync of a journal fails.
    FailedSync,
    /// A write to a journal ends in the middle with an error.
    TornWrite,
    /// In one file: bytes of durable records are flipped.
    FileFlippedRecord,
    /// In one file: a sync fails.
    FileFailedSync,
    /// In one file: a write ends in the middle with an error.
    FileTornWrite,
    /// In one file: a byte of a commit is not what was written.
    FileFlippedWrite,
}

impl Tamper {
    /// Every scenario.
    pub const ALL: [Self; 12] = [
        Self::OldManifest,
        Self::FlippedFrame,
        Self::StaleFrames,
        Self::BadCopy,
        Self::BadManifestCopy,
        Self::BadBackup,
        Self::FailedSync,
        Self::TornWrite,
        Self::FileFlippedRecord,
        Self::FileFailedSync,
        Self::FileTornWrite,
        Self::FileFlippedWrite,
    ];
}

pub(super) type Told<T = ()> = std::result::Result<T, Finding>;

/// Plays every scenario; the number of openings looked at.
///
/// # Errors
/// The first rule that did not hold.
pub fn tamper_all(seed: u64) -> Told<u64> {
    Tamper::ALL.into_iter().try_fold(0, |looks, tamper| Ok(looks + tamper_with(tamper, seed)?))
}

fn tamper_with(tamper: Tamper, seed: u64) -> Told<u64> {
    match tamper {
        Tamper::OldManifest => old_manifest(seed),
        Tamper::FlippedFrame => flipped_frame(seed),
        Tamper::StaleFrames => stale_frames(seed),
        Tamper::BadCopy => bad_copy(seed),
        Tamper::BadManifestCopy => bad_manifest_copy(seed),
        Tamper::BadBackup => bad_backup(seed),
        Tamper::FailedSync => failed_sync(seed),
        Tamper::TornWrite => torn_write(seed),
        Tamper::FileFlippedRecord => tamper_file::flipped_record(seed),
        Tamper::FileFailedSync => tamper_file::failed_sync(seed),
        Tamper::FileTornWrite => tamper_file::torn_write(seed),
        Tamper::FileFlippedWrite => tamper_file::flipped_write(seed),
    }
}

pub(super) fn options(disk: Arc<dyn Disk>) -> Options {
    Store::options()
        .limits(Limited::Tiny.limits())
        .check_integrity(CheckIntegrity::Always)
        .disk(disk)
}

/// A step that has to work for the scenario to mean anything.
pub(super) fn must<T>(doing: &'static str, done: Result<T>) -> Told<T> {
    done.map_err(|e| Finding::error(Rule::Acted, doing, &e))
}

pub(super) fn born(seed: u64) -> Told<SimDisk> {
    let disk = SimDisk::new(seed);
    let made = disk.mkdir(Path::new("/data")).and_then(|()| disk.sync_dir(Path::new("/")));
    must("make a directory", made.map_err(|e| Error::io("create", "/data", e)))?;
    Ok(disk)
}

pub(super) fn create(disk: &SimDisk) -> Told<(Store, StreamId)> {
    let store = must("create", options(Arc::new(disk.clone())).create(root()))?;
    let stream = must("create a stream", store.create_stream("s"))?;
    Ok((store, stream))
}

/// A record of 40 bytes, so that all frames are of one length.
pub(super) fn record(byte: u8) -> Vec<u8> {
    vec![byte; 40]
}

pub(super) fn append(store: &Store, stream: StreamId, byte: u8, level: Level) -> Result<()> {
    let accepted = store.append(vec![Append { stream, payload: record(byte) }])?;
    store.wait(&accepted.ticket, level)
}

fn records_of(content: &Content) -> Vec<Bytes> {
    content.streams.values().flat_map(|(_, records)| records.clone()).collect()
}

pub(super) fn read_file(disk: &SimDisk, path: &Path) -> Told<Vec<u8>> {
    let read = disk.open(path, Access::Read).and_then(|file| read_whole(&*file, 64 << 20));
    must("read a file", read.map_err(|e| Error::io("read", path.display(), e)))
}

pub(super) fn write_file(disk: &SimDisk, path: &Path, bytes: &[u8], offset: u64) -> Told {
    let write = || {
        let file = disk.open(path, Access::ReadWrite)?;
        write_all_at(&*file, bytes, offset)?;
        file.sync_data()
    };
    must("write a file", write().map_err(|e| Error::io("write", path.display(), e)))
}

/// The only journal there is.
fn journal_of(disk: &SimDisk, store: &Store) -> Told<PathBuf> {
    let dir = layout::journal_dir(&root());
    let listed = disk.list(&dir).map_err(|e| Error::io("list", dir.display(), e));
    let ours = store.owner().map(|(owner, _)| owner);
    let is_ours = |name: &str| layout::parse_journal(name).map(|(owner, _)| owner) == ours;
    let found = must("list", listed)?.into_iter().find(|entry| is_ours(&entry.name));
    let found = found.map(|entry| dir.join(entry.name));
    found.ok_or_else(|| Finding::new(Rule::Acted, "a store that appended has no journal"))
}

/// The disk as it is after a power cut in which everything survived, or nothing that was not
/// synced.
pub(super) fn after_power(disk: &SimDisk, outcome: Outcome) -> SimDisk {
    let log = disk.events();
    let mut cursor = log.cursor(Profile::PosixHarshest);
    cursor.advance_to(log.len());
    let pending = vec![outcome; cursor.pending_len()];
    log.image(&Outcomes { profile: Profile::PosixHarshest, cut: log.len(), pending }).disk()
}

pub(super) fn shown(store: &Store) -> Told<Vec<Bytes>> {
    Ok(records_of(&must("read", Content::read(store))?))
}

/// G13: HEAD and journals know of commits that the manifest does not.
fn old_manifest(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let (store, _) = create(&disk)?;
    must("close", store.close())?;
    let path = layout::manifest(&root());
    let older = read_file(&disk, &path)?;
    let store = must("open", options(Arc::new(disk.clone())).open(root()))?;
    for n in 0..8 {
        must("create a stream", store.create_stream(&format!("later {n}")))?;
    }
    must("close", store.close())?;
    // Longer files are cut to the older one by what stands behind being of no use to redb.
    let file = disk.open(&path, Access::ReadWrite).map_err(|e| Finding::new(Rule::Acted, e))?;
    file.set_len(older.len() as u64).map_err(|e| Finding::new(Rule::Acted, e))?;
    drop(file);
    write_file(&disk, &path, &older, 0)?;
    for read_only in [true, false] {
        let options = options(Arc::new(disk.clone()));
        let opened = if read_only { options.open_read_only(root()) } else { options.open(root()) };
        match opened {
            Err(e) if e.kind() == ErrorKind::RolledBack => {}
            Err(e) => return Err(Finding::error(Rule::RolledBack, "open an older manifest", &e)),
            Ok(_) => {
                return Err(Finding::new(Rule::RolledBack, "an older manifest was taken for now"));
            }
        }
    }
    Ok(2)
}

/// G12, G13: below what was durable there is no tear, only damage, and damage is told.
fn flipped_frame(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let (store, stream) = create(&disk)?;
    for byte in 1..6 {
        must("append", append(&store, stream, byte, Level::Durable))?;
    }
    let journal = journal_of(&disk, &store)?;
    let all = shown(&store)?;
    let frames_end = {
        let bytes = read_file(&disk, &journal)?;
        bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64)
    };
    let mut looks = 0;
    for offset in (HEADER_BYTES as u64..frames_end).step_by(9) {
        let image = after_power(&disk, Outcome::Full);
        let byte = read_file(&image, &journal)?[offset as usize] ^ 0x40;
        write_file(&image, &journal, &[byte], offset)?;
        looks += 1;
        match options(Arc::new(image)).open(root()) {
            Err(e) if e.kind() == ErrorKind::Damage => {}
            Err(e) => return Err(Finding::error(Rule::Damage, "open a flipped journal", &e)),
            Ok(store) => {
                if shown(&store)? != all {
                    let seen = format!("byte {offset} of a durable frame flipped, nothing said");
                    return Err(Finding::new(Rule::Damage, seen));
                }
            }
        }
    }
    drop(store);
    Ok(looks)
}

/// Blocks that a file system gives to a new journal may hold frames of an older one.
fn stale_frames(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let (store, stream) = create(&disk)?;
    must("append", append(&store, stream, 1, Level::Durable))?;
    for byte in 2..5 {
        must("append", append(&store, stream, byte, Level::Written))?;
    }
    let older = read_file(&disk, &journal_of(&disk, &store)?)?;
    // The power fails: only the first record survives. The next opening appends one of its own.
    let image = after_power(&disk, Outcome::Lost);
    drop(store);
    let store = must("open", options(Arc::new(image.clone())).open(root()))?;
    must("append", append(&store, stream, 9, Level::Durable))?;
    let expected = shown(&store)?;
    let journal = journal_of(&image, &store)?;
    let crashed = after_power(&image, Outcome::Lost);
    drop(store);
    let bytes = read_file(&crashed, &journal)?;
    let Some(last) = bytes.iter().rposition(|byte| *byte == 9).filter(|at| *at > HEADER_BYTES)
    else {
        return Err(Finding::new(Rule::State, "a durable record is not in its journal"));
    };
    let from = (last + 1).next_multiple_of(8);
    if older.len() <= from {
        return Err(Finding::new(Rule::Acted, "the older journal is too short"));
    }
    write_file(&crashed, &journal, &older[from..], from as u64)?;
    let store = must("open", options(Arc::new(crashed)).open(root()))?;
    if shown(&store)? != expected {
        return Err(Finding::new(Rule::Stale, "frames of an older journal were taken for records"));
    }
    Ok(1)
}

/// P7: compaction lets go of old bytes only when the new ones were read back.
fn bad_copy(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let liar = Liar::new(&disk, Lie::FlippedWrite("tmp"));
    let store = must("create", options(Arc::new(liar.clone())).create(root()))?;
    let lease = |name| must("lease", store.lease(name, "a scenario", None, &[]));
    let (keep, goes) = (lease("keep")?, lease("goes")?);
    let (kept, gone) = (vec![7; 700], vec![8; 900]);
    must("store", store.put_objects(goes, vec![gone, kept.clone()]))?;
    must("store", store.put_objects(keep, vec![kept]))?;
    must("retire", store.retire(&[Thing::Lease(goes)], "a scenario"))?;
    liar.arm();
    let reclaimed = store.reclaim(Budget::default());
    if !liar.has_lied() {
        return Err(Finding::new(Rule::Acted, format!("nothing was compacted: {reclaimed:?}")));
    }
    verify_objects(&store)?;
    drop(store);
    let store = must("open", options(Arc::new(disk.process(7))).open(root()))?;
    must("reclaim", store.reclaim(Budget::default()))?;
    verify_objects(&store)?;
    Ok(2)
}

/// P8, G14: after a failed sync the store says so until it is opened again.
fn failed_sync(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let liar = Liar::new(&disk, Lie::FailedSync("journal"));
    let store = must("create", options(Arc::new(liar.clone())).create(root()))?;
    let stream = must("create a stream", store.create_stream("s"))?;
    must("append", append(&store, stream, 1, Level::Durable))?;
    liar.arm();
    let failed = append(&store, stream, 2, Level::Durable);
    match failed {
        Err(e) if e.kind() == ErrorKind::OutcomeUnknown => {}
        other => {
            return Err(Finding::new(Rule::Halts, format!("a failed sync came to {other:?}")));
        }
    }
    for (doing, done) in [
        ("append", append(&store, stream, 3, Level::Durable)),
        ("barrier", store.barrier()),
        ("create a stream", store.create_stream("t").map(|_| ())),
    ] {
        match done {
            Err(e) if e.kind() == ErrorKind::Halted => {}
            other => {
                let seen = format!("{doing} after a failed sync came to {other:?}");
                return Err(Finding::new(Rule::Halts, seen));
            }
        }
    }
    if store.health().halted.is_none() {
        return Err(Finding::new(Rule::Halts, "health does not say that it halted"));
    }
    disk.kill();
    drop(store);
    let store = must("open", options(Arc::new(disk.process(7))).open(root()))?;
    let records = shown(&store)?;
    match records.first().is_some_and(|first| first[..] == record(1)) {
        true => Ok(1),
        false => Err(Finding::new(Rule::State, "what was durable before a failed sync is gone")),
    }
}

/// G1: what is acknowledged after a failed write survives like everything else.
fn torn_write(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let liar = Liar::new(&disk, Lie::TornWrite("journal"));
    let store = must("create", options(Arc::new(liar.clone())).create(root()))?;
    let stream = must("create a stream", store.create_stream("s"))?;
    must("append", append(&store, stream, 1, Level::Durable))?;
    liar.arm();
    let first = append(&store, stream, 2, Level::Durable);
    if first.is_ok() {
        return Err(Finding::new(Rule::Halts, "a failed write was acknowledged"));
    }
    must("try again", store.barrier())?;
    must("append", append(&store, stream, 3, Level::Durable))?;
    let crashed = after_power(&disk, Outcome::Full);
    drop(store);
    let opened = options(Arc::new(crashed)).open(root());
    let store = opened.map_err(|e| Finding::error(Rule::State, "open after a failed write", &e))?;
    let expected: Vec<Bytes> = (1..4).map(|byte| Arc::from(record(byte))).collect();
    match shown(&store)? == expected {
        true => Ok(1),
        false => Err(Finding::new(Rule::State, "acknowledged after a failed write, and gone")),
    }
}
