//! Who may write: one process, by any spelling of the path, and at once when the last one died.

use std::path::Path;
use std::process::Command;

use sealstone::ErrorKind;
use sealstone::engine::{Append, Store};
use sealstone::manifest::{ClaimKind, ResourceKey};
use sealstone::vfs::RealDisk;

use crate::child::{Orders, Running};
use crate::content::{options, record};
use crate::loops::listing;

/// What a holder does: opens the store, takes a claim, says so, and stays.
pub fn hold(root: &Path, out: &Path) {
    let store = options(RealDisk::new()).open_or_create(root).unwrap();
    let stream = store.create_stream("held").unwrap();
    for sequence in 0..40 {
        let payload = record(stream, sequence);
        store.append(vec![Append { stream, payload }]).unwrap();
    }
    store.barrier().unwrap();
    let claim = store.claim(&ResourceKey::from("work"), ClaimKind::Stream).unwrap();
    // Whole or not there: whoever waits reads it at once.
    std::fs::write(out.join("ready.next"), stream.to_string()).unwrap();
    std::fs::rename(out.join("ready.next"), out.join("ready")).unwrap();
    loop {
        std::thread::park();
        std::hint::black_box(&claim);
    }
}

fn holder(dir: &Path) -> (Running, std::path::PathBuf) {
    let root = dir.join("run.stone");
    let _ = std::fs::remove_file(dir.join("ready"));
    let mut holder = Orders::new("holder", &root, dir, 0).start();
    holder.wait_for("ready");
    (holder, root)
}

fn assert_refused(path: &Path, pid: u32) {
    let refused = options(RealDisk::new()).open(path).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse, "{path:?}: {refused:?}");
    let named = refused.to_string().contains(&format!("process {pid} "));
    assert!(named, "{path:?}: it does not say that process {pid} holds it: {refused}");
}

/// Is a second writer refused, in another process and by every spelling of the path, and the store
/// free at once when the holder was killed? (G17)
#[test]
fn g17_one_writer_by_any_spelling_and_none_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (holder, root) = holder(dir.path());
    let link = dir.path().join("link.stone");
    std::os::unix::fs::symlink(&root, &link).unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("up")).unwrap();
    let mut to_root = std::path::PathBuf::new();
    for _ in std::env::current_dir().unwrap().components().skip(1) {
        to_root.push("..");
    }
    let spellings = [
        root.clone(),
        link,
        dir.path().join("up/run.stone"),
        root.join("../run.stone"),
        root.join("sealed/../."),
        to_root.join(root.strip_prefix("/").unwrap()),
    ];
    for path in &spellings {
        assert_refused(path, holder.id());
        // A reader is welcome.
        options(RealDisk::new()).open_read_only(path).unwrap();
    }
    holder.kill();
    for path in &spellings {
        let store = options(RealDisk::new()).open(path).unwrap();
        assert!(store.claims(10).unwrap().is_empty(), "a dead process holds a claim");
        store.close().unwrap();
    }
}

/// Is a suspended writer named and not robbed, and everything free once it is killed? (G9, G17)
#[test]
fn g9_a_suspended_writer_keeps_what_it_has_until_it_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (holder, root) = holder(dir.path());
    let stop = Command::new("kill").args(["-STOP", &holder.id().to_string()]).status().unwrap();
    assert!(stop.success());
    assert_refused(&root, holder.id());
    let refused = options(RealDisk::new()).wait_millis(60).open(&root).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    // Its claim stands and names it.
    let reader = options(RealDisk::new()).open_read_only(&root).unwrap();
    let claims = reader.claims(10).unwrap();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].holder.as_ref().unwrap().pid, holder.id());
    drop(reader);
    holder.kill();
    let store = options(RealDisk::new()).open(&root).unwrap();
    drop(store.claim(&ResourceKey::from("work"), ClaimKind::Stream).unwrap());
}

/// Does a reader of a store whose writer was killed see all that was acknowledged, and leave every
/// file as it is? (G20)
#[test]
fn g20_reading_after_a_kill_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (holder, root) = holder(dir.path());
    holder.kill();
    let stream = std::fs::read_to_string(dir.path().join("ready")).unwrap();
    let stream = sealstone::ids::StreamId(stream.parse().unwrap());
    let before = listing(&root);
    for _ in 0..3 {
        let store: Store = options(RealDisk::new()).open_read_only(&root).unwrap();
        let view = store.view(stream).unwrap();
        assert_eq!(crate::content::verify(&store, &view), Ok(40));
        assert_eq!(store.create_stream("no").unwrap_err().kind(), ErrorKind::ReadOnly);
        drop(store);
        assert_eq!(listing(&root), before);
    }
}
