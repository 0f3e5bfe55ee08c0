//! What was put and is not sealed yet: contents, and lists of pieces, in the order in which they came.
//!
//! Each content has a number that no other one of the preparation has, by which lists of pieces name it until
//! it is an object. Nothing here does I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::options::Compress;
use crate::digest::Digest;
use crate::ids::ObjectId;
use crate::manifest::ObjectRow;
use crate::protection::Protection;

/// Bytes that become one object.
#[derive(Debug, Clone)]
pub(super) struct Queued {
    pub(super) digest: Digest,
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) compress: Compress,
    /// Put as it is, and not as a piece alone.
    pub(super) is_whole: bool,
}

/// Where a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// In an object that is leased.
    Stored(ObjectId),
    /// In the content of this number.
    Queued(u64),
}

/// A piece of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) at: At,
    pub(super) len: u32,
}

/// Pieces in order.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    pub(super) pieces: Vec<Named>,
    /// So many of the first are stored.
    stored_upto: usize,
}

/// A whole list of pieces.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) digest: Digest,
    pub(super) len: u64,
    pub(super) list: List,
    /// An object of just this content, which was read and verified, as its row was then.
    pub(super) known: Option<(ObjectId, ObjectRow)>,
}

/// A content of a batch.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) number: u64,
    pub(super) content: Queued,
    /// Lists that are not whole yet name it.
    pub(super) is_open: bool,
}

/// What one transaction stores.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// In the order of their numbers.
    pub(super) contents: Vec<Taken>,
    pub(super) lists: Vec<Listed>,
    /// Contents that only lists name which are stored already.
    pub(super) spare: Vec<Taken>,
    /// Objects whose leases as pieces nobody needs any more.
    pub(super) released: Vec<ObjectId>,
}

/// How much goes into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// What was put.
    Put,
    /// That, and pieces of what is being put.
    All,
    /// What is kept for nobody any more, and nothing that was put.
    Released,
}

/// What was put and is not sealed yet.
#[derive(Debug, Default)]
pub(super) struct Queue {
    contents: BTreeMap<u64, Queued>,
    by_digest: HashMap<Digest, u64>,
    /// Bytes of `contents`.
    bytes: u64,
    contents_made: u64,
    /// Lists of what is being put.
    open: BTreeMap<u64, List>,
    lists_made: u64,
    /// Whole lists, and their digests.
    lists: Vec<Listed>,
    listed: HashSet<Digest>,
    /// Objects that are leased as pieces, and how often lists that are not written name each.
    held: HashMap<ObjectId, u64>,
    released: Vec<ObjectId>,
}

impl Queue {
    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether content of this digest waits.
    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.by_digest.contains_key(digest) || self.listed.contains(digest)
    }

    /// As [`Queue::has`]; where it does, it is put as it is from now on.
    pub(super) fn has_whole(&mut self, digest: &Digest) -> bool {
        let known = self.by_digest.get(digest).and_then(|number| self.contents.get_mut(number));
        match known {
            Some(known) => known.is_whole = true,
            None => return self.listed.contains(digest),
        }
        true
    }

    /// Adds a content, or finds it; its number.
    fn add(&mut self, queued: Queued) -> u64 {
        if let Some(number) = self.by_digest.get(&queued.digest)
            && let Some(known) = self.contents.get_mut(number)
        {
            known.is_whole |= queued.is_whole;
            return *number;
        }
        let number = self.contents_made;
        self.contents_made += 1;
        self.insert(number, queued);
        number
    }

    fn insert(&mut self, number: u64, queued: Queued) {
        self.bytes += queued.bytes.len() as u64;
        self.by_digest.insert(queued.digest, number);
        self.contents.insert(number, queued);
    }

    /// A content is not among those that wait any more.
    fn forget(&mut self, number: u64, content: &Queued) {
        if self.by_digest.get(&content.digest) == Some(&number) {
            self.by_digest.remove(&content.digest);
        }
        self.bytes -= content.bytes.len() as u64;
    }

    /// Adds a content that is put as it is.
    pub(super) fn add_whole(&mut self, digest: Digest, bytes: Arc<Vec<u8>>, compress: Compress) {
        self.add(Queued { digest, bytes, compress, is_whole: true });
    }

    /// Begins a list.
    pub(super) fn begin_list(&mut self) -> u64 {
        self.lists_made += 1;
        self.open.insert(self.lists_made, List::default());
        self.lists_made
    }

    /// Adds a piece to a list, where its content waits; whether it does.
    pub(super) fn add_known_piece(&mut self, list: u64, digest: &Digest, len: usize) -> bool {
        let Some(number) = self.by_digest.get(digest).copied() else { return false };
        self.name_piece(list, number, len);
        true
    }

    /// Adds a piece to a list.
    pub(super) fn add_piece(
        &mut self,
        list: u64,
        digest: Digest,
        bytes: Arc<Vec<u8>>,
        compress: Compress,
    ) {
        let len = bytes.len();
        let number = self.add(Queued { digest, bytes, compress, is_whole: false });
        self.name_piece(list, number, len);
    }

    fn name_piece(&mut self, list: u64, number: u64, len: usize) {
        if let Some(list) = self.open.get_mut(&list) {
            list.pieces.push(Named { at: At::Queued(number), len: len as u32 });
        }
    }

    /// A list is whole.
    pub(super) fn end_list(&mut self, list: u64, digest: Digest, len: u64) {
        if let Some(list) = self.open.remove(&list) {
            self.listed.insert(digest);
            self.lists.push(Listed { digest, len, list, known: None });
        }
    }

    /// A list will never be whole: what it named is kept for it no more.
    pub(super) fn give_up_list(&mut self, list: u64) {
        let Some(list) = self.open.remove(&list) else { return };
        let gone = self.let_go(&list);
        self.released.extend(gone);
    }

    /// Whether a list that is not written names `object`, which is leased as a piece.
    pub(super) fn is_held(&self, object: ObjectId) -> bool {
        self.held.contains_key(&object)
    }

    /// A list names its objects no more; those that none names now.
    fn let_go(&mut self, list: &List) -> Vec<ObjectId> {
        let mut gone = Vec::new();
        for object in list.objects() {
            if let Some(count) = self.held.get_mut(&object) {
                *count -= 1;
                if *count == 0 {
                    self.held.remove(&object);
                    gone.push(object);
                }
            }
        }
        gone
    }

    fn hold(&mut self, list: &List) {
        for object in list.objects() {
            *self.held.entry(object).or_default() += 1;
        }
    }

    /// Takes the next batch out, if anything waits.
    pub(super) fn take(&mut self, how: Take) -> Option<Batch> {
        if how == Take::Released {
            let released = std::mem::take(&mut self.released);
            let batch = Batch { released, ..Batch::default() };
            return (!batch.is_empty()).then_some(batch);
        }
        let open: BTreeSet<u64> = self.open.values().flat_map(List::numbers).collect();
        let lists = std::mem::take(&mut self.lists);
        self.listed.clear();
        let listed: BTreeSet<u64> =
            lists.iter().flat_map(|listed: &Listed| listed.list.numbers()).collect();
        let mut batch = Batch { lists, ..Batch::default() };
        for (number, content) in std::mem::take(&mut self.contents) {
            let is_open = open.contains(&number);
            let is_put = content.is_whole || listed.contains(&number);
            if is_put || (is_open && how == Take::All) {
                self.forget(number, &content);
                batch.contents.push(Taken { number, content, is_open });
            } else if is_open {
                self.contents.insert(number, content);
            } else {
                // Only what was given up named it.
                self.forget(number, &content);
            }
        }
        batch.released = std::mem::take(&mut self.released);
        for listed in &batch.lists {
            let gone = self.let_go(&listed.list);
            batch.released.extend(gone);
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// A batch was not stored: it waits again.
    pub(super) fn give_back(&mut self, batch: Batch) {
        batch.lists.iter().for_each(|listed| self.hold(&listed.list));
        for Taken { number, content, .. } in batch.contents.into_iter().chain(batch.spare) {
            self.insert(number, content);
        }
        self.listed.extend(batch.lists.iter().map(|listed| listed.digest));
        let later = std::mem::replace(&mut self.lists, batch.lists);
        self.lists.extend(later);
        self.released.extend(batch.released);
    }

    /// A batch was stored, its contents as `objects`; `unneeded` are leased as pieces for nobody.
    pub(super) fn stored(&mut self, batch: &Batch, objects: &[ObjectId], unneeded: &[ObjectId]) {
        let mut held = Vec::new();
        let waiting = self.lists.iter_mut().map(|listed| &mut listed.list);
        for list in self.open.values_mut().chain(waiting) {
            list.store(batch, objects, &mut held);
        }
        // OBJ3: what a list that is not written names is leased as long as it is.
        if Protection::PieceLeases.is_on() {
            for object in held {
                *self.held.entry(object).or_default() += 1;
            }
        }
        // What was given up meanwhile named the others.
        let open = batch.contents.iter().zip(objects).filter(|(taken, _)| taken.is_open);
        let left = open.map(|(_, object)| *object).chain(unneeded.iter().copied());
        let left: Vec<ObjectId> = left.filter(|object| !self.is_held(*object)).collect();
        self.released.extend(left);
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.contents.is_empty() && self.lists.is_empty() && self.released.is_empty()
    }

    /// Sets aside what only lists name which are stored already.
    pub(super) fn spare_known(&mut self) {
        let unknown = self.lists.iter().filter(|listed| listed.known.is_none());
        let needed: BTreeSet<u64> = unknown.flat_map(|listed| listed.list.numbers()).collect();
        let (kept, spare) = std::mem::take(&mut self.contents).into_iter().partition(|taken| {
            taken.content.is_whole || taken.is_open || needed.contains(&taken.number)
        });
        self.contents = kept;
        self.spare = spare;
    }

    /// The digests of contents that lists name, whole or not.
    pub(super) fn digests_of_pieces(&self) -> BTreeSet<Digest> {
        let listed: BTreeSet<u64> =
            self.lists.iter().flat_map(|listed| listed.list.numbers()).collect();
        let pieces = self.contents.iter().filter(|taken| {
            taken.is_open || !taken.content.is_whole || listed.contains(&taken.number)
        });
        pieces.map(|taken| taken.content.digest).collect()
    }

    /// The object of the content `number`.
    pub(super) fn object_of(&self, number: u64, objects: &[ObjectId]) -> Option<ObjectId> {
        let at = self.contents.binary_search_by_key(&number, |taken| taken.number).ok()?;
        objects.get(at).copied()
    }

    /// The digest of a content of it.
    pub(super) fn digest_of(&self, number: u64) -> Option<Digest> {
        let at = self.contents.binary_search_by_key(&number, |taken| taken.number).ok()?;
        self.contents.get(at).map(|taken| taken.content.digest)
    }
}

impl List {
    /// Whether every piece waits still.
    pub(super) fn is_waiting(&self) -> bool {
        self.objects().next().is_none()
    }

    /// The objects that it names.
    fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.pieces.iter().filter_map(|named| match named.at {
            At::Stored(object) => Some(object),
            At::Queued(_) => None,
        })
    }

    /// The contents that it names.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let later = self.pieces.get(self.stored_upto..).unwrap_or_default();
        later.iter().filter_map(|named| match named.at {
            At::Queued(number) => Some(number),
            At::Stored(_) => None,
        })
    }

    /// Names the contents of a batch by their objects.
    fn store(&mut self, batch: &Batch, objects: &[ObjectId], held: &mut Vec<ObjectId>) {
        for named in self.pieces.get_mut(self.stored_upto..).unwrap_or_default() {
            if let At::Queued(number) = named.at
                && let Some(object) = batch.object_of(number, objects)
            {
                named.at = At::Stored(object);
                held.push(object);
            }
        }
        let is_stored = |named: &&Named| matches!(named.at, At::Stored(_));
        let later = self.pieces.get(self.stored_upto..).unwrap_or_default();
        self.stored_upto += later.iter().take_while(is_stored).count();
    }
}
