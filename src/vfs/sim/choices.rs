//! Which crashes to look at: all of them where few events are pending, else those that break
//! writers most often, and random ones.

use super::event::Event;
use super::medium::{Medium, Pending};
use super::outcome::{Outcome, Profile};
use super::rng::Rng;

/// Up to so many pending events every subset is a candidate.
const ALL_SUBSETS_MAX: usize = 6;
/// So many of the newest pending events are always varied one by one, and as many older ones by
/// chance: what was left unsynced long ago should not crowd out what happens now.
const NEWEST: usize = 16;

/// What happens around an event that is treated in its own way.
#[derive(Debug, Clone, Copy)]
enum Around {
    /// All others survive.
    Full,
    /// Those before it survive, those behind it do not.
    Before,
    /// No other survives.
    Lost,
}

#[derive(Debug, Clone, Copy)]
enum Candidate {
    Subset(u64),
    Single(usize, Outcome, Around),
    Chance,
}

/// At most `budget` lists of outcomes for the events pending in `medium`: none, all, then others in
/// random order.
pub(super) fn of(medium: &Medium, cut: usize, rng: &mut Rng, budget: usize) -> Vec<Vec<Outcome>> {
    let pending = &medium.pending;
    let mut lists = match medium.profile {
        Profile::ProcessKill => after_a_kill(pending, cut, rng),
        _ => vec![vec![Outcome::Lost; pending.len()], vec![Outcome::Full; pending.len()]],
    };
    if pending.is_empty() || medium.profile == Profile::ProcessKill {
        lists.dedup();
        lists.truncate(budget);
        return lists;
    }
    let mut candidates = candidates(pending, rng);
    candidates.extend(vec![Candidate::Chance; (budget / 4).max(2)]);
    rng.shuffle(&mut candidates);
    for candidate in candidates {
        if lists.len() >= budget {
            break;
        }
        let list = medium.consistent(&spell_out(candidate, pending, rng));
        if !lists.contains(&list) {
            lists.push(list);
        }
    }
    lists.truncate(budget);
    lists
}

/// Everything survives; of a write that was under way perhaps only a first part.
fn after_a_kill(pending: &[Pending], cut: usize, rng: &mut Rng) -> Vec<Vec<Outcome>> {
    let whole = vec![Outcome::Full; pending.len()];
    let mut lists = vec![whole.clone()];
    if let Some(last) = pending.last()
        && last.index.is_some_and(|index| index + 1 == cut)
        && let Event::Write { bytes, .. } = &last.event
    {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let middle = u32::try_from(rng.below(u64::from(len))).unwrap_or_default();
        let mut ends = vec![0, middle, len / 4096 * 4096, len - 1];
        ends.sort_unstable();
        ends.dedup();
        for at in ends.into_iter().filter(|at| *at < len) {
            let mut list = whole.clone();
            if let Some(outcome) = list.last_mut() {
                *outcome = Outcome::Cut(at);
            }
            lists.push(list);
        }
    }
    lists
}

fn candidates(pending: &[Pending], rng: &mut Rng) -> Vec<Candidate> {
    let mut found = Vec::new();
    let few = pending.len() <= ALL_SUBSETS_MAX;
    if few {
        found.extend((0..1u64 << pending.len()).map(Candidate::Subset));
    }
    let newest = pending.len().saturating_sub(NEWEST);
    let mut varied: Vec<_> = (newest..pending.len()).collect();
    varied.extend((0..NEWEST.min(newest)).map(|_| rng.index(newest)));
    for at in varied {
        if !few {
            found.push(Candidate::Single(at, Outcome::Lost, Around::Full));
            found.push(Candidate::Single(at, Outcome::Full, Around::Lost));
            found.push(Candidate::Single(at, Outcome::Full, Around::Before));
        }
        for around in [Around::Full, Around::Before, Around::Lost] {
            if let Some(outcome) = partial(&pending[at], rng) {
                found.push(Candidate::Single(at, outcome, around));
            }
        }
    }
    found
}

/// A way for an event to survive in part, if there is one.
fn partial(pending: &Pending, rng: &mut Rng) -> Option<Outcome> {
    let pick = u32::try_from(rng.below(1 << 16)).unwrap_or_default();
    match &pending.event {
        Event::Write { bytes, .. } => Some(match rng.below(if pending.grows { 4 } else { 3 }) {
            0 => Outcome::Cut(u32::try_from(rng.below(bytes.len() as u64)).unwrap_or_default()),
            3 => Outcome::Zeroed,
            _ => Outcome::Torn(pick),
        }),
        _ if pending.is_rename_across() => Some(Outcome::Torn(0)),
        _ => None,
    }
}

fn spell_out(candidate: Candidate, pending: &[Pending], rng: &mut Rng) -> Vec<Outcome> {
    let whole = |survives: bool| if survives { Outcome::Full } else { Outcome::Lost };
    match candidate {
        Candidate::Subset(mask) => {
            (0..pending.len()).map(|at| whole(mask >> at & 1 == 1)).collect()
        }
        Candidate::Single(at, outcome, around) => (0..pending.len())
            .map(|other| match around {
                _ if other == at => outcome,
                Around::Full => Outcome::Full,
                Around::Before => whole(other < at),
                Around::Lost => Outcome::Lost,
            })
            .collect(),
        Candidate::Chance => {
            let survive_of_8 = 1 + rng.below(7);
            pending
                .iter()
                .map(|event| match partial(event, rng) {
                    Some(part) if rng.one_in(4) => part,
                    _ => whole(rng.below(8) < survive_of_8),
                })
                .collect()
        }
    }
}
