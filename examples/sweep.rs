//! A sweep: many runs of a damped pendulum in one store, found again by their parameters. Runs that
//! compute the same store their bytes once.
//!
//! `cargo run --release --example sweep [RUNS]`

use std::error::Error;

use sealstone::Store;
use sealstone::recording::{Cell, Every, Field, FieldType, Observable, Schema, TimeAxis};
use serde::Serialize;

const RUNS: u64 = 60;
const SECONDS: f64 = 20.0;

/// One point of the sweep.
#[derive(Debug, Clone, Serialize)]
struct Task {
    task_index: u64,
    dt: f64,
    damping: f64,
    solver: &'static str,
}

#[derive(Debug)]
struct Pendulum {
    step: i64,
    dt: f64,
    angle: f64,
    speed: f64,
}

impl Observable for Pendulum {
    fn iteration(&self) -> i64 {
        self.step
    }

    fn time(&self) -> Option<f64> {
        Some(self.step as f64 * self.dt)
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        match name {
            "angle" => to.put(self.angle),
            "speed" => to.put(self.speed),
            _ => Ok(()),
        }
    }
}

/// Every fifth point repeats an earlier one: sweeps that were set up by hand often do.
fn tasks(count: u64) -> impl Iterator<Item = Task> {
    (0..count).map(|task_index| {
        let point = if task_index % 5 == 4 { task_index - 4 } else { task_index };
        Task {
            task_index,
            dt: [0.002, 0.005, 0.01, 0.02][(point % 4) as usize],
            damping: 0.05 * (point / 4) as f64,
            solver: if point % 2 == 0 { "euler" } else { "leapfrog" },
        }
    })
}

fn simulate(store: &Store, schema: &Schema, task: &Task) -> sealstone::Result<()> {
    let recorder = store
        .record(&format!("run-{:04}", task.task_index), schema)
        .time_axis(TimeAxis::named("step", "1").time("t", "s"))
        .parameters(task)
        .stream_every("path", ["angle", "speed"], Every::iterations(2))
        .start()?;
    let mut pendulum = Pendulum { step: 0, dt: task.dt, angle: 1.0, speed: 0.0 };
    while pendulum.step as f64 * task.dt < SECONDS {
        recorder.observe(&pendulum)?;
        let force = |p: &Pendulum| -p.angle.sin() - task.damping * p.speed;
        if task.solver == "euler" {
            let force = force(&pendulum);
            pendulum.angle += task.dt * pendulum.speed;
            pendulum.speed += task.dt * force;
        } else {
            pendulum.speed += task.dt / 2.0 * force(&pendulum);
            pendulum.angle += task.dt * pendulum.speed;
            pendulum.speed += task.dt / 2.0 * force(&pendulum);
        }
        pendulum.step += 1;
    }
    recorder.complete_with(&pendulum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(RUNS), |runs| runs.parse())?;
    let folder = tempfile::tempdir()?;
    let store = Store::create(folder.path().join("sweep.stone"))?;
    let schema = Schema::new(vec![
        Field::new("angle", FieldType::F64).unit("rad"),
        Field::new("speed", FieldType::F64).unit("rad/s"),
    ])?;
    for task in tasks(runs) {
        simulate(&store, &schema, &task)?;
    }
    println!("{runs} runs in one store");

    for filter in ["dt < 0.01 and solver = 'leapfrog'", "damping >= 0.3 and not dt = 0.02"] {
        let found = store.catalogue().filter(filter)?;
        let wanted = tasks(runs).filter(|task| match filter.starts_with("dt") {
            true => task.dt < 0.01 && task.solver == "leapfrog",
            false => task.damping >= 0.3 && task.dt != 0.02,
        });
        let names: Vec<&str> = found.iter().map(|recording| recording.name()).collect();
        let wanted: Vec<String> =
            wanted.map(|task| format!("run-{:04}", task.task_index)).collect();
        if names != wanted {
            return Err(format!("{filter}: {names:?} were found, not {wanted:?}").into());
        }
        println!("{filter}: {} runs, as computed by hand", names.len());
    }

    let (mut chunks, mut referred) = (0, 0);
    for recording in store.catalogue().filter("status = 'complete'")? {
        for stream in recording.streams()? {
            chunks += stream.chunk_count();
            referred += stream.stored_bytes()?;
        }
    }
    let live = store.accounts()?.live;
    println!(
        "{chunks} chunks of {referred} bytes are {live} bytes on disk: equal chunks are shared"
    );
    if runs >= 5 {
        let diff = store.diff("run-0000", "run-0004")?;
        if !diff.is_empty() || diff.records_compared > 0 {
            return Err(format!("equal runs should share all: {diff:?}").into());
        }
        println!("run-0004 repeats run-0000: {} records, all shared", diff.records_known_equal);
    }
    store.close()?;
    Ok(())
}
