//! Batch: changes are collected, encoded and checked first, and committed in one transaction.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::entry::{NAME_BYTES_MAX, Present, VALUE_BYTES_MAX, check_name, history_of, key, place};
use crate::codec;
use crate::engine::{NewObject, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::shape;
use crate::ids::{CommitSeq, NameGeneration, ObjectId};
use crate::manifest::{
    HistoryKey, HistoryRow, Key, NameRow, Namespace, Reading, Table, ValueForm, Write,
};
use crate::protection::Protection;
use crate::vfs::Step;

/// The most changes of one batch.
pub const BATCH_CHANGES_MAX: usize = 4096;

/// The most bytes of all values of one batch: they are in memory until it is committed.
pub const BATCH_BYTES_MAX: usize = 4 * VALUE_BYTES_MAX;

/// Changes that take place together, or not at all. Dropped, it changes nothing.
///
/// A change that cannot be made (a blank name, a value too long) is told by
/// [`commit`](Self::commit), which then changes nothing.
///
/// ```
/// # fn main() -> sealstone::Result<()> {
/// # let path = std::env::temp_dir().join(format!("batch-{}.stone", std::process::id()));
/// # let store = sealstone::Store::create(&path)?;
/// let state = store.state();
/// let draft = state.put("draft", &"text".to_owned())?;
/// state.batch().put("page/1", &"text".to_owned()).remove_expected("draft", draft).commit()?;
/// assert!(state.find::<String>("draft")?.is_none());
/// # store.close()?;
/// # std::fs::remove_dir_all(path).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a batch changes nothing before it is committed"]
pub struct Batch {
    store: Store,
    changes: Vec<Change>,
    bytes: usize,
    history_max: u64,
    broken: Option<Error>,
}

/// What a batch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The commit that made all of its changes.
    pub commit: CommitSeq,
    /// For each change in order: the generation of the value that was put, removed or expected;
    /// `None` where nothing was there.
    pub generations: Vec<Option<NameGeneration>>,
}

#[derive(Debug)]
struct Change {
    name: String,
    /// What must stand there, if that matters.
    expected: Option<Option<NameGeneration>>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The value has this form; its object is the next of the batch's.
    Put {
        len: u64,
        form: ValueForm,
        bytes: Option<Vec<u8>>,
    },
    Remove,
    Nothing,
}

impl Batch {
    pub(super) fn new(store: Store) -> Self {
        let history_max = store.limits().history_max;
        Self { store, changes: Vec::new(), bytes: 0, history_max, broken: None }
    }

    /// As [`State::put`](super::State::put).
    pub fn put<T: Serialize + DeserializeOwned>(self, name: &str, value: &T) -> Self {
        self.typed(name, None, value)
    }

    /// As [`State::put_bytes`](super::State::put_bytes).
    pub fn put_bytes(self, name: &str, bytes: &[u8]) -> Self {
        self.valued(name, None, ValueForm::Bytes, bytes.to_vec())
    }

    /// As [`State::compare_and_set`](super::State::compare_and_set).
    pub fn compare_and_set<T: Serialize + DeserializeOwned>(
        self,
        name: &str,
        expected: Option<NameGeneration>,
        value: &T,
    ) -> Self {
        self.typed(name, Some(expected), value)
    }

    /// As [`State::compare_and_set_bytes`](super::State::compare_and_set_bytes).
    pub fn compare_and_set_bytes(
        self,
        name: &str,
        expected: Option<NameGeneration>,
        bytes: &[u8],
    ) -> Self {
        self.valued(name, Some(expected), ValueForm::Bytes, bytes.to_vec())
    }

    /// Removes `name` with its history; nothing there is no error.
    pub fn remove(self, name: &str) -> Self {
        self.with(name, None, What::Remove)
    }

    /// Removes `name` if the value of generation `expected` stands there.
    pub fn remove_expected(self, name: &str, expected: NameGeneration) -> Self {
        self.with(name, Some(Some(expected)), What::Remove)
    }

    /// Changes nothing at `name`, and lets the batch fail unless `expected` stands there.
    pub fn expect(self, name: &str, expected: Option<NameGeneration>) -> Self {
        self.with(name, Some(expected), What::Nothing)
    }

    /// How many replaced values are kept of each name that this batch puts, instead of the
    /// store's limit `history_max`; older ones go in the same transaction.
    pub fn keep_history(mut self, at_most: u64) -> Self {
        self.history_max = at_most.min(1 << 16);
        self
    }

    /// Commits all changes in ONE transaction.
    ///
    /// # Errors
    /// Each leaves everything as it was: `Conflict` where something else stands than was expected
    /// ([`Present::of`](super::Present::of) says what); `Invalid` for a blank name, a name that is
    /// changed twice, an empty batch, and a type whose values do not read back from bytes without
    /// a description, or whose shape is not known as a whole, for it takes no made-up value or is
    /// too large (such keep their own format: put them as bytes); `LimitExceeded` above
    /// [`NAME_BYTES_MAX`], [`VALUE_BYTES_MAX`], [`BATCH_CHANGES_MAX`] or [`BATCH_BYTES_MAX`];
    /// `DiskFull`, unless it only removes; `ReadOnly`. `OutcomeUnknown` after which the store has
    /// halted and everything or nothing of it took place.
    ///
    /// # Durability
    /// *Durable* when it returns: one transaction for any number of changes. Values above the
    /// limit `object_inline_bytes_max`, and shorter ones that come together to 16 times as much, take
    /// one more sync, together.
    pub fn commit(mut self) -> Result<Changed> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        if self.changes.is_empty() {
            return Err(Error::invalid("put", "batch", "it holds no change"));
        }
        self.check_twice()?;
        self.check_early()?;
        let contents = self.contents();
        let (changes, history_max) = (&self.changes, self.history_max);
        // P4: names, objects, history and what goes change in one transaction.
        let committed = self.store.transact_with(Step::StateCommit, contents, |w, objects| {
            let mut objects = objects.iter().copied();
            changes.iter().map(|change| change.apply(w, &mut objects, history_max)).collect()
        })?;
        Ok(Changed { commit: committed.commit, generations: committed.value })
    }

    fn typed<T: Serialize + DeserializeOwned>(
        mut self,
        name: &str,
        expected: Option<Option<NameGeneration>>,
        value: &T,
    ) -> Self {
        match encode(name, value) {
            Ok((form, bytes)) => self.valued(name, expected, form, bytes),
            Err(e) => {
                self.broken.get_or_insert(e);
                self
            }
        }
    }

    fn valued(
        mut self,
        name: &str,
        expected: Option<Option<NameGeneration>>,
        form: ValueForm,
        bytes: Vec<u8>,
    ) -> Self {
        self.bytes = self.bytes.saturating_add(bytes.len());
        let over = if bytes.len() > VALUE_BYTES_MAX {
            Some((bytes.len(), VALUE_BYTES_MAX, "of value"))
        } else if self.bytes > BATCH_BYTES_MAX {
            Some((self.bytes, BATCH_BYTES_MAX, "of values in one batch"))
        } else {
            None
        };
        if let Some((bytes, allowed, what)) = over {
            let cause = format!("{bytes} bytes {what}, {allowed} allowed");
            let e = Error::new(ErrorKind::LimitExceeded, "put", place(name), cause);
            self.broken.get_or_insert(e);
            return self;
        }
        let len = bytes.len() as u64;
        self.with(name, expected, What::Put { len, form, bytes: Some(bytes) })
    }

    fn with(mut self, name: &str, expected: Option<Option<NameGeneration>>, what: What) -> Self {
        if let Err(e) = check_name("put", name) {
            self.broken.get_or_insert(e);
        } else if self.changes.len() >= BATCH_CHANGES_MAX {
            let cause = format!("more than {BATCH_CHANGES_MAX} changes");
            let e = Error::new(ErrorKind::LimitExceeded, "put", "batch", cause);
            self.broken.get_or_insert(e);
        } else {
            self.changes.push(Change { name: name.to_owned(), expected, what });
        }
        self
    }

    fn check_twice(&self) -> Result<()> {
        let mut names: Vec<&str> = self.changes.iter().map(|change| &*change.name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::invalid("put", place(pair[0]), "one batch changes it twice")),
            None => Ok(()),
        }
    }

    /// What cannot succeed is refused before anything is stored for it; the transaction decides.
    fn check_early(&self) -> Result<()> {
        if self.changes.iter().all(|change| change.expected.is_none()) {
            return Ok(());
        }
        let snapshot = self.store.snapshot()?;
        self.changes.iter().try_for_each(|change| {
            let row = snapshot.get::<NameRow>(&key(&change.name))?;
            change.check(row.as_ref())
        })
    }

    fn contents(&mut self) -> Vec<NewObject> {
        let bytes = |change: &mut Change| match &mut change.what {
            What::Put { bytes, .. } => bytes.take().map(|bytes| {
                let referrer = Some((Table::Names, key(&change.name).to_bytes()));
                NewObject { bytes, referrer }
            }),
            _ => None,
        };
        self.changes.iter_mut().filter_map(bytes).collect()
    }
}

impl Change {
    fn check(&self, row: Option<&NameRow>) -> Result<()> {
        let generation = row.map(|row| row.generation);
        let Some(expected) = self.expected.filter(|expected| *expected != generation) else {
            return Ok(());
        };
        if !Protection::ExpectedCompared.is_on() {
            return Ok(());
        }
        let present = Present { name: self.name.clone(), generation };
        let cause = match expected {
            Some(expected) => format!("generation {expected} was expected, and {present}"),
            None => format!("nothing was expected, and {present}"),
        };
        let e = Error::new(ErrorKind::Conflict, "put", place(&self.name), cause);
        Err(e.with_source(present))
    }

    fn apply(
        &self,
        w: &mut Write,
        objects: &mut impl Iterator<Item = ObjectId>,
        history_max: u64,
    ) -> Result<Option<NameGeneration>> {
        let at = key(&self.name);
        let old = w.get::<NameRow>(&at)?;
        self.check(old.as_ref())?;
        let before = old.as_ref().map(|row| row.generation);
        match &self.what {
            What::Nothing => Ok(before),
            What::Remove => {
                w.remove::<NameRow>(&at)?;
                trim(w, &self.name, 0)?;
                Ok(before)
            }
            What::Put { len, form, .. } => {
                let Some(object) = objects.next() else {
                    let cause = "no object was stored for it";
                    return Err(Error::invalid("put", place(&self.name), cause));
                };
                let commit = w.commit_seq();
                // Commits are numbered upwards for ever, so a name that was removed and put again
                // does not begin at a number that it had.
                let after = before.map_or(0, |before| before.0.saturating_add(1));
                let first = if Protection::NameNeverAgain.is_on() { commit.0 } else { 1 };
                let generation = NameGeneration(after.max(first));
                if let Some(old) = old.filter(|_| history_max > 0) {
                    let NameRow { generation, object, len, commit, form } = old;
                    let namespace = Namespace::STATE;
                    let at = HistoryKey { namespace, name: self.name.clone(), generation };
                    w.put(&at, &HistoryRow { object, len, commit, form })?;
                }
                trim(w, &self.name, history_max)?;
                let (len, form) = (*len, form.clone());
                w.put(&at, &NameRow { generation, object, len, commit, form })?;
                Ok(Some(generation))
            }
        }
    }
}

/// Lets go of the oldest values of a name until `at_most` are left.
fn trim(w: &mut Write, name: &str, at_most: u64) -> Result<()> {
    let kept = w.list::<HistoryRow>(history_of(name), usize::MAX)?;
    let excess = kept.len().saturating_sub(usize::try_from(at_most).unwrap_or(usize::MAX));
    kept.iter().take(excess).try_for_each(|(at, _)| w.remove::<HistoryRow>(at).map(|_| ()))
}

/// A value's bytes, and what is stored beside them. What does not read back is refused here.
fn encode<T: Serialize + DeserializeOwned>(name: &str, value: &T) -> Result<(ValueForm, Vec<u8>)> {
    let refused = |e: Error| match e.kind() {
        ErrorKind::Damage => {
            let cause = "its values do not read back; put it as bytes of a format of its own";
            Error::invalid("put", place(name), cause).with_source(e)
        }
        _ => e,
    };
    let fingerprint = shape::fingerprint_of::<T>()?;
    let bytes = codec::encode_value("value", value)?;
    codec::decode_value::<T>("value", &bytes).map_err(refused)?;
    Ok((ValueForm::Typed { name: shape::name_of::<T>(), fingerprint }, bytes))
}

const _: () = assert!(NAME_BYTES_MAX <= u16::MAX as usize, "a history key holds the length");
