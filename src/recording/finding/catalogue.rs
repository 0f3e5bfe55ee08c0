//! The catalogue: recordings found by what is known of them, without looking at all of them where
//! the index of parameters can tell which to look at.
//!
//! - The index only proposes; each recording that is given is looked at itself.
//! - Terms that use it: `=`, `<`, `<=`, `>`, `>=` on parameters; `=` and `like 'beginning%'` on names;
//!   whatever joins such terms by `or`, or has one of them among its `and`.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use super::filter::{Filter, Subject, Test, beginning};
use crate::codec;
use crate::engine::Store;
use crate::error::Result;
use crate::ids::RecordingId;
use crate::manifest::{
    ParameterKey, ParameterOrderKey, ParameterOrderRow, ParameterRow, Reading, RecordingNameRow,
    RecordingRow, RecordingStatus, Snapshot,
};
use crate::recording::describing::{KIND_BOOL, KIND_NUMBER, KIND_STRING, Parameter};
use crate::recording::reading::Recording;

/// So few that looking at each is cheaper than asking the index again.
const FEW: usize = 64;

/// The recordings of a store, as they can be asked for.
#[derive(Debug, Clone)]
pub struct Catalogue {
    store: Store,
}

/// What a filter selected.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Selected {
    /// The recordings that it holds of, in the order of their names.
    pub recordings: Vec<Recording>,
    /// How many recordings were looked at.
    pub looked_at: u64,
}

impl Store {
    /// The recordings of this store, for queries.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue { store: self.clone() }
    }
}

impl Catalogue {
    /// The recordings of which `filter` holds, in the order of their names:
    /// `dt < 0.01 and solver = 'rk4' or name like 'sweep/%'`. Parameters stand by their names;
    /// `name`, `status` (`'running'`, `'complete'`, `'failed'`) and `created` are known of each.
    /// `not` and parentheses are as usual; a parameter of such a name stands in double quotes.
    ///
    /// # Errors
    /// `Invalid`, with the character at which the filter is wrong; `Damage`; `NewerFormat`.
    pub fn filter(&self, filter: &str) -> Result<Vec<Recording>> {
        Ok(self.select(filter)?.recordings)
    }

    /// As [`Catalogue::filter`], with how many recordings had to be looked at.
    ///
    /// # Errors
    /// As there.
    pub fn select(&self, filter: &str) -> Result<Selected> {
        let filter = Filter::parse(filter)?;
        let snapshot = self.store.snapshot()?;
        let mut selected = Selected { recordings: Vec::new(), looked_at: 0 };
        let mut found = Vec::new();
        let mut look = |id: RecordingId| -> Result<()> {
            selected.looked_at += 1;
            // The index may know one that salvage could not bring back.
            let Some(row) = snapshot.get::<RecordingRow>(&id)? else { return Ok(()) };
            if filter.holds(&mut |subject| tell(&snapshot, id, &row, subject))? {
                found.push(Recording::of_row(&self.store, id, row)?);
            }
            Ok(())
        };
        match proposed(&snapshot, &filter)? {
            Some(proposed) => proposed.into_iter().try_for_each(&mut look)?,
            None => snapshot.scan::<RecordingNameRow>(.., &mut |_, row| {
                look(row.recording)?;
                Ok(ControlFlow::Continue(()))
            })?,
        }
        found.sort_by(|one, other| one.name().cmp(other.name()));
        selected.recordings = found;
        Ok(selected)
    }
}

impl Recording {
    /// What it was made with, in the order of names.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat`.
    pub fn parameters(&self) -> Result<Vec<(String, Parameter)>> {
        let snapshot = self.store().snapshot()?;
        let mut parameters = Vec::new();
        let from = ParameterKey { recording: self.id(), name: String::new() };
        snapshot.scan::<ParameterRow>(from.., &mut |key, row| {
            if key.recording != self.id() {
                return Ok(ControlFlow::Break(()));
            }
            parameters.push((key.name, codec::decode("parameter", &row.value)?));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(parameters)
    }
}

/// What is known of a recording.
fn tell(
    snapshot: &Snapshot,
    recording: RecordingId,
    row: &RecordingRow,
    subject: &Subject,
) -> Result<Option<Parameter>> {
    Ok(match subject {
        Subject::Name => Some(Parameter::String(row.name.clone())),
        Subject::Status => Some(Parameter::from(status_name(&row.status))),
        Subject::Created => row.created.map(Parameter::I64),
        Subject::Parameter(name) => {
            let key = ParameterKey { recording, name: name.clone() };
            let found = snapshot.get::<ParameterRow>(&key)?;
            found.map(|row| codec::decode("parameter", &row.value)).transpose()?
        }
    })
}

fn status_name(status: &RecordingStatus) -> &'static str {
    match status {
        RecordingStatus::Running => "running",
        RecordingStatus::Complete => "complete",
        RecordingStatus::Failed { .. } => "failed",
    }
}

/// The recordings among which those are that `filter` holds of; `None` where only looking at each
/// of them tells.
fn proposed(snapshot: &Snapshot, filter: &Filter) -> Result<Option<BTreeSet<RecordingId>>> {
    match filter {
        Filter::All(filters) => {
            let mut kept: Option<BTreeSet<RecordingId>> = None;
            let is_exact = |filter: &&Filter| matches!(filter, Filter::Compare(_, Test::Equal, _));
            let (first, then): (Vec<_>, Vec<_>) = filters.iter().partition(is_exact);
            for filter in first.into_iter().chain(then) {
                if kept.as_ref().is_some_and(|kept| kept.len() <= FEW) {
                    break;
                }
                kept = match (kept, proposed(snapshot, filter)?) {
                    (Some(kept), Some(more)) => Some(kept.intersection(&more).copied().collect()),
                    (kept, more) => kept.or(more),
                };
            }
            Ok(kept)
        }
        Filter::Any(filters) => {
            let mut all = BTreeSet::new();
            for filter in filters {
                let Some(more) = proposed(snapshot, filter)? else { return Ok(None) };
                all.extend(more);
            }
            Ok(Some(all))
        }
        Filter::Compare(Subject::Parameter(name), test, value) => {
            by_value(snapshot, name, *test, value)
        }
        Filter::Compare(Subject::Name, Test::Equal, Parameter::String(name)) => {
            let row = snapshot.get::<RecordingNameRow>(name)?;
            Ok(Some(row.into_iter().map(|row| row.recording).collect()))
        }
        Filter::Like(Subject::Name, pattern) => by_beginning(snapshot, &beginning(pattern)),
        _ => Ok(None),
    }
}

/// The recordings whose parameter called `name` may pass the test.
fn by_value(
    snapshot: &Snapshot,
    name: &str,
    test: Test,
    value: &Parameter,
) -> Result<Option<BTreeSet<RecordingId>>> {
    let kind = match value {
        Parameter::Bool(_) => KIND_BOOL,
        Parameter::I64(_) | Parameter::F64(_) => KIND_NUMBER,
        Parameter::String(_) => KIND_STRING,
    };
    let key = |order: Vec<u8>, recording: u64| ParameterOrderKey {
        name: name.to_owned(),
        order,
        recording: RecordingId(recording),
    };
    // Of a long text the index holds the beginning, so that the bound itself is always looked at.
    let from = Bound::Included(key(value.order(), 0));
    let upto = Bound::Included(key(value.order(), u64::MAX));
    let least = Bound::Included(key(vec![kind], 0));
    let most = Bound::Excluded(key(vec![kind + 1], 0));
    let range = match test {
        Test::Equal => (from, upto),
        Test::Less | Test::LessOrEqual => (least, upto),
        Test::Greater | Test::GreaterOrEqual => (from, most),
        Test::Unequal => return Ok(None),
    };
    let mut found = BTreeSet::new();
    snapshot.scan::<ParameterOrderRow>(range, &mut |key, _| {
        found.insert(key.recording);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Some(found))
}

/// The recordings whose names begin so.
fn by_beginning(snapshot: &Snapshot, text: &str) -> Result<Option<BTreeSet<RecordingId>>> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut found = BTreeSet::new();
    snapshot.scan::<RecordingNameRow>(text.to_owned().., &mut |name, row| {
        if !name.starts_with(text) {
            return Ok(ControlFlow::Break(()));
        }
        found.insert(row.recording);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Some(found))
}
