//! Usage: what takes the bytes, by class and by namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::engine::{Accounts, Store};
use crate::error::Result;
use crate::manifest::{
    NameKey, NameRow, Namespace, ObjectRow, Place, Reading, RecipeRow, Table, recipe_of,
};
use crate::objects::describing::Name;

/// What takes the bytes. The classes of [`Accounts`] add up to what the disk holds; the others are parts
/// of them, looked at from another side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Live, dead, condemned, open and orphan bytes.
    pub accounts: Accounts,
    /// Stored bytes of objects that more than one row refers to: each is stored once.
    pub shared: u64,
    /// Stored bytes of objects that lie in the manifest.
    pub inline: u64,
    /// Recipes that are retired and not taken apart yet.
    pub retiring: u64,
    /// By namespace.
    pub namespaces: Vec<NamespaceUsage>,
}

/// What stands under the names of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceUsage {
    /// The namespace.
    pub namespace: String,
    /// Names in it.
    pub names: u64,
    /// The sum of the lengths of what they stand for, as if nothing were shared.
    pub bytes: u64,
}

impl Store {
    /// Adds up what takes the bytes. It reads every row of objects, files and names: the time follows the
    /// store. Changes nothing.
    ///
    /// # Errors
    /// As [`Store::accounts`].
    pub fn du(&self) -> Result<Usage> {
        let mut usage = Usage { accounts: self.accounts()?, ..Usage::default() };
        let snapshot = self.snapshot()?;
        usage.retiring = snapshot.count(Table::Retiring)?;
        // Of a recipe that is shared every piece is.
        let (mut shared, mut recipes) = (BTreeSet::new(), Vec::new());
        snapshot.scan::<ObjectRow>(.., &mut |object, row| {
            if snapshot.edges_of(object, 2)?.len() > 1 {
                shared.insert(object);
                usage.shared = usage.shared.saturating_add(row.stored_len);
                recipes.extend((row.place == Place::Recipe).then_some(object));
            }
            if row.place == Place::Inline {
                usage.inline = usage.inline.saturating_add(row.stored_len);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for recipe in recipes {
            snapshot.scan::<RecipeRow>(recipe_of(recipe), &mut |_, row| {
                for piece in row.pieces.iter().filter(|piece| shared.insert(piece.object)) {
                    let of = snapshot.require::<ObjectRow>(&piece.object)?;
                    usage.shared = usage.shared.saturating_add(of.stored_len);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let mut by_namespace: BTreeMap<String, NamespaceUsage> = BTreeMap::new();
        let at = |namespace| NameKey { namespace: Namespace(namespace), name: String::new() };
        let all = at(Namespace::OBJECTS.0)..at(Namespace::OBJECTS.0 + 1);
        snapshot.scan::<NameRow>(all, &mut |key, row| {
            let namespace = Name::of_key(&key)?.namespace().to_owned();
            let of = by_namespace.entry(namespace.clone()).or_default();
            of.namespace = namespace;
            of.names += 1;
            of.bytes = of.bytes.saturating_add(row.len);
            Ok(ControlFlow::Continue(()))
        })?;
        usage.namespaces = by_namespace.into_values().collect();
        Ok(usage)
    }
}
