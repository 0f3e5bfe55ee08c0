//! What was written and no commit carries yet: names and pages, as they are now. The next
//! transaction carries all of it, or, when it is aborted, none; so the order in which it was written
//! does not matter.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::content::Stored;
use super::names::Body;
use crate::error::Result;
use crate::manifest::key::Key;
use crate::manifest::row::Row;
use crate::manifest::rows::{BodyRow, FrameRow, PageRow};
use crate::manifest::table::Table;
use crate::manifest::write::Write;

/// Bytes that wait in memory at most; past it they are committed on their own.
pub(super) const PENDING_BYTES_MAX: u64 = 8 << 20;

/// A page; `None` when it goes.
type Page = Option<Arc<Vec<u8>>>;

/// Names and pages that await the next commit.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last change.
    stamp: u64,
    names: BTreeMap<String, Name>,
    pages: BTreeMap<(Body, u64), (u64, Page)>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Name {
    stamp: u64,
    /// When it was made, until a commit has carried it.
    born: Option<u64>,
    /// `None` when the name goes.
    len: Option<u64>,
}

/// Everything up to a change was carried by one transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried(u64);

impl Pending {
    /// Writes all that waits into a transaction.
    pub(crate) fn carry(&self, w: &Write<'_>) -> Result<Carried> {
        let (stamp, names, pages) = {
            let state = self.state.lock();
            (state.stamp, state.names.clone(), state.pages.clone())
        };
        for (name, entry) in names {
            match entry.len {
                Some(len) => w.set_row(&name, &BodyRow { len })?,
                None => w.erase(Table::Bodies, &name.to_bytes())?,
            }
        }
        for ((body, page), (_, content)) in pages {
            let bytes = content.map(|content| content.to_vec());
            match body {
                Body::Frames(owner, n) => {
                    let key = (owner, n, page.saturating_mul(body.page_bytes()));
                    put(w, key, bytes.map(|bytes| FrameRow { bytes }))?;
                }
                Body::Pages(unique) => {
                    put(w, (unique, page), bytes.map(|bytes| PageRow { bytes }))?;
                }
            }
        }
        Ok(Carried(stamp))
    }

    /// That transaction committed. What was changed since stays.
    pub(crate) fn carried(&self, Carried(upto): Carried) {
        let mut state = self.state.lock();
        state.names.retain(|_, name| name.stamp > upto);
        for name in state.names.values_mut() {
            name.born = name.born.filter(|born| *born > upto);
        }
        state.pages.retain(|_, (stamp, _)| *stamp > upto);
        state.bytes = state.pages.values().map(|(_, page)| len_of(page)).sum();
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.names.is_empty() && state.pages.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// What waits to become of a name: its length, or that it goes.
    pub(super) fn name(&self, name: &str) -> Option<Option<u64>> {
        self.state.lock().names.get(name).map(|name| name.len)
    }

    /// Every name that waits.
    pub(super) fn names(&self) -> Vec<(String, Option<u64>)> {
        let state = self.state.lock();
        state.names.iter().map(|(name, entry)| (name.clone(), entry.len)).collect()
    }

    /// Whether no commit has carried the name yet.
    pub(super) fn is_new(&self, name: &str) -> bool {
        self.state.lock().names.get(name).is_some_and(|name| name.born.is_some())
    }

    /// Whether anything of a file waits.
    pub(super) fn has(&self, name: &str, body: Body) -> bool {
        let state = self.state.lock();
        let mut pages = state.pages.range((body, 0)..=(body, u64::MAX));
        state.names.contains_key(name) || pages.next().is_some()
    }

    /// What waits to become of a page.
    pub(super) fn page(&self, body: Body, page: u64) -> Option<Page> {
        self.state.lock().pages.get(&(body, page)).map(|(_, page)| page.clone())
    }

    /// The length of a file now; `None` when there is none.
    pub(super) fn len(&self, name: &str, stored: &Stored<'_>) -> Result<Option<u64>> {
        match self.name(name) {
            Some(len) => Ok(len),
            None => stored.len(name),
        }
    }

    /// Makes an empty file.
    pub(super) fn create(&self, name: &str, stored: &Stored<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.len(name, stored)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let born = Some(state.stamp + 1);
        state.set_name(name, Some(0), born);
        Ok(())
    }

    /// Takes a file away.
    pub(super) fn unlink(&self, name: &str, body: Body, stored: &Stored<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        let len = state.need(name, stored)?;
        for page in 0..body.pages(len) {
            state.set_page(body, page, None);
        }
        state.set_name(name, None, None);
        Ok(())
    }

    /// Gives a file another name; no byte moves.
    pub(super) fn rename(&self, from: &str, to: &str, stored: &Stored<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        let len = state.need(from, stored)?;
        if state.len(to, stored)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let born = state.names.get(from).and_then(|name| name.born);
        state.set_name(to, Some(len), born);
        state.set_name(from, None, None);
        Ok(())
    }

    /// Writes bytes at an offset; zeros fill what lies between the end and there.
    pub(super) fn write(
        &self,
        name: &str,
        body: Body,
        (offset, bytes): (u64, &[u8]),
        stored: &Stored<'_>,
    ) -> io::Result<()> {
        let mut state = self.state.lock();
        let len = state.need(name, stored)?;
        if offset > len {
            state.grow(body, (len, offset), stored)?;
        }
        let len = len.max(offset);
        state.put(body, len, (offset, bytes), stored)?;
        let born = state.names.get(name).and_then(|name| name.born);
        state.set_name(name, Some(len.max(offset + bytes.len() as u64)), born);
        Ok(())
    }

    /// Cuts a file, or grows it with zeros.
    pub(super) fn set_len(
        &self,
        name: &str,
        body: Body,
        len: u64,
        stored: &Stored<'_>,
    ) -> io::Result<()> {
        let mut state = self.state.lock();
        let before = state.need(name, stored)?;
        if len > before {
            state.grow(body, (before, len), stored)?;
        } else {
            let (kept, within) = (body.pages(len), len % body.page_bytes());
            if within > 0 && len < before {
                let mut last = state.load(body, kept - 1, before, stored)?;
                Arc::make_mut(&mut last).truncate(within as usize);
                state.set_page(body, kept - 1, Some(last));
            }
            for page in kept..body.pages(before) {
                state.set_page(body, page, None);
            }
        }
        if len != before {
            let born = state.names.get(name).and_then(|name| name.born);
            state.set_name(name, Some(len), born);
        }
        Ok(())
    }
}

fn put<R: Row>(w: &Write<'_>, key: R::Key, row: Option<R>) -> Result<()> {
    match row {
        Some(row) => w.set_row(&key, &row),
        None => w.erase(R::TABLE, &key.to_bytes()),
    }
}

fn len_of(page: &Page) -> u64 {
    page.as_ref().map_or(0, |page| page.len() as u64)
}

impl State {
    fn len(&self, name: &str, stored: &Stored<'_>) -> io::Result<Option<u64>> {
        match self.names.get(name) {
            Some(name) => Ok(name.len),
            None => stored.len(name).map_err(io::Error::other),
        }
    }

    fn need(&self, name: &str, stored: &Stored<'_>) -> io::Result<u64> {
        self.len(name, stored)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn set_name(&mut self, name: &str, len: Option<u64>, born: Option<u64>) {
        self.stamp += 1;
        self.names.insert(name.to_owned(), Name { stamp: self.stamp, born, len });
    }

    fn set_page(&mut self, body: Body, page: u64, content: Page) {
        self.stamp += 1;
        self.bytes += len_of(&content);
        let before = self.pages.insert((body, page), (self.stamp, content));
        self.bytes -= before.map_or(0, |(_, before)| len_of(&before));
    }

    /// A page as it is now; empty where the file of `len` bytes does not reach.
    fn load(
        &mut self,
        body: Body,
        page: u64,
        len: u64,
        stored: &Stored<'_>,
    ) -> io::Result<Arc<Vec<u8>>> {
        match self.pages.get_mut(&(body, page)) {
            // Taken out, so that it is changed in place; whoever loads puts it back.
            Some((_, content)) => {
                let taken = content.take().unwrap_or_default();
                self.bytes -= taken.len() as u64;
                Ok(taken)
            }
            None if page < body.pages(len) => {
                Ok(Arc::new(stored.page(body, page).map_err(io::Error::other)?))
            }
            None => Ok(Arc::default()),
        }
    }

    /// Puts `bytes` at `offset` into the pages of a file of `len` bytes, which reaches there.
    fn put(
        &mut self,
        body: Body,
        len: u64,
        (offset, mut bytes): (u64, &[u8]),
        stored: &Stored<'_>,
    ) -> io::Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > 1 << 60) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let (page_bytes, mut at) = (body.page_bytes(), offset);
        while !bytes.is_empty() {
            let (page, within) = (at / page_bytes, (at % page_bytes) as usize);
            let (piece, rest) = bytes.split_at(bytes.len().min(page_bytes as usize - within));
            let mut content = self.load(body, page, len, stored)?;
            let target = Arc::make_mut(&mut content);
            let end = within + piece.len();
            if target.len() < end {
                target.resize(end, 0);
            }
            target[within..end].copy_from_slice(piece);
            self.set_page(body, page, Some(content));
            at += piece.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    fn grow(&mut self, body: Body, (from, to): (u64, u64), stored: &Stored<'_>) -> io::Result<()> {
        if to - from > PENDING_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a hole of that length"));
        }
        let zeros = vec![0; (to - from) as usize];
        self.put(body, from, (from, &zeros), stored)
    }
}
