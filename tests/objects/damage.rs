//! Is a damaged sealed file told by whoever reads it, and by a check, whichever byte of it it is?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sealstone::ErrorKind;
use sealstone::engine::Store;
use sealstone::format::layout;
use sealstone::manifest::{FileRow, ObjectRow, Place, Reading};
use sealstone::objects::{Digest, Name};

use crate::made::*;
use crate::moving::{DIRECTORY, compressed, looked, words};

/// A small store: a recipe of raw pieces, one of a compressed and a raw one, a compressed file, a raw one.
fn filled(store: &Store, root: &Path) -> Vec<(Name, Vec<u8>)> {
    let (short, raw) = (words(2, 900), noise(5, 70));
    let pieces = [noise(6, 80), noise(7, 90)];
    recipe(store, &named("m/raw pieces"), &pieces, 1);
    plain(store, &named("m/raw"), &raw);
    compressed(store, root, &[(named("m/compressed"), short.clone())], 1);
    let snapshot = store.snapshot().unwrap();
    let of = |bytes: &[u8]| {
        let (object, row) = snapshot.object_of(&Digest::of(bytes)).unwrap().remove(0);
        (object, row.len)
    };
    let parts = [of(&raw), of(&short)];
    let whole = [raw.clone(), short.clone()].concat();
    recipe_of(store, &named("m/both"), Digest::of(&whole), &parts, 1024);
    vec![
        (named("m/raw pieces"), pieces.concat()),
        (named("m/raw"), raw),
        (named("m/compressed"), short),
        (named("m/both"), whole),
    ]
}

/// The files in which the objects of names lie.
fn files(store: &Store, root: &Path) -> Vec<PathBuf> {
    let snapshot = store.snapshot().unwrap();
    let mut paths = BTreeSet::new();
    for (_, row) in snapshot.list::<ObjectRow>(.., usize::MAX).unwrap() {
        if let Place::Extent { file, .. } = row.place {
            let row = snapshot.require::<FileRow>(&file).unwrap();
            paths.insert(layout::sealed(root, &row.digest, row.unique, small().sealed_folders));
        }
    }
    paths.into_iter().collect()
}

/// Every file reads right, or is damage and names a place. Returns how many were damage.
fn read(root: &Path, made: &[(Name, Vec<u8>)], what: &str) -> usize {
    let store = options(DIRECTORY).open_read_only(root).unwrap();
    let mut damaged = 0;
    for (name, bytes) in made {
        let object = store.objects().open(name).unwrap();
        let len = bytes.len() as u64;
        for (from, to) in [(0, len), (len / 2, len)] {
            match object.range(from..to) {
                Ok(got) => assert!(got == bytes[from as usize..to as usize], "{name}, {what}"),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Damage, "{name}, {what}: {e}");
                    assert!(e.chain().contains("sealed/"), "{name}, {what}: {}", e.chain());
                    damaged += 1;
                }
            }
        }
    }
    store.close().unwrap();
    damaged
}

/// One flipped byte, whichever: readers get an error or the right bytes, and a check tells the file.
#[test]
fn obj2_any_flipped_byte_of_a_sealed_file_is_told_and_gives_no_wrong_byte() {
    let (folder, made, files) = store();
    let root = folder.path().join("run.stone");
    let (mut damaged, mut flips) = (0, 0);
    for path in &files {
        let whole = fs::read(path).unwrap();
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x40;
            fs::write(path, &bad).unwrap();
            damaged += read(&root, &made, &format!("byte {at} of {}", path.display()));
            if at % 5 == 0 {
                let report = looked(&root);
                let file = path.file_name().unwrap().to_str().unwrap();
                let told = report.findings.iter().any(|one| one.place.contains(file));
                assert!(told && !report.is_good(), "byte {at}: {:#?}", report.findings);
            }
            flips += 1;
        }
        fs::write(path, &whole).unwrap();
    }
    assert!(flips > 1000 && damaged > 500, "{flips} flips, {damaged} reads failed");
    assert_eq!(read(&root, &made, "as it was"), 0);
    assert!(looked(&root).is_good());
}

type Filled = (tempfile::TempDir, Vec<(Name, Vec<u8>)>, Vec<PathBuf>);

fn store() -> Filled {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    let store = options(DIRECTORY).create(&root).unwrap();
    let made = filled(&store, &root);
    let files = files(&store, &root);
    store.close().unwrap();
    (folder, made, files)
}

/// A file cut short anywhere: the objects in it are damage, everything else reads, and a check names them.
#[test]
fn obj28_a_sealed_file_cut_anywhere_damages_what_lies_in_it_alone() {
    let (folder, made, files) = store();
    let root = folder.path().join("run.stone");
    for path in &files {
        let whole = fs::read(path).unwrap();
        for len in (0..whole.len()).step_by(41).chain([whole.len() - 1]) {
            fs::write(path, &whole[..len]).unwrap();
            let damaged = read(&root, &made, &format!("{len} of {}", path.display()));
            assert!((1..2 * made.len()).contains(&damaged), "{damaged} at {len}");
            let report = looked(&root);
            let told = |word: &str| report.findings.iter().any(|one| one.means.contains(word));
            assert!(report.damages > 0 && told("m/"), "{len}: {:#?}", report.findings);
        }
        fs::write(path, &whole).unwrap();
    }
    assert_eq!(read(&root, &made, "as it was"), 0);
}
