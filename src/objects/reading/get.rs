//! Get: which object has a digest, or stands under a name.

use std::ops::ControlFlow;

use super::object::Object;
use crate::digest::Digest;
use crate::engine::Pin;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;
use crate::manifest::{DigestRow, NameRow, ObjectRow, Reading, Snapshot};
use crate::objects::describing::{Name, Objects};

/// How often a thing may be retired under a look at it before the look gives up.
const LOOKS_MAX: usize = 64;

impl Objects {
    /// The object with this digest. Its bytes stay readable in this process as long as it is held,
    /// whatever is retired, reclaimed or moved meanwhile; from another process what is given back reads
    /// as `Conflict`.
    ///
    /// # Errors
    /// `NotFound`; `Damage` when rows do not read, and no other object has the same bytes.
    pub fn get(&self, digest: &Digest) -> Result<Object> {
        self.look(digest, &|snapshot| candidates(snapshot, digest))
    }

    /// The object that stands under `name`, as [`Objects::get`].
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub fn open(&self, name: &Name) -> Result<Object> {
        let key = name.key();
        self.object_at(name, &|snapshot| Ok(snapshot.get::<NameRow>(&key)?.map(|row| row.object)))
    }

    /// The object that `find` finds in a snapshot, as [`Objects::get`]; `place` names it in errors.
    pub(in crate::objects) fn object_at(
        &self,
        place: &dyn std::fmt::Display,
        find: &dyn Fn(&Snapshot) -> Result<Option<ObjectId>>,
    ) -> Result<Object> {
        self.look(place, &|snapshot| {
            Ok(Candidates { found: find(snapshot)?.into_iter().collect(), failed: None })
        })
    }

    /// Whether an object with this digest is stored. Its bytes are not looked at.
    ///
    /// # Errors
    /// `Damage` when its row does not read; `Halted`, `Closed`.
    pub fn contains(&self, digest: &Digest) -> Result<bool> {
        let candidates = candidates(&self.store().snapshot()?, digest)?;
        match candidates.failed {
            Some(e) if candidates.found.is_empty() => Err(e),
            _ => Ok(!candidates.found.is_empty()),
        }
    }

    fn look(
        &self,
        place: &dyn std::fmt::Display,
        find: &dyn Fn(&Snapshot) -> Result<Candidates>,
    ) -> Result<Object> {
        let mut retired = None;
        for _ in 0..LOOKS_MAX {
            // Before the snapshot: what that names stays.
            let pin = self.store().pin();
            let snapshot = self.store().snapshot()?;
            let Candidates { found, mut failed } = find(&snapshot)?;
            for object in found {
                match keep(&pin, &snapshot, object) {
                    Ok(digest) => {
                        pin.narrow();
                        return Ok(Object::new(pin, object, digest));
                    }
                    Err(e) if e.kind() == ErrorKind::Damage => failed = failed.or(Some(e)),
                    Err(e) if e.kind() == ErrorKind::Conflict => retired = Some(e),
                    Err(e) => return Err(e),
                }
            }
            match (failed, &retired) {
                (Some(e), _) => return Err(e),
                (None, None) => {
                    return Err(Error::new(ErrorKind::NotFound, "get", place, "it is not there"));
                }
                // Something was there, and was retired under this look: what is there now?
                (None, Some(_)) => {}
            }
            if retired.take().is_none() {
                break;
            }
        }
        let cause = format!("it was retired {LOOKS_MAX} times while it was looked for; call again");
        Err(Error::new(ErrorKind::Conflict, "get", place, cause))
    }
}

fn keep(pin: &Pin, snapshot: &Snapshot, object: ObjectId) -> Result<Digest> {
    pin.keep(snapshot, [object])?;
    match pin.digest_of(object) {
        Some(digest) => Ok(digest),
        None => Err(Error::damage("get", format!("object {object}"), "it is not kept")),
    }
}

/// Objects to look at, and why there are no more.
struct Candidates {
    found: Vec<ObjectId>,
    failed: Option<Error>,
}

/// Objects with this digest, the last one first: it was stored when those before it did not read.
fn candidates(snapshot: &Snapshot, digest: &Digest) -> Result<Candidates> {
    let prefix = digest.prefix();
    let (mut found, mut failed) = (Vec::new(), None);
    let range = (prefix, ObjectId(0))..=(prefix, ObjectId(u64::MAX));
    snapshot.scan::<DigestRow>(range, &mut |(_, object), _| {
        match snapshot.require::<ObjectRow>(&object) {
            Ok(row) if row.digest == *digest => found.push(object),
            Ok(_) => {}
            // One row that does not read hides no other.
            Err(e) if e.kind() == ErrorKind::Damage => failed = Some(e),
            Err(e) => return Err(e),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    found.reverse();
    Ok(Candidates { found, failed })
}
