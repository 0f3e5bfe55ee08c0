//! Readers beside a service: another thread, and another process that may not write.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use sealstone::ErrorKind;
use sealstone::engine::Budget;
use sealstone::journal::Level;
use sealstone::staging::{Batch, ConvertOptions, PlanOptions, Produced, Ready, Stage};

use crate::child::{Orders, seed};
use crate::lives::ingest::{STAGE, leave_source, real, source_of};
use crate::lives::marks::Marks;
use crate::lives::source::{self, PRODUCERS, Rng, Source};
use crate::lives::tally::Tally;
use crate::rows::RowsAsTheyAre;

/// Conversions here; `SEALSTONE_CONVERSIONS` asks for another number.
const CONVERSIONS: u64 = 300;

/// One view: at least what was acknowledged before it was taken, at most what was sent when it was, and
/// each row once. `None` where its bytes went meanwhile.
fn count(stage: &Stage, source: Source, marks: &Path) -> Option<u64> {
    let before = Marks::read(marks).acknowledged;
    let view = stage.view().unwrap();
    let after = Marks::read(marks).sent;
    let mut tally = Tally::new(source);
    for batch in view.batches() {
        match batch {
            Ok(batch) => tally.take(&batch.key, &batch.bytes, batch.rows),
            Err(e) if e.kind() == ErrorKind::Conflict => return None,
            Err(e) => panic!("{e:?}"),
        }
    }
    assert_eq!(tally.rows(), view.rows(), "STG8: a view does not hold what it counts");
    let batches = tally.batches().unwrap();
    for producer in 0..PRODUCERS {
        let (least, has, most) = (before[producer], batches[producer], after[producer]);
        assert!(
            (least..=most).contains(&has),
            "STG8: {has} batches, {least} to {most} at its time"
        );
    }
    Some(tally.rows())
}

/// A child: opens the store for reading and counts, again and again, until the file `finish` is there.
pub fn read(root: &Path, out: &Path) {
    let (source, marks) = (source_of(out), out.join("marks"));
    let (mut views, mut stale, mut opened) = (0_u64, 0_u64, 0_u64);
    while !out.join("finish").exists() {
        let store = real().open_read_only(root).unwrap();
        opened += 1;
        let stage = store.stage(STAGE).unwrap();
        for _ in 0..8 {
            match count(&stage, source, &marks) {
                Some(_) => views += 1,
                None => stale += 1,
            }
        }
    }
    std::fs::write(out.join("counted"), format!("{views} {stale} {opened}")).unwrap();
}

struct Service<'a> {
    stage: &'a Stage,
    source: Source,
    marks: Marks,
    sequences: [u64; PRODUCERS],
    conversions: u64,
}

impl Service<'_> {
    fn append(&mut self, rng: &mut Rng) {
        let producer = rng.below(PRODUCERS as u64) as usize;
        let sequence = self.sequences[producer] + 1;
        self.sequences[producer] = sequence;
        self.marks.sent(producer, sequence);
        let produced = Produced::new(source::name(producer), sequence);
        let batch = Batch::opaque(self.source.batch(producer, sequence), self.source.rows);
        let key = self.source.key(producer, sequence);
        let appended = self.stage.append(&key, batch, Some(&produced)).unwrap();
        if rng.below(4) == 0 {
            self.stage.wait(&appended.ticket, Level::Durable).unwrap();
            // Those of other producers before it are as durable: one journal.
            for (producer, sequence) in self.sequences.iter().enumerate() {
                self.marks.acknowledged(producer, *sequence);
            }
        }
    }

    fn convert(&mut self, rng: &mut Rng) {
        let options =
            PlanOptions { groups_max: 1 + rng.below(4) as usize, ..PlanOptions::default() };
        let plan = self.stage.plan(&options).unwrap();
        for converted in plan.convert(&RowsAsTheyAre, &ConvertOptions::default()).unwrap() {
            converted.made.unwrap();
            self.conversions += 1;
        }
    }
}

/// Does a reader in another thread, and one in another process, count through hundreds of conversions
/// never more and never fewer rows than were acknowledged when it looked?
#[test]
fn stg8_readers_count_every_row_once_through_conversions() {
    let since = Instant::now();
    let seed = seed("readers");
    let wanted = std::env::var("SEALSTONE_CONVERSIONS");
    let wanted = wanted.map_or(CONVERSIONS, |text| text.parse().unwrap());
    let (dir, mut rng) = (tempfile::tempdir().unwrap(), Rng(seed));
    let (root, out) = (dir.path().join("run.stone"), dir.path());
    let source = Source { seed, rows: 5, minute: 4 };
    leave_source(out, source);
    let marks = out.join("marks");
    let store = real().create(&root).unwrap();
    let stage = store.stage_or_create(STAGE, &source::shape()).unwrap();
    let child = Orders::new("reader", &root, out, 0).start();
    let (is_over, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut service = Service {
        stage: &stage,
        source,
        marks: Marks::open(&marks),
        sequences: [0; PRODUCERS],
        conversions: 0,
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                count(&stage, source, &marks).expect("the bytes of a view stay while it stands");
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        while service.conversions < wanted && !reader.is_finished() {
            match rng.below(8) {
                0 => drop(service.stage.flush(&Ready::All).unwrap()),
                1 | 2 => service.convert(&mut rng),
                3 => drop(store.reclaim(Budget::default()).unwrap()),
                _ => service.append(&mut rng),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    std::fs::write(out.join("finish"), b"").unwrap();
    child.wait();
    let told = std::fs::read_to_string(out.join("counted")).unwrap();
    let numbers: Vec<u64> = told.split(' ').map(|n| n.parse().unwrap()).collect();
    println!(
        "{} conversions, {} views in this process, {} in another one ({} went stale, opened {} \
         times), {:.1} s",
        service.conversions,
        counted.load(Ordering::Relaxed),
        numbers[0],
        numbers[1],
        numbers[2],
        since.elapsed().as_secs_f64()
    );
    assert!(service.conversions >= wanted && counted.load(Ordering::Relaxed) > 10);
    assert!(numbers[0] > 10, "the other process hardly looked");
}
