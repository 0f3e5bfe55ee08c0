//! Which outcomes go together: what a profile never lets happen, whatever was asked for.

use std::collections::BTreeSet;

use super::event::Event;
use super::medium::{Medium, Pending};
use super::outcome::{Outcome, Profile};
use super::rng::mix;
use super::tree::Inode;

impl Medium {
    /// The outcomes as far as the profile allows them: an entry that survived tells of all that
    /// happened to it before.
    pub(super) fn consistent(&self, outcomes: &[Outcome]) -> Vec<Outcome> {
        let mut settled = outcomes.to_vec();
        settled.resize(self.pending.len(), Outcome::Lost);
        match self.profile {
            Profile::PosixHarshest => self.in_order_by_name(&mut settled),
            Profile::Ext4Ordered => self.in_order(&mut settled),
            Profile::ProcessKill => {
                let last = settled.len().saturating_sub(1);
                for (at, outcome) in settled.iter_mut().enumerate() {
                    if at < last || !matches!(outcome, Outcome::Cut(_)) {
                        *outcome = Outcome::Full;
                    }
                }
            }
        }
        settled
    }

    fn in_order_by_name(&self, settled: &mut [Outcome]) {
        let mut told = BTreeSet::new();
        for (pending, outcome) in self.pending.iter().zip(settled).rev() {
            let places = pending.places();
            if places.iter().flatten().any(|place| told.contains(*place)) {
                *outcome = Outcome::Full;
            }
            match outcome {
                Outcome::Full => told.extend(places.into_iter().flatten()),
                Outcome::Torn(_) if pending.is_rename_across() => told.extend(places[1]),
                Outcome::Torn(_) => told.extend(places.into_iter().flatten()),
                _ => {}
            }
        }
    }

    fn in_order(&self, settled: &mut [Outcome]) {
        let mut committed = false;
        let mut flushed = BTreeSet::new();
        for (pending, outcome) in self.pending.iter().zip(settled).rev() {
            if pending.is_name() {
                committed |= matches!(outcome, Outcome::Full | Outcome::Torn(_));
                *outcome = if committed { Outcome::Full } else { Outcome::Lost };
                takes_along(&mut flushed, pending, committed);
            } else if takes_along(&mut flushed, pending, true) {
                *outcome = Outcome::Full;
            } else if let Event::Write { bytes, .. } = &pending.event {
                *outcome = match *outcome {
                    Outcome::Zeroed => Outcome::Lost,
                    Outcome::Torn(pick) if pending.grows => cut_at(pick, bytes.len()),
                    other => other,
                };
            }
        }
    }
}

/// Notes that a committed rename over another file takes its file's data along; says whether
/// `pending` is such data.
pub(super) fn takes_along(
    flushed: &mut BTreeSet<Inode>,
    pending: &Pending,
    committed: bool,
) -> bool {
    match &pending.event {
        Event::Rename { inode, replaced: Some(_), .. } if committed => {
            flushed.insert(*inode);
            false
        }
        Event::Write { inode, .. } | Event::SetLen { inode, .. } => flushed.contains(inode),
        _ => false,
    }
}

fn cut_at(pick: u32, len: usize) -> Outcome {
    let at = mix(u64::from(pick)) % (len as u64 + 1);
    Outcome::Cut(u32::try_from(at).unwrap_or_default())
}
