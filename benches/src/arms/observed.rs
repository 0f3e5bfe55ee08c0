//! B7, `+observe`: a state of three doubles, observed through the recording's face, to *Written*.

use sealstone::Store;
use sealstone::recording::{Cell, Field, FieldType, Level, Observable, Schema};

use super::ours::Ours;
use super::{Job, Watch};
use crate::Outcome;
use crate::outcome::Measured;

const FIELDS: [&str; 3] = ["x", "y", "z"];

struct State {
    iteration: i64,
    x: f64,
    y: f64,
    z: f64,
}

impl State {
    fn new(number: u64) -> Self {
        let x = number as f64;
        Self { iteration: number as i64, x, y: x * 0.5, z: x / 3.0 }
    }
}

impl Observable for State {
    fn iteration(&self) -> i64 {
        self.iteration
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        match name {
            "x" => to.put(self.x),
            "y" => to.put(self.y),
            "z" => to.put(self.z),
            _ => Ok(()),
        }
    }
}

/// Observes so many states, with a wait for each `batch` of them.
pub fn run(job: &Job, records: u64, batch: u64) -> Outcome<Measured> {
    let mut ours = Ours::create(&job.dir)?;
    let schema = Schema::new(FIELDS.map(|name| Field::new(name, FieldType::F64)).to_vec())?;
    // The journal's first file is there before the watch starts, as the peers' files are.
    let warm = ours.store.record("warm", &schema).stream("s", FIELDS).start()?;
    warm.wait(&warm.observe(&State::new(0))?, Level::Written)?;
    let recorder = ours.store.record("r", &schema).stream("s", FIELDS).start()?;
    ours.begin();
    let watch = Watch::start()?;
    for from in (0..records).step_by(batch as usize) {
        let mut last = None;
        for number in from..from + batch {
            last = Some(recorder.observe(&State::new(number))?);
        }
        if let Some(ticket) = last {
            recorder.wait(&ticket, Level::Written)?;
        }
    }
    let mut measured = watch.stop()?;
    measured.syncs = ours.syncs();
    recorder.complete()?;
    warm.complete()?;
    ours.store.close()?;
    check(job, records)?;
    Ok(measured)
}

/// Reads all of it in another opening.
fn check(job: &Job, records: u64) -> Outcome<()> {
    let store = Store::open(job.dir.join("run.stone"))?;
    let recording = store.recording("r")?;
    let stream = recording.stream("s")?;
    for (at, name) in FIELDS.iter().enumerate() {
        let values = stream.field(name)?.to_vec::<f64>()?;
        let wanted = (0..records).map(|number| {
            let state = State::new(number);
            [state.x, state.y, state.z][at]
        });
        if values.len() as u64 != records || !wanted.eq(values.iter().copied()) {
            return Err(format!("{} values of {name} came back, or others", values.len()).into());
        }
    }
    Ok(store.close()?)
}
