//! A state that records itself: the Lorenz system, killed at random by its parent until it is done,
//! resumed each time from its newest checkpoint, and at the end equal bit for bit to a run that
//! nobody disturbed.
//!
//! `cargo run --release --example lorenz [STEPS] [SEED]`

use std::error::Error;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use sealstone::recording::{
    Cell, Decoders, Every, Field, FieldType, NewRecording, Observable, Recorder, ResumeFrom,
    Schema, TimeAxis,
};
use sealstone::{ErrorKind, Store};

const CHILD: &str = "child";
const RUN: &str = "lorenz";
const STEPS: i64 = 400_000;
const CHECKPOINT_EVERY: i64 = 5_000;

/// The whole state: what it holds is what a run goes on from.
#[derive(Debug, Default, Clone, PartialEq)]
struct Lorenz {
    step: i64,
    t: f64,
    x: f64,
    y: f64,
    z: f64,
}

impl Observable for Lorenz {
    fn iteration(&self) -> i64 {
        self.step
    }

    fn time(&self) -> Option<f64> {
        Some(self.t)
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        match name {
            "x" => to.put(self.x),
            "y" => to.put(self.y),
            "z" => to.put(self.z),
            "radius" => to.put((self.x * self.x + self.y * self.y).sqrt()),
            _ => Ok(()),
        }
    }
}

impl Lorenz {
    fn advance(&mut self) {
        const DT: f64 = 0.002;
        let slope =
            |x: f64, y: f64, z: f64| (10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z);
        let (ax, ay, az) = slope(self.x, self.y, self.z);
        let half = DT / 2.0;
        let (bx, by, bz) = slope(self.x + half * ax, self.y + half * ay, self.z + half * az);
        self.x += DT * bx;
        self.y += DT * by;
        self.z += DT * bz;
        self.step += 1;
        self.t = self.step as f64 * DT;
    }
}

fn settings(store: &Store) -> sealstone::Result<NewRecording> {
    let number = |name: &str| Field::new(name, FieldType::F64);
    let schema = Schema::new(vec![
        number("x"),
        number("y"),
        number("z"),
        number("radius").describe("distance from the z axis"),
    ])?;
    Ok(store
        .record(RUN, &schema)
        .time_axis(TimeAxis::named("step", "1").time("t", "s"))
        .parameter("sigma", 10.0)
        .parameter("rho", 28.0)
        .stream_every("path", ["x", "y", "z"], Every::iterations(10))
        .stream_every("slow", ["radius"], Every::time(0.5)))
}

/// Begins, or goes on where the newest checkpoint is.
fn open_run(store: &Store) -> sealstone::Result<(Recorder, Lorenz)> {
    let decoders = Decoders::new()
        .field("x", |state: &mut Lorenz, x| state.x = x)?
        .field("y", |state: &mut Lorenz, y| state.y = y)?
        .field("z", |state: &mut Lorenz, z| state.z = z)?
        .field("radius", |_, _: f64| ())?;
    let mut state = Lorenz { x: 1.0, y: 1.0, z: 1.0, ..Lorenz::default() };
    let resume = store.resume(RUN).from(ResumeFrom::LatestCheckpoint).expect(&settings(store)?);
    match resume.start_into(&decoders, &mut state) {
        Ok(resumed) => {
            if let Some(restored) = &resumed.state {
                state.step = restored.iteration();
                state.t = restored.time().unwrap_or_default();
            }
            eprintln!("  goes on at step {}, {} records are cut", state.step, resumed.plan.cut());
            Ok((resumed.recorder, state))
        }
        // Never begun, or killed before anything was recorded.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NoCheckpoint) => {
            let recorder = settings(store)?.start()?;
            recorder.checkpoint(&state)?;
            Ok((recorder, state))
        }
        Err(e) => Err(e),
    }
}

/// The simulation itself.
fn simulate(path: &Path, steps: i64) -> sealstone::Result<()> {
    let store = Store::options().open_or_create(path)?;
    if let Ok(recording) = store.recording(RUN)
        && *recording.status() == sealstone::recording::RecordingStatus::Complete
    {
        return store.close();
    }
    let (recorder, mut state) = open_run(&store)?;
    while state.step < steps {
        recorder.observe(&state)?;
        state.advance();
        if state.step % CHECKPOINT_EVERY == 0 {
            recorder.checkpoint(&state)?;
        }
    }
    recorder.complete_with(&state)?;
    store.close()
}

fn start(path: &Path, steps: i64) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?).arg(CHILD).arg(path).arg(steps.to_string()).spawn()
}

/// Kills the run again and again; how often.
fn disturb(path: &Path, steps: i64, seed: u64) -> Result<u32, Box<dyn Error>> {
    let mut random = seed | 1;
    let mut kills = 0;
    loop {
        let mut child = start(path, steps)?;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Longer each time, so that it ends whatever the machine does.
        let millis = random % 60 + u64::from(kills) * 5;
        std::thread::sleep(Duration::from_millis(millis));
        if let Some(status) = child.try_wait()? {
            return if status.success() {
                Ok(kills)
            } else {
                Err("the run failed: see above".into())
            };
        }
        child.kill()?;
        child.wait()?;
        kills += 1;
    }
}

/// Every value of a store's run, as bits.
fn bits(path: &Path) -> sealstone::Result<Vec<(String, Vec<u64>)>> {
    let store = Store::open_read_only(path)?;
    let recording = store.recording(RUN)?;
    recording.strict()?;
    let mut all = Vec::new();
    for stream in recording.streams()? {
        let steps: Vec<i64> = stream.iteration().to_vec()?;
        all.push((format!("{} step", stream.name()), steps.iter().map(|s| *s as u64).collect()));
        for field in stream.schema().fields() {
            let values: Vec<f64> = stream.field(&field.name)?.to_vec()?;
            let name = format!("{} {}", stream.name(), field.name);
            all.push((name, values.iter().map(|v| v.to_bits()).collect()));
        }
    }
    Ok(all)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if let [first, path, steps] = &given[..]
        && first == CHILD
    {
        return Ok(simulate(Path::new(path), steps.parse()?)?);
    }
    let steps: i64 = given.first().map_or(Ok(STEPS), |steps| steps.parse())?;
    let seed: u64 = given.get(1).map_or(Ok(7), |seed| seed.parse())?;
    let folder = tempfile::tempdir()?;
    let (calm, disturbed) = (folder.path().join("calm.stone"), folder.path().join("killed.stone"));

    simulate(&calm, steps)?;
    let kills = disturb(&disturbed, steps, seed)?;
    println!("{steps} steps, seed {seed}: killed {kills} times, and resumed each time");
    if kills == 0 {
        return Err("the run was done before it was killed: give more steps".into());
    }
    let (expected, found) = (bits(&calm)?, bits(&disturbed)?);
    for ((name, expected), (_, found)) in expected.iter().zip(&found) {
        let same = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
        println!("  {name}: {} values, {same} equal bit for bit", expected.len());
    }
    if expected != found {
        return Err("the disturbed run differs from the calm one".into());
    }
    println!("the run that was killed equals the one that nobody disturbed, bit for bit");
    Ok(())
}
