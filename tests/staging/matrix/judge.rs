//! What must hold of a disk after a crash or a failure, whatever came before.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use sealstone::ErrorKind;
use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Store};
use sealstone::staging::{HandoffState, Ready, Stage};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, read_whole};

use super::play::{Facts, PATH, PRODUCERS, Play, STAGE, TARGET, convert, options};
use crate::lives::source::{self, ROW_BYTES};
use crate::lives::tally::Tally;

/// Batches that each producer has when everything is done.
const IN_ALL: u64 = 7;

type Found<T = ()> = Result<T, String>;

fn said<T>(what: &str, result: sealstone::Result<T>) -> Found<T> {
    result.map_err(|e| format!("{what}: {e:?}"))
}

fn holds(what: bool, else_say: impl FnOnce() -> String) -> Found {
    if what { Ok(()) } else { Err(else_say()) }
}

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// What a reader sees before any recovery, and what two recoveries show.
    Rows,
    /// That, the next pass, and what it leaves.
    NextPass,
    /// All of that, after a sync that persisted any bytes of what it was asked for. Of the header that redb
    /// wrote twice without a sync between, a piece of each may be there: until somebody who may write has
    /// opened the store, one who may not can be told of damage. Nobody is told anything wrong.
    FailedSync,
}

/// Everything: read-only, recovered, recovered again, and after another pass over the rest.
pub fn judge(play: &Play, disk: &SimDisk, facts: &Facts, look: Look) -> Found {
    match raw(play, disk, facts) {
        Err(told) if look == Look::FailedSync && told.contains("open read-only: Damage(open") => {}
        other => other?,
    }
    let opened = options(play.layout, disk).open(PATH);
    let store = match opened {
        Err(e) if e.kind() == ErrorKind::NoStore => return Err(format!("no store: {e:?}")),
        other => said("open", other)?,
    };
    holds(said("claims", store.claims(9))?.is_empty(), || {
        "a dead process holds a claim".to_owned()
    })?;
    let Some(stage) = stage_of(&store, facts)? else { return Ok(()) };
    let batches = rows_once(play, &stage, disk, facts)?;
    let shown = digest(&stage)?;
    // STG16: once more, after a kill.
    disk.kill();
    drop((stage, store));
    let disk = &disk.process(78);
    let again = Play { disk: disk.clone(), ..Play::new(play.layout, disk, play.source.seed) };
    let store = said("open again", again.open())?;
    let Some(stage) = stage_of(&store, facts)? else {
        return Err("STG16: another opening finds no stage".to_owned());
    };
    let later = digest(&stage)?;
    holds(later == shown, || format!("STG16: another opening shows\n{later}\nand not\n{shown}"))?;
    if look == Look::Rows {
        return Ok(());
    }
    next_pass(&again, &store, &stage, facts, batches)?;
    said("close", store.close())?;
    let look = CheckOptions { disk: Some(Arc::new(disk.clone())), ..CheckOptions::default() };
    let report = said("check", check(PATH, &look, &mut |_| ControlFlow::Continue(())))?;
    holds(report.is_good(), || format!("check: {:#?}", report.findings))
}

/// G20: somebody who may not write, before any recovery.
fn raw(play: &Play, disk: &SimDisk, facts: &Facts) -> Found {
    let before = disk.events().disk_operations();
    let store = said("open read-only", options(play.layout, disk).open_read_only(PATH))?;
    if let Some(stage) = stage_of(&store, facts)? {
        rows_once(play, &stage, disk, facts).map_err(|why| format!("read-only: {why}"))?;
    }
    drop(store);
    holds(disk.events().disk_operations() == before, || "G20: a reader wrote".to_owned())
}

/// The stage; none may be there only as long as nothing was acknowledged.
fn stage_of(store: &Store, facts: &Facts) -> Found<Option<Stage>> {
    match store.stage(STAGE) {
        Ok(stage) => Ok(Some(stage)),
        Err(e) if e.kind() == ErrorKind::NotFound && facts.acknowledged == [0; PRODUCERS] => {
            Ok(None)
        }
        Err(e) => Err(format!("the stage: {e:?}")),
    }
}

/// Each acknowledged row once, in the view or, where it was retired, outside; unacknowledged batches
/// whole or not at all; the producers are told exactly that.
fn rows_once(play: &Play, stage: &Stage, disk: &SimDisk, facts: &Facts) -> Found<[u64; PRODUCERS]> {
    let view = said("view", stage.view())?;
    let mut tally = Tally::new(play.source);
    let mut inside = BTreeSet::new();
    for batch in view.batches() {
        let batch = said("a batch of the view", batch)?;
        tally.take(&batch.key, &batch.bytes, batch.rows);
        inside.extend(batch.bytes.chunks(ROW_BYTES).filter_map(|row| play.source.read(row)));
    }
    holds(view.rows() == tally.rows(), || {
        format!("a view counts {} rows and holds {}", view.rows(), tally.rows())
    })?;
    let outside = outside(play, disk, &facts.handed_off)?;
    let kept: Vec<_> = facts.retired.intersection(&inside).collect();
    holds(kept.is_empty(), || format!("retired, and there: {kept:?}"))?;
    let mut gone = facts.retired.clone();
    for retiring in &facts.retiring {
        let part: BTreeSet<_> = retiring.difference(&inside).copied().collect();
        let is_whole = part.is_empty() || part == *retiring;
        holds(is_whole, || format!("retired in part: {part:?}"))?;
        gone.extend(part);
    }
    for (producer, n) in &gone {
        holds(outside.contains(&(*producer, *n)), || format!("retired, and nowhere: {n}"))?;
        let key = play.source.key(*producer, n / play.source.rows + 1);
        tally.take(&key, &play.source.row(*producer, *n), 1);
    }
    let batches = tally.batches()?;
    for (producer, &has) in batches.iter().enumerate().take(PRODUCERS) {
        let least = facts.acknowledged[producer];
        holds((least..=facts.sent[producer]).contains(&has), || {
            format!("producer {producer}: {has} batches, {least} acknowledged, {:?}", facts.sent)
        })?;
        let progress = said("progress", stage.progress(&source::name(producer)))?;
        let told = progress.map_or(0, |progress| progress.sequence);
        holds(told == has, || format!("STG9: {producer} is told {told}, {has} are there"))?;
    }
    Ok(std::array::from_fn(|producer| batches[producer]))
}

/// Rows outside: each once, in whole files, and those that were handed off for certain.
fn outside(
    play: &Play,
    disk: &SimDisk,
    certain: &BTreeSet<(usize, u64)>,
) -> Found<BTreeSet<(usize, u64)>> {
    let mut rows = BTreeSet::new();
    for (name, bytes) in files(disk)? {
        if name.starts_with('.') || name.contains("tmp") {
            continue;
        }
        for row in bytes.chunks(ROW_BYTES) {
            let row = play.source.read(row).ok_or_else(|| format!("{name} is torn outside"))?;
            holds(rows.insert(row), || format!("{row:?} is outside twice"))?;
        }
    }
    let missing: Vec<_> = certain.difference(&rows).collect();
    holds(missing.is_empty(), || format!("STG34: said to be outside, and not there: {missing:?}"))?;
    Ok(rows)
}

fn files(disk: &SimDisk) -> Found<Vec<(String, Vec<u8>)>> {
    let dir = Path::new(TARGET);
    let text = |e: std::io::Error| format!("{TARGET}: {e}");
    let mut found = Vec::new();
    for entry in disk.list(dir).map_err(text)? {
        let file = disk.open(&dir.join(&entry.name), Access::Read).map_err(text)?;
        found.push((entry.name, read_whole(&*file, 1 << 20).map_err(text)?));
    }
    Ok(found)
}

/// Whatever a stage shows of itself, in words.
fn digest(stage: &Stage) -> Found<String> {
    let mut text = String::new();
    let mut batches = Vec::new();
    for batch in said("view", stage.view())?.batches() {
        let batch = said("a batch of the view", batch)?;
        let hash = batch.bytes.iter().fold(0, |h, b| source::mix(h ^ u64::from(*b)));
        batches.push(format!("{:?} {} {} {hash:x}", batch.origin, batch.key, batch.rows));
    }
    batches.sort();
    let _ = writeln!(text, "{batches:#?}");
    let _ = writeln!(text, "{:#?}", said("groups", stage.groups())?);
    let _ = writeln!(text, "{:#?}", said("outputs", stage.outputs())?);
    let _ = writeln!(text, "{:#?}", said("producers", stage.producers())?);
    let _ = writeln!(text, "{:#?}", said("handoffs", stage.handoffs())?);
    let _ = writeln!(text, "{:#?}", said("quarantine", stage.quarantine())?);
    Ok(text)
}

/// The next pass does the rest, and leaves nothing.
fn next_pass(
    play: &Play,
    store: &Store,
    stage: &Stage,
    facts: &Facts,
    batches: [u64; PRODUCERS],
) -> Found {
    *play.facts.borrow_mut() = vec![facts.clone()];
    said("run it again", play.run(store))?;
    for (producer, last) in batches.into_iter().enumerate() {
        // STG10: a source that is not sure sends its last batch again.
        if last > 0 {
            let again = said("append again", play.append_one(stage, producer, last))?;
            holds(again.is_repeat, || format!("STG10: batch {last} of {producer} is there twice"))?;
        }
        said("append the rest", play.append(stage, producer, IN_ALL))?;
    }
    said("flush the rest", stage.flush(&Ready::All))?;
    said("convert the rest", convert(stage, usize::MAX))?;
    said("reclaim", store.reclaim(Budget::default()))?;
    let facts = play.now();
    let batches = rows_once(play, stage, &play.disk, &facts)?;
    holds(batches == [IN_ALL; PRODUCERS], || format!("in the end: {batches:?}"))?;
    let groups = said("groups", stage.groups())?;
    holds(groups.is_empty(), || format!("STG33: groups remain: {groups:?}"))?;
    let (from_outputs, in_view) = (outputs_rows(stage)?, said("view", stage.view())?.rows());
    holds(from_outputs == in_view, || format!("{in_view} rows, {from_outputs} in outputs"))?;
    let handoffs = said("handoffs", stage.handoffs())?;
    let is_decided = handoffs.iter().all(|handoff| handoff.state == HandoffState::Done);
    holds(is_decided, || format!("hand-offs that are not decided: {handoffs:?}"))?;
    let names: Vec<_> = files(&play.disk)?.into_iter().map(|(name, _)| name).collect();
    let is_clean = !names.is_empty() && names.iter().all(|name| name.ends_with(".rows"));
    holds(is_clean, || format!("STG34: outside: {names:?}"))?;
    holds(said("claims", store.claims(9))?.is_empty(), || "claims remain".to_owned())?;
    let accounts = said("accounts", store.accounts())?;
    let is_clean = accounts.are_closed() && accounts.orphan == 0 && accounts.condemned == 0;
    holds(is_clean, || format!("P10, G8: {accounts:?}"))?;
    let temporaries = play.disk.list(&Path::new(PATH).join("tmp")).map_or(0, |names| names.len());
    holds(temporaries == 0, || format!("{temporaries} temporaries remain"))
}

fn outputs_rows(stage: &Stage) -> Found<u64> {
    Ok(said("outputs", stage.outputs())?.iter().map(|output| output.rows).sum())
}
