//! Four lives of a service, each ended in another way.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sealstone::check::{CheckOptions, check};
use sealstone::engine::Budget;
use sealstone::staging::{ConvertOptions, PlanOptions, Ready};

use super::ingest::{STAGE, leave_source, progress_is_rows, real, tally_outputs, tally_view};
use super::marks::{Marks, Told};
use super::source::{PRODUCERS, Rng, Source};
use crate::child::{Orders, Running, seed, terminate};
use crate::rows::RowsAsTheyAre;

/// Records of each life here; `SEALSTONE_LIFE_RECORDS` asks for another number.
const LIFE_RECORDS: u64 = 250_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Terminated,
    Killed,
    KilledInPublication,
}

const LIVES: [End; 4] = [End::Clean, End::Terminated, End::Killed, End::KilledInPublication];

struct Bench {
    root: PathBuf,
    out: PathBuf,
    source: Source,
    life_records: u64,
    rng: Rng,
}

impl Bench {
    fn told(&self) -> Told {
        Marks::read(&self.out.join("marks"))
    }

    fn acknowledged(&self) -> u64 {
        self.told().acknowledged.iter().sum::<u64>() * self.source.rows
    }

    fn live(&mut self, end: End) {
        let since = Instant::now();
        let before = self.acknowledged();
        let mut child = Orders::new("ingest", &self.root, &self.out, self.rng.next()).start();
        child.wait_at_most(600, || self.acknowledged() - before >= self.life_records);
        self.end(child, end);
        let told = self.told();
        println!(
            "{end:?}: {} records acknowledged in {:.1} s",
            self.acknowledged() - before,
            since.elapsed().as_secs_f64()
        );
        let batches = self.look(&told);
        if matches!(end, End::Clean | End::Terminated) {
            assert_eq!(batches, told.sent, "a graceful end loses nothing that was sent");
            self.nothing_remains();
        }
    }

    fn end(&mut self, mut child: Running, end: End) {
        match end {
            End::Clean => {
                std::fs::write(self.out.join("finish"), b"").unwrap();
                child.wait();
                std::fs::remove_file(self.out.join("finish")).unwrap();
            }
            End::Terminated => {
                terminate(&child);
                child.wait();
            }
            End::Killed => {
                std::thread::sleep(Duration::from_micros(self.rng.below(100_000)));
                child.kill();
            }
            End::KilledInPublication => {
                std::fs::write(self.out.join("arm"), b"").unwrap();
                child.wait_at_most(600, || self.told().is_stopped);
                // The others go on, until the publication is waited for.
                std::thread::sleep(Duration::from_micros(self.rng.below(20_000)));
                child.kill();
                std::fs::remove_file(self.out.join("arm")).unwrap();
            }
        }
    }

    /// What a reader counts: all that was acknowledged, nothing that was not sent, nothing twice.
    fn look(&self, told: &Told) -> [u64; PRODUCERS] {
        let store = real().open_read_only(&self.root).unwrap();
        let stage = store.stage(STAGE).unwrap();
        let tally = tally_view(self.source, &stage.view().unwrap());
        let batches = progress_is_rows(self.source, &stage, &tally);
        for (producer, batches) in batches.iter().enumerate() {
            let (least, most) = (told.acknowledged[producer], told.sent[producer]);
            assert!(
                (least..=most).contains(batches),
                "producer {producer}: {least} batches acknowledged, {most} sent, {batches} there"
            );
        }
        batches
    }

    /// STG33.
    fn nothing_remains(&self) {
        let store = real().open_read_only(&self.root).unwrap();
        let stage = store.stage(STAGE).unwrap();
        assert_eq!(stage.groups().unwrap().len(), 0, "STG33: groups remain");
        assert!(store.claims(9).unwrap().is_empty(), "STG33: claims remain");
        assert_eq!(listed(&self.root.join("tmp")), 0, "STG33: temporaries remain");
        let from_outputs = tally_outputs(self.source, &stage);
        assert_eq!(from_outputs.rows(), stage.view().unwrap().rows(), "STG33: parts remain");
    }

    /// The last pass, and what the outputs hold then.
    fn finish(&self, batches: [u64; PRODUCERS]) -> u64 {
        let store = real().open(&self.root).unwrap();
        let stage = store.stage(STAGE).unwrap();
        let found = tally_view(self.source, &stage.view().unwrap());
        assert_eq!(found.batches().unwrap(), batches, "recovery shows what a reader saw");
        stage.flush(&Ready::All).unwrap();
        loop {
            let plan = stage.plan(&PlanOptions::default()).unwrap();
            if plan.is_empty() {
                break;
            }
            for converted in plan.convert(&RowsAsTheyAre, &ConvertOptions::default()).unwrap() {
                converted.made.unwrap();
            }
        }
        store.reclaim(Budget::default()).unwrap();
        tally_view(self.source, &stage.view().unwrap()).compare(&batches).unwrap();
        let outputs = tally_outputs(self.source, &stage);
        outputs.compare(&batches).unwrap();
        progress_is_rows(self.source, &stage, &outputs);
        let accounts = store.accounts().unwrap();
        assert!(accounts.are_closed() && accounts.orphan == 0, "P10, G8: {accounts:?}");
        store.close().unwrap();
        outputs.rows()
    }
}

fn listed(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

/// After a clean end, a SIGTERM, a SIGKILL at random and one inside a publication: is every row that
/// was acknowledged there once, in the view and in the outputs, and none twice? And does a graceful end
/// leave no part, no temporary and no claim?
#[test]
fn stg32_stg33_four_lives_lose_no_row_and_double_none() {
    let since = Instant::now();
    let seed = seed("four lives");
    let dir = tempfile::tempdir().unwrap();
    let wanted = std::env::var("SEALSTONE_LIFE_RECORDS");
    let life_records = wanted.map_or(LIFE_RECORDS, |text| text.parse().unwrap());
    let rows = if life_records > 1_000_000 { 2_000 } else { 500 };
    let source = Source { seed, rows, minute: 8 };
    let (root, out) = (dir.path().join("run.stone"), dir.path().to_owned());
    leave_source(&out, source);
    let mut bench = Bench { root, out, source, life_records, rng: Rng(seed) };
    for end in LIVES {
        bench.live(end);
    }
    let told = bench.told();
    let batches = bench.look(&told);
    let rows = bench.finish(batches);
    bench.nothing_remains();
    let report = check(&bench.root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(()));
    let report = report.unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
    println!(
        "{} records acknowledged, {rows} in outputs, none missing, none twice; {:.1} s",
        bench.acknowledged(),
        since.elapsed().as_secs_f64()
    );
    assert!(bench.acknowledged() >= 4 * life_records && rows >= bench.acknowledged());
}
