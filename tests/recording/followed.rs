//! REC50 with real processes: a follower sees each of 100,000 records once and in order, while their
//! writer seals, is killed (SIGKILL: a system that has it), and goes on from its tail or from a
//! checkpoint that takes records back. The test starts its own binary again as the writer.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sealstone::recording::{
    Cell, Field, FieldType, Follow, FollowLevel, Followed, Level, Observable, Recorder, ResumeFrom,
    Resumed, Schema, Value,
};
use sealstone::{ErrorKind, Store};

const ROOT: &str = "SEALSTONE_FOLLOWED_ROOT";
const ATTEMPT: &str = "SEALSTONE_FOLLOWED_ATTEMPT";
const RECORDS: i64 = 100_000;
/// Records between checkpoints.
const CHECKPOINT: i64 = 9_000;

fn schema() -> Schema {
    let fields = [("x", FieldType::F64), ("attempt", FieldType::I64)];
    Schema::new(fields.map(|(name, ty)| Field::new(name, ty)).to_vec()).unwrap()
}

/// What is observed.
struct State {
    iteration: i64,
    attempt: i64,
}

impl Observable for State {
    fn iteration(&self) -> i64 {
        self.iteration
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        match name {
            "x" => to.put(Value::F64((self.iteration as f64).sqrt())),
            _ => to.put(Value::I64(self.attempt)),
        }
    }
}

/// Starts the recording, or resumes it: in turn from its last record, and from its newest checkpoint,
/// behind which records are cut. Returns the iteration that comes next.
fn begin(store: &Store, attempt: i64) -> (Recorder, i64) {
    if store.recording("run").is_err() {
        let draft = store.record("run", &schema()).stream("all", ["x", "attempt"]);
        return (draft.chunk_records(300).start().unwrap(), 0);
    }
    let from = match attempt % 2 {
        1 => ResumeFrom::LatestCheckpoint,
        _ => ResumeFrom::Tail,
    };
    let Resumed { recorder, state, .. } = store.resume("run").from(from).start().unwrap();
    let records = || store.recording("run").unwrap().stream("all").unwrap().record_count() as i64;
    let next = state.map_or_else(records, |state| state.iteration() + 1);
    (recorder, next)
}

/// The writer's process: goes on with the recording until it is complete, or killed.
#[test]
fn a_writer() {
    let Ok(root) = std::env::var(ROOT) else { return };
    let attempt: i64 = std::env::var(ATTEMPT).unwrap().parse().unwrap();
    let store = Store::options().wait_millis(20_000).open_or_create(PathBuf::from(root)).unwrap();
    let (recorder, first) = begin(&store, attempt);
    for iteration in first..RECORDS {
        let state = State { iteration, attempt };
        let ticket = recorder.observe(&state).unwrap();
        if iteration % 64 == 0 {
            recorder.wait(&ticket, Level::Written).unwrap();
        }
        if iteration % CHECKPOINT == CHECKPOINT - 1 {
            recorder.checkpoint(&state).unwrap();
        }
    }
    recorder.complete().unwrap();
    store.close().unwrap();
}

struct Writer(Child);

impl Writer {
    fn start(root: &Path, attempt: i64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "followed::a_writer", "--nocapture", "--test-threads=1"])
            .env(ROOT, root)
            .env(ATTEMPT, attempt.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// SIGKILL.
    fn kill(mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "it ended by itself");
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Debug, Default)]
struct Seen {
    /// The attempt of each record, by iteration.
    attempts: Vec<i64>,
    rewound: u64,
    taken_back: u64,
    sealed: u64,
    sealed_upto: u64,
    ended: u64,
    reopened: u64,
}

impl Seen {
    fn take(&mut self, told: Followed) {
        match told {
            Followed::Appended { record, .. } => {
                let next = self.attempts.len() as u64;
                assert_eq!((record.sequence(), record.iteration()), (next, next as i64));
                let x = Value::F64((next as f64).sqrt());
                assert!(record.value("x").unwrap().same(&x), "{record:?}");
                let Some(Value::I64(attempt)) = record.value("attempt") else { panic!() };
                self.attempts.push(attempt);
            }
            Followed::Rewound { to, .. } => {
                self.rewound += 1;
                self.taken_back += self.attempts.len() as u64 - to;
                self.attempts.truncate(to as usize);
            }
            Followed::Sealed { upto, .. } => {
                assert!(upto <= self.attempts.len() as u64);
                self.sealed += 1;
                self.sealed_upto = upto;
            }
            Followed::Ended(_) => self.ended += 1,
            other => panic!("{other:?}"),
        }
    }
}

fn open(root: &Path) -> Store {
    let since = Instant::now();
    loop {
        match Store::options().wait_millis(20_000).open_read_only(root) {
            Ok(store) => return store,
            Err(e) if matches!(e.kind(), ErrorKind::NoStore | ErrorKind::InUse) => {
                assert!(since.elapsed() < Duration::from_secs(120), "{e}");
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => panic!("{e:?}"),
        }
    }
}

fn follow(root: &Path) -> Follow {
    loop {
        match open(root).follow_at("run", FollowLevel::Written) {
            Ok(follow) => return follow,
            Err(e) if e.kind() == ErrorKind::NotFound => std::thread::yield_now(),
            Err(e) => panic!("{e:?}"),
        }
    }
}

/// Through seals, kills, resumes and rewinds: each record once, in order, and the end?
#[test]
fn rec50_another_process_sees_each_record_once_whatever_happens_to_its_writer() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let mut writer = Some(Writer::start(&root, 0));
    let mut follower = follow(&root);
    let mut seen = Seen::default();
    let mut kills = (1..=5).map(|n| n * 16_000 + 1_500).collect::<std::collections::VecDeque<_>>();
    let mut attempt = 0;
    let mut quiet = Instant::now();
    while seen.ended == 0 {
        match follower.next_event(Duration::from_millis(200)) {
            Ok(Some(told)) => {
                seen.take(told);
                quiet = Instant::now();
            }
            Ok(None) => {
                assert!(quiet.elapsed() < Duration::from_secs(120), "nothing comes: {seen:?}");
            }
            Err(e) => {
                // What was open was repaired under our hands: open it anew, and go on.
                println!("opened anew: {e}");
                follower = follower.pause().over(&open_beside(&root)).unwrap();
                seen.reopened += 1;
                assert!(seen.reopened < 100, "{e:?}");
            }
        }
        if kills.front().is_some_and(|at| seen.attempts.len() >= *at) {
            kills.pop_front();
            writer.take().unwrap().kill();
            attempt += 1;
            // Some followers come while nobody writes. What they read is a copy that keeps writers
            // out, so they let go of it and come back when somebody writes.
            if attempt % 2 == 0 {
                follower = follower.pause().over(&open(&root)).unwrap();
                while let Some(told) = follower.poll().unwrap() {
                    seen.take(told);
                }
                let paused = follower.pause();
                writer = Some(Writer::start(&root, attempt));
                follower = paused.over(&open_beside(&root)).unwrap();
            } else {
                writer = Some(Writer::start(&root, attempt));
            }
        }
    }
    assert!(writer.take().unwrap().0.wait().unwrap().success());
    let attempts: std::collections::BTreeSet<i64> = seen.attempts.iter().copied().collect();
    assert_eq!(seen.attempts.len() as i64, RECORDS);
    let Seen { rewound, taken_back, sealed, reopened, .. } = &seen;
    println!(
        "attempts {attempts:?}; {rewound} rewinds took {taken_back} back; {sealed} times sealed; {reopened} times opened anew"
    );
    // A recorder publishes many chunks in one commit: some in each life of the writer.
    assert!(attempts.len() > 3 && *rewound >= 2 && *sealed >= attempts.len() as u64);
    assert_eq!(seen.sealed_upto, RECORDS as u64);
    let store = Store::open_read_only(&root).unwrap();
    let stream = store.recording("run").unwrap().stream("all").unwrap();
    let stored: Vec<i64> = stream.field("attempt").unwrap().to_vec().unwrap();
    assert!(stored == seen.attempts, "what was seen is what is there");
}

/// A store that somebody writes, or has closed.
fn open_beside(root: &Path) -> Store {
    let since = Instant::now();
    loop {
        let store = open(root);
        if !store.info().unwrap().is_recovered_copy {
            return store;
        }
        drop(store);
        assert!(since.elapsed() < Duration::from_secs(120), "no writer came");
        std::thread::sleep(Duration::from_millis(20));
    }
}
