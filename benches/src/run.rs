//! Runs rows: every arm in a process of its own, taking turns.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Outcome;
use crate::args::Args;
use crate::arms::{Job, reopen};
use crate::outcome::Measured;
use crate::report;
use crate::rows::{ROWS, Row, is_slow};

/// The first word of a child's command line.
pub const CHILD: &str = "child";
const PREPARE: &str = "prepare";
const RUN: &str = "run";
const HOLD: &str = "hold";

/// Runs all that was asked for, and prints it.
pub fn all(args: &Args) -> Outcome<()> {
    fs::create_dir_all(&args.dir)?;
    println!("{}", report::preamble(args));
    let mut stores = Stores::default();
    let mut sizes = Vec::new();
    for (at, row) in args.rows.iter().enumerate() {
        let measured = one_row(args, row, &mut stores)?;
        println!("{}", report::row(row, args, &measured));
        sizes.push((*row, measured));
        let next = args.rows.get(at + 1).map(|next| next.stores);
        if row.stores.is_empty() || next != Some(row.stores) {
            stores = Stores::default();
        }
    }
    println!("{}", report::bytes_of_sets(&sizes));
    // Only when it is empty: it may be somebody's own.
    let _ = fs::remove_dir(&args.dir);
    Ok(())
}

/// What each arm measured, round by round.
pub type ByArm = BTreeMap<&'static str, Vec<Measured>>;

fn one_row(args: &Args, row: &Row, stores: &mut Stores) -> Outcome<ByArm> {
    let wanted = |arm: &&&'static str| {
        let asked = args.arms.is_empty() || args.arms.iter().any(|one| one == **arm);
        asked && !(args.smoke && is_slow(arm))
    };
    let is_here = |arm: &&'static str| match (row.absent)(arm) {
        Some(reason) => {
            println!("{} {arm} is left out: {reason}", row.id);
            false
        }
        None => true,
    };
    let arms = row.arms.iter().filter(wanted).copied().filter(is_here);
    let arms: Vec<&'static str> = arms.collect();
    let prefix = if row.stores.is_empty() { row.id } else { row.stores };
    let mut measured = ByArm::new();
    for round in 0..args.rounds {
        for arm in &arms {
            let dir = args.dir.join(format!("{prefix}-{arm}-{}", std::process::id()));
            let job = Job { arm: (*arm).to_owned(), dir, amount: amount(args, row) };
            if stores.begin(&job.dir)? && row.prepare.is_some() {
                wait_for(start(row.id, PREPARE, &job)?)?;
            }
            eprintln!("{} {arm}, round {} of {}", row.id, round + 1, args.rounds);
            let said = wait_for(start(row.id, RUN, &job)?)?;
            measured.entry(*arm).or_default().push(Measured::from_line(&said)?);
            if row.prepare.is_none() {
                stores.end(&job.dir)?;
            }
        }
    }
    Ok(measured)
}

fn amount(args: &Args, row: &Row) -> u64 {
    if args.smoke {
        return row.smoke;
    }
    ((row.amount as f64 * args.scale) as u64).max(row.smoke)
}

/// Directories that are ours, and go whatever happens.
#[derive(Default)]
struct Stores {
    dirs: Vec<PathBuf>,
}

impl Stores {
    /// Makes the directory, and says whether it is new.
    fn begin(&mut self, dir: &Path) -> Outcome<bool> {
        if self.dirs.iter().any(|one| one == dir) {
            return Ok(false);
        }
        fs::create_dir(dir)?;
        self.dirs.push(dir.to_owned());
        Ok(true)
    }

    fn end(&mut self, dir: &Path) -> Outcome<()> {
        self.dirs.retain(|one| one != dir);
        Ok(fs::remove_dir_all(dir)?)
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        for dir in &self.dirs {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

fn start(row: &str, what: &str, job: &Job) -> Outcome<Child> {
    let mut child = Command::new(std::env::current_exe()?);
    child.args([CHILD, what, row, &job.arm, &job.amount.to_string()]).arg(&job.dir);
    Ok(child.stdout(Stdio::piped()).spawn()?)
}

fn wait_for(child: Child) -> Outcome<String> {
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err("an arm failed: see above".into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Starts a process that works, says so, and waits to be killed.
pub fn hold(job: &Job, what: &str) -> Outcome<Child> {
    start(what, HOLD, job)
}

/// The child's side.
pub fn child(given: &[String]) -> Outcome<()> {
    let [what, row, arm, amount, dir] = given else { return Err("five words are wanted".into()) };
    let job = Job { arm: arm.clone(), dir: dir.into(), amount: amount.parse()? };
    if what == HOLD {
        return reopen::hold(&job, row);
    }
    let row = ROWS.iter().find(|one| one.id == row).ok_or("no such row")?;
    match (what.as_str(), row.prepare) {
        (PREPARE, Some(prepare)) => prepare(&job),
        _ => {
            println!("{}", (row.run)(&job)?.to_line());
            Ok(())
        }
    }
}
