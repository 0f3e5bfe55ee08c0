//! Seal: contents become durable, immutable bytes that no row names yet.
//!
//! ```text
//!   contents --- [seal] ---> SealedSet --- [take_in], inside one transaction ---> objects
//!                               \--- dropped: its files are rubbish, and removed
//! ```
//! P3: everything here is synced, names included, before a transaction may name it. Whether some
//! content is stored already is looked up here and decided again inside that transaction.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::core::Core;
use super::fetch::FileCache;
use super::label_rows::LabelRows;
use super::streamed::Streamed;
use crate::digest::Digest;
use crate::error::Result;
use crate::format::{framed, layout};
use crate::ids::{ObjectId, UniqueId};
use crate::manifest::{ObjectRow, Place, Reading};
use crate::protection::Protection;
use crate::sealed::{self, Builder, Built, Extent, Label, Reader, Referrer};

/// A row as a label tells it: table, key, value.
pub(crate) type RowText = (u8, Vec<u8>, Vec<u8>);

/// What takes the pieces of a content.
pub(crate) type OnPiece<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<()> + Send);

/// Contents of one set that are small enough for the manifest go there as long as they take together no
/// more than so many of the longest.
const INLINE_TOGETHER: u64 = 16;

/// Bytes to store as one object.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Their digest, where it is known.
    pub(crate) digest: Option<Digest>,
    /// What the sealed file's footer says of it.
    pub(crate) about: Vec<u8>,
    /// The row that will refer to it, for the label: table, key as far as it is known, and value as
    /// far as it is known.
    pub(crate) referrer: Option<RowText>,
    /// Rows without which that row says little, for the label.
    pub(crate) context: Arc<[RowText]>,
    /// What it was made of, by digest, for the label.
    pub(crate) inputs: Vec<Digest>,
    /// Not in the manifest, however short it is.
    pub(crate) in_file: bool,
    /// Compressed, where a sample says that it pays.
    pub(crate) compress: bool,
    /// In an object that has its bytes itself, since recipes name it: one that is a recipe is none for it.
    pub(crate) is_piece: bool,
}

impl Content {
    pub(crate) fn new(bytes: impl Into<Arc<Vec<u8>>>, referrer: Option<RowText>) -> Self {
        let (about, context, inputs) = (Vec::new(), Arc::default(), Vec::new());
        let (bytes, digest) = (bytes.into(), None);
        let (in_file, compress, is_piece) = (false, false, false);
        Self { bytes, digest, about, referrer, context, inputs, in_file, compress, is_piece }
    }
}

impl Content {
    /// Whether an object that is stored like `row` can be this content for all that names it.
    pub(super) fn suits(&self, row: &ObjectRow) -> bool {
        !(self.is_piece && row.place == Place::Recipe)
    }
}

/// Where a content's bytes are before its transaction.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// The same as an earlier content of this set.
    Same(usize),
    /// In an object that stood, and whose bytes were read and verified, when we looked.
    Known { object: ObjectId, row: ObjectRow },
    /// Small enough for the manifest.
    Inline,
    /// In a file of this set.
    Extent { file: usize, offset: u64, stored_len: u64, codec: u8 },
}

impl Part {
    /// To be built.
    const TO_BUILD: Self = Self::Extent { file: 0, offset: 0, stored_len: 0, codec: 0 };
}

/// Files placed under `sealed/` by this process that no row names yet: the sweep leaves them be.
pub(crate) type Building = Arc<Mutex<BTreeSet<UniqueId>>>;

/// Durable bytes that await the transaction that names them.
#[derive(Debug)]
pub(crate) struct SealedSet {
    pub(super) core: Arc<Core>,
    pub(super) building: Building,
    pub(super) contents: Vec<Content>,
    pub(super) digests: Vec<Digest>,
    /// Length of each content.
    pub(super) lens: Vec<u64>,
    pub(super) parts: Vec<Part>,
    /// For each content, the objects of its digest that did not give its bytes back.
    pub(super) unreadable: Vec<Vec<ObjectId>>,
    pub(super) files: Vec<Built>,
    /// Files that a committed row names now.
    pub(super) committed: BTreeSet<usize>,
    /// Files that were read back.
    pub(super) readers: Mutex<BTreeMap<usize, Arc<Reader>>>,
    /// Where the one content is that came piece by piece, and is not in memory.
    pub(super) streamed: Option<Part>,
}

impl SealedSet {
    /// Seals `contents`. The number of syncs follows the bytes, not the number of contents.
    pub(crate) fn seal(
        core: &Arc<Core>,
        cache: &FileCache,
        building: &Building,
        contents: Vec<Content>,
    ) -> Result<Self> {
        let of = |content: &Content| content.digest.unwrap_or_else(|| Digest::of(&content.bytes));
        let digests: Vec<Digest> = contents.iter().map(of).collect();
        let lens = contents.iter().map(|c| c.bytes.len() as u64).collect();
        let mut set = Self {
            core: Arc::clone(core),
            building: Arc::clone(building),
            parts: Vec::with_capacity(contents.len()),
            unreadable: vec![Vec::new(); contents.len()],
            lens,
            contents,
            digests,
            files: Vec::new(),
            committed: BTreeSet::new(),
            readers: Mutex::default(),
            streamed: None,
        };
        let mut first: BTreeMap<Digest, usize> = BTreeMap::new();
        for index in 0..set.contents.len() {
            let digest = set.digests[index];
            let part = if let Some(&earlier) = first.get(&digest) {
                Part::Same(earlier)
            } else {
                first.insert(digest, index);
                set.look_up(cache, index)?
            };
            set.parts.push(part);
        }
        set.pack_small();
        let is_built = |(_, part): &(usize, &Part)| matches!(part, Part::Extent { .. });
        let to_build: Vec<usize> =
            set.parts.iter().enumerate().filter(is_built).map(|(index, _)| index).collect();
        set.build(&to_build)?;
        Ok(set)
    }

    /// As [`SealedSet::seal`], of one content that `write` gives piece by piece: `content` says the
    /// rest, as `write` leaves it. Memory: a slice, and a frame where it is compressed. Whether it is stored
    /// already is looked up once its digest is known.
    pub(crate) fn seal_streamed(
        core: &Arc<Core>,
        building: &Building,
        content: Content,
        write: impl FnOnce(OnPiece<'_>, &mut Content) -> Result<()>,
    ) -> Result<Self> {
        let mut set = Self {
            core: Arc::clone(core),
            building: Arc::clone(building),
            parts: Vec::new(),
            unreadable: vec![Vec::new()],
            lens: Vec::new(),
            contents: vec![content],
            digests: Vec::new(),
            files: Vec::new(),
            committed: BTreeSet::new(),
            readers: Mutex::default(),
            streamed: None,
        };
        let (builder, unique) = set.begin()?;
        let mut stream = Streamed::begin(builder, set.contents[0].compress)?;
        write(&mut |piece| stream.push(piece), &mut set.contents[0])?;
        let (builder, digest, len, part) = stream.end(&set.contents[0].about)?;
        set.digests.push(digest);
        set.lens.push(len);
        set.streamed = Some(part.clone());
        set.parts.push(part);
        set.finish(builder, unique, &[0])?;
        set.place(0)?;
        Ok(set)
    }

    /// Small contents go to the manifest alone, and together to a file: what many publications of
    /// many would leave there makes it long, and every later commit dearer.
    fn pack_small(&mut self) {
        let small = |part: &Part| matches!(part, Part::Inline);
        let sizes = self.parts.iter().zip(&self.lens).filter(|(part, _)| small(part));
        let sum = sizes.fold(0u64, |sum, (_, len)| sum.saturating_add(*len));
        let few = self.core.limits.object_inline_bytes_max.saturating_mul(INLINE_TOGETHER);
        if sum <= few || !Protection::SmallTogether.is_on() {
            return;
        }
        for part in self.parts.iter_mut().filter(|part| small(part)) {
            *part = Part::TO_BUILD;
        }
    }

    /// Whether content `index` is stored already, and reads; else where it must go.
    pub(super) fn look_up(&mut self, cache: &FileCache, index: usize) -> Result<Part> {
        let content = &self.contents[index];
        let snapshot = self.core.snapshot()?;
        for (object, row) in snapshot.object_of(&self.digests[index])? {
            if !Protection::DedupeVerified.is_on()
                || super::fetch::holds(&self.core, cache, &snapshot, object, &row, &content.bytes)?
            {
                if !content.suits(&row) {
                    continue;
                }
                return Ok(Part::Known { object, row });
            }
            if self.is_still(object, &row)? {
                self.unreadable[index].push(object);
            }
        }
        if !content.in_file
            && content.bytes.len() as u64 <= self.core.limits.object_inline_bytes_max
        {
            return Ok(Part::Inline);
        }
        Ok(Part::TO_BUILD)
    }

    /// Builds, syncs and places files that hold the contents `indexes`.
    pub(super) fn build(&mut self, indexes: &[usize]) -> Result<()> {
        let first_file = self.files.len();
        let mut open: Option<(Builder, UniqueId, Vec<usize>)> = None;
        for &index in indexes {
            let (mut builder, unique, mut members) = match open.take() {
                Some(open) => open,
                None => {
                    let (builder, unique) = self.begin()?;
                    (builder, unique, Vec::new())
                }
            };
            let content = &self.contents[index];
            let (codec, stored) = stored_form(content)?;
            let len = content.bytes.len() as u64;
            let extent = Extent { digest: self.digests[index], len, codec, about: &content.about };
            let at = builder.add(&extent, &stored)?;
            let (file, stored_len) = (self.files.len(), at.stored_len);
            let part = Part::Extent { file, offset: at.offset, stored_len, codec };
            self.parts_at(index, part);
            members.push(index);
            if builder.content_len() >= self.core.limits.sealed_file_bytes {
                self.finish(builder, unique, &members)?;
            } else {
                open = Some((builder, unique, members));
            }
        }
        if let Some((builder, unique, members)) = open {
            self.finish(builder, unique, &members)?;
        }
        self.place(first_file)
    }

    /// Gives the files from `first_file` on their names.
    fn place(&self, first_file: usize) -> Result<()> {
        let folders = self.core.manifest.meta().sealed_folders;
        sealed::place(&self.core.disk, &self.core.root, &self.files[first_file..], folders)
            .inspect_err(|e| self.core.halt_if_sync_failed(e))
    }

    fn parts_at(&mut self, index: usize, part: Part) {
        if let Some(slot) = self.parts.get_mut(index) {
            *slot = part;
        }
    }

    fn begin(&self) -> Result<(Builder, UniqueId)> {
        let me = self.core.check_write("seal")?;
        let unique = self.core.unique()?;
        let (disk, root) = (&self.core.disk, &self.core.root);
        let builder = Builder::create(disk, root, me.owner, unique, self.core.limits.block_bytes)?;
        Ok((builder, unique))
    }

    fn finish(&mut self, builder: Builder, unique: UniqueId, members: &[usize]) -> Result<()> {
        let label = Label {
            store: self.core.manifest.meta().store,
            referrers: self.referrers(members),
            inputs: self.inputs(members),
            commit: self.core.manifest.commit_seq(),
        };
        self.building.lock().insert(unique);
        let built = builder.finish(&label).inspect_err(|e| {
            self.core.halt_if_sync_failed(e);
            self.building.lock().remove(&unique);
        })?;
        self.files.push(built);
        Ok(())
    }

    /// Takes in the contents of a set that was sealed after this one.
    pub(crate) fn join(&mut self, mut later: Self) {
        let (contents, files) = (self.contents.len(), self.files.len());
        let mut stored: BTreeMap<Digest, usize> = BTreeMap::new();
        for (index, digest) in self.digests.iter().enumerate() {
            stored.entry(*digest).or_insert(index);
        }
        for (part, digest) in std::mem::take(&mut later.parts).into_iter().zip(&later.digests) {
            self.parts.push(match (part, stored.get(digest)) {
                (_, Some(&earlier)) => Part::Same(earlier),
                (Part::Same(earlier), _) => Part::Same(contents + earlier),
                (Part::Extent { file, offset, stored_len, codec }, _) => {
                    Part::Extent { file: files + file, offset, stored_len, codec }
                }
                (part, _) => part,
            });
        }
        self.contents.append(&mut later.contents);
        self.digests.append(&mut later.digests);
        self.lens.append(&mut later.lens);
        self.unreadable.append(&mut later.unreadable);
        self.files.append(&mut later.files);
    }

    /// What contents `members` were made of.
    fn inputs(&self, members: &[usize]) -> Vec<Digest> {
        let contents = members.iter().filter_map(|member| self.contents.get(*member));
        contents.flat_map(|content| content.inputs.iter().copied()).collect()
    }

    /// What the label says of contents `members`.
    fn referrers(&self, members: &[usize]) -> Vec<Referrer> {
        let mut rows = LabelRows::default();
        if !Protection::LabelReferrers.is_on() {
            return rows.into_rows();
        }
        let mut told = None;
        for (extent, member) in (0..).zip(members) {
            let content = &self.contents[*member];
            // What many contents share is told once.
            if !told.is_some_and(|told| Arc::ptr_eq(told, &content.context)) {
                content.context.iter().for_each(|row| rows.context(row));
                told = Some(&content.context);
            }
            content.referrer.iter().for_each(|row| rows.referrer(extent, row.clone()));
        }
        rows.into_rows()
    }

    /// The digest of each content.
    pub(crate) fn digests(&self) -> &[Digest] {
        &self.digests
    }

    pub(super) fn path_of(&self, file: usize) -> Option<PathBuf> {
        let built = self.files.get(file)?;
        let folders = self.core.manifest.meta().sealed_folders;
        Some(layout::sealed(&self.core.root, &built.digest, built.unique, folders))
    }
}

/// The bytes of a content as they are stored, and their codec.
fn stored_form(content: &Content) -> Result<(u8, Cow<'_, [u8]>)> {
    if content.compress && framed::pays(&content.bytes) {
        let stored = framed::encode(&content.bytes)?;
        if stored.len() < content.bytes.len() {
            return Ok((framed::CODEC, stored.into()));
        }
    }
    Ok((0, Cow::Borrowed(&content.bytes[..])))
}

impl Drop for SealedSet {
    /// Takes away what no row names. Left-overs are orphans, which reclaim removes.
    fn drop(&mut self) {
        for file in 0..self.files.len() {
            let unique = self.files[file].unique;
            if !self.committed.contains(&file)
                && self.core.condition.is_working()
                && let Some(path) = self.path_of(file)
            {
                self.core.disk.mark(crate::vfs::Step::PublishDrop);
                let _ = self.core.disk.unlink(&path);
                let _ = self.core.disk.unlink(&self.files[file].tmp);
            }
            self.building.lock().remove(&unique);
        }
    }
}
