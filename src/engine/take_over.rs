//! Take over: what a dead owner had is freed, by whoever finds it, at opening or while working.
//!
//! ```text
//!   its lock is ours -> its lock file goes -> its journals are read -> ONE transaction ends it
//! ```
//! The lock file goes before the journals are read: an owner looks for its own before it tells that
//! something is durable. So if a lock was lost and its owner lives all the same, whatever that owner
//! told is in what is read here, and what it writes later it tells nobody.

use std::collections::BTreeSet;

use super::core::Core;
use super::journals::unlink_journals;
use super::left::{Lasts, add, forget_spent, is_spent, note_last, trim};
use super::owner::{Dead, dead_one, the_dead};
use super::recover::{Recovered, Recovery, in_order, missing_file};
use super::store::Store;
use super::streams::Streams;
use super::sweep::{sweep_ended, sweep_of};
use super::view::expect;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::OwnerId;
use crate::journal::{self, Tail};
use crate::manifest::{ClaimRow, JournalRow, JournalState, OwnerEnd, OwnerRow, Reading};
use crate::vfs::Step;

/// A journal of a dead owner, read.
struct Taken {
    key: (OwnerId, u64),
    state: JournalState,
    lasts: Lasts,
}

/// What an opening does where others may be at work: it frees what the dead had, and reads no tail.
pub(super) fn recover_shared(core: &Core) -> Result<Recovered> {
    let me = core.check_write("recover")?;
    let mut recovery = Recovery::default();
    let (dead, living) = the_dead(core, me.owner)?;
    recovery.ended = match take_over(core, &dead, &mut recovery) {
        Err(e) if e.kind() == ErrorKind::Damage => {
            recovery = Recovery::default();
            take_over_what_reads(core, &dead, &mut recovery)?
        }
        ended => ended?,
    };
    core.note_untidy(forget_spent(core).map(|_| ()));
    match sweep_ended(core, &living) {
        Ok(swept) => recovery.swept = swept,
        Err(e) => core.note_untidy(Err(e)),
    }
    Ok(Recovered { streams: Streams::default(), adopted: Vec::new(), recovery })
}

/// P6: the dead one by one. One whose journal does not read stands as it was, with its claims, and health tells
/// it: what it had is refused to whoever asks for it, and everything else goes on.
fn take_over_what_reads(
    core: &Core,
    dead: &[Dead],
    recovery: &mut Recovery,
) -> Result<Vec<OwnerId>> {
    let mut ended = Vec::new();
    for one in dead {
        match take_over(core, std::slice::from_ref(one), recovery) {
            Err(e) if e.kind() == ErrorKind::Damage => core.condition.warn(e),
            took => ended.extend(took?),
        }
    }
    Ok(ended)
}

/// Ends each of `dead`, whose locks the caller holds. Returns those that nobody else had ended.
fn take_over(core: &Core, dead: &[Dead], recovery: &mut Recovery) -> Result<Vec<OwnerId>> {
    if dead.is_empty() {
        return Ok(Vec::new());
    }
    let me = core.check_write("recover")?;
    let owners: BTreeSet<OwnerId> = dead.iter().map(|dead| dead.owner).collect();
    for owner in &owners {
        // P5: from here on it acknowledges nothing, should it live in spite of its lock.
        let path = layout::owner_lock(&core.root, *owner);
        match core.disk.unlink(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("unlink", path.display(), e));
            }
            _ => {}
        }
    }
    let mut taken = Vec::new();
    for (key, row) in in_order(&core.snapshot()?)? {
        if owners.contains(&row.keeper) {
            core.disk.mark(Step::OpenReplay);
            taken.extend(read(core, key, &row, recovery)?);
        }
    }
    recovery.journals += taken.len() as u64;
    // While a copy is being made, what nobody needs stays for a later opening.
    let right = super::retain::may_remove(core)?;
    let committed = core.transact(Step::OpenTakeOver, |w| {
        let mut ended = Vec::new();
        for owner in &owners {
            if let Some(mut row) = w.get::<OwnerRow>(owner)?
                && row.ended.is_none()
            {
                row.ended = Some(OwnerEnd::TakenOver { by: me.owner });
                w.put(owner, &row)?;
                ended.push(*owner);
            }
        }
        for (resource, row) in w.list::<ClaimRow>(.., usize::MAX)? {
            if ended.contains(&row.owner) {
                w.remove::<ClaimRow>(&resource)?;
            }
        }
        let mut gone = Vec::new();
        for one in &taken {
            let Some(mut row) = w.get::<JournalRow>(&one.key)? else { continue };
            if !ended.contains(&row.keeper) {
                continue;
            }
            row.state = one.state.clone();
            add(&mut row.needed, &one.lasts);
            trim(w, &mut row.needed)?;
            if is_spent(&row) && right.is_some() {
                w.remove::<JournalRow>(&one.key)?;
                gone.push(one.key);
            } else {
                w.put(&one.key, &row)?;
            }
        }
        Ok((ended, gone))
    })?;
    let (ended, gone) = committed.value;
    core.note_untidy(unlink_journals(core, &gone));
    Ok(ended)
}

/// Reads a journal of a dead owner: where it ends, and what lies in it. `None` when it is gone by
/// now.
fn read(
    core: &Core,
    key: (OwnerId, u64),
    row: &JournalRow,
    recovery: &mut Recovery,
) -> Result<Option<Taken>> {
    if !matches!(row.state, JournalState::Open | JournalState::Finished { .. }) {
        // Left long ago: its row says for whom.
        return Ok(Some(Taken { key, state: row.state.clone(), lasts: Lasts::new() }));
    }
    let path = layout::journal(&core.root, key.0, key.1);
    let gone = |e: Error| match core.snapshot()?.get::<JournalRow>(&key)? {
        None => Ok(None),
        Some(_) => Err(missing_file(&path, e)),
    };
    // G10, G14: what a claimer will be shown is on the medium, and is what the medium holds.
    if let Err(e) = journal::sync_before_trust(&*core.disk, &path) {
        return gone(e);
    }
    let mut lasts = Lasts::new();
    let mut records = 0;
    let scan =
        journal::scan(&*core.disk, &path, &expect(core, key.0, key.1, row), &mut |_, found| {
            records += found.len() as u64;
            found.iter().for_each(|record| note_last(&mut lasts, record.stream, record.sequence));
            Ok(())
        });
    let scan = match scan {
        Ok(scan) => scan,
        Err(e) => return gone(e),
    };
    match scan.tail {
        Tail::Clean => {}
        Tail::Torn { bytes } => recovery.torn.push((path, bytes)),
        Tail::Damaged { offset, upto } => {
            let cause = format!(
                "bytes {offset}..{upto} were durable and do not read; open it for single access \
                 with set_aside_damage to go on without them, or salvage"
            );
            return Err(Error::damage("recover", path.display(), cause));
        }
    }
    recovery.records += records;
    Ok(Some(Taken { key, state: JournalState::Adopted { end: scan.end }, lasts }))
}

impl Store {
    /// Frees what owners had whose process is gone: their claims, and the tails in their journals.
    /// A claim that such an owner holds does it by itself; so does opening. Returns who was ended.
    ///
    /// # Errors
    /// `Damage` when part of a journal that was durable does not read: its owner then stands as it
    /// was, and so do its claims.
    ///
    /// # Durability
    /// *Durable* when it returns. A suspended process keeps its lock, and all that it has.
    pub fn take_over(&self) -> Result<Vec<OwnerId>> {
        let me = self.core().check_write("take over")?;
        if !self.core().is_shared() {
            return Ok(Vec::new());
        }
        let (dead, _) = the_dead(self.core(), me.owner)?;
        self.end_all(&dead)
    }

    /// Ends `owner` if it is dead; whether it has ended.
    pub(super) fn take_over_of(&self, owner: OwnerId) -> Result<bool> {
        let Some(row) = self.core().snapshot()?.get::<OwnerRow>(&owner)? else { return Ok(true) };
        if row.ended.is_some() {
            return Ok(true);
        }
        let Some(dead) = dead_one(self.core(), owner)? else { return Ok(false) };
        self.end_all(&[dead]).map(|_| true)
    }

    fn end_all(&self, dead: &[Dead]) -> Result<Vec<OwnerId>> {
        let mut recovery = Recovery::default();
        let ended = take_over(self.core(), dead, &mut recovery)?;
        let swept = sweep_of(self.core(), &ended).map(|_| ());
        self.core().note_untidy(swept);
        Ok(ended)
    }
}
