//! A test binary, started again as another process: what every suite with children needs. Each has a
//! `child` module of its own, which says what roles there are, with one test, `a_child`.

// Not every suite asks for all of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "SEALSTONE_CHILD";
const ROOT: &str = "SEALSTONE_CHILD_ROOT";
const OUT: &str = "SEALSTONE_CHILD_OUT";
const SEED: &str = "SEALSTONE_CHILD_SEED";

/// What every child is told.
#[derive(Debug, Clone)]
pub struct Told {
    pub role: String,
    /// The store.
    pub root: PathBuf,
    /// Where it leaves what it has to say.
    pub out: PathBuf,
    pub seed: u64,
}

impl Told {
    pub fn new(role: &str, root: &Path, out: &Path, seed: u64) -> Self {
        Self { role: role.to_owned(), root: root.to_owned(), out: out.to_owned(), seed }
    }

    /// What this process was told; nothing, where no test started it as a child.
    pub fn here() -> Option<Self> {
        let role = std::env::var(ROLE).ok()?;
        let var = |name| std::env::var(name).unwrap();
        let (root, out) = (PathBuf::from(var(ROOT)), PathBuf::from(var(OUT)));
        Some(Self { role, root, out, seed: var(SEED).parse().unwrap() })
    }

    /// Starts this binary again by `command`, which names it or what starts it. It ends when killed, when
    /// done, or with the returned guard.
    pub fn start(&self, mut command: Command) -> Running {
        let error = self.out.join(format!("{}.error", self.role));
        command
            .args(["--exact", "child::a_child", "--nocapture", "--test-threads=1"])
            .env(ROLE, &self.role)
            .env(ROOT, &self.root)
            .env(OUT, &self.out)
            .env(SEED, self.seed.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&error).unwrap());
        Running { child: command.spawn().unwrap(), out: self.out.clone(), error }
    }
}

/// This binary.
pub fn this() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// A child that runs. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    out: PathBuf,
    error: PathBuf,
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL. Fails when the child had ended by itself: it had no reason to.
    pub fn kill(mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the child ended by itself ({ended:?}): {}", self.said());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for a child that ends by itself.
    pub fn wait(mut self) {
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "the child failed: {}", self.said());
    }

    /// Waits for a child that may end as it likes; returns what it said.
    pub fn ended(mut self) -> String {
        self.child.wait().unwrap();
        self.said()
    }

    /// Whether it has ended; fails where it did so in an error.
    pub fn has_ended(&mut self) -> bool {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none_or(|s| s.success()), "the child failed: {}", self.said());
        ended.is_some()
    }

    /// Waits until the child left the file `name`, at most a minute.
    pub fn wait_for(&mut self, name: &str) {
        let path = self.out.join(name);
        self.wait_until(|| path.exists());
    }

    /// Waits until something holds, as long as the child lives, at most a minute.
    pub fn wait_until(&mut self, holds: impl FnMut() -> bool) {
        self.wait_at_most(60, holds);
    }

    /// Waits until something holds, as long as the child lives, at most so many seconds.
    pub fn wait_at_most(&mut self, seconds: u64, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the child ended ({ended:?}): {}", self.said());
            let has_time = since.elapsed() < Duration::from_secs(seconds);
            assert!(has_time, "nothing came: {}", self.said());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.error).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The seed of a test: another one each time and printed, or given by `SEALSTONE_SEED`.
pub fn seed(of: &str) -> u64 {
    seed_or(of, || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64)
}

/// The seed of a test that is the same each time, or given by `SEALSTONE_SEED`.
pub fn fixed_seed(of: &str) -> u64 {
    seed_or(of, || 1)
}

fn seed_or(of: &str, other: impl FnOnce() -> u64) -> u64 {
    let seed = match std::env::var("SEALSTONE_SEED") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => other(),
    };
    println!("{of}: SEALSTONE_SEED={seed}");
    seed
}
