//! Scenarios of the single-file layout, where journal and pages are rows of one redb file: what tampers
//! with that file must be told as an error, or must not matter.

use std::path::Path;
use std::sync::Arc;

use super::finding::{Finding, Rule};
use super::liar::{Liar, Lie};
use super::model::Bytes;
use super::play::root;
use super::tamper::{
    Told, after_power, append, born, must, options, read_file, record, shown, write_file,
};
use crate::engine::{Layout, Store};
use crate::error::{ErrorKind, Result};
use crate::ids::StreamId;
use crate::journal::Level;
use crate::vfs::Disk;
use crate::vfs::sim::Outcome;

/// The folder that holds the store's file.
const FOLDER: &str = "data";

fn create(disk: Arc<dyn Disk>) -> Told<(Store, StreamId)> {
    let store = must("create", options(disk).layout(Layout::SingleFile).create(root()))?;
    let stream = must("create a stream", store.create_stream("s"))?;
    Ok((store, stream))
}

/// G12: a byte of a durable record flips, wherever it lies in the file: never another record, and never
/// one less.
pub(super) fn flipped_record(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let (store, stream) = create(Arc::new(disk.clone()))?;
    for byte in 1..6 {
        must("append", append(&store, stream, byte, Level::Durable))?;
    }
    let all = shown(&store)?;
    let whole = after_power(&disk, Outcome::Full);
    drop(store);
    let bytes = read_file(&whole, &root())?;
    let (mut looks, mut told) = (0, 0u64);
    for byte in 1..6 {
        let wanted = record(byte);
        let places = bytes.windows(wanted.len()).enumerate().filter(|(_, at)| *at == wanted);
        for (offset, _) in places {
            let image = after_power(&disk, Outcome::Full);
            write_file(&image, &root(), &[byte ^ 0x40], offset as u64 + 7)?;
            looks += 1;
            match options(Arc::new(image)).open(root()) {
                Err(_) => told += 1,
                Ok(store) => match shown(&store) {
                    Err(_) => told += 1,
                    // It was a page that nothing refers to any more.
                    Ok(seen) if seen == all => {}
                    Ok(_) => {
                        let seen =
                            format!("byte {offset} of a durable record flipped, nothing said");
                        return Err(Finding::new(Rule::Damage, seen));
                    }
                },
            }
        }
    }
    match told {
        0 => Err(Finding::new(Rule::Acted, "no record was found in the file")),
        _ => Ok(looks),
    }
}

/// P8: after a failed sync of the file the store says so until it is opened again, and what was durable
/// before is there then.
pub(super) fn failed_sync(seed: u64) -> Told<u64> {
    halts(seed, Lie::FailedSync(FOLDER))
}

/// P8: the same of a write that ends in its middle with an error.
pub(super) fn torn_write(seed: u64) -> Told<u64> {
    halts(seed, Lie::TornWrite(FOLDER))
}

fn halts(seed: u64, lie: Lie) -> Told<u64> {
    let disk = born(seed)?;
    let liar = Liar::new(&disk, lie);
    let (store, stream) = create(Arc::new(liar.clone()))?;
    must("append", append(&store, stream, 1, Level::Durable))?;
    liar.arm();
    if append(&store, stream, 2, Level::Durable).is_ok() || !liar.has_lied() {
        return Err(Finding::new(Rule::Halts, format!("{lie:?} was acknowledged")));
    }
    let refused: [(&str, Result<()>); 3] = [
        ("append", append(&store, stream, 3, Level::Durable)),
        ("barrier", store.barrier()),
        ("create a stream", store.create_stream("t").map(|_| ())),
    ];
    for (doing, done) in refused {
        match done {
            Err(e) if matches!(e.kind(), ErrorKind::Halted | ErrorKind::OutcomeUnknown) => {}
            other => {
                return Err(Finding::new(Rule::Halts, format!("{doing} after {lie:?}: {other:?}")));
            }
        }
    }
    disk.kill();
    drop(store);
    let store = must("open", options(Arc::new(disk.process(7))).open(root()))?;
    let records = shown(&store)?;
    // What was refused may be there or not; what follows it may not.
    let one_or_two: [Vec<Bytes>; 2] =
        [1..2, 1..3].map(|upto| upto.map(|byte| Arc::from(record(byte))).collect());
    match one_or_two.contains(&records) {
        true => Ok(1),
        false => Err(Finding::new(Rule::State, format!("{} records after {lie:?}", records.len()))),
    }
}

/// P6: one byte of a commit is written wrongly, and nobody says so: what is shown later is what was
/// accepted, or an error.
pub(super) fn flipped_write(seed: u64) -> Told<u64> {
    let mut looks = 0;
    for skipped in 0..12 {
        let disk = born(seed)?;
        let liar = Liar::new(&disk, Lie::FlippedWrite(FOLDER));
        let (store, stream) = create(Arc::new(liar.clone()))?;
        must("append", append(&store, stream, 1, Level::Durable))?;
        liar.arm_after(skipped);
        // Whoever reads back what was written may notice at once.
        let noticed = (2..5).any(|byte| append(&store, stream, byte, Level::Durable).is_err());
        if !liar.has_lied() {
            break;
        }
        disk.kill();
        drop(store);
        looks += 1;
        let opened = options(Arc::new(disk.process(7))).open(root());
        let Ok(records) = opened.map_err(drop).and_then(|store| shown(&store).map_err(drop)) else {
            continue;
        };
        let all: Vec<Bytes> = (1..5).map(|byte| Arc::from(record(byte))).collect();
        if records != all && !(noticed && all.starts_with(&records)) {
            let seen =
                format!("write {skipped} was wrong, and {} records are there", records.len());
            return Err(Finding::new(Rule::Damage, seen));
        }
    }
    match looks {
        0 => Err(Finding::new(
            Rule::Acted,
            format!("nothing was written to {:?}", Path::new(FOLDER)),
        )),
        _ => Ok(looks),
    }
}
