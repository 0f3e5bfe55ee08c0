//! Beginning a preparation, going on with one, and giving one up.

use super::options::PrepareOptions;
use super::preparation::Preparation;
use crate::engine::{Retired, remove_preparation};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::LeaseId;
use crate::manifest::{ClaimKind, LeaseRow, PreparationRow, Reading, ResourceKey, Write};
use crate::objects::describing::Objects;
use crate::vfs::Step;

/// The longest name of a preparation, in bytes of UTF-8.
pub const PREPARATION_NAME_BYTES_MAX: usize = 256;

/// Who holds the leases of preparations.
pub(super) const HOLDER: &str = crate::manifest::PREPARATION_HOLDER;

impl Objects {
    /// Begins the preparation called `name`, or goes on with it: what was flushed under it is leased still,
    /// whatever happened meanwhile (OBJ6). It is ours alone as long as the handle lives; that of a process
    /// which is gone is taken over.
    ///
    /// # Errors
    /// `Conflict` with who has it open; `Invalid` for a blank name, `LimitExceeded` above
    /// [`PREPARATION_NAME_BYTES_MAX`]; `DiskFull`; `ReadOnly`.
    ///
    /// # Durability
    /// *Durable* when it returns: it stands until it is abandoned.
    pub fn prepare(&self, name: &str) -> Result<Preparation> {
        self.prepare_with(name, &PrepareOptions::default())
    }

    /// As [`Objects::prepare`]; one that stands gets the purpose and the deadline that are given here.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// As there.
    pub fn prepare_with(&self, name: &str, options: &PrepareOptions) -> Result<Preparation> {
        check_name(name)?;
        let (store, key) = (self.store(), name.to_owned());
        let resource = ResourceKey::of_preparation(name);
        let created = store.wall_nanos();
        let begin = |w: &mut Write| match w.get::<PreparationRow>(&key)? {
            Some(row) => go_on(w, &row, options).map(|()| row.lease),
            None => {
                let lease = w.next_lease_id()?;
                let purpose = match options.purpose.is_empty() {
                    true => key.clone(),
                    false => options.purpose.clone(),
                };
                let (holder, deadline) = (HOLDER.to_owned(), options.deadline);
                w.put(&lease, &LeaseRow { holder, purpose, deadline, objects: Vec::new() })?;
                w.put(&key, &PreparationRow { lease, created })?;
                Ok(lease)
            }
        };
        let step = Step::PrepareCommit;
        let (lease, claim) = store.claim_with(&resource, ClaimKind::Preparation, step, begin)?;
        Ok(Preparation::new(store.clone(), key, lease, claim))
    }

    /// Gives the preparation called `name` up: what nothing else refers to is retired, and reclaim gives its
    /// bytes back. `why` goes into the receipt.
    ///
    /// # Errors
    /// Each changes nothing: `NotFound`; `Conflict` with who has it open.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn abandon(&self, name: &str, why: &str) -> Result<Retired> {
        let (store, key) = (self.store(), name.to_owned());
        let resource = ResourceKey::of_preparation(name);
        let stands = |w: &mut Write| require(w, &key);
        let step = Step::PrepareCommit;
        let (row, claim) = store.claim_with(&resource, ClaimKind::Preparation, step, stands)?;
        Preparation::new(store.clone(), key, row.lease, claim).abandon(why)
    }
}

impl Preparation {
    /// Gives it up with all that was put: what nothing else refers to is retired, and reclaim gives its bytes
    /// back. `why` goes into the receipt.
    ///
    /// # Errors
    /// Each leaves it as it was, to be gone on with: `Fenced`; `OutcomeUnknown`, after which the store has
    /// halted; `Damage`.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn abandon(self, why: &str) -> Result<Retired> {
        let (store, name, claim) = self.into_parts();
        let committed = store.transact(Step::PrepareCommit, |w| {
            claim.release_in(w)?;
            remove_preparation(w, &name)?;
            let (objects, bytes) = store.write_receipt(w, &place(&name), why)?;
            Ok(Retired { things: 1, objects, bytes, ..Retired::default() })
        })?;
        claim.released();
        Ok(committed.value)
    }
}

/// The rows of what a lease keeps.
pub(in crate::objects) fn leased_of(
    lease: LeaseId,
) -> std::ops::RangeInclusive<(LeaseId, crate::ids::ObjectId)> {
    (lease, crate::ids::ObjectId(0))..=(lease, crate::ids::ObjectId(u64::MAX))
}

/// Inside the transaction: one that stands is opened again.
fn go_on(w: &mut Write, row: &PreparationRow, options: &PrepareOptions) -> Result<()> {
    let mut lease = w.require::<LeaseRow>(&row.lease)?;
    let before = lease.clone();
    if !options.purpose.is_empty() {
        lease.purpose.clone_from(&options.purpose);
    }
    lease.deadline = options.deadline.or(lease.deadline);
    if lease == before { Ok(()) } else { w.put(&row.lease, &lease) }
}

fn require(rows: &impl Reading, name: &String) -> Result<PreparationRow> {
    rows.get::<PreparationRow>(name)?.ok_or_else(|| {
        let cause = "there is no preparation of this name";
        Error::new(ErrorKind::NotFound, "prepare", place(name), cause)
    })
}

/// As errors and receipts name it.
pub(super) fn place(name: &str) -> String {
    format!("preparation {name:?}")
}

fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::invalid("prepare", "preparation", "its name is blank"));
    }
    if name.len() > PREPARATION_NAME_BYTES_MAX {
        let cause = format!("a name of {} bytes, {PREPARATION_NAME_BYTES_MAX} allowed", name.len());
        return Err(Error::new(ErrorKind::LimitExceeded, "prepare", "preparation", cause));
    }
    Ok(())
}
