//! Reading: one value, or what a name had before.

use serde::de::DeserializeOwned;

use super::entry::{Entry, Found, Valued, check_name, history_of, key, place};
use super::store::State;
use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::shape;
use crate::ids::NameGeneration;
use crate::manifest::{HistoryRow, NameRow, Reading, Snapshot, ValueForm};

impl State {
    /// The value of `name`, as a type of the shape that it was put as.
    ///
    /// # Errors
    /// `NotFound`; `TypeMismatch` when it was put as another type, or as bytes; `Damage`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        Ok(self.find(name)?.ok_or_else(|| absent(name))?.value)
    }

    /// The bytes of the value of `name`, whatever it was put as.
    ///
    /// # Errors
    /// `NotFound`; `Damage`.
    pub fn get_bytes(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.find_bytes(name)?.ok_or_else(|| absent(name))?.value)
    }

    /// The value of `name` with its generation, or `None` when nothing stands there.
    ///
    /// # Errors
    /// As [`State::get`], but for `NotFound`.
    pub fn find<T: DeserializeOwned>(&self, name: &str) -> Result<Option<Found<T>>> {
        let found = self.read(name, &now)?;
        found.map(|(valued, bytes)| decode(name, &valued, &bytes)).transpose()
    }

    /// As [`State::find`], with the bytes whatever they were put as.
    ///
    /// # Errors
    /// As [`State::get_bytes`], but for `NotFound`.
    pub fn find_bytes(&self, name: &str) -> Result<Option<Found<Vec<u8>>>> {
        let found = self.read(name, &now)?;
        Ok(found.map(|(Valued { generation, row }, value)| Found {
            value,
            generation,
            commit: row.commit,
        }))
    }

    /// What stands under `name`, without its bytes.
    ///
    /// # Errors
    /// `Invalid` for what is no name; `Damage`.
    pub fn entry(&self, name: &str) -> Result<Option<Entry>> {
        check_name("get", name)?;
        Ok(now(&self.store.snapshot()?, name)?.map(|valued| valued.entry(name)))
    }

    /// The value of `name` and those before it that are kept, newest first, without their bytes.
    /// Empty when nothing stands there: what is removed goes with its history.
    ///
    /// # Errors
    /// As [`State::entry`].
    pub fn versions(&self, name: &str) -> Result<Vec<Entry>> {
        check_name("get", name)?;
        let snapshot = self.store.snapshot()?;
        let mut entries: Vec<Entry> = snapshot
            .list::<HistoryRow>(history_of(name), usize::MAX)?
            .into_iter()
            .map(|(at, row)| Valued { generation: at.generation, row }.entry(name))
            .collect();
        entries.extend(now(&snapshot, name)?.map(|valued| valued.entry(name)));
        entries.reverse();
        Ok(entries)
    }

    /// The value that `name` had in `generation`, the present one or one that is kept.
    ///
    /// # Errors
    /// As [`State::get`].
    pub fn get_at<T: DeserializeOwned>(&self, name: &str, generation: NameGeneration) -> Result<T> {
        let (valued, bytes) = self.read_at(name, generation)?;
        Ok(decode(name, &valued, &bytes)?.value)
    }

    /// As [`State::get_at`], with the bytes whatever they were put as.
    ///
    /// # Errors
    /// As [`State::get_bytes`].
    pub fn get_bytes_at(&self, name: &str, generation: NameGeneration) -> Result<Vec<u8>> {
        Ok(self.read_at(name, generation)?.1)
    }

    /// The value of `name` and those before it that are kept, newest first: the limit
    /// `history_max`, or [`Batch::keep_history`](super::Batch::keep_history), says how many. One
    /// that goes while this reads is left out.
    ///
    /// # Errors
    /// As [`State::get`], but for `NotFound`. Where the type has changed, [`State::versions`] and
    /// [`State::get_at`] read one by one.
    pub fn history<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<Found<T>>> {
        let mut values = Vec::new();
        for Entry { generation, commit, .. } in self.versions(name)? {
            match self.get_at(name, generation) {
                Ok(value) => values.push(Found { value, generation, commit }),
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(values)
    }

    fn read_at(&self, name: &str, generation: NameGeneration) -> Result<(Valued, Vec<u8>)> {
        let found = self.read(name, &|snapshot, name| {
            if let Some(valued) = now(snapshot, name)?.filter(|v| v.generation == generation) {
                return Ok(Some(valued));
            }
            let mut at = history_of(name).start().clone();
            at.generation = generation;
            Ok(snapshot.get::<HistoryRow>(&at)?.map(|row| Valued { generation, row }))
        })?;
        found.ok_or_else(|| {
            let cause = format!("generation {generation} of it is not kept");
            Error::new(ErrorKind::NotFound, "get", place(name), cause)
        })
    }

    /// A value and its bytes. A value that is replaced while it is read is looked up again; only
    /// where its row still names what is not there it is damage.
    fn read(
        &self,
        name: &str,
        look_up: &dyn Fn(&Snapshot, &str) -> Result<Option<Valued>>,
    ) -> Result<Option<(Valued, Vec<u8>)>> {
        check_name("get", name)?;
        let mut before: Option<Valued> = None;
        loop {
            let Some(valued) = look_up(&self.store.snapshot()?, name)? else { return Ok(None) };
            match self.store.fetch(valued.row.object) {
                Ok(bytes) => return Ok(Some((valued, bytes))),
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    if before.as_ref() == Some(&valued) {
                        let cause = "its row names an object that is not there";
                        return Err(Error::damage("get", place(name), cause).with_source(e));
                    }
                    before = Some(valued);
                }
                Err(e) => return Err(e),
            }
        }
    }
}

/// What stands under a name.
fn now(snapshot: &Snapshot, name: &str) -> Result<Option<Valued>> {
    Ok(snapshot.get::<NameRow>(&key(name))?.map(Valued::from))
}

fn absent(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, "get", place(name), "nothing stands under this name")
}

fn decode<T: DeserializeOwned>(name: &str, valued: &Valued, bytes: &[u8]) -> Result<Found<T>> {
    let mismatch = |was: &str, how: &str| {
        let cause = format!("it was put as {was}, {how} {}", shape::name_of::<T>());
        Error::new(ErrorKind::TypeMismatch, "get", place(name), cause)
    };
    match &valued.row.form {
        ValueForm::Bytes => Err(mismatch("bytes", "and was to be read as")),
        ValueForm::Typed { name: was, fingerprint } => {
            if shape::fingerprint_of::<T>()? != *fingerprint {
                return Err(mismatch(was, "and has another shape than"));
            }
            // The bytes are those that were put (P6), so it is the type that changed.
            let value = codec::decode_value("value", bytes)
                .map_err(|e| mismatch(was, "and does not read as").with_source(e))?;
            Ok(Found { value, generation: valued.generation, commit: valued.row.commit })
        }
    }
}
