//! What stands under names: one, or a page of them.

use std::ops::ControlFlow;

use super::door::Objects;
use super::name::{Name, check_namespace, key_behind, key_of};
use crate::digest::Digest;
use crate::error::Result;
use crate::ids::{CommitSeq, NameGeneration};
use crate::manifest::{NameKey, NameRow, Namespace, ObjectRow, Reading};

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameView {
    /// The name.
    pub name: Name,
    /// What it stands for.
    pub digest: Digest,
    /// Its length in bytes.
    pub len: u64,
    /// Rises with each publication of the name, and is never used twice for it.
    pub generation: NameGeneration,
    /// The commit that published it.
    pub commit: CommitSeq,
}

impl NameView {
    /// What `row` says of `name`.
    pub(in crate::objects) fn of(rows: &impl Reading, name: Name, row: &NameRow) -> Result<Self> {
        let digest = rows.require::<ObjectRow>(&row.object)?.digest;
        let NameRow { len, generation, commit, .. } = *row;
        Ok(Self { name, digest, len, generation, commit })
    }

    /// What stands under `name` in `rows`.
    pub(in crate::objects) fn find(rows: &impl Reading, name: &Name) -> Result<Option<Self>> {
        let row = rows.get::<NameRow>(&name.key())?;
        row.map(|row| Self::of(rows, name.clone(), &row)).transpose()
    }
}

impl Objects {
    /// What stands under `name`; `None` for nothing.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn name(&self, name: &Name) -> Result<Option<NameView>> {
        NameView::find(&self.store().snapshot()?, name)
    }

    /// At most `at_most` names in `namespace` that begin with `prefix` and come behind `after`, in the order
    /// of their bytes, all of one moment. The last one given out is the `after` of the next page; a page
    /// that is not full is the last.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for what is no namespace; `Damage`, `Halted`, `Closed`.
    pub fn names(
        &self,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        at_most: usize,
    ) -> Result<Vec<NameView>> {
        check_namespace(namespace)?;
        let mut names = Vec::new();
        if at_most == 0 {
            return Ok(names);
        }
        let snapshot = self.store().snapshot()?;
        let from = key_of(namespace, after.unwrap_or_default().max(prefix));
        snapshot.scan::<NameRow>(from..key_behind(namespace), &mut |key, row| {
            let name = Name::of_key(&key)?;
            if !name.name().starts_with(prefix) {
                return Ok(ControlFlow::Break(()));
            }
            if after.is_none_or(|after| name.name() > after) {
                names.push(NameView::of(&snapshot, name, &row)?);
            }
            Ok(match names.len() < at_most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        Ok(names)
    }

    /// At most `at_most` namespaces that hold a name, begin with `prefix` and come behind `after`, in the
    /// order of their bytes, all of one moment. The cost follows them, and not the names in them.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn namespaces(
        &self,
        prefix: &str,
        after: Option<&str>,
        at_most: usize,
    ) -> Result<Vec<String>> {
        let snapshot = self.store().snapshot()?;
        let behind_all =
            NameKey { namespace: Namespace(Namespace::OBJECTS.0 + 1), name: String::new() };
        let mut namespaces: Vec<String> = Vec::new();
        let first = NameKey { namespace: Namespace::OBJECTS, name: prefix.to_owned() };
        let mut from = after.map_or(first.clone(), |after| key_behind(after).max(first));
        while namespaces.len() < at_most {
            let found = snapshot.list::<NameRow>(from..behind_all.clone(), 1)?;
            let Some((key, _)) = found.first() else { break };
            let namespace = Name::of_key(key)?.namespace().to_owned();
            if !namespace.starts_with(prefix) {
                break;
            }
            from = key_behind(&namespace);
            namespaces.push(namespace);
        }
        Ok(namespaces)
    }
}
