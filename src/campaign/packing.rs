//! Pack and unpack, cut at every event, and cut again while the second call is under way. At every
//! moment the target is whole or not there, and the source shows what it showed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::check::{Checked, verify_objects};
use super::content::Content;
use super::finding::{Finding, Rule};
use super::history::{History, Limited, Shape};
use super::play::{options, play, root};
use super::report::Tally;
use super::slice::Budget;
use crate::digest::Digest;
use crate::engine::{Layout, Packed, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::vfs::sim::{EventLog, ImageCursor, Outcomes, Profile, Rng, SimDisk};
use crate::vfs::{Disk, EntryKind};

/// A store, and where it is packed or unpacked to.
struct Move<'h> {
    history: &'h History,
    target: PathBuf,
    /// What the source shows.
    content: Digest,
}

/// What is packed, and what is unpacked: something of everything, left by a kill, and closed.
const MOVED: [(Limited, &str); 3] = [
    (Limited::Tiny, "!NNAGBLPCOEnHAGBk"),
    (Limited::File, "!NNAGBLPCOEnHAGBk"),
    (Limited::File, "!NNAGBPOFVAc"),
];

/// Histories whose stores are made into the other layout.
pub fn packings(seed: u64) -> Vec<History> {
    let shapes = |ops: &str| ops.chars().filter_map(Shape::of_code).collect();
    let moved = MOVED.iter();
    moved
        .map(|&(limited, ops)| History { seed, limited, prefix: shapes(ops), cut: Vec::new() })
        .collect()
}

/// Plays `history`, then makes its store into one of the other layout, cut at every event.
///
/// # Errors
/// The first rule that did not hold, with the crashes that show it.
pub fn cut_packing(
    history: &History,
    budget: Budget,
    tally: &mut Tally,
) -> std::result::Result<(), Finding> {
    let fail = |e| Finding::error(Rule::Acted, "pack", &e);
    let run = play(history);
    if let Some(finding) = run.findings.first() {
        return Err(finding.clone());
    }
    let disk = run.world.process(4000);
    let content = {
        let store = options(history, &disk).open_read_only(root()).map_err(fail)?;
        Content::read(&store).map_err(fail)?.digest()
    };
    let to = Move { history, target: PathBuf::from("/data/moved.stone"), content };
    disk.restart_log();
    to.go(&disk).map_err(fail)?;
    to.check(&disk, false)?;
    let log = disk.events();
    for (at, profile) in (1..).zip(Profile::ALL) {
        let mut rng = Rng::new(history.seed.wrapping_mul(37).wrapping_add(at));
        let mut cursor = log.cursor(profile);
        loop {
            to.cut(&mut cursor, &mut rng, budget, budget.of(profile), 1, tally)?;
            if tally.is_full() || cursor.advance().is_none() {
                break;
            }
        }
    }
    tally.histories += 1;
    Ok(())
}

impl Move<'_> {
    /// One call.
    fn go(&self, disk: &SimDisk) -> Result<Packed> {
        let (options, on) = (options(self.history, disk), &mut |_| ControlFlow::Continue(()));
        match self.history.limited.layout() {
            Layout::Directory => options.pack(root(), &self.target, on),
            _ => options.unpack(root(), &self.target, on),
        }
    }

    fn cut(
        &self,
        cursor: &mut ImageCursor,
        rng: &mut Rng,
        budget: Budget,
        images: usize,
        level: usize,
        tally: &mut Tally,
    ) -> std::result::Result<(), Finding> {
        for image in cursor.images(rng, images) {
            let outcomes = image.outcomes();
            let named = |finding: Finding| {
                let seen =
                    format!("{} ({}, crash {level}: {outcomes})", finding.seen, self.history);
                Finding { seen, ..finding }
            };
            let (log, was_there) = self.again(&image.disk(), outcomes).map_err(named)?;
            let outcome = if was_there { "moved, finished" } else { "not moved, done again" };
            let checked =
                Checked { log, digest: self.content, outcome: outcome.to_owned(), calls: 0 };
            tally.count(outcomes.profile, cursor.step(), &checked, level);
            let depth = budget.depth;
            if level <= depth.levels.min(1) && rng.one_in(depth.one_in) {
                let mut inner = checked.log.cursor(Profile::PosixHarshest);
                let mut cuts: Vec<usize> =
                    (0..depth.cuts).map(|_| rng.index(checked.log.len() + 1)).collect();
                cuts.sort_unstable();
                for at in cuts {
                    inner.advance_to(at);
                    self.cut(&mut inner, rng, budget, depth.each, level + 1, tally)
                        .map_err(named)?;
                }
            }
            if tally.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// What a crash left: the target whole or not there; then the call again, which finishes.
    fn again(
        &self,
        disk: &SimDisk,
        _outcomes: &Outcomes,
    ) -> std::result::Result<(EventLog, bool), Finding> {
        let there = disk.meta(&self.target).map_err(|e| Finding::new(Rule::Opens, e))?.is_some();
        if there {
            let target = options(self.history, disk).open_read_only(&self.target);
            self.shows(&target.map_err(|e| Finding::error(Rule::Opens, "open the target", &e))?)?;
        }
        disk.restart_log();
        let done = self.go(disk).map_err(|e| Finding::error(Rule::Acted, "pack again", &e))?;
        if done.was_there != there {
            let seen = format!("there {there}, said to be there {}", done.was_there);
            return Err(Finding::new(Rule::Again, seen));
        }
        let log = disk.events();
        self.check(disk, true)?;
        Ok((log, there))
    }

    fn shows(&self, store: &Store) -> std::result::Result<(), Finding> {
        let read = |e: Error| Finding::error(Rule::Digests, "read", &e);
        match Content::read(store).map_err(read)?.digest() == self.content {
            true => verify_objects(store),
            false => Err(Finding::new(Rule::State, "it shows something else than the source did")),
        }
    }

    /// Both stores open, for writing too, show the same, and nothing else is beside them.
    fn check(&self, disk: &SimDisk, is_written: bool) -> std::result::Result<(), Finding> {
        let mut names: Vec<String> = disk
            .list(Path::new("/data"))
            .map_err(|e| Finding::new(Rule::Orphans, e))?
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        names.sort();
        if names != ["moved.stone", "run.stone"] {
            return Err(Finding::new(Rule::Orphans, names.join(", ")));
        }
        for path in [&root(), &self.target] {
            let open = |e: Error| Finding::error(Rule::Opens, "open", &e);
            let store = options(self.history, disk).open_read_only(path).map_err(open)?;
            self.shows(&store)?;
            let accounts = store.accounts().map_err(open)?;
            if !accounts.are_closed() || accounts.orphan != 0 {
                return Err(Finding::new(Rule::Books, format!("{accounts:?}")));
            }
        }
        let moved = disk.meta(&self.target).map_err(|e| Finding::new(Rule::Opens, e))?;
        let is_file = moved.is_some_and(|meta| meta.kind == EntryKind::File);
        if is_file == (self.history.limited.layout() == Layout::SingleFile) {
            return Err(Finding::new(Rule::State, "it has the layout that it had"));
        }
        if is_written {
            let open = |e: Error| Finding::error(Rule::Opens, "open for writing", &e);
            let store = options(self.history, disk).open(&self.target).map_err(open)?;
            self.shows(&store)?;
            store.close().map_err(open)?;
            match self.go(disk) {
                Err(e) if e.kind() == ErrorKind::Exists => {}
                other => {
                    let seen = format!("over a target that was written since: {other:?}");
                    return Err(Finding::new(Rule::Kept, seen));
                }
            }
        }
        Ok(())
    }
}
