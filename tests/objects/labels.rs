//! Does salvage bring back what no snapshot of the rows knows of?

use std::path::Path;

use sealstone::check::{SalvageOptions, salvage};
use sealstone::format::layout;
use sealstone::objects::{Digest, Expected, Pieces, Publish, PutOptions};

use crate::made::*;
use crate::moving::{DIRECTORY, is_good, reads};

/// Does a file that was put and published after the last snapshot of the rows come back by its labels, of one
/// piece and of many, with its name?
#[test]
fn obj9_salvage_brings_back_what_only_labels_tell() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    options(DIRECTORY).create(&root).unwrap().close().unwrap();
    let store = options(DIRECTORY).open(&root).unwrap();
    let preparation = store.objects().prepare("p").unwrap();
    let pieces = PutOptions {
        pieces: Pieces::Of { min: 1 << 10, avg: 4 << 10, max: 16 << 10 },
        ..PutOptions::default()
    };
    let (many, one, unnamed) = (noise(1, 200_000), noise(2, 5000), noise(3, 100_000));
    let digest = preparation.put_reader(&many[..], &pieces).unwrap();
    assert!(digest.pieces > 10, "{digest:?}");
    preparation.put(&one).unwrap();
    preparation.put_reader(&unnamed[..], &pieces).unwrap();
    let publish = |name: &str, bytes: &[u8]| Publish {
        name: named(name),
        expected: Expected::Any,
        digest: Digest::of(bytes),
    };
    preparation.publish(&[publish("l/many", &many), publish("l/one", &one)]).unwrap();
    // As a kill leaves it, and then the manifest is lost: no snapshot of the rows knows of them.
    let killed = folder.path().join("killed.stone");
    copy_all(&root, &killed);
    std::fs::remove_file(layout::manifest(&killed)).unwrap();
    let to = folder.path().join("new.stone");
    let salvaged = salvage(&killed, &to, &SalvageOptions::default()).unwrap();
    let told: Vec<String> = salvaged.unconfirmed.iter().map(ToString::to_string).collect();
    for name in ["l/many", "l/one"] {
        assert!(told.iter().any(|one| one.contains(name)), "{told:#?}");
    }
    assert!(salvaged.lost.is_empty(), "{salvaged:#?}");
    is_good(&to);
    let back = options(DIRECTORY).open(&to).unwrap();
    reads(&back, &[(named("l/many"), many), (named("l/one"), one)]);
    let kept = back.objects().get(&Digest::of(&unnamed)).unwrap();
    assert!(kept.bytes().unwrap() == unnamed, "a lease keeps it");
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}
