//! Which rows changed since a commit, for the next snapshot of what changed. In memory, and bounded.
//!
//! ```text
//!   unknown --- [begin], while nobody writes ---> known since then
//!   known ----- too many rows, or a commit of another opening in between [note] ---> unknown
//! ```
//! Rows are noted before their commit, inside the transaction: one that fails leaves a row too many,
//! which harms nothing.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use super::table::Table;
use crate::ids::CommitSeq;

/// Rows kept; past them everything counts as changed.
pub(super) const CHANGED_ROWS_MAX: usize = 1 << 16;

/// A row by table and key.
pub type RowKey = (Table, Vec<u8>);

/// How much changed since the newest snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLoad {
    /// Rows, about.
    pub rows: u64,
    /// Whether they are known one by one.
    pub is_known: bool,
}

/// A snapshot is written once so many rows changed: before there are too many to be kept.
pub const CHANGED_ROWS_DUE: u64 = CHANGED_ROWS_MAX as u64 / 2;

/// What one transaction touched.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) rows: Vec<RowKey>,
    /// It changes nothing that a caller is told of.
    pub(super) is_bookkeeping: bool,
}

impl Touched {
    pub(super) fn row(&mut self, table: Table, key: &[u8]) {
        if table.is_in_snapshots() && self.rows.len() <= CHANGED_ROWS_MAX {
            self.rows.push((table, key.to_vec()));
        }
    }

    fn is_content(&self) -> bool {
        !self.is_bookkeeping && self.rows.iter().any(|(table, _)| !table.is_bookkeeping())
    }
}

/// Rows changed by this opening.
#[derive(Debug)]
pub(super) struct Changes(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Every row that changed after this commit is in `rows`.
    since: Option<CommitSeq>,
    /// The newest commit noted.
    last: CommitSeq,
    /// The newest commit that changed more than bookkeeping, as far as we know.
    content: CommitSeq,
    rows: BTreeMap<RowKey, CommitSeq>,
    /// Rows that were touched, those that are not kept as well, since the newest snapshot.
    touched: u64,
}

impl State {
    fn forget(&mut self) {
        self.since = None;
        self.content = self.last;
        self.rows.clear();
    }
}

impl Changes {
    pub(super) fn new(last: CommitSeq) -> Self {
        Self(Mutex::new(State {
            since: None,
            last,
            content: last,
            rows: BTreeMap::new(),
            touched: 0,
        }))
    }

    /// Takes note of what commit `commit` is about to change.
    pub(super) fn note(&self, commit: CommitSeq, touched: Touched) {
        let mut state = self.0.lock();
        let is_next = state.last.next() == Some(commit);
        state.last = commit;
        state.touched = state.touched.saturating_add(touched.rows.len() as u64);
        if !is_next {
            state.forget();
        }
        if touched.is_content() {
            state.content = commit;
        }
        if state.since.is_none() {
            return;
        }
        state.rows.extend(touched.rows.into_iter().map(|row| (row, commit)));
        if state.rows.len() > CHANGED_ROWS_MAX {
            state.forget();
        }
    }

    /// From here on every change is known. Called while nobody writes.
    pub(super) fn begin(&self) {
        let mut state = self.0.lock();
        state.since = Some(state.last);
        state.rows.clear();
    }

    /// Nothing but bookkeeping was committed from `covered` up to now: an earlier opening said so.
    pub(super) fn resume(&self, covered: CommitSeq) {
        let mut state = self.0.lock();
        state.since = Some(covered);
        state.content = CommitSeq(0);
        state.rows.clear();
    }

    /// A snapshot of the rows as of `covered` stands: earlier changes are in it.
    pub(super) fn covered(&self, covered: CommitSeq) {
        let mut state = self.0.lock();
        state.touched = 0;
        if state.since.is_some_and(|since| since <= covered) {
            state.since = Some(covered);
            state.rows.retain(|_, commit| *commit > covered);
        }
    }

    /// What the next snapshot has to tell.
    pub(super) fn load(&self) -> ChangeLoad {
        let state = self.0.lock();
        match state.since {
            Some(_) => ChangeLoad { rows: state.rows.len() as u64, is_known: true },
            None => ChangeLoad { rows: state.touched, is_known: false },
        }
    }

    /// The rows that changed after `covered` up to `now`, or `None` when not all of them are known.
    pub(super) fn since(&self, covered: CommitSeq, now: CommitSeq) -> Option<Vec<RowKey>> {
        let state = self.0.lock();
        let is_known = state.last >= now && state.since.is_some_and(|since| since <= covered);
        is_known.then(|| state.rows.keys().cloned().collect())
    }

    /// Whether nothing but bookkeeping was committed after `covered` up to `now`.
    pub(super) fn is_quiet_since(&self, covered: CommitSeq, now: CommitSeq) -> bool {
        let state = self.0.lock();
        let is_known = state.last >= now && state.since.is_some_and(|since| since <= covered);
        is_known && state.content <= covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(table: Table, key: u8) -> Touched {
        Touched { rows: vec![(table, vec![key])], is_bookkeeping: false }
    }

    /// Is a change ever left out of a delta: one of another opening, or one too many?
    #[test]
    fn what_is_not_known_counts_as_changed() {
        let changes = Changes::new(CommitSeq(10));
        assert!(changes.since(CommitSeq(10), CommitSeq(10)).is_none());
        changes.begin();
        changes.note(CommitSeq(11), touched(Table::Owners, 1));
        assert!(changes.is_quiet_since(CommitSeq(10), CommitSeq(11)));
        assert!(!changes.is_quiet_since(CommitSeq(10), CommitSeq(12)), "another's commit");
        changes.note(CommitSeq(12), touched(Table::Streams, 2));
        assert!(!changes.is_quiet_since(CommitSeq(11), CommitSeq(12)));
        assert_eq!(changes.since(CommitSeq(10), CommitSeq(12)).unwrap().len(), 2);
        changes.covered(CommitSeq(11));
        assert_eq!(
            changes.since(CommitSeq(11), CommitSeq(12)).unwrap(),
            [(Table::Streams, vec![2])]
        );
        assert!(changes.since(CommitSeq(10), CommitSeq(10)).is_none());
        changes.note(CommitSeq(14), touched(Table::Owners, 1));
        assert!(changes.since(CommitSeq(11), CommitSeq(14)).is_none());
        assert!(!changes.is_quiet_since(CommitSeq(14), CommitSeq(14)));
        changes.begin();
        let rows = (0..=CHANGED_ROWS_MAX as u32).map(|n| (Table::Names, n.to_be_bytes().to_vec()));
        changes.note(CommitSeq(15), Touched { rows: rows.collect(), is_bookkeeping: true });
        assert!(changes.since(CommitSeq(14), CommitSeq(15)).is_none());
    }
}
