//! Retire: names, snapshots, preparations and publications go, all or none, with what only they kept.

use crate::engine::{
    Phases, Retired, remove_name, remove_name_handoff, remove_object_snapshot, remove_preparation,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::HandoffId;
use crate::manifest::{
    ClaimRow, OwnerRow, PreparationRow, Reading, ResourceKey, TakenApart, Write,
};
use crate::objects::describing::{Name, Objects};
use crate::vfs::Step;

/// Something of the objects that can be retired.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gone {
    /// A name.
    Name(Name),
    /// A committed snapshot of names.
    Snapshot(String),
    /// A preparation, with its hold on what it stored.
    Preparation(String),
    /// A publication that an outside system takes part in and that is not decided: it is rolled back.
    Handoff(HandoffId),
}

/// What a retirement did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retirement {
    /// Things that went.
    pub things: u64,
    /// Things that were not there: retiring them is no error, and changes nothing (OBJ20).
    pub unknown: Vec<Gone>,
    /// Objects that nothing refers to any more.
    pub objects: u64,
    /// Their stored bytes, given back by reclaim.
    pub bytes: u64,
    /// Transactions that it took.
    pub transactions: u64,
    /// Whether recipes are left to be taken apart: by [`Objects::go_on_retiring`], or by reclaim.
    pub is_more_left: bool,
    /// How long it took.
    pub phases: Phases,
}

impl Retirement {
    fn add(&mut self, retired: &Retired) {
        self.objects += retired.objects;
        self.bytes += retired.bytes;
        self.transactions += 1;
        self.phases.add(&retired.phases);
    }
}

impl Objects {
    /// Retires `things` in ONE transaction, all or none. `why` goes into the receipt. What only they kept is
    /// condemned with them; a thing named twice goes once.
    ///
    /// # Errors
    /// `Conflict` for an open snapshot, and for a preparation that a handle works on; any error leaves every
    /// table as it was.
    ///
    /// # Durability
    /// *Durable* when it returns; bytes are given back by [`Store::reclaim`](crate::engine::Store::reclaim).
    pub fn retire(&self, things: &[Gone], why: &str) -> Result<Retirement> {
        self.retire_by(Step::RetireCommit, things, why)
    }

    /// Retires `things` in bounded transactions: after the first nobody finds them any more, and then at most
    /// `references_max` references to pieces go at once (as many as one row of a recipe has, if that is more).
    /// Appends, readers and publications go on in between. After a crash, or an error, what is left goes with
    /// [`Objects::go_on_retiring`] or the next reclaim. The first transaction takes the rows of the things
    /// themselves: it follows their number, not that of their pieces.
    ///
    /// # Errors
    /// As [`Objects::retire`]; after an error of a later transaction the things are gone all the same.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn retire_bounded(
        &self,
        things: &[Gone],
        references_max: u64,
        why: &str,
    ) -> Result<Retirement> {
        let mut done = self.retire_by(Step::RetireSwitch, things, why)?;
        loop {
            let (apart, retired) = self.store().go_on_retiring(references_max)?;
            if apart != TakenApart::default() {
                done.add(&retired);
            }
            done.is_more_left = apart.is_more_left;
            if !apart.is_more_left || apart.recipes + apart.references == 0 {
                return Ok(done);
            }
        }
    }

    /// Goes on with bounded retirements that a crash or an error left, in one transaction of at most
    /// `references_max` references.
    ///
    /// # Errors
    /// As [`Objects::retire`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn go_on_retiring(&self, references_max: u64) -> Result<Retirement> {
        let (apart, retired) = self.store().go_on_retiring(references_max)?;
        let mut done = Retirement { is_more_left: apart.is_more_left, ..Retirement::default() };
        if apart != TakenApart::default() {
            done.add(&retired);
        }
        Ok(done)
    }

    fn retire_by(&self, step: Step, things: &[Gone], why: &str) -> Result<Retirement> {
        for thing in things {
            // A process that was killed works on nothing any more.
            if let Gone::Preparation(name) = thing {
                self.store().end_dead_claim(&ResourceKey::of_preparation(name))?;
            }
        }
        let (unknown, retired) = self.store().retire_rows(step, why, |w, going| {
            going.is_apart_later = step == Step::RetireSwitch;
            let mut unknown = Vec::new();
            for thing in things {
                match remove(w, thing)? {
                    Some(told) => going.things.push(told),
                    None => unknown.push(thing.clone()),
                }
            }
            Ok(unknown)
        })?;
        let mut done = Retirement { unknown, things: retired.things, ..Retirement::default() };
        done.add(&retired);
        Ok(done)
    }
}

/// Takes the rows of one thing away; what it is called in the receipt, or `None` where it is not there.
fn remove(w: &mut Write<'_>, thing: &Gone) -> Result<Option<String>> {
    match thing {
        Gone::Name(name) => Ok(remove_name(w, &name.key())?.map(|_| format!("name {name}"))),
        Gone::Snapshot(name) => {
            Ok(remove_object_snapshot(w, name)?.map(|_| format!("snapshot {name}")))
        }
        Gone::Preparation(name) => {
            refuse_claimed(w, name)?;
            Ok(remove_preparation(w, name)?.map(|_| format!("preparation {name}")))
        }
        Gone::Handoff(id) => Ok(remove_name_handoff(w, *id)?.map(|_| format!("handoff {id}"))),
    }
}

/// A preparation that a handle works on, here or elsewhere, is abandoned through that handle.
fn refuse_claimed(w: &Write<'_>, name: &str) -> Result<()> {
    let resource = ResourceKey::of_preparation(name);
    if w.get::<PreparationRow>(&name.to_owned())?.is_none() {
        return Ok(());
    }
    let Some(claim) = w.get::<ClaimRow>(&resource)? else { return Ok(()) };
    let holder = match w.get::<OwnerRow>(&claim.owner)? {
        Some(o) => format!("process {} on {} works on it", o.pid, o.host),
        None => format!("owner {} works on it", claim.owner),
    };
    Err(Error::new(ErrorKind::Conflict, "retire", format!("preparation {name:?}"), holder))
}
