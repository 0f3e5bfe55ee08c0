//! Power is cut at every event of a play, or both processes are killed there: what is left is opened
//! in both kinds of access, and shows what was told.

use std::sync::Arc;

use super::model::Model;
use super::world::{SharedRun, options};
use crate::campaign::check::{Checked, books_close, calls, verify_objects};
use crate::campaign::content::Content;
use crate::campaign::finding::{Finding, Rule};
use crate::campaign::model::Survivors;
use crate::campaign::play::root;
use crate::campaign::report::Tally;
use crate::engine::{Budget, Store, WriteAccess};
use crate::error::Error;
use crate::ids::StreamId;
use crate::vfs::Disk;
use crate::vfs::sim::{Image, Outcomes, Profile, Rng, SimDisk};

/// Cuts `run` at one event in `one_in`, `each` times under the harshest profile.
///
/// # Errors
/// The first crash that broke a rule.
pub fn cut_shared(
    run: &SharedRun,
    each: usize,
    one_in: u64,
    is_over: &dyn Fn() -> bool,
    tally: &mut Tally,
) -> Result<(), (Option<Outcomes>, Finding)> {
    if let Some(finding) = run.findings.first() {
        return Err((None, finding.clone()));
    }
    for (profile, each) in [(Profile::PosixHarshest, each), (Profile::ProcessKill, 1)] {
        let mut rng = Rng::new(run.seed.wrapping_mul(37) ^ profile as u64);
        let mut cursor = run.log.cursor(profile);
        loop {
            // Each event of some play: which ones follows from the seed.
            let images = match rng.one_in(one_in) {
                true => cursor.images(&mut rng, each),
                false => Vec::new(),
            };
            for image in images {
                let outcomes = image.outcomes().clone();
                let last = cursor.notes().last().map(|note| &**note);
                let checked = check(run, last, &image, profile);
                let checked = checked.map_err(|finding| (Some(outcomes), finding))?;
                tally.count(profile, cursor.step(), &checked, 1);
            }
            if is_over() || cursor.advance().is_none() {
                break;
            }
        }
        tally.duplicates += cursor.duplicates();
    }
    tally.histories += 1;
    Ok(())
}

/// Checks one image.
pub(super) fn check(
    run: &SharedRun,
    last_note: Option<&[u8]>,
    image: &Image,
    profile: Profile,
) -> Result<Checked, Finding> {
    let at = last_note.and_then(|note| note.try_into().ok()).map_or(0, u64::from_le_bytes);
    let Some(model) = run.states.get(at as usize) else {
        return Err(Finding::new(Rule::Acted, format!("state {at} is not known")));
    };
    let survivors = match profile {
        Profile::ProcessKill => Survivors::OfKill,
        _ => Survivors::OfPower,
    };
    let disk = image.disk();
    let first = match image.outcomes().cut % 2 {
        0 => WriteAccess::Shared,
        _ => WriteAccess::Single,
    };
    let before = calls(&disk.counts());
    let reader = options(Arc::new(disk.clone()), first).open_read_only(root());
    let reader = reader.map_err(|e| Finding::error(Rule::ReadOnly, "open the raw image", &e))?;
    explain(model, &read(&reader)?, survivors, Rule::ReadOnly)?;
    drop(reader);
    let store = open(&disk, first, model)?;
    let calls = calls(&disk.counts()) - before;
    let content = read(&store)?;
    explain(model, &content, survivors, Rule::State)?;
    let digest = content.digest();
    if content.large != content.large_leases {
        let seen = format!("{} payloads, {} leases", content.large, content.large_leases);
        return Err(Finding::new(Rule::Leases, seen));
    }
    verify_objects(&store)?;
    store.reclaim(Budget::default()).map_err(|e| Finding::error(Rule::Kept, "reclaim", &e))?;
    if read(&store)?.digest() != digest {
        return Err(Finding::new(Rule::Kept, "something went with reclaim"));
    }
    let accounts = books_close(&store)?;
    if accounts.orphan != 0 || accounts.condemned != 0 {
        return Err(Finding::new(Rule::Orphans, format!("{accounts:?}")));
    }
    // The other kind of access finds the same, after a close or a kill.
    let next = if image.outcomes().cut.is_multiple_of(3) {
        store.close().map_err(|e| Finding::error(Rule::Again, "close", &e))?;
        disk.clone()
    } else {
        disk.kill();
        drop(store);
        disk.process(disk.pid() + 1)
    };
    let second = match first {
        WriteAccess::Single => WriteAccess::Shared,
        WriteAccess::Shared => WriteAccess::Single,
    };
    let store = open(&next, second, model)?;
    if read(&store)?.digest() != digest {
        return Err(Finding::new(Rule::Again, "another opening shows another state"));
    }
    next.kill();
    let outcome = format!("{} first", first.name());
    Ok(Checked { log: disk.events(), digest, outcome, calls })
}

/// Opens the store, and holds every stream of it.
fn open(disk: &SimDisk, access: WriteAccess, model: &Model) -> Result<Store, Finding> {
    let fail = |doing: &'static str| move |e: Error| Finding::error(Rule::Opens, doing, &e);
    let store = options(Arc::new(disk.clone()), access).open(root()).map_err(fail("open"))?;
    let streams: Vec<StreamId> = model.streams.keys().map(|id| StreamId(*id)).collect();
    store.hold_streams(&streams).map_err(fail("claim all streams"))?;
    Ok(store)
}

fn read(store: &Store) -> Result<Content, Finding> {
    Content::read(store).map_err(|e| Finding::error(Rule::Digests, "read", &e))
}

fn explain(
    model: &Model,
    content: &Content,
    survivors: Survivors,
    rule: Rule,
) -> Result<(), Finding> {
    model.explains(content, survivors).map_err(|why| Finding::new(rule, why))
}
