//! Plays and cuts of two owners as a slice of the campaign; mutants; and one failure again.

use std::fmt;
use std::str::FromStr;

use super::check::{check, cut_shared};
use super::world::play_shared;
use crate::campaign::finding::Finding;
use crate::campaign::mutants::Mutant;
use crate::campaign::report::Tally;
use crate::clock::monotonic_nanos;
use crate::error::{Error, Result};
use crate::protection::{Protection, switch_off};
use crate::vfs::sim::Outcomes;

/// A play and, perhaps, a crash of it: `shared:SEED:STEPS`, and the crash behind a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCase {
    /// The seed of the play.
    pub seed: u64,
    /// Its steps.
    pub steps: usize,
    /// Where it was cut, and what survived.
    pub crash: Option<Outcomes>,
}

impl fmt::Display for SharedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared:{}:{}", self.seed, self.steps)?;
        self.crash.iter().try_for_each(|crash| write!(f, " {crash}"))
    }
}

impl FromStr for SharedCase {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = || Error::invalid("parse", text, "not shared:SEED:STEPS and a crash");
        let mut words = text.split_whitespace();
        let mut parts = words.next().unwrap_or_default().split(':');
        if parts.next() != Some("shared") {
            return Err(refuse());
        }
        let seed = parts.next().and_then(|n| n.parse().ok()).ok_or_else(refuse)?;
        let steps = parts.next().and_then(|n| n.parse().ok()).ok_or_else(refuse)?;
        let crash = words.next().map(str::parse).transpose()?;
        Ok(Self { seed, steps, crash })
    }
}

/// Steps of one play.
const STEPS: usize = 24;
/// Crashes at each of its events.
const EACH: usize = 2;
/// One event in so many is cut: many plays show more than many cuts of one.
const ONE_IN: u64 = 6;

/// One play of the slice and its cuts, until `until_nanos` of the monotonic clock. Returns how many
/// operations were done inside another.
///
/// # Errors
/// What broke a rule, as a line that [`replay_shared`] takes.
pub fn shared_slice(
    seed: u64,
    until_nanos: u64,
    tally: &mut Tally,
) -> std::result::Result<u64, (SharedCase, Finding)> {
    let run = play_shared(seed, STEPS);
    let is_over = || monotonic_nanos() > until_nanos;
    cut_shared(&run, EACH, ONE_IN, &is_over, tally)
        .map_err(|(crash, finding)| (SharedCase { seed, steps: STEPS, crash }, finding))?;
    Ok(run.inside)
}

/// Plays a failure again.
///
/// # Errors
/// The rule that does not hold.
pub fn replay_shared(case: &SharedCase) -> std::result::Result<(), Finding> {
    let run = play_shared(case.seed, case.steps);
    if let Some(finding) = run.findings.first() {
        return Err(finding.clone());
    }
    let Some(crash) = &case.crash else { return Ok(()) };
    let last = run.log.notes(crash.cut).last();
    check(&run, last, &run.log.image(crash), crash.profile).map(|_| ())
}

/// Protections that only matter where several processes write.
pub const OF_SHARED: [Protection; 3] =
    [Protection::OwnerCheck, Protection::StreamClaim, Protection::SweepTag];

/// Switches `protection` off on this thread, and plays until a rule breaks or `plays` are over.
pub fn hunt_shared(protection: Protection, seed: u64, plays: u64) -> Mutant {
    let began = monotonic_nanos();
    let off = switch_off(protection);
    let mut tally = Tally::up_to(2_000);
    let mut mutant =
        Mutant { protection, caught: None, case: String::new(), images: 0, seconds: 0.0 };
    for n in 0..plays {
        let run = play_shared(seed.wrapping_add(n), STEPS);
        let is_full = || monotonic_nanos() - began > 20_000_000_000;
        if let Err((crash, finding)) = cut_shared(&run, 1, 8, &is_full, &mut tally) {
            mutant.case = SharedCase { seed: run.seed, steps: STEPS, crash }.to_string();
            mutant.caught = Some(finding);
            break;
        }
    }
    drop(off);
    mutant.images = tally.images;
    mutant.seconds = (monotonic_nanos() - began) as f64 / 1e9;
    mutant
}
