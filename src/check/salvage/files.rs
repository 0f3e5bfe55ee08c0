//! Files of any size: a recipe comes back where all of its pieces do, and what is lost is told by name.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::{Copier, Objects};
use super::report::Unconfirmed;
use super::rows::Rows;
use super::target::Target;
use crate::check::files::file_name;
use crate::digest::{Digest, Hasher};
use crate::format::footer::CODEC_NONE;
use crate::format::framed::decode_all;
use crate::format::told::{ToldName, ToldPieces};
use crate::ids::{CommitSeq, NameGeneration, ObjectId, ObjectSnapshotId};
use crate::manifest::{
    Key, LeasedRow, NameHandoffRow, NameKey, NameRow, ObjectRow, PIECES_PER_ROW_MAX, Piece, Place,
    RecipeRow, Row, SnapshotNameKey, SnapshotNameRow, Table, ValueForm, recipe_of, to_value,
};
use crate::sealed::Referrer;

impl Copier<'_> {
    /// Takes the recipes among the objects that rows need. Their pieces were copied, as far as they are there.
    pub(super) fn take_recipes(&self, rows: &Rows, recipes: &[ObjectId], objects: &mut Objects) {
        for object in recipes {
            let Some(row) = rows.objects.get(object) else { continue };
            match gap_in(rows, *object, row, objects) {
                None => objects.put(*object, row.clone()),
                Some(why) => {
                    objects.lost.insert(*object, why);
                }
            }
        }
    }
}

/// The first bytes of a recipe that are not there, and why.
fn gap_in(rows: &Rows, object: ObjectId, row: &ObjectRow, objects: &Objects) -> Option<String> {
    if row.stored_len != 0 || row.codec != 0 {
        return Some("its row contradicts itself".to_owned());
    }
    let mut at = 0u64;
    for ((_, begins), recipe) in rows.recipes.range(recipe_of(object)) {
        if *begins != at || recipe.pieces.is_empty() {
            break;
        }
        for piece in &recipe.pieces {
            let end = at.saturating_add(piece.len);
            match objects.rows.get(&piece.object) {
                Some(of) if of.len == piece.len && of.place != Place::Recipe => at = end,
                Some(_) => return Some(format!("its bytes {at}..{end} are another object")),
                None => {
                    let why = objects.lost.get(&piece.object).cloned().unwrap_or_default();
                    return Some(format!("its bytes {at}..{end} are lost: {why}"));
                }
            }
        }
    }
    (at != row.len).then(|| format!("byte {at} of it is in none of its pieces"))
}

/// Files and names that labels tell of.
#[derive(Debug, Default)]
pub(super) struct NewFiles {
    recipes: BTreeMap<Digest, BTreeMap<u64, Vec<(Digest, u64)>>>,
    names: BTreeMap<NameKey, ToldName>,
}

impl NewFiles {
    /// Takes note of a row that refers to no extent.
    pub(super) fn take(&mut self, told: &Referrer) {
        if Table::from_number(told.table) == Some(Table::Recipes)
            && let Some(told) = ToldPieces::read(&told.key, &told.value)
        {
            self.recipes.entry(told.whole).or_default().insert(told.begins, told.pieces);
        }
        if Table::from_number(told.table) == Some(Table::Names)
            && let (Ok(key), Some(name)) =
                (NameKey::from_bytes(&told.key), ToldName::read(&told.value))
        {
            // Which of two is the newer one is not known.
            self.names.insert(key, name);
        }
    }
}

impl Target<'_> {
    /// Recipes that only labels know, where all of their pieces are there; then names that do.
    pub(super) fn take_told_files(&mut self) {
        let NewFiles { recipes, names } = std::mem::take(&mut self.files);
        for (whole, runs) in recipes {
            if self.objects.by_digest.contains_key(&whole) {
                continue;
            }
            match self.told_recipe(&whole, &runs) {
                Ok(object) => {
                    let of = "which consists of pieces, by a label".to_owned();
                    self.told.insert(object, of);
                }
                Err(why) => self.salvaged.lose(format!("a file of pieces, {whole}"), 0, why),
            }
        }
        for (key, told) in names {
            self.take_told_name(key, &told);
        }
    }

    /// Makes the recipe; G25: only where its pieces together have its digest.
    fn told_recipe(
        &mut self,
        whole: &Digest,
        runs: &BTreeMap<u64, Vec<(Digest, u64)>>,
    ) -> std::result::Result<ObjectId, String> {
        let (mut at, mut hasher, mut rows) = (0u64, Hasher::default(), Vec::new());
        for (begins, run) in runs {
            if *begins != at {
                break;
            }
            for run in run.chunks(PIECES_PER_ROW_MAX) {
                let (begins, mut pieces) = (at, Vec::new());
                for (digest, len) in run {
                    let end = at.saturating_add(*len);
                    let lost = || format!("its bytes {at}..{end} are lost: {digest}");
                    let object = *self.objects.by_digest.get(digest).ok_or_else(lost)?;
                    let row = self.objects.rows.get(&object).ok_or_else(lost)?;
                    if row.len != *len || *len == 0 || row.place == Place::Recipe {
                        return Err(lost());
                    }
                    self.hash(&mut hasher, digest, object).ok_or_else(lost)?;
                    pieces.push(Piece { object, len: *len });
                    at = end;
                }
                rows.push((begins, RecipeRow { pieces }));
            }
        }
        if hasher.finish() != *whole {
            return Err(format!("its label tells of {at} bytes that are not all of it"));
        }
        self.next_object = ObjectId(self.next_object.0 + 1);
        let object = self.next_object;
        self.rows.recipes.extend(rows.into_iter().map(|(begins, row)| ((object, begins), row)));
        let place = Place::Recipe;
        let row = ObjectRow { digest: *whole, len: at, stored_len: 0, codec: 0, place };
        self.objects.put(object, row);
        Ok(object)
    }

    fn hash(&self, hasher: &mut Hasher, digest: &Digest, object: ObjectId) -> Option<()> {
        if let Some(inline) = self.objects.inline.get(&object) {
            let row = self.objects.rows.get(&object)?;
            match row.codec {
                CODEC_NONE => hasher.update(&inline.bytes),
                _ => hasher.update(&decode_all(&inline.bytes, row.len).ok()?),
            }
            return Some(());
        }
        let (_, bytes) = self.copier.source.by_digest(digest)?;
        hasher.update(&bytes);
        Some(())
    }

    /// A name that the snapshot does not know, for what is there. One that it knows keeps what it stood for:
    /// whether it was changed since is not known.
    fn take_told_name(&mut self, key: NameKey, told: &ToldName) {
        let bytes = key.to_bytes();
        let is_known = self.rows.others.contains_key(&(Table::Names, bytes.clone()));
        let object = self.objects.by_digest.get(&told.0).copied();
        let object = object.and_then(|object| Some((object, self.objects.rows.get(&object)?.len)));
        let name = file_name(&key).unwrap_or_else(|| key.name.clone());
        let (Some((object, len)), false) = (object, is_known) else { return };
        let row = NameRow {
            generation: NameGeneration(1),
            object,
            len,
            commit: CommitSeq(0),
            form: ValueForm::Bytes,
        };
        if let Ok(value) = to_value(&bytes, &row) {
            self.rows.others.insert((Table::Names, bytes), value);
            self.salvaged.unconfirmed.push(Unconfirmed::Name { name });
        }
    }

    /// Rows of recipes that did not come back go with them.
    pub(super) fn settle_recipes(&mut self) {
        let is_there = |object: &ObjectId| {
            self.objects.rows.get(object).is_some_and(|row| row.place == Place::Recipe)
        };
        self.rows.recipes.retain(|(object, _), _| is_there(object));
    }

    /// Snapshots of names say how much is in them.
    pub(super) fn count_snapshots(&mut self) {
        let mut sums: BTreeMap<ObjectSnapshotId, (u64, u64)> = BTreeMap::new();
        self.rows.snapshot_names.retain(|key, row| {
            let is_there = self.objects.rows.contains_key(&row.object);
            if is_there {
                let sum = sums.entry(key.snapshot).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(row.len));
            } else {
                let why = self.objects.lost.get(&row.object).cloned().unwrap_or_default();
                let name = file_name(&key.name).unwrap_or_else(|| key.name.name.clone());
                let what = format!("the file {name:?} of snapshot {}", key.snapshot);
                self.salvaged.lose(what, 0, why);
            }
            is_there
        });
        for row in self.rows.object_snapshots.values_mut() {
            (row.names, row.bytes) = sums.get(&row.snapshot).copied().unwrap_or_default();
        }
    }
}

/// What a row of this key is, for people.
pub(super) fn named(table: Table, key: &[u8]) -> String {
    let name = |key: NameKey| match file_name(&key) {
        Some(name) => format!("the file {name:?}"),
        None => format!("the value of {:?}", key.name),
    };
    let known = if table == NameRow::TABLE {
        NameKey::from_bytes(key).ok().map(name)
    } else if table == SnapshotNameRow::TABLE {
        let key = SnapshotNameKey::from_bytes(key).ok();
        key.map(|key| format!("{} of snapshot {}", name(key.name), key.snapshot))
    } else if table == NameHandoffRow::TABLE {
        let key = <NameHandoffRow as Row>::Key::from_bytes(key).ok();
        key.map(|handoff| format!("the pending publication {handoff}"))
    } else if table == LeasedRow::TABLE {
        let key = <LeasedRow as Row>::Key::from_bytes(key).ok();
        key.map(|(lease, object)| format!("object {object} of lease {lease}"))
    } else {
        None
    };
    known.unwrap_or_else(|| format!("a row of {}, key {key:02x?}", table.name()))
}

/// What is not carried over: work that was under way, and objects that nothing refers to.
pub(super) fn leave_retiring(rows: &mut Rows) {
    let mut retiring: BTreeSet<ObjectId> = BTreeSet::new();
    rows.others.retain(|(table, key), _| {
        if *table == Table::Retiring {
            retiring.extend(ObjectId::from_bytes(key));
        }
        !matches!(table, Table::Retiring | Table::Scrub)
    });
    rows.recipes.retain(|(object, _), _| !retiring.contains(object));
}
