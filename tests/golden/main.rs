//! Does this release read, and write, what the first one wrote? (G26)
//!
//! `first` was closed; `first-unclean` was left by a kill: unsealed records in a journal, a write
//! that was torn, files that were condemned, a claim of the dead. What each holds is in the text
//! beside it. `examples/golden.rs` wrote them; they are not written again.

mod describe;

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Store};

use describe::describe;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Copies a store as it was: what version control does not keep are modes and empty folders.
fn copy(from: &Path, to: &Path) {
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir_all(to).unwrap();
    mode(to, 0o700);
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
            mode(&target, 0o600);
        }
    }
}

fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    copy(&golden(name), &root);
    for folder in ["journal", "tmp", "owners", "sealed/00", "sealed/01"] {
        let path = root.join(folder);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    (dir, root)
}

fn expected(name: &str) -> String {
    std::fs::read_to_string(golden(&format!("{name}.txt"))).unwrap()
}

fn assert_good(root: &Path) {
    let report = check(root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
}

/// Reads it, writes it, and reads it again.
fn lives_on(name: &str) {
    let (_dir, root) = copied(name);
    assert_good(&root);
    let store = Store::open_read_only(&root).unwrap();
    assert_eq!(describe(&store).unwrap(), expected(name), "read-only");
    drop(store);
    let store = Store::open(&root).unwrap();
    assert_eq!(describe(&store).unwrap(), expected(name), "opened for writing");
    assert!(store.claims(10).unwrap().is_empty());
    let unclean = name.ends_with("unclean");
    let recovery = store.recovery();
    assert_eq!(recovery.ended.len(), usize::from(unclean), "{recovery:?}");
    assert_eq!(recovery.torn.len(), usize::from(unclean), "{recovery:?}");
    assert!(recovery.records > 0 && recovery.set_aside.is_empty(), "{recovery:?}");
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    assert!(reclaimed.files > 0, "{reclaimed:?}");
    store.create_stream("of this release").unwrap();
    assert!(store.accounts().unwrap().are_closed());
    store.close().unwrap();
    assert_good(&root);
    let store = Store::open_read_only(&root).unwrap();
    let now = describe(&store).unwrap();
    let new = now.lines().find(|line| line.contains("of this release")).unwrap();
    assert_eq!(now.replace(&format!("{new}\n"), ""), expected(name), "after a new commit");
}

#[test]
fn g26_the_first_format_is_read_and_written() {
    lives_on("first");
}

#[test]
fn g26_an_unclean_store_of_the_first_format_recovers() {
    lives_on("first-unclean");
}

/// Are the golden stores small, and is the text about them more than a heading?
#[test]
fn golden_stores_are_small_and_say_something() {
    for name in ["first", "first-unclean"] {
        let mut bytes = 0;
        let mut dirs = vec![golden(name)];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => dirs.push(entry.path()),
                    false => bytes += entry.metadata().unwrap().len(),
                }
            }
        }
        assert!((20_000..640 << 10).contains(&bytes), "{name}: {bytes}");
        assert!(expected(name).lines().count() > 25);
    }
}
