//! Crashes inside the recovery of a crash: the same rules, and what a recovery has shown stays.

use super::case::Case;
use super::check::{Checked, Judge, check_image};
use super::finding::Finding;
use super::model::Survivors;
use super::report::Tally;
use crate::digest::Digest;
use crate::vfs::sim::{ImageCursor, Outcomes, Profile, Rng};

/// How recoveries are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// One image in so many has its recovery cut.
    pub one_in: u64,
    /// Cuts of each such recovery; `usize::MAX` cuts at every event.
    pub cuts: usize,
    /// Crashes at each cut.
    pub each: usize,
    /// Recoveries inside recoveries that are cut as well.
    pub levels: usize,
}

impl Depth {
    /// The same for the recovery of a nested crash.
    fn below(self) -> Self {
        Self { one_in: self.one_in.saturating_mul(2), levels: self.levels - 1, ..self }
    }
}

/// What is judged when `outer` was being recovered and the crash came after these notes.
pub(super) fn inner_judge<'r>(
    outer: &Judge<'r>,
    last_note: Option<&[u8]>,
    profile: Profile,
) -> Judge<'r> {
    let shown = last_note.and_then(|note| note.try_into().ok()).map(Digest);
    let survivors = match profile {
        Profile::ProcessKill => outer.survivors,
        _ => Survivors::OfPower,
    };
    Judge { survivors, opened: shown.or(outer.opened), ..outer.clone() }
}

/// Cuts the recovery that `checked` went through.
pub(super) fn cut_recovery(
    case: &Case,
    outer: &Judge<'_>,
    checked: &Checked,
    depth: Depth,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Result<(), (Case, Finding)> {
    if depth.levels == 0 || !rng.one_in(depth.one_in) {
        return Ok(());
    }
    let profile = match rng.below(8) {
        0 => Profile::ProcessKill,
        1 => Profile::Ext4Ordered,
        _ => Profile::PosixHarshest,
    };
    let len = checked.log.len();
    let mut cuts: Vec<usize> = match depth.cuts >= len {
        true => (0..=len).collect(),
        false => (0..depth.cuts).map(|_| rng.index(len + 1)).collect(),
    };
    cuts.sort_unstable();
    let mut cursor = checked.log.cursor(profile);
    for cut in cuts {
        cursor.advance_to(cut);
        cut_here(case, outer, &mut cursor, depth, rng, tally)?;
    }
    tally.duplicates += cursor.duplicates();
    Ok(())
}

fn cut_here(
    case: &Case,
    outer: &Judge<'_>,
    cursor: &mut ImageCursor,
    depth: Depth,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Result<(), (Case, Finding)> {
    for image in cursor.images(rng, depth.each) {
        let outcomes: &Outcomes = image.outcomes();
        let judge = inner_judge(outer, cursor.notes().last().map(|note| &**note), outcomes.profile);
        let case = case.inside(outcomes.clone());
        let checked = check_image(&judge, &image).map_err(|finding| (case.clone(), finding))?;
        tally.count(outcomes.profile, cursor.step(), &checked, case.crashes.len());
        cut_recovery(&case, &judge, &checked, depth.below(), rng, tally)?;
        if tally.is_full() {
            break;
        }
    }
    Ok(())
}
