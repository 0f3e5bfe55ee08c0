//! This binary, started again as another process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

const ROLE: &str = "SEALSTONE_CHILD";
const ROOT: &str = "SEALSTONE_CHILD_ROOT";
const OUT: &str = "SEALSTONE_CHILD_OUT";
const SEED: &str = "SEALSTONE_CHILD_SEED";

/// What a child is told.
#[derive(Debug, Clone)]
pub struct Orders {
    pub role: &'static str,
    /// The store.
    pub root: PathBuf,
    /// Where it leaves what it has to say.
    pub out: PathBuf,
    pub seed: u64,
}

impl Orders {
    pub fn new(role: &'static str, root: &Path, out: &Path, seed: u64) -> Self {
        Self { role, root: root.to_owned(), out: out.to_owned(), seed }
    }

    /// Starts the child; it ends when killed, when done, or with the returned guard. It has SIGTERM
    /// blocked, to wait for it.
    pub fn start(&self) -> Running {
        let error = std::fs::File::create(self.error_file()).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child::a_child", "--nocapture", "--test-threads=1"])
            .env(ROLE, self.role)
            .env(ROOT, &self.root)
            .env(OUT, &self.out)
            .env(SEED, self.seed.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(error);
        terminations().thread_block().unwrap();
        let child = command.spawn();
        terminations().thread_unblock().unwrap();
        Running { child: child.unwrap(), orders: self.clone() }
    }

    fn error_file(&self) -> PathBuf {
        self.out.join(format!("{}.error", self.role))
    }
}

fn terminations() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set
}

/// Waits for a SIGTERM, in a child.
pub fn wait_for_termination() {
    terminations().wait().unwrap();
}

/// A child that runs. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    orders: Orders,
}

impl Running {
    /// SIGKILL. Fails when the child had ended by itself: it had no reason to.
    pub fn kill(mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the child ended by itself ({ended:?}): {}", self.said());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; it ends when it likes.
    pub fn terminate(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
    }

    /// Waits for a child that ends by itself.
    pub fn wait(mut self) {
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "the child failed: {}", self.said());
    }

    /// Whether it has ended; fails where it did so in an error.
    pub fn has_ended(&mut self) -> bool {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none_or(|s| s.success()), "the child failed: {}", self.said());
        ended.is_some()
    }

    /// Waits until something holds, as long as the child lives, at most ten minutes.
    pub fn wait_until(&mut self, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the child ended ({ended:?}): {}", self.said());
            assert!(since.elapsed() < Duration::from_secs(600), "nothing came: {}", self.said());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(self.orders.error_file()).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a child runs; nothing, where no test started it as one.
#[test]
fn a_child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let var = |name| std::env::var(name).unwrap();
    let (root, out) = (PathBuf::from(var(ROOT)), PathBuf::from(var(OUT)));
    let seed = var(SEED).parse().unwrap();
    match role.as_str() {
        "ingest" => crate::lives::ingest::run(&root, &out, seed),
        "converter" => crate::backlog::convert(&root, seed),
        "reader" => crate::counting::read(&root, &out),
        other => panic!("no such role: {other}"),
    }
}

/// The seed of a test: printed, or given by `SEALSTONE_SEED`.
pub fn seed(of: &str) -> u64 {
    let seed = match std::env::var("SEALSTONE_SEED") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => 1,
    };
    println!("{of}: SEALSTONE_SEED={seed}");
    seed
}
