//! Real processes: what a suspended one keeps, and what a killed one leaves.

use std::path::Path;
use std::process::Command;

use sealstone::ErrorKind;
use sealstone::engine::{Append, WriteAccess};
use sealstone::ids::StreamId;
use sealstone::vfs::RealDisk;

use crate::child::{Orders, Running};
use crate::support::{append, durable, options, texts};

/// What a holder does: claims a stream, appends without waiting, says so, and stays.
pub fn hold(root: &Path, out: &Path) {
    let store = options(RealDisk::new(), WriteAccess::Shared).open_or_create(root).unwrap();
    let stream = store.create_stream("held").unwrap();
    for n in 0..40 {
        let payload = format!("held {n}").into_bytes();
        store.append(vec![Append { stream, payload }]).unwrap();
    }
    store.barrier().unwrap();
    // Whoever finds it finds it whole.
    std::fs::write(out.join("ready.next"), stream.to_string()).unwrap();
    std::fs::rename(out.join("ready.next"), out.join("ready")).unwrap();
    loop {
        std::thread::park();
    }
}

fn holder(dir: &Path) -> (Running, std::path::PathBuf, StreamId) {
    let root = dir.join("run.stone");
    let mut holder = Orders::new("holder", &root, dir, 0).start();
    holder.wait_for("ready");
    let told = std::fs::read_to_string(dir.join("ready")).unwrap();
    (holder, root, StreamId(told.parse().unwrap()))
}

fn signal(which: &str, pid: u32) {
    assert!(Command::new("kill").args([which, &pid.to_string()]).status().unwrap().success());
}

/// Do two processes write into one store, is a suspended one not robbed, and does a killed one's
/// stream go on at its tail in the other? (G9, G17)
#[test]
fn g9_a_suspended_owner_keeps_its_stream_until_it_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (holder, root, held) = holder(dir.path());
    let store = options(RealDisk::new(), WriteAccess::Shared).open(&root).unwrap();
    let mine = store.create_stream("mine").unwrap();
    durable(&store, mine, "beside it").unwrap();
    signal("-STOP", holder.id());
    let refused = durable(&store, held, "no").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains(&format!("process {} ", holder.id())), "{refused}");
    assert!(store.take_over().unwrap().is_empty(), "a suspended owner was robbed");
    append(&store, mine, &["goes on"]);
    store.barrier().unwrap();
    let single = options(RealDisk::new(), WriteAccess::Single).open(&root).unwrap_err();
    assert_eq!(single.kind(), ErrorKind::InUse);
    for pid in [holder.id(), std::process::id()] {
        let named = single.to_string().contains(&format!("process {pid} "));
        assert!(named, "it does not name process {pid}: {single}");
    }
    signal("-CONT", holder.id());
    assert_eq!(durable(&store, held, "no").unwrap_err().kind(), ErrorKind::Conflict);
    holder.kill();
    durable(&store, held, "held 40").unwrap();
    let all: Vec<String> = (0..41).map(|n| format!("held {n}")).collect();
    assert_eq!(texts(&store, held), all);
    let reader = options(RealDisk::new(), WriteAccess::Single).open_read_only(&root).unwrap();
    assert_eq!(texts(&reader, held), all);
    assert_eq!(texts(&reader, mine), ["beside it", "goes on"]);
}
