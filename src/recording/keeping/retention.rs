//! Retention: which recordings may go, shown as a plan before anything is done.
//!
//! ```text
//!   store.retention().keep_newest(10) --[plan]--> RetentionPlan, nothing written --[apply]--> gone
//! ```
//! The order is that of creation, by number: no clock decides it. An age is counted up to the `now`
//! that the plan shows. A recording that is running is never chosen.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use super::remove::{Expected, Seen, remove};
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{ObjectId, Ordinal, RecordingId};
use crate::manifest::{
    ChunkRow, ClaimRow, ObjectRow, Reading, RecordingRow, RecordingStatus, ResourceKey, Snapshot,
};

/// Rules by which recordings may go. A recording goes if any of them says so.
#[derive(Debug, Clone)]
#[must_use]
pub struct Retention {
    store: Store,
    keep_newest: Option<usize>,
    older_than: Option<Duration>,
    bytes_above: Option<u64>,
}

/// A recording that the plan retires.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToRetire {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: RecordingId,
    /// Wall-clock nanoseconds since 1970 when it was started.
    pub created: Option<i64>,
    /// Stored bytes that it refers to, those that others share included.
    pub bytes: u64,
    /// Why, for people.
    pub why: String,
}

/// A recording that a rule would retire and that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stays {
    /// Its name.
    pub name: String,
    /// Why it stays, for people.
    pub why: String,
}

/// What would go, and why. Nothing was written.
#[derive(Debug, Clone)]
#[must_use]
pub struct RetentionPlan {
    store: Store,
    now: Option<i64>,
    retire: Vec<(ToRetire, Seen)>,
    stay: Vec<Stays>,
}

/// What [`RetentionPlan::apply`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The names of those that went.
    pub retired: Vec<String>,
    /// Their bytes that nothing else refers to, given back by reclaim.
    pub bytes: u64,
    /// Those that changed since the plan was made, and were left alone.
    pub changed: Vec<Stays>,
}

/// A recording as the rules see it.
struct Candidate {
    id: RecordingId,
    seen: Seen,
    objects: Vec<(ObjectId, u64)>,
    is_written: bool,
}

impl Store {
    /// Rules by which recordings may go: none, so far.
    pub fn retention(&self) -> Retention {
        let store = self.clone();
        Retention { store, keep_newest: None, older_than: None, bytes_above: None }
    }
}

impl Retention {
    /// All but the newest `n` go; newest by the order in which they were started.
    pub fn keep_newest(mut self, n: usize) -> Self {
        self.keep_newest = Some(n);
        self
    }

    /// Those go that were started longer ago than `age`, as the wall clock says when the plan is
    /// made.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// The oldest go until what is left refers to at most `bytes`, each shared one counted once.
    pub fn bytes_above(mut self, bytes: u64) -> Self {
        self.bytes_above = Some(bytes);
        self
    }

    /// Looks at all recordings, and says which would go and why. Writes nothing.
    ///
    /// # Errors
    /// `Damage` for a row that does not read; `Unsupported` where ages are asked for and the clock tells a
    /// time that cannot be represented.
    pub fn plan(&self) -> Result<RetentionPlan> {
        let now = self.store.disk().wall_nanos();
        if now.is_none() && self.older_than.is_some() {
            // OBJ33: neither nothing nor everything is old.
            let cause =
                "the clock tells a time that cannot be represented: no age is known; set it";
            return Err(Error::new(ErrorKind::Unsupported, "plan", "retention", cause));
        }
        let found = candidates(&self.store.snapshot()?)?;
        let mut plan =
            RetentionPlan { store: self.store.clone(), now, retire: Vec::new(), stay: Vec::new() };
        let mut bytes = Shared::of(&found);
        let count = found.len();
        for (at, one) in found.into_iter().enumerate() {
            let name = one.seen.row.name.clone();
            let Some(why) = self.why(&one, count - at, now, &bytes) else {
                if self.older_than.is_some() && one.seen.row.created.is_none() {
                    let why =
                        "how old it is cannot be told: it was started without a clock".to_owned();
                    plan.stay.push(Stays { name, why });
                }
                continue;
            };
            if let Some(reason) = one.why_it_stays() {
                let why = format!("{reason}, although {why}");
                plan.stay.push(Stays { name, why });
                continue;
            }
            bytes.without(&one);
            let (id, created) = (one.id, one.seen.row.created);
            let sum = one.objects.iter().fold(0u64, |sum, (_, len)| sum.saturating_add(*len));
            plan.retire.push((ToRetire { name, id, created, bytes: sum, why }, one.seen));
        }
        Ok(plan)
    }

    /// Why it would go; it is the `newest`-th newest, counted from 1.
    fn why(
        &self,
        one: &Candidate,
        newest: usize,
        now: Option<i64>,
        bytes: &Shared,
    ) -> Option<String> {
        if let Some(keep) = self.keep_newest.filter(|keep| newest > *keep) {
            return Some(beyond(newest, keep));
        }
        if let Some(age) = self.older_than
            && let (Some(now), Some(created)) = (now, one.seen.row.created)
        {
            let old = i128::from(now) - i128::from(created);
            if old > age.as_nanos() as i128 {
                let seconds = |nanos: i128| nanos / 1_000_000_000;
                let most = seconds(age.as_nanos() as i128);
                return Some(format!("it is {} s old, {most} s are kept", seconds(old)));
            }
        }
        let most = self.bytes_above.filter(|most| bytes.sum > *most)?;
        Some(format!("{} bytes are there, {most} are kept", bytes.sum))
    }
}

/// Why the `newest`-th newest goes where the newest `keep` stay.
fn beyond(newest: usize, keep: usize) -> String {
    let of = |kept: &str| format!("it is number {newest} from the newest on, {kept}");
    match keep {
        0 => "none is kept".to_owned(),
        1 => of("1 is kept"),
        _ => of(&format!("{keep} are kept")),
    }
}

impl Candidate {
    fn why_it_stays(&self) -> Option<&'static str> {
        if self.is_written {
            return Some("it is being written");
        }
        let is_running = self.seen.row.status == RecordingStatus::Running;
        is_running.then_some("it is running and may be resumed")
    }
}

/// Stored bytes of what is left, each object counted once.
struct Shared {
    objects: BTreeMap<ObjectId, u64>,
    sum: u64,
}

impl Shared {
    fn of(found: &[Candidate]) -> Self {
        let mut shared = Self { objects: BTreeMap::new(), sum: 0 };
        for (object, len) in found.iter().flat_map(|one| &one.objects) {
            let count = shared.objects.entry(*object).or_insert(0);
            shared.sum = shared.sum.saturating_add(if *count == 0 { *len } else { 0 });
            *count += 1;
        }
        shared
    }

    fn without(&mut self, gone: &Candidate) {
        for (object, len) in &gone.objects {
            if let Some(count) = self.objects.get_mut(object) {
                *count -= 1;
                self.sum = self.sum.saturating_sub(if *count == 0 { *len } else { 0 });
            }
        }
    }
}

/// All recordings, the oldest first.
fn candidates(snapshot: &Snapshot) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    snapshot.scan::<RecordingRow>(.., &mut |id, row| {
        let claim = snapshot.get::<ClaimRow>(&ResourceKey::of_recording(&row.name))?;
        let objects = Vec::new();
        let (seen, is_written) = (Seen::of(snapshot, row)?, claim.is_some());
        found.push(Candidate { id, seen, objects, is_written });
        Ok(ControlFlow::Continue(()))
    })?;
    for one in &mut found {
        for stream in &one.seen.row.streams {
            let range = (*stream, Ordinal(0))..=(*stream, Ordinal(u64::MAX));
            snapshot.scan::<ChunkRow>(range, &mut |_, chunk| {
                for object in std::iter::once(&chunk.object).chain(&chunk.payloads) {
                    let len = snapshot.require::<ObjectRow>(object)?.stored_len;
                    one.objects.push((*object, len));
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
    }
    Ok(found)
}

impl RetentionPlan {
    /// The wall clock when the plan was made, in nanoseconds since 1970: what ages are counted up to.
    /// Without one, no rule asked for an age.
    pub fn now(&self) -> Option<i64> {
        self.now
    }

    /// What would go, the oldest first.
    pub fn retire(&self) -> impl Iterator<Item = &ToRetire> {
        self.retire.iter().map(|(one, _)| one)
    }

    /// What a rule names and stays all the same.
    pub fn stay(&self) -> &[Stays] {
        &self.stay
    }

    /// Retires what the plan names, each recording in one transaction. One that is not any more what
    /// the plan saw is left alone, and told.
    ///
    /// # Errors
    /// As [`Store::retire_recording`]; those before it are gone.
    ///
    /// # Durability
    /// *Durable* when it returns; bytes are given back by [`Store::reclaim`].
    pub fn apply(self) -> Result<Applied> {
        let mut applied = Applied::default();
        for (one, seen) in self.retire {
            let expected = Expected { id: one.id, seen: Some(seen) };
            match remove(&self.store, &one.name, Some(&expected), &one.why) {
                Ok(retired) => {
                    applied.bytes = applied.bytes.saturating_add(retired.bytes);
                    applied.retired.push(one.name);
                }
                Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {
                    applied.changed.push(Stays { name: one.name, why: e.cause().to_owned() });
                }
                Err(e) => return Err(e),
            }
        }
        Ok(applied)
    }
}
