//! Power cuts and kills at every disk operation of a journal's life.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use sealstone::error::Error;
use sealstone::ids::{Sequence, StreamId};
use sealstone::journal::{Level, Payload, Record, Tail, sync_before_trust};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{EventLog, Profile, Rng, SimDisk};

use super::faulty::{Call, Fault, FaultyDisk};
use super::rig::*;

/// What the notes say at a crash: rows that are committed, and observations by what was told of them.
#[derive(Debug, Default, Clone)]
struct Told {
    rows: Vec<Row>,
    accepted: u64,
    written: u64,
    durable: u64,
    /// Observations of which stream 1 is published.
    sealed: u64,
}

impl Told {
    fn read(notes: &[Arc<[u8]>]) -> Self {
        let mut told = Self::default();
        for note in notes {
            let number = u64::from_le_bytes(note[5..13].try_into().unwrap());
            match &note[..5] {
                b"born " => {
                    let salt = note[13..29].try_into().unwrap();
                    told.rows.push(Row { n: number, salt, end: None });
                }
                b"done " => {
                    let end = u64::from_le_bytes(note[13..21].try_into().unwrap());
                    let row = told.rows.iter_mut().find(|row| row.n == number).unwrap();
                    row.end = Some(end);
                }
                b"accp " => told.accepted = number,
                b"writ " => told.written = number,
                b"dura " => told.durable = number,
                b"seal " => told.sealed = number,
                other => panic!("note {other:?}"),
            }
        }
        told.written = told.written.max(told.durable);
        told
    }
}

/// The record of `stream` in observation `n`: short, or longer than a sector.
fn part(stream: u64, n: u64) -> Record {
    let len = if n.is_multiple_of(7) { 700 } else { 3 + (n as usize * stream as usize) % 40 };
    record(stream, n, &vec![(n * 16 + stream) as u8; len])
}

/// Observations of two streams, one frame each, over several files; now and then stream 1 is published
/// past the journal, as the bulk path does. One write may fail.
fn workload(seed: u64, fault: Option<Fault>) -> EventLog {
    let disk = fresh_disk(seed);
    disk.restart_log();
    let mut limits = limits();
    limits.journal_file_bytes = 3000;
    let door = Arc::new(FaultyDisk::new(disk.clone()));
    door.plan(fault);
    let rig = Rig::through(disk.clone(), door.clone(), limits);
    let note =
        |what: &str, number: u64| disk.note([what.as_bytes(), &number.to_le_bytes()].concat());
    let mut rng = Rng::new(seed);
    for n in 0..60 {
        let ticket = rig.journal.enqueue([part(1, n), part(2, n)]).unwrap();
        note("accp ", n + 1);
        match rng.below(6) {
            0 | 1 if rig.journal.wait(&ticket, Level::Durable).is_ok() => note("dura ", n + 1),
            2 if rig.journal.wait(&ticket, Level::Written).is_ok() => note("writ ", n + 1),
            3 => {
                let upto = n + 1 - rng.below(2);
                let sealed = |stream: StreamId| Sequence(if stream.0 == 1 { upto } else { 0 });
                if rig.journal.flush_partly_sealed(&sealed).is_ok() {
                    note("seal ", upto);
                    rig.journal.settle(&sealed);
                }
            }
            4 if rng.one_in(4) => drop(rig.journal.roll()),
            _ => {}
        }
    }
    assert_eq!(door.hit().is_some(), fault.is_some());
    rig.journal.barrier().unwrap();
    note("dura ", 60);
    rig.journal.finish().unwrap();
    disk.events()
}

/// What recovery shows of both streams, or why it is wrong.
fn recover(disk: &SimDisk, told: &Told, killed: bool) -> Result<u64, String> {
    let mut streams: BTreeMap<(u64, u64), Payload> = BTreeMap::new();
    for row in &told.rows {
        let before = disk.counts();
        let (found, records) = scan_on(disk, row.n, Some(row));
        let found = found.map_err(|e: Error| format!("file {}: {e:?}", row.n))?;
        if disk.counts().since(&before).mutations() != 0 {
            return Err("a scan changed the disk".into());
        }
        if matches!(found.tail, Tail::Damaged { .. }) {
            return Err(format!("file {}: {:?}", row.n, found.tail));
        }
        for record in records {
            let key = (record.stream.0, record.sequence.0);
            if record != part(key.0, key.1) {
                return Err(format!("{key:?} is not what was appended"));
            }
            if streams.insert(key, record.payload).is_some() {
                return Err(format!("{key:?} is there twice"));
            }
        }
    }
    let run = |stream: u64, from: u64| {
        (from..).take_while(|n| streams.contains_key(&(stream, *n))).count() as u64 + from
    };
    let (first, second) = (run(1, told.sealed), run(2, 0));
    if first.max(told.sealed) != second {
        return Err(format!("G3: stream 1 ends at {first}, stream 2 at {second}"));
    }
    if streams.keys().any(|&(_, n)| n >= second) {
        return Err("G5: something lies behind a hole".into());
    }
    let least = if killed { told.written } else { told.durable };
    if second < least || second > told.accepted {
        return Err(format!("{second} of {} accepted, {least} acknowledged", told.accepted));
    }
    Ok(second)
}

/// Looks at crashes at every event. Returns how many, and the first that is wrong.
fn campaign(log: &EventLog, profile: Profile, seed: u64, budget: usize) -> (u64, Option<String>) {
    let mut rng = Rng::new(seed);
    let mut cursor = log.cursor(profile);
    let mut images = 0;
    loop {
        let told = Told::read(cursor.notes());
        for image in cursor.images(&mut rng, budget) {
            images += 1;
            let killed = profile == Profile::ProcessKill;
            if let Err(wrong) = recover(&image.disk(), &told, killed) {
                return (images, Some(format!("seed {seed}, {}: {wrong}", image.outcomes())));
            }
        }
        if cursor.advance().is_none() {
            return (images, None);
        }
    }
}

/// Cut at every operation: is every acknowledged record there, once, in order, nothing behind a hole, no
/// observation half there, and is a crash never called damage?
#[test]
fn g1_g2_g3_g5_crash_at_every_operation() {
    let mut sum = 0;
    for seed in 1..4 {
        let log = workload(seed, None);
        for profile in Profile::ALL {
            let (images, wrong) = campaign(&log, profile, seed, 12);
            assert_eq!(wrong, None);
            sum += images;
        }
    }
    println!("{sum} images");
    assert!(sum > 5000, "{sum}");
}

/// A write fails after some of its bytes, the journal goes on, and then the power does: is any frame
/// there twice, or missing?
#[test]
fn g16_crash_behind_a_failed_write() {
    let (seed, mut sum) = (100, 0);
    let mut rng = Rng::new(seed);
    for trial in 0..24 {
        let error = [io::ErrorKind::StorageFull, io::ErrorKind::Other][trial % 2];
        let (at, bytes) = (rng.below(60), rng.index(300));
        let fault = Fault { at, only: Some(Call::Write), bytes, error, forever: false };
        let log = workload(seed + rng.below(4), Some(fault));
        let profile = Profile::ALL[rng.index(3)];
        let (images, wrong) = campaign(&log, profile, trial as u64, 4);
        assert_eq!(wrong, None, "{fault:?}");
        sum += images;
    }
    assert!(sum > 5000, "{sum}");
}

/// Crash again right behind a recovery that showed something: does the next one show the same?
#[test]
fn g10_what_one_recovery_showed_the_next_one_shows() {
    let mut rng = Rng::new(5);
    let log = workload(5, None);
    let mut cursor = log.cursor(Profile::ProcessKill);
    let mut nested = 0;
    while cursor.advance().is_some() {
        let told = Told::read(cursor.notes());
        for image in cursor.images(&mut rng, 2) {
            let disk = image.disk();
            for row in &told.rows {
                sync_before_trust(&disk, &path(row.n)).unwrap();
            }
            let shown = recover(&disk, &told, true).unwrap();
            let log = disk.events();
            let mut after = log.cursor(Profile::PosixHarshest);
            after.advance_to(log.len());
            for again in after.images(&mut rng, 6) {
                nested += 1;
                assert_eq!(recover(&again.disk(), &told, true), Ok(shown), "{}", again.outcomes());
            }
        }
    }
    assert!(nested > 150, "{nested}");
}

/// Would any of these protections be missed?
#[test]
fn each_protection_that_is_switched_off_is_caught() {
    let off_while_writing = [Protection::JournalSyncBeforeAck, Protection::JournalDirectorySync];
    for protection in off_while_writing {
        let log = {
            let _off = switch_off(protection);
            workload(1, None)
        };
        let (images, wrong) = campaign(&log, Profile::PosixHarshest, 1, 12);
        let wrong = wrong.unwrap_or_else(|| panic!("{protection:?} is not missed"));
        println!("{}: image {images}: {wrong}", protection.name());
    }
    let _off = switch_off(Protection::FrameChecksum);
    let (images, wrong) = campaign(&workload(1, None), Profile::PosixHarshest, 1, 12);
    println!("frame_checksum: image {images}: {}", wrong.unwrap());
    drop(_off);
    let log = workload(5, None);
    let _off = switch_off(Protection::SyncBeforeTrust);
    assert!(takes_back(&log), "sync_before_trust is not missed");
}

/// Whether a power cut behind a recovery takes back what it showed.
fn takes_back(log: &EventLog) -> bool {
    let mut cursor = log.cursor(Profile::ProcessKill);
    while cursor.advance().is_some() {
        let told = Told::read(cursor.notes());
        for image in cursor.images(&mut Rng::new(5), 1) {
            let disk = image.disk();
            for row in &told.rows {
                sync_before_trust(&disk, &path(row.n)).unwrap();
            }
            let shown = recover(&disk, &told, true).unwrap();
            let log = disk.events();
            let mut after = log.cursor(Profile::PosixHarshest);
            after.advance_to(log.len());
            let images = after.images(&mut Rng::new(5), 6);
            if images.iter().any(|again| recover(&again.disk(), &told, false) != Ok(shown)) {
                return true;
            }
        }
    }
    false
}
