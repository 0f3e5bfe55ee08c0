//! Stores of every layout and access, and objects of every place, made of rows: what tests of reading share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sealstone::Limits;
use sealstone::engine::{Layout, Options, Store, Thing, WriteAccess};
use sealstone::ids::{LeaseId, NameGeneration, ObjectId};
use sealstone::manifest::{
    NameKey, NameRow, Namespace, ObjectRow, Piece, Place, Reading, RecipeRow, ValueForm,
};
use sealstone::objects::{Digest, Name};
use sealstone::vfs::Step;

/// Bounds small enough that objects of a few hundred bytes lie in files, in blocks.
pub fn small() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.block_bytes = 4 << 10;
    limits.compact_dead_percent = 1;
    limits.manifest_cache_bytes = 1 << 20;
    limits.background = false;
    limits
}

/// How a store lies, and who may write into it.
pub const KINDS: [(Layout, WriteAccess); 3] = [
    (Layout::Directory, WriteAccess::Single),
    (Layout::Directory, WriteAccess::Shared),
    (Layout::SingleFile, WriteAccess::Single),
];

pub fn options((layout, access): (Layout, WriteAccess)) -> Options {
    Store::options().limits(small()).layout(layout).access(access)
}

/// Bytes that look like nothing, the same ones for the same seed.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |state: &mut u64| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        state.to_le_bytes()
    };
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend(next(&mut state));
    }
    bytes.truncate(len);
    bytes
}

pub fn lease(store: &Store) -> LeaseId {
    store.lease("test", "made", None, &[]).unwrap()
}

/// Stores contents under a lease, each as one object.
pub fn put(store: &Store, lease: LeaseId, contents: &[Vec<u8>]) -> Vec<ObjectId> {
    let put = store.put_objects(lease, contents.to_vec()).unwrap();
    put.into_iter().map(|(object, _)| object).collect()
}

/// Puts an object under a name in the place of what stood there.
pub fn name(store: &Store, name: &Name, object: ObjectId) {
    let key = key(name);
    store
        .transact(Step::StateCommit, |w| {
            let len = w.require::<ObjectRow>(&object)?.len;
            let generation = w.get::<NameRow>(&key)?.map_or(0, |row| row.generation.0) + 1;
            let (generation, commit) = (NameGeneration(generation), w.commit_seq());
            w.put(&key, &NameRow { generation, object, len, commit, form: ValueForm::Bytes })
        })
        .unwrap();
}

/// Takes a name away.
pub fn unname(store: &Store, name: &Name) {
    let key = key(name);
    store.transact(Step::RetireCommit, |w| w.remove::<NameRow>(&key).map(drop)).unwrap();
}

fn key(name: &Name) -> NameKey {
    let name = format!("{}\0{}", name.namespace(), name.name());
    NameKey { namespace: Namespace::OBJECTS, name }
}

/// Makes a recipe of pieces under a name: `per_row` of them to a row, under `digest`.
pub fn recipe_of(
    store: &Store,
    under: &Name,
    digest: Digest,
    pieces: &[(ObjectId, u64)],
    per_row: usize,
) -> ObjectId {
    let len = pieces.iter().map(|(_, len)| len).sum();
    let made = store.transact(Step::StateCommit, |w| {
        let object = w.next_object_id()?;
        let place = Place::Recipe;
        w.put(&object, &ObjectRow { digest, len, stored_len: 0, codec: 0, place })?;
        let mut at = 0;
        for run in pieces.chunks(per_row) {
            let pieces = run.iter().map(|(object, len)| Piece { object: *object, len: *len });
            let row = RecipeRow { pieces: pieces.collect() };
            let (begins, bytes) = (at, row.bytes().unwrap());
            w.put(&(object, begins), &row)?;
            at += bytes;
        }
        let (generation, commit) = (NameGeneration(1), w.commit_seq());
        let row = NameRow { generation, object, len, commit, form: ValueForm::Bytes };
        w.put(&key(under), &row)?;
        Ok(object)
    });
    made.unwrap().value
}

/// Stores `contents` as the pieces of one recipe, which nothing but `under` refers to.
pub fn recipe(store: &Store, under: &Name, contents: &[Vec<u8>], per_row: usize) -> ObjectId {
    let lease = lease(store);
    let ids = put(store, lease, contents);
    let pieces: Vec<_> = ids.into_iter().zip(contents.iter().map(|c| c.len() as u64)).collect();
    let object = recipe_of(store, under, Digest::of(&contents.concat()), &pieces, per_row);
    store.retire(&[Thing::Lease(lease)], "it has a recipe").unwrap();
    object
}

/// Stores `content` as one object, which nothing but `under` refers to.
pub fn plain(store: &Store, under: &Name, content: &[u8]) -> ObjectId {
    let lease = lease(store);
    let object = put(store, lease, &[content.to_vec()])[0];
    name(store, under, object);
    store.retire(&[Thing::Lease(lease)], "it has a name").unwrap();
    object
}

pub fn named(text: &str) -> Name {
    text.parse().unwrap()
}

/// An object of each place, under its name: inline, in a file, of one row of pieces, of many rows. Some
/// pieces are inline, and one occurs twice.
pub fn one_of_each(store: &Store) -> Vec<(Name, Vec<u8>)> {
    let small = noise(1, 40);
    let large = noise(2, 30_000);
    let pieces: Vec<_> =
        [900, 33, 5000, 1, 9000].iter().zip(3..).map(|(n, s)| noise(s, *n)).collect();
    let mut many: Vec<_> = (0..14).map(|s| noise(20 + s, 300 + 97 * s as usize)).collect();
    many.push(many[0].clone());
    let (a, b, c, d) = (named("t/inline"), named("t/file"), named("t/one row"), named("t/rows"));
    plain(store, &a, &small);
    plain(store, &b, &large);
    recipe(store, &c, &pieces, 1024);
    recipe(store, &d, &many, 4);
    vec![(a, small), (b, large), (c, pieces.concat()), (d, many.concat())]
}

/// The sealed files of a directory store.
pub fn sealed_files(root: &Path) -> BTreeSet<PathBuf> {
    let folders = std::fs::read_dir(root.join("sealed")).unwrap();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}
