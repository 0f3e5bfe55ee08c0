//! What was written and no commit carries yet: names and pages, as they are now. The next
//! transaction carries all of it, or, when it is aborted, none; so the order in which it was written
//! does not matter.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::content::Stored;
use super::names::Body;
use crate::error::Result;
use crate::manifest::key::Key;
use crate::manifest::read::Raw;
use crate::manifest::rows::{BodyRow, FrameRow, PageRow};
use crate::manifest::table::Table;
use crate::manifest::write::Write;

/// Bytes that wait in memory at most; past it they are committed on their own.
pub(super) const PENDING_BYTES_MAX: u64 = 8 << 20;

/// What a name, or a cut, is counted as in memory.
const ENTRY_BYTES: u64 = 256;

/// Pages given back at once that are made free at once.
const ERASED_PAGES: u64 = 8;

type Page = Arc<Vec<u8>>;

/// What waits to become of a page.
#[derive(Debug, Clone)]
pub(super) enum Waiting {
    /// It is written.
    Page(Page),
    /// It goes.
    Gone,
}

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
    /// Of a body, every committed page goes from one on; with the number of the change. What is in
    /// `pages` was written later.
    cuts: BTreeMap<(Body, u64), u64>,
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
pub(crate) struct Carried {
    upto: u64,
    /// Pages that it erased.
    erased: u64,
}

impl Carried {
    /// Whether what it erased is worth a commit that makes it free.
    pub(crate) fn is_much_erased(self) -> bool {
        self.erased >= ERASED_PAGES
    }
}

impl Pending {
    /// Writes all that waits into a transaction.
    pub(crate) fn carry(&self, w: &Write<'_>) -> Result<Carried> {
        let (stamp, names, cuts, pages) = {
            let state = self.state.lock();
            (state.stamp, state.names.clone(), state.cuts.clone(), state.pages.clone())
        };
        for (name, entry) in names {
            match entry.len {
                Some(len) => w.set_row(&name, &BodyRow { len })?,
                None => w.erase(Table::Bodies, &name.to_bytes())?,
            }
        }
        let mut erased = 0;
        for (body, from) in cuts.into_keys() {
            erased += erase(w, body, from)?;
        }
        for ((body, page), (_, content)) in pages {
            let bytes = content.to_vec();
            match body {
                Body::Frames(owner, n) => {
                    let key = (owner, n, page.saturating_mul(body.page_bytes()));
                    w.set_row(&key, &FrameRow { bytes })?;
                }
                Body::Pages(unique) => w.set_row(&(unique, page), &PageRow { bytes })?,
            }
        }
        Ok(Carried { upto: stamp, erased })
    }

    /// That transaction committed. What was changed since stays.
    pub(crate) fn carried(&self, Carried { upto, .. }: Carried) {
        let mut state = self.state.lock();
        state.names.retain(|_, name| name.stamp > upto);
        for name in state.names.values_mut() {
            name.born = name.born.filter(|born| *born > upto);
        }
        state.pages.retain(|_, (stamp, _)| *stamp > upto);
        state.cuts.retain(|_, stamp| *stamp > upto);
        state.bytes = state.pages.values().map(|(_, page)| page.len() as u64).sum();
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.names.is_empty() && state.pages.is_empty() && state.cuts.is_empty()
    }

    /// What waits in memory.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        let entries = (state.names.len() + state.cuts.len()) as u64;
        state.bytes.saturating_add(entries.saturating_mul(ENTRY_BYTES))
    }

    /// The number of the last change.
    pub(super) fn stamp(&self) -> u64 {
        self.state.lock().stamp
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
        let all = (body, 0)..=(body, u64::MAX);
        state.names.contains_key(name)
            || state.pages.range(all.clone()).next().is_some()
            || state.cuts.range(all).next().is_some()
    }

    /// What waits to become of a page.
    pub(super) fn page(&self, body: Body, page: u64) -> Option<Waiting> {
        let state = self.state.lock();
        match state.pages.get(&(body, page)) {
            Some((_, content)) => Some(Waiting::Page(Arc::clone(content))),
            None => state.is_cut(body, page).then_some(Waiting::Gone),
        }
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
        // What its length says is not asked: what goes is what is there.
        let is_there = match state.names.get(name) {
            Some(name) => name.len.is_some(),
            None => stored.has(name).map_err(io::Error::other)?,
        };
        if !is_there {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.cut(body, 0);
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
                state.set_page(body, kept - 1, last);
            }
            if kept < body.pages(before) {
                state.cut(body, kept);
            }
        }
        if len != before {
            let born = state.names.get(name).and_then(|name| name.born);
            state.set_name(name, Some(len), born);
        }
        Ok(())
    }
}

/// Erases every page of a body from one on: by the keys that are there, whatever a length says.
/// Returns how many there were.
fn erase(w: &Write<'_>, body: Body, from: u64) -> Result<u64> {
    const AT_ONCE: usize = 256;
    let (table, first, last) = match body {
        Body::Frames(owner, n) => {
            let first = (owner, n, from.saturating_mul(body.page_bytes()));
            (Table::Frames, first.to_bytes(), (owner, n, u64::MAX).to_bytes())
        }
        Body::Pages(unique) => {
            (Table::Pages, (unique, from).to_bytes(), (unique, u64::MAX).to_bytes())
        }
    };
    let mut erased = 0;
    loop {
        let mut keys = Vec::with_capacity(AT_ONCE);
        let range = (Bound::Included(first.clone()), Bound::Included(last.clone()));
        w.raw_scan(table, range, false, &mut |key, _| {
            keys.push(key.to_vec());
            match keys.len() < AT_ONCE {
                true => Ok(ControlFlow::Continue(())),
                false => Ok(ControlFlow::Break(())),
            }
        })?;
        for key in &keys {
            w.erase(table, key)?;
        }
        erased += keys.len() as u64;
        if keys.len() < AT_ONCE {
            return Ok(erased);
        }
    }
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
        self.bytes += content.len() as u64;
        let before = self.pages.insert((body, page), (self.stamp, content));
        self.bytes -= before.map_or(0, |(_, before)| before.len() as u64);
    }

    /// Takes every page of a body away, from one on: one entry, however many there are.
    fn cut(&mut self, body: Body, from: u64) {
        self.stamp += 1;
        let going = (body, from)..=(body, u64::MAX);
        let pages: Vec<_> = self.pages.range(going.clone()).map(|(key, _)| *key).collect();
        for key in pages {
            self.bytes -= self.pages.remove(&key).map_or(0, |(_, page)| page.len() as u64);
        }
        let cuts: Vec<_> = self.cuts.range(going).map(|(key, _)| *key).collect();
        for key in cuts {
            self.cuts.remove(&key);
        }
        self.cuts.insert((body, from), self.stamp);
    }

    fn is_cut(&self, body: Body, page: u64) -> bool {
        self.cuts.range((body, 0)..=(body, page)).next().is_some()
    }

    /// A page as it is now; empty where the file of `len` bytes does not reach.
    fn load(&mut self, body: Body, page: u64, len: u64, stored: &Stored<'_>) -> io::Result<Page> {
        let is_cut = self.is_cut(body, page);
        match self.pages.get_mut(&(body, page)) {
            // Taken out, so that it is changed in place; whoever loads puts it back.
            Some((_, content)) => {
                let taken = std::mem::take(content);
                self.bytes -= taken.len() as u64;
                Ok(taken)
            }
            None if page < body.pages(len) && !is_cut => {
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
            self.set_page(body, page, content);
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
