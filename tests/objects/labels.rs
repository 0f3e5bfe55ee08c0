//! Does salvage bring back what no snapshot of the rows knows of?

use std::path::Path;

use sealstone::check::{SalvageOptions, Salvaged, salvage};
use sealstone::engine::Store;
use sealstone::format::layout;
use sealstone::objects::{Digest, Expected, Name, Publish};

use crate::made::*;
use crate::moving::{DIRECTORY, is_good, reads};

/// A store that was closed when it was empty, `fill`ed, and killed; its manifest is lost.
fn salvaged(fill: impl FnOnce(&Store)) -> (tempfile::TempDir, Store, Salvaged) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    options(DIRECTORY).create(&root).unwrap().close().unwrap();
    let store = options(DIRECTORY).open(&root).unwrap();
    fill(&store);
    let killed = folder.path().join("killed.stone");
    copy_all(&root, &killed);
    std::fs::remove_file(layout::manifest(&killed)).unwrap();
    let to = folder.path().join("new.stone");
    let salvaged = salvage(&killed, &to, &SalvageOptions::default()).unwrap();
    is_good(&to);
    (folder, options(DIRECTORY).open(&to).unwrap(), salvaged)
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

fn publish(name: &Name, bytes: &[u8]) -> Publish {
    Publish { name: name.clone(), expected: Expected::Any, digest: Digest::of(bytes) }
}

fn assert_unconfirmed(salvaged: &Salvaged, words: &[&str]) {
    let told: Vec<String> = salvaged.unconfirmed.iter().map(ToString::to_string).collect();
    for word in words {
        assert!(told.iter().any(|one| one.contains(word)), "{word}: {told:#?}");
    }
    assert!(salvaged.lost.is_empty(), "{salvaged:#?}");
}

/// Does an object that was put and published after the last snapshot come back with its name, and one that
/// was not published under a lease?
#[test]
fn obj9_salvage_brings_names_back_that_only_labels_tell() {
    let (one, other) = (noise(2, 5000), noise(3, 6000));
    let (_folder, back, salvaged) = salvaged(|store| {
        let preparation = store.objects().prepare("p").unwrap();
        preparation.put(&one).unwrap();
        preparation.put(&other).unwrap();
        preparation.publish(&[publish(&named("l/one"), &one)]).unwrap();
    });
    assert_unconfirmed(&salvaged, &["l/one", &Digest::of(&other).to_string()]);
    reads(&back, &[(named("l/one"), one)]);
    assert!(back.objects().get(&Digest::of(&other)).unwrap().bytes().unwrap() == other);
}
