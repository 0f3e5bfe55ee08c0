//! Objects: each is read whole, compared with its digest, and copied into a file of the new store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::rows::Rows;
use super::source::{At, Source};
use crate::digest::Digest;
use crate::engine::stored;
use crate::error::{Error, Result};
use crate::format::footer::CODEC_NONE;
use crate::format::framed::decode_all;
use crate::format::layout;
use crate::ids::{FileId, ObjectId, OwnerId, UniqueId};
use crate::limits::Limits;
use crate::manifest::{FileRow, FileState, InlineRow, ObjectRow, Place};
use crate::sealed::{self, Builder, Built, Extent, Label, Referrer, STEP_BYTES, Stored};
use crate::vfs::{Disk, Step};

/// What is in the new store.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) rows: BTreeMap<ObjectId, ObjectRow>,
    pub(super) inline: BTreeMap<ObjectId, InlineRow>,
    pub(super) files: BTreeMap<FileId, FileRow>,
    pub(super) by_digest: HashMap<Digest, ObjectId>,
    /// What could not be had, and why.
    pub(super) lost: BTreeMap<ObjectId, String>,
    next_file: FileId,
}

/// One object to copy out of a file.
struct Wanted {
    object: ObjectId,
    row: ObjectRow,
    at: At,
}

/// Copies objects into the store that is being made at `root`.
pub(super) struct Copier<'s> {
    pub(super) source: &'s Source,
    pub(super) root: &'s Path,
    pub(super) folders: u16,
}

impl Copier<'_> {
    /// Copies the objects `needed` by rows.
    pub(super) fn copy_known(&self, rows: &Rows, needed: &BTreeSet<ObjectId>) -> Result<Objects> {
        let mut objects = Objects { next_file: rows.counters.file, ..Objects::default() };
        let mut by_file: BTreeMap<usize, Vec<Wanted>> = BTreeMap::new();
        let mut recipes = Vec::new();
        for object in needed {
            let Some(row) = rows.objects.get(object) else {
                objects.lost.insert(*object, "it has no row".to_owned());
                continue;
            };
            match (row.place, rows.inline.get(object)) {
                (Place::Inline, Some(inline)) if is_inline(row, &inline.bytes) => {
                    objects.inline.insert(*object, inline.clone());
                    objects.put(*object, row.clone());
                }
                (Place::Inline, _) => {
                    objects.lost.insert(*object, "its inline bytes are not there".to_owned());
                }
                (Place::Recipe, _) => recipes.push(*object),
                (Place::Extent { file, offset }, _) => {
                    let at = self.known_place(rows, file, &stored(row, offset));
                    let at = at.or_else(|| self.source.place_of(&row.digest));
                    match at {
                        Some(at) => {
                            let wanted = Wanted { object: *object, row: row.clone(), at };
                            by_file.entry(at.file).or_default().push(wanted);
                        }
                        None => {
                            let why = format!("no file holds {} any more", row.digest);
                            objects.lost.insert(*object, why);
                        }
                    }
                }
            }
        }
        for wanted in by_file.into_values() {
            self.copy_file(wanted, &mut objects)?;
        }
        self.take_recipes(rows, &recipes, &mut objects);
        Ok(objects)
    }

    /// Copies one extent that no row names, as `object`; false when it does not verify.
    pub(super) fn copy_new(
        &self,
        extent: &crate::format::footer::ExtentAt,
        at: At,
        object: ObjectId,
        objects: &mut Objects,
    ) -> Result<bool> {
        let row = ObjectRow {
            digest: extent.digest,
            len: extent.len,
            stored_len: extent.stored_len,
            codec: extent.codec,
            place: Place::Inline,
        };
        self.copy_file(vec![Wanted { object, row, at }], objects)?;
        Ok(objects.lost.remove(&object).is_none())
    }

    fn known_place(&self, rows: &Rows, file: FileId, extent: &Stored) -> Option<At> {
        let unique = rows.files.get(&file)?.unique;
        let file = *self.source.by_unique.get(&unique)?;
        Some(At { file, extent: *extent })
    }

    /// Objects of one source file into one file.
    fn copy_file(&self, mut wanted: Vec<Wanted>, objects: &mut Objects) -> Result<()> {
        let disk = &self.source.disk;
        wanted.sort_by_key(|wanted| wanted.at.extent.offset);
        let mut open: Option<(Builder, UniqueId)> = None;
        let mut placed = Vec::new();
        let mut referrers = Vec::new();
        for mut wanted in wanted {
            if !self.verified(&mut wanted) {
                let why = format!("its bytes are not those of {}", wanted.row.digest);
                objects.lost.insert(wanted.object, why);
                continue;
            };
            let (builder, _) = match &mut open {
                Some(open) => open,
                closed => closed.insert(self.begin(disk)?),
            };
            let row = &wanted.row;
            let about = self.about(&wanted);
            let (digest, len, codec) = (row.digest, row.len, row.codec);
            self.copy_stored(&wanted.at, builder)?;
            let at = builder.end(&Extent { digest, len, codec, about })?;
            self.refer(&wanted, placed.len(), &mut referrers);
            placed.push((wanted, at));
        }
        let Some((builder, unique)) = open else { return Ok(()) };
        let inputs = Vec::new();
        let (store, commit) = (self.source.store, self.source.witnessed);
        let built = builder.finish(&Label { store, commit, referrers, inputs })?;
        sealed::place(disk, self.root, std::slice::from_ref(&built), self.folders)?;
        objects.take_file(&built, unique, placed.iter().map(|(w, at)| (w, at.offset)));
        Ok(())
    }

    fn begin(&self, disk: &Arc<dyn Disk>) -> Result<(Builder, UniqueId)> {
        disk.mark(Step::SalvageCopy);
        let unique = unique(disk)?;
        let nobody = OwnerId::from_parts(0, [0; 10]);
        let block_bytes = Limits::default().block_bytes;
        Ok((Builder::create(disk, self.root, nobody, unique, block_bytes)?, unique))
    }

    /// G25: only what its digest fits is taken, from its place or another one; it is stored as it is there.
    fn verified(&self, wanted: &mut Wanted) -> bool {
        let digest = wanted.row.digest;
        if !self.source.holds(&wanted.at, &digest) {
            let Some(other) = self.source.place_of(&digest) else { return false };
            wanted.at = other;
        }
        let Stored { stored_len, len, codec, .. } = wanted.at.extent;
        wanted.row = ObjectRow { stored_len, len, codec, ..wanted.row.clone() };
        true
    }

    /// The stored bytes at a place, in steps.
    fn copy_stored(&self, at: &At, builder: &mut Builder) -> Result<()> {
        let (reader, extent) = (self.source.reader(at)?, &at.extent);
        builder.begin()?;
        let mut from = 0;
        while from < extent.stored_len {
            let to = from.saturating_add(STEP_BYTES).min(extent.stored_len);
            builder.push(&reader.read_range(extent.offset, extent.stored_len, from..to)?)?;
            from = to;
        }
        Ok(())
    }

    fn about<'s>(&'s self, wanted: &Wanted) -> &'s [u8] {
        let file = self.source.files.get(wanted.at.file);
        let mut extents = file.iter().flat_map(|file| &file.extents);
        let told = extents.find(|told| told.extent.offset == wanted.at.extent.offset);
        told.map_or(&[][..], |told| &told.about)
    }

    /// What the old label said of the object goes into the new one.
    fn refer(&self, wanted: &Wanted, position: usize, referrers: &mut Vec<Referrer>) {
        let Some(file) = self.source.files.get(wanted.at.file) else { return };
        let Some(label) = &file.label else { return };
        let at = file.extents.iter().position(|told| told.extent.offset == wanted.at.extent.offset);
        let of_it = label
            .referrers
            .iter()
            .filter(|row| row.extent.is_some_and(|extent| Some(extent as usize) == at));
        let extent = u32::try_from(position).ok();
        referrers.extend(of_it.map(|row| Referrer { extent, ..row.clone() }));
    }
}

impl Objects {
    pub(super) fn put(&mut self, object: ObjectId, row: ObjectRow) {
        self.by_digest.insert(row.digest, object);
        self.rows.insert(object, row);
    }

    fn take_file<'w>(
        &mut self,
        built: &Built,
        unique: UniqueId,
        placed: impl Iterator<Item = (&'w Wanted, u64)>,
    ) {
        self.next_file = FileId(self.next_file.0 + 1);
        let file = self.next_file;
        let mut live = 0;
        for (wanted, offset) in placed {
            live += wanted.row.stored_len;
            let place = Place::Extent { file, offset };
            self.put(wanted.object, ObjectRow { place, ..wanted.row.clone() });
        }
        let row = FileRow {
            digest: built.digest,
            unique,
            len: built.len,
            framing: built.framing,
            live,
            dead: 0,
            state: FileState::Sealed,
            sealed: Default::default(),
        };
        self.files.insert(file, row);
    }

    pub(super) fn last_file(&self) -> FileId {
        self.next_file
    }
}

/// Whether the bytes of an object that lies in the manifest are those of its digest.
fn is_inline(row: &ObjectRow, stored: &[u8]) -> bool {
    match row.codec {
        CODEC_NONE => Digest::of(stored) == row.digest,
        _ => decode_all(stored, row.len).is_ok_and(|raw| Digest::of(&raw) == row.digest),
    }
}

/// A name that no file had before.
pub(super) fn unique(disk: &Arc<dyn Disk>) -> Result<UniqueId> {
    let mut random = [0; 10];
    disk.entropy(&mut random).map_err(|e| Error::io("salvage", "entropy", e))?;
    let millis = disk.wall_nanos().map_or(0, |nanos| nanos.max(0) as u64 / 1_000_000);
    Ok(UniqueId::from_parts(millis, random))
}

/// The folders of a store that is being made at `root`, synced.
pub(super) fn make_folders(disk: &Arc<dyn Disk>, root: &Path, folders: u16) -> Result<()> {
    let mut wanted = vec![root.to_owned(), layout::journal_dir(root), layout::tmp_dir(root)];
    wanted.extend([layout::owners_dir(root), layout::sealed_dir(root)]);
    wanted.extend((0..folders).map(|folder| layout::sealed_folder(root, folder)));
    for path in &wanted {
        match disk.mkdir(path) {
            // Left by an earlier salvage.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => made.map_err(|e| Error::io("create", path.display(), e))?,
        }
    }
    for path in [layout::sealed_dir(root), root.to_owned()] {
        disk.sync_dir(&path).map_err(|e| Error::io("sync", path.display(), e))?;
    }
    Ok(())
}
