//! Salvage of images whose manifest is gone: what comes back is what the snapshot covers, what is
//! listed besides was once there, and a salvage that says that nothing is missing is right.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::case::Case;
use super::check::Judge;
use super::content::Content;
use super::finding::{Finding, Rule};
use super::history::History;
use super::model::{Bytes, Model};
use super::play::{Run, options, play, root};
use super::slice::judge_of;
use crate::check::{SalvageOptions, Salvaged, Unconfirmed, salvage};
use crate::error::{Error, ErrorKind};
use crate::format::layout;
use crate::ids::LeaseId;
use crate::manifest::{LeaseRow, Reading};
use crate::protection::Protection;
use crate::vfs::sim::{Profile, Rng, SimDisk};
use crate::vfs::{Disk, Step};

/// How many images were salvaged, and what came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Salvages {
    /// Images.
    pub images: u64,
    /// Of which nothing was lost.
    pub whole: u64,
    /// Of which something was unconfirmed or lost, and listed.
    pub listed: u64,
    /// Of which nothing was there yet.
    pub unborn: u64,
}

/// Histories that come near everything that salvage does.
const HISTORIES: [&str; 9] = [
    "|!Nsc",
    "!NNABs|ABPs",
    "!NNAGBLPCOEs|cAO",
    "!NNAGBLPCOEHAGs|FVsUc",
    "!NABsOk|sVsc",
    "!NABPc|OAB",
    "!NNGGGGQs|UVc",
    "!NNACABs|RAPAB",
    "!NAsAsAsAsV|sVs",
];

fn target() -> PathBuf {
    PathBuf::from("/data/new.stone")
}

/// Every history, `each` images at one cut in `one_in`.
///
/// # Errors
/// The first rule that did not hold.
pub fn salvage_all(seed: u64, each: usize, one_in: u64) -> Result<Salvages, (Case, Finding)> {
    let mut done = Salvages::default();
    for ops in HISTORIES {
        let Ok(history) = History::tiny(seed, ops) else { continue };
        salvage_history(&history, each, one_in, &mut done)?;
    }
    let bare = Case::of(&History { seed, ..History::tiny(seed, "|").unwrap_or_else(|_| empty()) });
    labels_bring_chunks_back(seed).map_err(|finding| (bare.clone(), finding))?;
    target_is_whole_or_absent(seed, each).map_err(|finding| (bare, finding))?;
    Ok(done)
}

fn empty() -> History {
    History { seed: 0, limited: super::Limited::Tiny, prefix: Vec::new(), cut: Vec::new() }
}

/// What shows that `protection` is gone; `None` for one that salvage does not need.
pub(super) fn salvage_without(protection: Protection, seed: u64) -> Option<(Case, Finding)> {
    let near = match protection {
        Protection::SnapshotEdges => "|!Ns",
        Protection::SnapshotGap => "!NABsOk|sc",
        Protection::SnapshotChainKept => "!NAsNs|V",
        Protection::HeadSyncedAtOpen => "!NABs|cO",
        _ => return None,
    };
    let history = History::tiny(seed, near).ok()?;
    let case = Case::of(&history);
    let labelled = labels_bring_chunks_back(seed).map_err(|finding| (case, finding));
    let cut = || salvage_history(&history, 3, 1, &mut Salvages::default());
    labelled.and_then(|()| cut()).err()
}

/// Cuts `history` at one event in `one_in`, takes the manifest away, and salvages.
///
/// # Errors
/// The first rule that did not hold.
pub fn salvage_history(
    history: &History,
    each: usize,
    one_in: u64,
    done: &mut Salvages,
) -> Result<(), (Case, Finding)> {
    let run = play(history);
    let case = Case::of(history);
    if let Some(finding) = run.findings.first() {
        return Err((case, finding.clone()));
    }
    for (at, profile) in (1..).zip([Profile::PosixHarshest, Profile::ProcessKill]) {
        let mut rng = Rng::new(history.seed.wrapping_mul(61).wrapping_add(at));
        let mut cursor = run.log.cursor(profile);
        loop {
            let each = if rng.one_in(one_in) { each } else { 0 };
            for image in cursor.images(&mut rng, each) {
                let last = cursor.notes().last().map(|note| &**note);
                let judge = judge_of(&run, last, profile);
                let disk = image.disk();
                salvage_image(&run, &judge, &disk, done)
                    .map_err(|finding| (case.inside(image.outcomes().clone()), finding))?;
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    Ok(())
}

fn wrong(seen: impl Into<String>) -> Finding {
    Finding::new(Rule::Salvage, seen.into())
}

fn salvaged_on(disk: &SimDisk) -> crate::error::Result<Salvaged> {
    let manifest = layout::manifest(&root());
    if disk.meta(&manifest).is_ok_and(|meta| meta.is_some()) {
        disk.unlink(&manifest).map_err(|e| Error::io("unlink", "manifest", e))?;
    }
    let options = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
    salvage(root(), target(), &options)
}

fn salvage_image(
    run: &Run,
    judge: &Judge<'_>,
    disk: &SimDisk,
    done: &mut Salvages,
) -> Result<(), Finding> {
    done.images += 1;
    let covered = judge.models.iter().map(|model| model.covered).min().unwrap_or_default();
    let salvaged = match salvaged_on(disk) {
        Ok(salvaged) => salvaged,
        Err(e) if e.kind() == ErrorKind::NoStore && covered == 0 => {
            done.unborn += 1;
            return Ok(());
        }
        Err(e) => return Err(Finding::error(Rule::Salvage, "salvage", &e)),
    };
    let covers = salvaged.covers.map_or(0, |commit| commit.0);
    if covers < covered {
        return Err(wrong(format!("it covers commit {covers}, a snapshot of {covered} stood")));
    }
    let (content, kept) = read(run, disk)?;
    if salvaged.is_complete && !salvaged.is_whole() {
        return Err(wrong(format!(
            "complete, and yet {:?} {:?}",
            salvaged.lost, salvaged.unconfirmed
        )));
    }
    if salvaged.is_whole() {
        done.whole += 1;
        return judge.explain(&content).map(|_| ()).map_err(wrong);
    }
    done.listed += 1;
    is_of_its_commit(run, &salvaged, content, kept, covers)
}

/// What the new store shows, and what the lease of the salvage keeps, apart from the rest.
fn read(run: &Run, disk: &SimDisk) -> Result<(Content, Option<u64>), Finding> {
    let fail = |e: Error| Finding::error(Rule::Salvage, "read what was salvaged", &e);
    let store = options(&run.history, disk).open_read_only(target()).map_err(fail)?;
    let mut content = Content::read(&store).map_err(fail)?;
    let leases = store.snapshot().and_then(|s| s.list::<LeaseRow>(.., usize::MAX)).map_err(fail)?;
    let of_salvage = |(_, row): &&(LeaseId, LeaseRow)| row.holder == "salvage";
    leases.iter().filter(of_salvage).for_each(|(id, _)| {
        content.leases.remove(&id.0);
    });
    // The other one holds reclaim, and nothing else.
    let kept = leases.iter().filter(of_salvage).find(|(_, row)| !row.objects.is_empty());
    let kept = kept.map(|(id, _)| id.0);
    Ok((content, kept))
}

/// The rows are those of the commit that the snapshot covers; records go on as they once did.
fn is_of_its_commit(
    run: &Run,
    salvaged: &Salvaged,
    mut content: Content,
    kept: Option<u64>,
    covers: u64,
) -> Result<(), Finding> {
    let new: BTreeSet<u64> = salvaged
        .unconfirmed
        .iter()
        .filter_map(|one| match one {
            Unconfirmed::Stream { stream, .. } => Some(stream.0),
            _ => None,
        })
        .collect();
    let is_unlisted = |one: &&Unconfirmed| matches!(one, Unconfirmed::Object { .. });
    if kept.is_some() != salvaged.unconfirmed.iter().any(|one| is_unlisted(&one)) {
        return Err(wrong("objects are kept and not listed, or listed and not kept"));
    }
    let aside: Vec<_> = new.iter().filter_map(|id| content.streams.remove(id)).collect();
    let ever: BTreeSet<&Bytes> = run
        .states
        .iter()
        .flat_map(|state| state.streams.values())
        .flat_map(|stream| &stream.records)
        .collect();
    if aside.iter().flat_map(|(_, records)| records).any(|record| !ever.contains(record)) {
        return Err(wrong("a stream set aside holds what no stream ever held"));
    }
    let commit = |at: usize| run.states.get(at).map(|state| state.counters.commit_seq.0);
    let mut why = format!("no state has commit {covers}");
    for at in 0..run.states.len() {
        let is_near = commit(at).is_some_and(|from| from <= covers)
            && commit(at + 1).is_none_or(|upto| upto >= covers);
        for candidate in [at, at + 1].into_iter().filter(|_| is_near) {
            match differs(run, candidate, &content, salvaged) {
                None => return Ok(()),
                Some(no) => why = no,
            }
        }
    }
    Err(wrong(format!("not the state of commit {covers}: {why}")))
}

fn differs(run: &Run, at: usize, content: &Content, salvaged: &Salvaged) -> Option<String> {
    let model: &Model = run.states.get(at)?;
    let is_lost = |what: &str| salvaged.lost.iter().any(|lost| lost.what == what);
    for (id, objects) in &model.leases {
        let some = format!("of lease {id} ");
        let is_part = salvaged.lost.iter().any(|lost| lost.what.contains(&some));
        if content.leases.get(id) != Some(objects) && !is_part {
            return Some(format!("lease {id} differs"));
        }
    }
    for ((scope, id), saved) in &model.checkpoints {
        let what = format!("checkpoint {id} of scope {scope}");
        if content.checkpoints.get(&(*scope, *id)) != Some(saved) && !is_lost(&what) {
            return Some(format!("{what} differs"));
        }
    }
    if content.leases.len() != model.leases.len()
        || content.checkpoints.keys().any(|key| !model.checkpoints.contains_key(key))
        || !content.streams.keys().eq(model.streams.keys())
    {
        return Some("other leases, checkpoints or streams are there".to_owned());
    }
    for (id, stream) in &model.streams {
        let (_, records) = content.streams.get(id)?;
        let later = run.states.iter().skip(at.saturating_sub(1));
        let mut later = later.filter_map(|state| state.streams.get(id));
        if !later.any(|stream| stream.records.starts_with(records)) {
            return Some(format!("stream {id} was never as its {} records are", records.len()));
        }
        let lost = |from: usize| {
            let of = format!(" of stream {id},");
            salvaged.lost.iter().any(|lost| lost.what.contains(&of) && records.len() <= from)
        };
        if records.len() < stream.sealed && !lost(stream.sealed) {
            let (have, had) = (records.len(), stream.sealed);
            return Some(format!("stream {id} has {have} records, {had} were sealed"));
        }
    }
    None
}

/// Chunks that were published after the snapshot come back by their labels, moved ones as well.
fn labels_bring_chunks_back(seed: u64) -> Result<(), Finding> {
    for ops in ["!NABs|XX", "!Ns|1Q1QV"] {
        let Ok(history) = History::tiny(seed, ops) else { continue };
        let run = play(&history);
        run.findings.first().cloned().map_or(Ok(()), Err)?;
        let disk = run.world.clone();
        disk.kill();
        let disk = disk.process(disk.pid() + 1);
        let salvaged = salvaged_on(&disk);
        salvaged.map_err(|e| Finding::error(Rule::Salvage, "salvage", &e))?;
        let (content, _) = read(&run, &disk)?;
        let Some(model) = run.states.last() else { continue };
        for (id, stream) in &model.streams {
            let records = content.streams.get(id).map_or(0, |(_, records)| records.len());
            if records < stream.sealed.max(stream.durable) {
                let had = stream.sealed.max(stream.durable);
                return Err(wrong(format!("{ops}: stream {id} has {records} of {had} records")));
            }
        }
    }
    Ok(())
}

/// The new store is whole under its name or not there, wherever the salvage is cut off; the old
/// one is as it was.
fn target_is_whole_or_absent(seed: u64, each: usize) -> Result<(), Finding> {
    let fail = |e: Error| Finding::error(Rule::Salvage, "salvage", &e);
    let Ok(history) = History::tiny(seed, "!NNAGBLPCOEAB|c") else { return Ok(()) };
    let run = play(&history);
    let disk = run.world.clone();
    disk.kill();
    let disk = disk.process(disk.pid() + 1);
    disk.sync_dir(Path::new("/data")).map_err(|e| wrong(e.to_string()))?;
    let manifest = layout::manifest(&root());
    disk.unlink(&manifest).map_err(|e| wrong(e.to_string()))?;
    disk.sync_dir(&root()).map_err(|e| wrong(e.to_string()))?;
    disk.restart_log();
    salvaged_on(&disk).map_err(fail)?;
    let (whole, _) = read(&run, &disk)?;
    let mut rng = Rng::new(seed);
    let log = disk.events();
    let mut cursor = log.cursor(Profile::PosixHarshest);
    let mut steps = BTreeSet::new();
    loop {
        let is_at_end = cursor.cut() == log.len();
        // Cuts between two operations of a long build differ in nothing that has a name.
        let is_new = cursor.step().is_some_and(|step| steps.insert(step));
        if is_new || is_at_end || rng.one_in(9) {
            for image in cursor.images(&mut rng, each) {
                let disk = image.disk();
                let there = disk.meta(&target()).map_err(|e| wrong(e.to_string()))?.is_some();
                if there && read(&run, &disk)?.0 != whole {
                    return Err(wrong("a salvage that was cut off left another store"));
                }
                if !there && is_at_end {
                    return Err(wrong("a salvage that ended is not durable"));
                }
            }
        }
        if cursor.advance().is_none() {
            break;
        }
    }
    let all = [Step::SalvageCopy, Step::SalvageRows, Step::SalvageRecords, Step::SalvageRename];
    match all.iter().find(|step| !steps.contains(step)) {
        Some(step) => Err(wrong(format!("nothing was cut at {}", step.name()))),
        None => Ok(()),
    }
}
