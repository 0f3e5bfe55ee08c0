//! Kills and power cuts at every event of the run.

use std::collections::BTreeMap;

use sealstone::engine::Layout;
use sealstone::vfs::Step;
use sealstone::vfs::sim::{EventLog, Profile, Rng};

use super::judge::{Look, judge};
use super::play::{Play, options, world};
use crate::child::fixed_seed;

/// The protocols of stages: each step of them is cut here.
const PROTOCOLS: [&str; 5] = ["stage.", "group.", "output.", "quarantine.", "handoff."];

/// A run that nothing failed, and what its disk saw.
pub fn sound(layout: Layout, seed: u64) -> (Play, EventLog) {
    let disk = world(seed);
    let store = options(layout, &disk).create(super::play::PATH).unwrap();
    disk.restart_log();
    let play = Play::new(layout, &disk, seed);
    play.run(&store).unwrap();
    (play, disk.events())
}

/// What a matrix of cuts counted.
#[derive(Debug, Default)]
pub struct Cut {
    pub events: u64,
    pub images: u64,
    /// Images by the step under way.
    pub steps: BTreeMap<Step, u64>,
    /// The first that was wrong, with the crash in words.
    pub wrong: Option<String>,
}

/// How thoroughly to cut.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Images of each event, at most.
    pub draws: usize,
    /// Of the events of a kill, one in so many.
    pub kill_stride: u64,
    /// The next pass is made from one image in so many.
    pub pass_one_in: u64,
    pub seed: u64,
}

/// Judges images of every event until one is wrong.
pub fn cut(play: &Play, log: &EventLog, profile: Profile, effort: Effort) -> Cut {
    let Effort { draws, kill_stride, pass_one_in, seed } = effort;
    let (mut found, mut rng) = (Cut::default(), Rng::new(seed));
    let mut cursor = log.cursor(profile);
    loop {
        let facts = play.facts_of(cursor.notes().last().map(|note| &note[..]));
        found.events += 1;
        let cursor_step = cursor.step();
        // A kill loses nothing that was written: most of its events leave what the one before left.
        let is_skipped = profile == Profile::ProcessKill && (found.events + seed) % kill_stride > 0;
        let draws = if is_skipped { 0 } else { draws };
        for image in cursor.images(&mut rng, draws) {
            found.images += 1;
            if let Some(step) = cursor_step {
                *found.steps.entry(step).or_default() += 1;
            }
            let is_due = found.images.wrapping_add(seed).is_multiple_of(pass_one_in);
            let look = if is_due { Look::NextPass } else { Look::Rows };
            if let Err(why) = judge(play, &image.disk(), &facts, look) {
                found.wrong = Some(format!("{why}\n  in {cursor_step:?}, {}", image.outcomes()));
                return found;
            }
        }
        if cursor.advance().is_none() {
            return found;
        }
    }
}

fn cut_all(layout: Layout) {
    let seed = fixed_seed("cuts");
    let effort = match std::env::var("SEALSTONE_MATRIX") {
        Ok(_) => Effort { draws: 12, kill_stride: 1, pass_one_in: 1, seed },
        Err(_) => Effort { draws: 1, kill_stride: 6, pass_one_in: 8, seed },
    };
    let (play, log) = sound(layout, seed);
    let mut steps = BTreeMap::new();
    for profile in Profile::ALL {
        let found = cut(&play, &log, profile, effort);
        println!(
            "{layout:?}, {}: {} events, {} images",
            profile.name(),
            found.events,
            found.images
        );
        assert!(found.wrong.is_none(), "{}", found.wrong.unwrap());
        for (step, images) in found.steps {
            *steps.entry(step).or_default() += images;
        }
    }
    let of_stages = Step::ALL
        .iter()
        .filter(|step| PROTOCOLS.iter().any(|protocol| step.name().starts_with(protocol)));
    for step in of_stages {
        let images = steps.get(step).copied().unwrap_or(0);
        println!("{:<24} {images:>7}", step.name());
        assert!(images > 0, "{} was never cut", step.name());
    }
}

/// Is each acknowledged row there exactly once, wherever a run of a stage is killed or its power cut,
/// and does the next pass succeed and leave nothing?
#[test]
fn stg25_rows_are_there_once_after_a_cut_at_any_event() {
    cut_all(Layout::Directory);
}

/// And in a store that is one file?
#[test]
fn stg25_rows_are_there_once_after_a_cut_in_one_file() {
    cut_all(Layout::SingleFile);
}
