//! Real processes: a run that is killed by the kernel at any moment, and gone on with by the next one.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sealstone::recording::{RecordingStatus, ResumeFrom};
use sealstone::vfs::sim::Rng;
use sealstone::{ErrorKind, Store};

use crate::resuming::{Sim, draft, iterations, whole};

const ROOT: &str = "SEALSTONE_KILLED_ROOT";
const SEED: &str = "SEALSTONE_KILLED_SEED";
/// How many iterations a child durably records before it reports.
const REPORTED: i64 = 20;
/// More than a child gets to before it is killed.
const LAST: i64 = 1 << 40;

/// What a child does; nothing in the parent.
#[test]
fn a_child() {
    let (Ok(root), Ok(seed)) = (std::env::var(ROOT), std::env::var(SEED)) else { return };
    let seed: u64 = seed.parse().unwrap();
    let rng = &mut Rng::new(seed);
    let store = Store::options().open_or_create(&root).unwrap();
    let (recorder, mut state) = match store.recording("run") {
        Err(_) => (draft(&store, "run").start().unwrap(), Sim::first()),
        Ok(_) => {
            let last = last_of(&store);
            assert_eq!(iterations(&store, "run"), whole(last + 1), "a prefix");
            let from = [ResumeFrom::Tail, ResumeFrom::LatestCheckpoint][rng.index(2)];
            let resume =
                |from| store.resume("run").expect(&draft(&store, "run")).from(from).start();
            let resumed = match resume(from) {
                Err(e) if e.kind() == ErrorKind::NoCheckpoint => resume(ResumeFrom::Tail).unwrap(),
                resumed => resumed.unwrap(),
            };
            let state = match &resumed.state {
                None => Sim::at(last + 1),
                Some(restored) => Sim {
                    iteration: restored.iteration(),
                    x: restored.get("x").unwrap(),
                    n: restored.get("n").unwrap(),
                    name: restored.get("name").unwrap(),
                }
                .next(),
            };
            (resumed.recorder, state)
        }
    };
    let reported = state.iteration + REPORTED - 1;
    while state.iteration < LAST {
        let ticket = recorder.observe(&state).unwrap();
        match rng.below(40) {
            0 => recorder.wait(&ticket, sealstone::recording::Level::Durable).unwrap(),
            1 => recorder.barrier().unwrap(),
            2 => drop(recorder.checkpoint(&state).unwrap()),
            _ => {}
        }
        if state.iteration == reported {
            // Nothing takes these back: whoever goes on from a checkpoint has this one or a later.
            recorder.checkpoint(&state).unwrap();
            std::fs::write(Path::new(&root).with_extension(format!("ready{seed}")), b"").unwrap();
        }
        state = state.next();
    }
}

fn last_of(store: &Store) -> i64 {
    let streams = store.recording("run").unwrap().streams().unwrap();
    let lasts = streams.iter().filter_map(|stream| stream.iterations().unwrap());
    lasts.map(|(_, last)| last).max().unwrap_or(-1)
}

/// Is a run that is killed twenty times, and gone on with each time, what an uninterrupted run is?
#[test]
fn rec39_a_run_killed_twenty_times_is_an_uninterrupted_run() {
    let seed = std::env::var("SEALSTONE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("SEALSTONE_SEED={seed}");
    let rng = &mut Rng::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let (mut ends, mut reports) = (Vec::new(), 0);
    for kill in 0..20u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::a_child", "--nocapture", "--test-threads=1"])
            .env(ROOT, &root)
            .env(SEED, (seed * 1000 + kill).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.path().join("error")).unwrap())
            .spawn()
            .unwrap();
        // Some are killed while they open and resume, most while they record.
        let ready = root.with_extension(format!("ready{}", seed * 1000 + kill));
        let said = || std::fs::read_to_string(dir.path().join("error")).unwrap_or_default();
        let is_early = kill < 19 && rng.one_in(4);
        while !is_early && !ready.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child ended: {}", said());
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_micros(rng.below(60_000)));
        assert!(child.try_wait().unwrap().is_none(), "the child ended: {}", said());
        child.kill().unwrap();
        child.wait().unwrap();
        reports += i64::from(ready.exists());
        if let Ok(store) = Store::open_read_only(&root)
            && let Ok(found) = store.recording("run")
        {
            assert_eq!(*found.status(), RecordingStatus::Running);
            let last = last_of(&store);
            assert_eq!(iterations(&store, "run"), whole(last + 1), "after kill {kill}");
            ends.push(last);
        }
    }
    assert!(
        reports > 0 && ends.last().is_some_and(|last| *last + 1 >= reports * REPORTED),
        "{ends:?}"
    );
    let store = Store::open(&root).unwrap();
    let last = last_of(&store);
    let resumed = store.resume("run").from(ResumeFrom::Tail).start().unwrap();
    crate::resuming::observe(&resumed.recorder, last + 1, last + 10);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(last + 10));
    assert!(store.accounts().unwrap().are_closed());
}
