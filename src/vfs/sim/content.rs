//! The bytes of a file as pages of 4 KiB that versions share, so that a snapshot costs a handful
//! of pointers, and a hash of the whole costs only the pages that are new.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::digest::Digest;

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;
/// Pages that share one pointer.
const GROUP: usize = 64;

static ZEROS: LazyLock<Arc<Page>> = LazyLock::new(|| Arc::new(Page::zeros()));

#[derive(Debug)]
struct Page {
    bytes: [u8; PAGE],
    hash: OnceLock<u128>,
}

impl Page {
    fn zeros() -> Self {
        Self { bytes: [0; PAGE], hash: OnceLock::from(0) }
    }

    /// 0 for a page of zeros, so that a hole and written zeros are the same content.
    fn hash(&self) -> u128 {
        *self.hash.get_or_init(|| {
            if self.bytes.iter().all(|&byte| byte == 0) { 0 } else { short_hash(&self.bytes) }
        })
    }
}

impl Clone for Page {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes, hash: OnceLock::new() }
    }
}

#[derive(Debug)]
struct Group {
    pages: [Option<Arc<Page>>; GROUP],
    hash: OnceLock<u128>,
}

impl Group {
    fn empty() -> Self {
        Self { pages: [const { None }; GROUP], hash: OnceLock::new() }
    }

    fn hash(&self) -> u128 {
        *self.hash.get_or_init(|| {
            (0u64..).zip(&self.pages).fold(0, |sum, (at, page)| {
                let hash = page.as_ref().map_or(0, |page| page.hash());
                if hash == 0 { sum } else { sum.wrapping_add(placed(hash, at)) }
            })
        })
    }
}

impl Clone for Group {
    fn clone(&self) -> Self {
        Self { pages: self.pages.clone(), hash: OnceLock::new() }
    }
}

/// The first half of the digest of `bytes`.
pub(super) fn short_hash(bytes: &[u8]) -> u128 {
    let mut half = [0; 16];
    half.copy_from_slice(&Digest::of(bytes).0[..16]);
    u128::from_le_bytes(half)
}

/// Makes a hash depend on where its page lies, so that pages may be summed in any order.
fn placed(hash: u128, at: u64) -> u128 {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let word = (hash ^ u128::from(at).wrapping_mul(ODD)).wrapping_mul(ODD);
    (word ^ (word >> 67)).wrapping_mul(ODD)
}

fn split(offset: u64) -> (u64, usize) {
    let page = PAGE as u64;
    (offset / page, usize::try_from(offset % page).unwrap_or_default())
}

fn locate(page: u64) -> (u64, usize) {
    let group = GROUP as u64;
    (page / group, usize::try_from(page % group).unwrap_or_default())
}

/// The bytes of a file. Cloning shares them; bytes beyond the length are zero.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    len: u64,
    allocated: u64,
    groups: BTreeMap<u64, Arc<Group>>,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Pages that take up space; a hole takes none.
    pub(super) fn pages(&self) -> u64 {
        self.allocated
    }

    fn page(&self, page: u64) -> Option<&Arc<Page>> {
        let (group, at) = locate(page);
        self.groups.get(&group)?.pages[at].as_ref()
    }

    /// Whether writing to the page that holds `offset` needs new space.
    pub(super) fn is_hole(&self, offset: u64) -> bool {
        self.page(split(offset).0).is_none()
    }

    fn slot(&mut self, page: u64) -> &mut Option<Arc<Page>> {
        let (group, at) = locate(page);
        let group = self.groups.entry(group).or_insert_with(|| Arc::new(Group::empty()));
        let group = Arc::make_mut(group);
        group.hash = OnceLock::new();
        &mut group.pages[at]
    }

    fn page_mut(&mut self, page: u64) -> &mut [u8; PAGE] {
        if self.page(page).is_none() {
            self.allocated += 1;
        }
        let shared = self.slot(page).get_or_insert_with(|| Arc::clone(&ZEROS));
        let owned = Arc::make_mut(shared);
        owned.hash = OnceLock::new();
        &mut owned.bytes
    }

    /// Copies what lies at `offset` into `into`, and says how much that was.
    pub(super) fn read(&self, into: &mut [u8], offset: u64) -> usize {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        let mut done = 0;
        while done < wanted {
            let (page, at) = split(offset + done as u64);
            let piece = (PAGE - at).min(wanted - done);
            let target = &mut into[done..done + piece];
            match self.page(page) {
                Some(page) => target.copy_from_slice(&page.bytes[at..at + piece]),
                None => target.fill(0),
            }
            done += piece;
        }
        wanted
    }

    /// Puts `from` at `offset`, growing as needed.
    pub(super) fn write(&mut self, from: &[u8], offset: u64) {
        let mut done = 0;
        while done < from.len() {
            let (page, at) = split(offset + done as u64);
            let piece = (PAGE - at).min(from.len() - done);
            let source = &from[done..done + piece];
            if piece == PAGE && source.iter().all(|&byte| byte == 0) {
                if self.page(page).is_none() {
                    self.allocated += 1;
                }
                *self.slot(page) = Some(Arc::clone(&ZEROS));
            } else {
                self.page_mut(page)[at..at + piece].copy_from_slice(source);
            }
            done += piece;
        }
        if !from.is_empty() {
            self.len = self.len.max(offset + from.len() as u64);
        }
    }

    /// Gives pages of zeros to what has none between `offset` and `offset + len`.
    pub(super) fn allocate(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.len);
        for page in split(offset).0..end.div_ceil(PAGE as u64) {
            if self.page(page).is_none() {
                self.allocated += 1;
                *self.slot(page) = Some(Arc::clone(&ZEROS));
            }
        }
    }

    /// Cuts or grows with a hole.
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let (page, at) = split(len);
            if at > 0 && self.page(page).is_some() {
                self.page_mut(page)[at..].fill(0);
            }
            self.drop_pages_from(if at > 0 { page + 1 } else { page });
        }
        self.len = len;
    }

    fn drop_pages_from(&mut self, page: u64) {
        let (group, at) = locate(page);
        let mut gone = self.groups.split_off(&group);
        if at > 0
            && let Some(mut kept) = gone.remove(&group)
        {
            let pages = Arc::make_mut(&mut kept);
            pages.hash = OnceLock::new();
            for slot in &mut pages.pages[at..] {
                self.allocated -= u64::from(slot.take().is_some());
            }
            self.groups.insert(group, kept);
        }
        let dropped = gone.values().flat_map(|group| group.pages.iter().flatten()).count();
        self.allocated -= dropped as u64;
    }

    /// A hash of all bytes; equal contents of equal length have equal ones.
    pub(super) fn hash(&self) -> u128 {
        self.groups.iter().fold(0, |sum, (at, group)| {
            let hash = group.hash();
            if hash == 0 { sum } else { sum.wrapping_add(placed(hash, *at)) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;

    fn whole(content: &Content) -> Vec<u8> {
        let mut bytes = vec![0xff; usize::try_from(content.len()).unwrap()];
        assert_eq!(content.read(&mut bytes, 0), bytes.len());
        bytes
    }

    /// Do pages, holes, cuts and shared versions behave as one plain vector would?
    #[test]
    fn it_behaves_as_a_plain_vector() {
        for seed in 0..4 {
            let mut rng = Rng::new(seed);
            let (mut content, mut model) = (Content::default(), Vec::<u8>::new());
            let mut versions = Vec::new();
            for _ in 0..60 {
                let at = rng.index(600_000);
                if rng.one_in(4) {
                    content.set_len(at as u64);
                    model.resize(at, 0);
                } else {
                    let size_max = if rng.one_in(4) { 20_000 } else { 700 };
                    let size = rng.index(size_max);
                    let mut bytes = vec![0; size];
                    if !rng.one_in(4) {
                        rng.fill(&mut bytes);
                    }
                    content.write(&bytes, at as u64);
                    if size > 0 {
                        model.resize(model.len().max(at + size), 0);
                        model[at..at + size].copy_from_slice(&bytes);
                    }
                }
                versions.push((content.clone(), model.clone()));
            }
            for (content, model) in &versions {
                assert_eq!(&whole(content), model, "seed {seed}");
                let mut fresh = Content::default();
                fresh.write(model, 0);
                fresh.set_len(model.len() as u64);
                assert_eq!(fresh.hash(), content.hash(), "seed {seed}");
                let held = content.groups.values().flat_map(|g| g.pages.iter().flatten()).count();
                assert_eq!(held as u64, content.pages(), "seed {seed}");
            }
        }
    }

    /// Does the hash see a page that moved, and one flipped bit?
    #[test]
    fn the_hash_sees_moves_and_flips() {
        let content = |bytes: &[u8], at| {
            let mut content = Content::default();
            content.write(bytes, at);
            content.hash()
        };
        let page = [9; PAGE];
        assert_ne!(content(&page, 0), content(&page, PAGE as u64));
        assert_ne!(content(&page, 0), content(&page, (PAGE * GROUP) as u64));
        let mut flipped = page;
        flipped[4000] ^= 1;
        assert_ne!(content(&page, 0), content(&flipped, 0));
    }
}
