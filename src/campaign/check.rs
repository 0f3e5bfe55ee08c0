//! The checker: everything that must hold for one image, whatever was cut off.

use std::ops::ControlFlow;

use super::content::Content;
use super::finding::{Finding, Rule};
use super::history::History;
use super::model::{Model, Survivors};
use super::play::{options, root};
use crate::digest::Digest;
use crate::engine::{Accounts, Budget, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{CountersRow, FileRow, ObjectRow, Reading};
use crate::vfs::sim::{EventLog, Image, Outcomes, SimDisk};
use crate::vfs::{Counts, Disk};

/// Calls to the disk that an opening of a campaign's store makes at most, whatever was cut off: it
/// follows the manifest and the unsealed journals, both of which are small here.
pub const OPEN_CALLS_MAX: u64 = 3000;

/// What an image may show.
#[derive(Debug, Clone)]
pub struct Judge<'r> {
    /// The history, for its limits.
    pub history: &'r History,
    /// The states before and after the step under way.
    pub models: Vec<&'r Model>,
    /// What a record needs to survive.
    pub survivors: Survivors,
    /// What a recovery showed before the crash: nothing else may be there then.
    pub opened: Option<Digest>,
}

/// An image that passed.
#[derive(Debug)]
pub struct Checked {
    /// What the disk went through while it was recovered, read, reclaimed and opened again. Its
    /// notes say from where on a caller had seen what was recovered.
    pub log: EventLog,
    /// What was shown.
    pub digest: Digest,
    /// Which of the states it was, for the histogram.
    pub outcome: String,
    /// Calls to the disk that opening took.
    pub calls: u64,
}

/// Checks one image against every rule.
///
/// # Errors
/// The first rule that did not hold.
pub fn check_image(judge: &Judge<'_>, image: &Image) -> std::result::Result<Checked, Finding> {
    let disk = image.disk();
    let outcomes = image.outcomes();
    read_only(judge, &disk)?;
    judge.check_copy(&disk)?;
    let before = calls(&disk.counts());
    let (store, content, outcome) = match options(judge.history, &disk).open(root()) {
        Ok(store) => {
            let content = read(&store)?;
            let outcome = judge.explain(&content).map_err(|why| Finding::new(judge.rule(), why))?;
            (store, content, outcome)
        }
        Err(e) if judge.may_be_unborn() && is_unborn(&e) => {
            let made = options(judge.history, &disk).open_or_create(root());
            let store = made.map_err(|e| Finding::error(Rule::Opens, "create again", &e))?;
            let content = read(&store)?;
            if content != Content::default() {
                return Err(Finding::new(Rule::State, "a store just created is not empty"));
            }
            (store, content, "no store during birth".to_owned())
        }
        Err(e) => return Err(Finding::error(Rule::Opens, "open", &e)),
    };
    let calls = calls(&disk.counts()) - before;
    if calls > OPEN_CALLS_MAX {
        return Err(Finding::new(Rule::Steps, format!("{calls} calls, {OPEN_CALLS_MAX} allowed")));
    }
    let digest = content.digest();
    disk.note(digest.0);
    judge.check_rows(&store, &content)?;
    verify_objects(&store)?;
    books_close(&store)?;
    reclaim_keeps(&store, digest)?;
    judge.copy_again(&disk, &store, digest, outcomes)?;
    let log = again(judge, &disk, store, digest, outcomes)?;
    Ok(Checked { log, digest, outcome, calls })
}

fn is_unborn(error: &Error) -> bool {
    error.kind() == ErrorKind::NoStore
}

fn read(store: &Store) -> std::result::Result<Content, Finding> {
    Content::read(store).map_err(|e| Finding::error(Rule::Digests, "read", &e))
}

impl Judge<'_> {
    fn may_be_unborn(&self) -> bool {
        self.opened.is_none() && self.models.iter().any(|model| !model.exists)
    }

    fn rule(&self) -> Rule {
        if self.opened.is_some() { Rule::Opened } else { Rule::State }
    }

    /// Which allowed state `content` is, in words, or why it is none.
    pub(super) fn explain(&self, content: &Content) -> std::result::Result<String, String> {
        if let Some(opened) = self.opened {
            return match content.digest() == opened {
                true => Ok("as recovery showed".to_owned()),
                false => Err("another state than a recovery had shown".to_owned()),
            };
        }
        let mut why = String::new();
        // The later state first: where both fit, it was the later one.
        for (at, model) in self.models.iter().enumerate().rev() {
            match model.explains(content, self.survivors) {
                Ok(lost) => {
                    let state = ["state k", "state k+1"][at.min(1)];
                    let part = if lost == 0 { "whole" } else { "a prefix" };
                    return Ok(format!("{state}, {part}"));
                }
                Err(no) => why = if why.is_empty() { no } else { format!("{no}; or: {why}") },
            }
        }
        Err(why)
    }

    /// G9 and the rows that no content shows.
    fn check_rows(&self, store: &Store, content: &Content) -> std::result::Result<(), Finding> {
        if !content.claims.is_empty() {
            let seen = format!("{} claims of dead owners stand", content.claims.len());
            return Err(Finding::new(Rule::Claims, seen));
        }
        if content.large != content.large_leases {
            let seen = format!(
                "{} records name payloads, {} leases keep payloads",
                content.large, content.large_leases
            );
            return Err(Finding::new(Rule::Leases, seen));
        }
        let fail = |e: Error| Finding::error(Rule::Counters, "read the counters", &e);
        let now = store.snapshot().and_then(|snapshot| snapshot.counters()).map_err(fail)?;
        let Some(model) = self.models.first() else { return Ok(()) };
        if !at_least(&now, &model.counters) {
            let seen = format!("{now:?} after {:?}", model.counters);
            return Err(Finding::new(Rule::Counters, seen));
        }
        let epoch = store.owner().map(|(_, epoch)| epoch).unwrap_or_default();
        if epoch <= model.epoch && model.exists {
            let seen = format!("epoch {epoch} after epoch {}", model.epoch);
            return Err(Finding::new(Rule::Counters, seen));
        }
        Ok(())
    }

    fn claims_may_be(&self, claims: &[Vec<u8>]) -> bool {
        claims.is_empty() || self.models.iter().any(|model| model.claims.iter().eq(claims))
    }
}

fn at_least(now: &CountersRow, before: &CountersRow) -> bool {
    now.commit_seq >= before.commit_seq
        && now.epoch >= before.epoch
        && now.object >= before.object
        && now.file >= before.file
        && now.lease >= before.lease
        && now.recording >= before.recording
        && now.stream >= before.stream
        && now.checkpoint >= before.checkpoint
        && now.receipt >= before.receipt
}

/// G20: the raw image, read by somebody who may not write.
fn read_only(judge: &Judge<'_>, disk: &SimDisk) -> std::result::Result<(), Finding> {
    let events = disk.events().disk_operations();
    match options(judge.history, disk).open_read_only(root()) {
        Ok(store) => {
            let content = Content::read(&store)
                .map_err(|e| Finding::error(Rule::ReadOnly, "read the raw image", &e))?;
            judge.explain(&content).map_err(|why| Finding::new(Rule::ReadOnly, why))?;
            if !judge.claims_may_be(&content.claims) {
                return Err(Finding::new(Rule::Claims, "claims stand that nobody made"));
            }
        }
        Err(e) if judge.may_be_unborn() && is_unborn(&e) => {}
        Err(e) => return Err(Finding::error(Rule::ReadOnly, "open the raw image", &e)),
    }
    if disk.events().disk_operations() != events {
        return Err(Finding::new(Rule::ReadOnly, "a read-only opening changed the disk"));
    }
    Ok(())
}

/// G6: every object, whoever refers to it, and every file.
pub(super) fn verify_objects(store: &Store) -> std::result::Result<(), Finding> {
    let fail = |e: Error| Finding::error(Rule::Digests, "verify", &e);
    let snapshot = store.snapshot().map_err(fail)?;
    for (object, row) in snapshot.list::<ObjectRow>(.., usize::MAX).map_err(fail)? {
        let bytes = store.fetch(object).map_err(fail)?;
        if Digest::of(&bytes) != row.digest || bytes.len() as u64 != row.len {
            let seen = format!("object {object} is not what its digest says");
            return Err(Finding::new(Rule::Digests, seen));
        }
        if !snapshot.has_edges(object).map_err(fail)? {
            return Err(Finding::new(Rule::Orphans, format!("nothing refers to object {object}")));
        }
    }
    Ok(())
}

/// P10: every byte on the disk is in one class.
pub(super) fn books_close(store: &Store) -> std::result::Result<Accounts, Finding> {
    let accounts = store.accounts().map_err(|e| Finding::error(Rule::Books, "account", &e))?;
    match accounts.are_closed() {
        true => Ok(accounts),
        false => Err(Finding::new(Rule::Books, format!("{accounts:?}"))),
    }
}

/// G8, P10: after reclaim the books close, nothing is left over, and nothing that counts went.
fn reclaim_keeps(store: &Store, digest: Digest) -> std::result::Result<(), Finding> {
    let fail = |doing: &'static str| move |e: Error| Finding::error(Rule::Kept, doing, &e);
    store.reclaim(Budget::default()).map_err(fail("reclaim"))?;
    if read(store)?.digest() != digest {
        return Err(Finding::new(Rule::Kept, "something went with reclaim"));
    }
    verify_objects(store)?;
    let accounts = books_close(store)?;
    if accounts.orphan != 0 || accounts.condemned != 0 {
        return Err(Finding::new(Rule::Orphans, format!("{accounts:?}")));
    }
    let stats = files_left(store).map_err(fail("list"))?;
    match stats.is_empty() {
        true => Ok(()),
        false => Err(Finding::new(Rule::Orphans, stats.join(", "))),
    }
}

/// Files that rows name and that are not there with their length.
fn files_left(store: &Store) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    store.snapshot()?.scan::<FileRow>(.., &mut |id, row| {
        if row.live == 0 {
            wrong.push(format!("file {id} holds nothing live and stands"));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(wrong)
}

/// G10: another opening, after a close or a kill, shows the same.
fn again(
    judge: &Judge<'_>,
    disk: &SimDisk,
    store: Store,
    digest: Digest,
    outcomes: &Outcomes,
) -> std::result::Result<EventLog, Finding> {
    let next = match outcomes.cut % 2 {
        0 => {
            let closed = store.close();
            closed.map_err(|e| Finding::error(Rule::Again, "close", &e))?;
            disk.clone()
        }
        _ => {
            disk.kill();
            drop(store);
            disk.process(disk.pid() + 1)
        }
    };
    let opened = options(judge.history, &next).open(root());
    let store = opened.map_err(|e| Finding::error(Rule::Again, "open again", &e))?;
    if read(&store)?.digest() != digest {
        return Err(Finding::new(Rule::Again, "another opening shows another state"));
    }
    let log = disk.events();
    // Dropped as a killed process drops it: the log ends before.
    next.kill();
    Ok(log)
}

/// All calls counted.
pub(super) fn calls(counts: &Counts) -> u64 {
    let asks = counts.opens + counts.metas + counts.lists + counts.spaces + counts.reads;
    counts.mutations() + asks + counts.evicts + counts.locks + counts.unlocks
}
