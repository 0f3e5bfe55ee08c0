//! One transaction from begin to commit: durable in two phases, numbered, told truly. A panic in
//! the caller's code stops here, before redb can see it.

use redb::{Database, Durability, WriteTransaction};
use std::sync::Arc;

use super::changes::Changes;
use super::halt::{Halt, catch, drop_quietly, from_panic, from_redb};
use super::settle::Settled;
use super::turn::{Turn, Turns};
use super::write::Write;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitCount, CommitSeq, OwnerId};

/// What a transaction returned, and its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed<T> {
    /// What the closure returned.
    pub value: T,
    /// What lost its last reference.
    pub settled: Settled,
    /// The number of the commit.
    pub commit: CommitSeq,
    /// Its number among its owner's commits; 0 without an owner.
    pub count: CommitCount,
}

/// Runs `change` in one transaction of `db`, and commits it durably, or nothing of it.
pub(super) fn run<T>(
    db: &Database,
    turns: Option<&Turns>,
    halt: &Arc<Halt>,
    changes: &Changes,
    owner: Option<OwnerId>,
    before_commit: impl FnOnce() -> Result<()>,
    change: impl FnOnce(&mut Write<'_>) -> Result<T>,
) -> Result<Committed<T>> {
    // Held until the transaction has ended.
    let (txn, _turn) = begin_in_turn(db, turns, halt)?;
    let done =
        prepare(&txn, halt, changes, owner, change).and_then(|done| before_commit().map(|()| done));
    match done {
        Ok(done) => commit(txn, halt, owner, &done).map(|()| done),
        Err(error) => {
            // Nothing was changed; if redb cannot even say so, it has halted.
            if halt.cause().is_some() {
                drop_quietly(txn);
            } else {
                halt.guard("abort", || txn.abort())?;
            }
            Err(error)
        }
    }
}

/// Begins a transaction that is durable in two phases and needs no repair after a kill.
pub(super) fn begin(db: &Database, halt: &Halt) -> Result<WriteTransaction> {
    made_safe(halt.guard("write", || db.begin_write())?, halt)
}

fn made_safe(mut txn: WriteTransaction, halt: &Halt) -> Result<WriteTransaction> {
    halt.guard("write", || txn.set_durability(Durability::Immediate))?;
    txn.set_two_phase_commit(true);
    txn.set_quick_repair(true);
    Ok(txn)
}

fn begin_in_turn<'t>(
    db: &Database,
    turns: Option<&'t Turns>,
    halt: &Halt,
) -> Result<(WriteTransaction, Option<Turn<'t>>)> {
    match turns {
        Some(turns) => {
            turns.begin(db, halt).and_then(|(txn, turn)| Ok((made_safe(txn, halt)?, Some(turn))))
        }
        None => Ok((begin(db, halt)?, None)),
    }
}

/// Runs `act` while no transaction is between its begin and its commit.
pub(super) fn alone(
    db: &Database,
    turns: Option<&Turns>,
    halt: &Halt,
    act: impl FnOnce(),
) -> Result<()> {
    let (txn, _turn) = begin_in_turn(db, turns, halt)?;
    act();
    halt.guard("abort", || txn.abort())
}

fn prepare<T>(
    txn: &WriteTransaction,
    halt: &Arc<Halt>,
    changes: &Changes,
    owner: Option<OwnerId>,
    change: impl FnOnce(&mut Write<'_>) -> Result<T>,
) -> Result<Committed<T>> {
    let mut write = Write::begin(txn, halt, owner)?;
    // The panic stops here: one that unwound through the transaction would cost a full repair.
    let value = catch(|| change(&mut write)).unwrap_or_else(|panic| {
        let cause = format!("the code inside the transaction panicked ({panic})");
        Err(Error::new(ErrorKind::CallerPanicked, "write", halt.path().display(), cause))
    })?;
    let count = write.finish()?;
    let settled = write.unsettled.take_total();
    changes.note(write.commit_seq(), write.take_touched());
    Ok(Committed { value, settled, commit: write.commit_seq(), count })
}

fn commit<T>(
    txn: WriteTransaction,
    halt: &Halt,
    owner: Option<OwnerId>,
    done: &Committed<T>,
) -> Result<()> {
    let cause = match catch(|| txn.commit()) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => from_redb("commit", halt.path(), error.into()),
        Err(panic) => from_panic("commit", halt.path(), &panic),
    };
    // P8: whether it is on disk is unknown, and nothing may be deleted before a reopen tells.
    halt.halt(cause.clone());
    let told = match owner {
        Some(owner) => format!("owner {owner} counts {} commits if it did", done.count),
        None => format!("the store counts {} commits if it did", done.commit),
    };
    let unknown = format!("it is not known whether commit {} took place; {told}", done.commit);
    let place = halt.path().display();
    Err(Error::new(ErrorKind::OutcomeUnknown, "commit", place, unknown).with_source(cause))
}
