//! Listing: names in order, a page at a time.

use std::ops::ControlFlow;

use super::entry::{Entry, Valued, key};
use super::store::State;
use crate::error::Result;
use crate::manifest::{NameKey, NameRow, Namespace, Reading};

/// Entries read with one snapshot.
const PAGE: usize = 256;

/// Names in order. See [`State::list`].
#[derive(Debug)]
pub struct Listing {
    state: State,
    prefix: String,
    page: std::vec::IntoIter<Entry>,
    /// The last name given out; the next page begins behind it.
    last: Option<String>,
    is_over: bool,
}

impl State {
    /// Every name that begins with `prefix` (all, where that is empty), in the order of their bytes.
    /// Memory is bounded, and no snapshot is held between steps: names that come or go meanwhile
    /// may be in it or not, all others are, once.
    pub fn list(&self, prefix: &str) -> Listing {
        let (state, prefix) = (self.clone(), prefix.to_owned());
        Listing { state, prefix, page: Vec::new().into_iter(), last: None, is_over: false }
    }

    /// At most `at_most` names that begin with `prefix` and come behind `after`, in order, all of
    /// one moment.
    ///
    /// # Errors
    /// `Damage`.
    pub fn page(&self, prefix: &str, after: Option<&str>, at_most: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if at_most == 0 {
            return Ok(entries);
        }
        let from = key(after.unwrap_or_default().max(prefix));
        let visit = &mut |at: NameKey, row: NameRow| {
            if at.namespace != Namespace::STATE || !at.name.starts_with(prefix) {
                return Ok(ControlFlow::Break(()));
            }
            if after.is_none_or(|after| *at.name > *after) {
                entries.push(Valued::from(row).entry(&at.name));
            }
            Ok(match entries.len() < at_most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        };
        self.store.snapshot()?.scan::<NameRow>(from.., visit)?;
        Ok(entries)
    }
}

impl Iterator for Listing {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.page.next() {
                self.last = Some(entry.name.clone());
                return Some(Ok(entry));
            }
            if self.is_over {
                return None;
            }
            match self.state.page(&self.prefix, self.last.as_deref(), PAGE) {
                Ok(page) => {
                    self.is_over = page.len() < PAGE;
                    self.page = page.into_iter();
                }
                Err(e) => {
                    self.is_over = true;
                    return Some(Err(e));
                }
            }
        }
    }
}
