//! Does salvage bring back what no snapshot of the rows knows of?

use std::path::Path;

use sealstone::check::{SalvageOptions, Salvaged, salvage};
use sealstone::engine::Store;
use sealstone::format::layout;
use sealstone::objects::{Digest, Expected, Name, Pieces, Publish, PutOptions};

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

/// Does a file of many pieces that was put and published after the last snapshot come back, and is one that
/// lost a piece none?
#[test]
fn obj9_salvage_puts_files_together_that_only_labels_tell() {
    let pieces = Pieces::Of { min: 1 << 10, avg: 4 << 10, max: 16 << 10 };
    let how = PutOptions { pieces, ..PutOptions::default() };
    let (many, unnamed) = (noise(1, 200_000), noise(3, 100_000));
    let (_folder, back, salvaged) = salvaged(|store| {
        let preparation = store.objects().prepare("p").unwrap();
        let stored = preparation.put_reader(&many[..], &how).unwrap();
        assert!(stored.pieces > 10, "{stored:?}");
        preparation.put_reader(&unnamed[..], &how).unwrap();
        preparation.publish(&[publish(&named("l/many"), &many)]).unwrap();
    });
    assert_unconfirmed(&salvaged, &["l/many", &Digest::of(&unnamed).to_string()]);
    reads(&back, &[(named("l/many"), many)]);
    assert!(back.objects().get(&Digest::of(&unnamed)).unwrap().bytes().unwrap() == unnamed);
}

/// Without what labels tell, is the name gone and the object alone kept? (mutant)
#[cfg(feature = "sim")]
#[test]
fn obj9_without_labels_nothing_tells_of_a_name() {
    use sealstone::protection::{Protection, switch_off};
    let _off = switch_off(Protection::LabelReferrers);
    let one = noise(2, 5000);
    let (_folder, back, salvaged) = salvaged(|store| {
        let preparation = store.objects().prepare("p").unwrap();
        preparation.put(&one).unwrap();
        preparation.publish(&[publish(&named("l/one"), &one)]).unwrap();
    });
    assert_unconfirmed(&salvaged, &[&Digest::of(&one).to_string()]);
    assert!(back.objects().name(&named("l/one")).unwrap().is_none());
}
