//! Arrays, checkpoints and a fork: heat spreads over a plate, with a checkpoint every so many steps;
//! from the one half-way another run begins, with an edge that is cooled, and stores its own half.
//!
//! `cargo run --release --example heat2d [STEPS]`

use std::collections::BTreeMap;
use std::error::Error;

use sealstone::Store;
use sealstone::ids::CheckpointId;
use sealstone::recording::{
    Cell, Decoders, Every, Field, FieldType, NdArray, Observable, Recorder, ResumeFrom, Schema,
    TimeAxis,
};

const ROWS: usize = 48;
const COLUMNS: usize = 64;
const STEPS: i64 = 4_000;
const FRAME_EVERY: u64 = 20;
const CHECKPOINTS: i64 = 8;

#[derive(Debug, Clone)]
struct Plate {
    step: i64,
    heat: Vec<f64>,
    is_cooled: bool,
}

impl Plate {
    fn new() -> Self {
        let mut heat = vec![0.0; ROWS * COLUMNS];
        for row in ROWS / 4..ROWS / 2 {
            heat[row * COLUMNS + COLUMNS / 3..row * COLUMNS + COLUMNS / 2].fill(100.0);
        }
        Self { step: 0, heat, is_cooled: false }
    }

    fn advance(&mut self) {
        let old = self.heat.clone();
        for row in 1..ROWS - 1 {
            for column in 1..COLUMNS - 1 {
                let at = row * COLUMNS + column;
                let around = old[at - 1] + old[at + 1] + old[at - COLUMNS] + old[at + COLUMNS];
                self.heat[at] = old[at] + 0.2 * (around - 4.0 * old[at]);
            }
        }
        if self.is_cooled {
            self.heat[..COLUMNS].fill(-20.0);
        }
        self.step += 1;
    }
}

impl Observable for Plate {
    fn iteration(&self) -> i64 {
        self.step
    }

    fn time(&self) -> Option<f64> {
        Some(self.step as f64 * 0.1)
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        match name {
            "heat" => to.array(&[ROWS, COLUMNS], &self.heat),
            "mean" => to.put(self.heat.iter().sum::<f64>() / self.heat.len() as f64),
            _ => Ok(()),
        }
    }
}

/// Observes every step up to `end`, with a checkpoint every `interval`; those at each step.
fn run(
    recorder: Recorder,
    plate: &mut Plate,
    interval: i64,
    end: i64,
) -> sealstone::Result<BTreeMap<i64, CheckpointId>> {
    let mut checkpoints = BTreeMap::new();
    recorder.keep_checkpoints(CHECKPOINTS as usize)?;
    while plate.step < end {
        if plate.step % interval == 0 {
            checkpoints.insert(plate.step, recorder.checkpoint(plate)?);
        }
        recorder.observe(plate)?;
        plate.advance();
    }
    recorder.complete_with(plate)?;
    Ok(checkpoints)
}

fn stored(store: &Store) -> sealstone::Result<u64> {
    Ok(store.accounts()?.live)
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: i64 = std::env::args().nth(1).map_or(Ok(STEPS), |steps| steps.parse())?;
    let interval = (steps / CHECKPOINTS).max(1);
    let half = steps / 2 / interval * interval;
    let folder = tempfile::tempdir()?;
    let store = Store::create(folder.path().join("plate.stone"))?;
    let schema = Schema::new(vec![
        Field::new("heat", FieldType::F64).array([ROWS as u32, COLUMNS as u32]).unit("K"),
        Field::new("mean", FieldType::F64).unit("K"),
    ])?;
    let recorder = store
        .record("free", &schema)
        .time_axis(TimeAxis::named("step", "1").time("t", "s"))
        .parameter("edge", "free")
        .stream_every("frames", ["heat"], Every::iterations(FRAME_EVERY))
        .stream("mean", ["mean"])
        .start()?;
    let checkpoints = run(recorder, &mut Plate::new(), interval, steps)?;
    let checkpoint = *checkpoints.get(&half).ok_or("no checkpoint half-way")?;
    let whole = stored(&store)?;
    println!("free     {steps} steps, {} checkpoints: {whole} bytes stored", checkpoints.len());

    store.fork("free", ResumeFrom::Checkpoint(checkpoint), "cooled")?;
    println!("cooled   begins as free was at step {half}: {} bytes more", stored(&store)? - whole);
    let decoders = Decoders::new()
        .field("heat", |plate: &mut Plate, heat: NdArray<f64>| plate.heat = heat.into_elements())?
        .field("mean", |_, _: f64| ())?;
    let mut plate = Plate { is_cooled: true, ..Plate::new() };
    let resumed = store.resume("cooled").start_into(&decoders, &mut plate)?;
    plate.step = half;
    run(resumed.recorder, &mut plate, interval, steps)?;
    let own = stored(&store)? - whole;
    println!("         ends at step {steps}: {own} bytes more for its own half");
    if own > whole * 3 / 4 {
        return Err("the fork stored more than its own half".into());
    }

    let frames = store.recording("cooled")?.stream("frames")?;
    let heat: Vec<NdArray<f64>> = frames.field("heat")?.to_vec()?;
    let last = heat.last().ok_or("no frame")?;
    println!(
        "frames   {} of shape {:?}; the last top edge is {} K",
        heat.len(),
        last.axes(),
        last.elements()[1]
    );
    let diff = store.diff("free", "cooled")?;
    if diff.is_empty() {
        return Err("the cooled run should differ".into());
    }
    for difference in &diff.differences {
        println!("diff     {difference}");
    }
    println!("         {} records are shared, and were not read", diff.records_known_equal);
    store.close()?;
    Ok(())
}
