//! A service: four producers, one that flushes and one that converts, until it is told to end or is
//! killed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sealstone::Limits;
use sealstone::engine::{Budget, Options, Store};
use sealstone::journal::Level;
use sealstone::staging::{Batch, ConvertOptions, PlanOptions, Produced, Ready, Stage, StageView};
use sealstone::vfs::{Disk, RealDisk};

use super::marks::{Marks, stopping};
use super::source::{self, PRODUCERS, Rng, Source};
use super::tally::Tally;
use crate::rows::RowsAsTheyAre;

/// The name of the stage.
pub const STAGE: &str = "requests";

pub fn options(disk: Arc<dyn Disk>) -> Options {
    let mut limits = Limits::default();
    limits.sealed_folders = 4;
    limits.journal_file_bytes = 4 << 20;
    limits.ballast_bytes = 64 << 10;
    limits.low_water_bytes = 128 << 10;
    Store::options().limits(limits).disk(disk).wait_millis(20_000)
}

pub fn real() -> Options {
    options(RealDisk::new())
}

/// Leaves the source for children.
pub fn leave_source(out: &Path, source: Source) {
    std::fs::write(
        out.join("source"),
        format!("{} {} {}", source.seed, source.rows, source.minute),
    )
    .unwrap();
}

/// What was left.
pub fn source_of(out: &Path) -> Source {
    let text = std::fs::read_to_string(out.join("source")).unwrap();
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    Source { seed: next(), rows: next(), minute: next() }
}

/// Every row of a view.
pub fn tally_view(source: Source, view: &StageView) -> Tally {
    let mut tally = Tally::new(source);
    for batch in view.batches() {
        let batch = batch.unwrap();
        tally.take(&batch.key, &batch.bytes, batch.rows);
    }
    assert_eq!(tally.rows(), view.rows(), "a view does not hold what it counts");
    tally
}

/// Every row of the outputs alone.
pub fn tally_outputs(source: Source, stage: &Stage) -> Tally {
    let mut tally = Tally::new(source);
    for output in stage.outputs().unwrap() {
        let bytes = crate::rows::read_output(stage, output.id);
        tally.take(&output.key, &bytes, output.rows);
    }
    tally
}

/// P2, STG9: the rows that are there, and what the producers are told to have delivered, are one.
pub fn progress_is_rows(source: Source, stage: &Stage, tally: &Tally) -> [u64; PRODUCERS] {
    let batches = tally.batches().unwrap();
    for (producer, batches) in batches.iter().enumerate() {
        let progress = stage.progress(&source::name(producer)).unwrap();
        let sequence = progress.as_ref().map_or(0, |progress| progress.sequence);
        assert_eq!(sequence, *batches, "STG9: producer {producer} is told another place");
        if let Some(progress) = progress {
            assert_eq!(progress.rows, batches * source.rows);
            assert_eq!(progress.position, sequence.to_le_bytes());
        }
    }
    batches
}

struct Service {
    store: Store,
    stage: Stage,
    source: Source,
    marks: Marks,
    /// Producers stop.
    is_over: AtomicBool,
    /// Everything is flushed: what is left to convert is all there is.
    is_last: AtomicBool,
}

/// Lives until it is told to end by SIGTERM or by the file `finish`, or is killed; where the file `arm`
/// is, it stands still in a publication.
pub fn run(root: &Path, out: &Path, seed: u64) {
    let is_armed = Arc::new(AtomicBool::new(false));
    let disk = stopping(&out.join("marks"), Arc::clone(&is_armed));
    let store = options(disk).open_or_create(root).unwrap();
    let stage = store.stage_or_create(STAGE, &source::shape()).unwrap();
    let source = source_of(out);
    let tally = tally_view(source, &stage.view().unwrap());
    progress_is_rows(source, &stage, &tally);
    let (is_over, is_last) = (AtomicBool::new(false), AtomicBool::new(false));
    let marks = Marks::open(&out.join("marks"));
    let service = Arc::new(Service { store, stage, source, marks, is_over, is_last });
    let told = Arc::clone(&service);
    std::thread::spawn(move || {
        crate::child::wait_for_termination();
        told.is_over.store(true, Ordering::Relaxed);
    });
    std::thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let service = &service;
                scope.spawn(move || service.produce(producer))
            })
            .collect();
        let flusher = scope.spawn(|| service.flush(Rng(seed)));
        let converter = scope.spawn(|| service.convert());
        while !service.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(2));
            is_armed.store(out.join("arm").exists(), Ordering::Relaxed);
            let is_over = [out.join("finish").exists(), flusher.is_finished()];
            let failed = converter.is_finished() || producers.iter().any(|p| p.is_finished());
            if failed || is_over.contains(&true) {
                service.is_over.store(true, Ordering::Relaxed);
            }
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        flusher.join().unwrap();
        service.stage.flush(&Ready::All).unwrap();
        service.is_last.store(true, Ordering::Relaxed);
        converter.join().unwrap();
    });
    service.store.reclaim(Budget::default()).unwrap();
    service.store.clone().close().unwrap();
}

impl Service {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Goes on where the stage says that this producer is, and tells what is durable.
    fn produce(&self, producer: usize) {
        let name = source::name(producer);
        let progress = self.stage.progress(&name).unwrap();
        let mut sequence = progress.map_or(0, |progress| progress.sequence);
        while !self.is_over() {
            let mut last = None;
            for _ in 0..4 {
                sequence += 1;
                self.marks.sent(producer, sequence);
                last = Some(self.append(&name, producer, sequence));
                // STG10: a source that is not sure sends it again.
                if sequence.is_multiple_of(31) {
                    last = Some(self.append(&name, producer, sequence));
                }
            }
            self.stage.wait(&last.unwrap(), Level::Durable).unwrap();
            self.marks.acknowledged(producer, sequence);
        }
    }

    fn append(&self, name: &str, producer: usize, sequence: u64) -> sealstone::journal::Ticket {
        let produced = Produced::new(name, sequence).at(sequence.to_le_bytes());
        let batch = Batch::opaque(self.source.batch(producer, sequence), self.source.rows);
        let key = self.source.key(producer, sequence);
        self.stage.append(&key, batch, Some(&produced)).unwrap().ticket
    }

    fn flush(&self, mut rng: Rng) {
        while !self.is_over() {
            std::thread::sleep(Duration::from_millis(rng.below(25)));
            let passed = (0..PRODUCERS).map(|producer| {
                let progress = self.stage.progress(&source::name(producer)).unwrap();
                progress.map_or(0, |p| self.source.minute(producer, p.sequence))
            });
            match rng.below(4) {
                0 => self.stage.flush(&Ready::All),
                _ => self.stage.flush(&Ready::Before("minute", passed.min().unwrap())),
            }
            .unwrap();
        }
    }

    fn convert(&self) {
        for pass in 1.. {
            let is_last = self.is_last.load(Ordering::Relaxed);
            let plan = self.stage.plan(&PlanOptions::default()).unwrap();
            if plan.is_empty() {
                if is_last {
                    return;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            for converted in plan.convert(&RowsAsTheyAre, &ConvertOptions::default()).unwrap() {
                converted.made.unwrap();
            }
            if pass % 16 == 0 {
                self.store.reclaim(Budget::default()).unwrap();
            }
        }
    }
}
