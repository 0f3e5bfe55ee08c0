//! Cuts one played history at every event, under every profile.

use super::case::Case;
use super::check::{Judge, check_image};
use super::finding::Finding;
use super::model::Survivors;
use super::nested::{Depth, cut_recovery};
use super::play::Run;
use super::report::Tally;
use crate::vfs::sim::{Profile, Rng};

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Crashes at each cut under the harshest POSIX profile.
    pub posix: usize,
    /// Under the ext4 profile.
    pub ext4: usize,
    /// Of killed processes.
    pub kill: usize,
    /// Inside recoveries.
    pub depth: Depth,
}

impl Budget {
    pub(super) fn of(self, profile: Profile) -> usize {
        match profile {
            Profile::PosixHarshest => self.posix,
            Profile::Ext4Ordered => self.ext4,
            Profile::ProcessKill => self.kill,
        }
    }
}

/// What a crash with these notes, of this profile, may show.
pub(super) fn judge_of<'r>(run: &'r Run, last_note: Option<&[u8]>, profile: Profile) -> Judge<'r> {
    let survivors = match profile {
        Profile::ProcessKill => Survivors::OfKill,
        _ => Survivors::OfPower,
    };
    Judge { history: &run.history, models: run.allowed(last_note), survivors, opened: None }
}

/// Cuts `run` at every event with every choice of survivors that `budget` allows.
///
/// # Errors
/// The first crash that broke a rule.
pub fn cut_history(run: &Run, budget: Budget, tally: &mut Tally) -> Result<(), (Case, Finding)> {
    let case = Case::of(&run.history);
    if let Some(finding) = run.findings.first() {
        return Err((case, finding.clone()));
    }
    for (at, profile) in (1..).zip(Profile::ALL) {
        let mut rng = Rng::new(run.history.seed.wrapping_mul(31).wrapping_add(at));
        let mut cursor = run.log.cursor(profile);
        loop {
            for image in cursor.images(&mut rng, budget.of(profile)) {
                let last = cursor.notes().last().map(|note| &**note);
                let judge = judge_of(run, last, profile);
                let case = case.inside(image.outcomes().clone());
                let checked =
                    check_image(&judge, &image).map_err(|finding| (case.clone(), finding))?;
                tally.count(profile, cursor.step(), &checked, 1);
                cut_recovery(&case, &judge, &checked, budget.depth, &mut rng, tally)?;
                if tally.is_full() {
                    return Ok(());
                }
            }
            if cursor.advance().is_none() {
                break;
            }
        }
        tally.duplicates += cursor.duplicates();
    }
    tally.histories += 1;
    Ok(())
}
