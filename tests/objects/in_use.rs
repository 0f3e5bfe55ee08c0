//! Who holds a store, and who may enter it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealstone::engine::{Layout, Store, WriteAccess};
use sealstone::manifest::{ClaimKind, ResourceKey};
use sealstone::vfs::{AroundDisk, Disk, RealDisk};
use sealstone::{Error, ErrorKind};

use crate::child::start;
use crate::made::*;

/// The machine's disk, in a process that says that it has another number.
#[derive(Debug)]
struct Numbered(Arc<RealDisk>, u32);

impl AroundDisk for Numbered {
    fn inner(&self) -> &dyn Disk {
        &*self.0
    }
    fn pid(&self) -> u32 {
        self.1
    }
}

/// A child that holds the store as process `pid`.
pub fn own(root: &Path, out: &Path, pid: u64) {
    let layout = match root.extension().is_some_and(|it| it == "one") {
        true => Layout::SingleFile,
        false => Layout::Directory,
    };
    let disk: Arc<dyn Disk> = match u32::try_from(pid).unwrap() {
        0 => RealDisk::new(),
        pid => Arc::new(Numbered(RealDisk::new(), pid)),
    };
    let kind = (layout, WriteAccess::Single);
    let store = options(kind).disk(disk).open_or_create(root).unwrap();
    let claim = store.claim(&ResourceKey::from("work"), ClaimKind::Maintenance).unwrap();
    std::fs::write(out.join("owns"), "").unwrap();
    loop {
        std::thread::park();
        std::hint::black_box(&claim);
    }
}

fn assert_in_use(refused: &Error, pid: u32) {
    assert_eq!(refused.kind(), ErrorKind::InUse, "{refused}");
    let text = refused.to_string();
    let host = RealDisk::new().host();
    assert!(text.contains(&format!("process {pid} on {host}")), "{text}");
    let since = text.split("since ").nth(1).and_then(|rest| rest.split(' ').next());
    let since: u64 = since.unwrap().parse().unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    assert!(since <= now && now - since < 600_000, "{text}: it is {now} ms");
}

/// Is a second opener told who holds the store, since when and where, after the wait that it asked for;
/// is the store free at once when the holder was killed, and is another process that has the dead one's
/// number by now in nobody's way?
#[test]
fn obj30_in_use_names_the_holder_and_ends_with_it() {
    for (name, pid) in [("run.stone", 0), ("run.one", 0), ("again.stone", 1), ("again.one", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let (root, out) = (folder.path().join(name), folder.path());
        // The number that the dead one leaves is ours: a process that lives.
        let pid = if pid == 0 { 0 } else { std::process::id() };
        let mut owner = start("owner", &root, out, u64::from(pid));
        owner.wait_for("owns");
        let said = if pid == 0 { owner.id() } else { pid };
        let began = Instant::now();
        assert_in_use(&options(KINDS[0]).open(&root).unwrap_err(), said);
        assert!(began.elapsed() < Duration::from_secs(5), "it waited unasked");
        let began = Instant::now();
        assert_in_use(&options(KINDS[0]).wait_millis(300).open(&root).unwrap_err(), said);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(300) && waited < Duration::from_secs(10));
        // A reader asks for nothing that is held.
        drop(options(KINDS[0]).open_read_only(&root).unwrap());
        owner.kill();
        let store = options(KINDS[0]).open(&root).unwrap();
        assert!(store.claims(9).unwrap().is_empty(), "a dead process holds a claim");
        drop(store.claim(&ResourceKey::from("work"), ClaimKind::Maintenance).unwrap());
        store.close().unwrap();
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Every directory and file of a store, with its mode.
fn modes(root: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = vec![(root.to_owned(), mode(root))];
    if root.is_dir() {
        for entry in std::fs::read_dir(root).unwrap() {
            all.extend(modes(&entry.unwrap().path()));
        }
    }
    all.sort();
    all
}

/// Is a root that others may enter refused until that is allowed, and is no directory that was there ever
/// given another mode?
#[test]
fn obj32_a_root_that_others_may_enter_is_refused_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    for (n, open) in
        [0o750, 0o705, 0o710, 0o701, 0o720, 0o702, 0o777, 0o755].into_iter().enumerate()
    {
        let root = folder.path().join(format!("{n}.stone"));
        std::fs::create_dir(&root).unwrap();
        set_mode(&root, open);
        let refused = [
            options(KINDS[0]).create(&root).unwrap_err(),
            options(KINDS[1]).create(&root).unwrap_err(),
            options(KINDS[0]).open_or_create(&root).unwrap_err(),
        ];
        for refused in refused {
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{open:o}: {refused}");
            assert!(refused.cause().contains("allow"), "{refused}");
        }
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0, "something was made in it");
        let allowed = || options(KINDS[0]).allow_shared_root(true);
        allowed().create(&root).unwrap().close().unwrap();
        assert_eq!(mode(&root), open, "it was given another mode");
        let made: Vec<_> = modes(&root).split_off(1);
        assert!(made.iter().all(|(_, mode)| mode & 0o077 == 0), "{made:?}");
        for refused in [options(KINDS[0]).open(&root), options(KINDS[0]).open_read_only(&root)] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid, "{open:o}");
        }
        drop(allowed().open_read_only(&root).unwrap());
        allowed().open(&root).unwrap().close().unwrap();
        assert_eq!(mode(&root), open, "it was given another mode");
        set_mode(&root, 0o700);
        options(KINDS[0]).open(&root).unwrap().close().unwrap();
    }
    // What is inside keeps its modes as well.
    let root = folder.path().join("inside.stone");
    let store = options(KINDS[0]).create(&root).unwrap();
    plain(&store, &named("t/x"), &noise(1, 900));
    store.close().unwrap();
    for inside in ["sealed", "journal", "tmp", "owners", "sealed/00"] {
        set_mode(&root.join(inside), 0o755);
    }
    set_mode(&root, 0o500);
    let before: Vec<_> = modes(&root);
    let reader = options(KINDS[0]).open_read_only(&root).unwrap();
    assert_eq!(reader.objects().open(&named("t/x")).unwrap().bytes().unwrap(), noise(1, 900));
    drop(reader);
    assert_eq!(modes(&root), before);
    set_mode(&root, 0o700);
    let store = options(KINDS[0]).open(&root).unwrap();
    store.reclaim(Default::default()).unwrap();
    store.close().unwrap();
    for inside in ["sealed", "journal", "tmp", "owners", "sealed/00"] {
        assert_eq!(mode(&root.join(inside)), 0o755, "{inside}");
    }
}

/// And a single file that others may write?
#[test]
fn obj32_a_file_that_others_may_write_is_refused_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    options(KINDS[2]).create(&root).unwrap().close().unwrap();
    assert_eq!(mode(&root), 0o600);
    for open in [0o620, 0o602, 0o666] {
        set_mode(&root, open);
        for refused in [options(KINDS[2]).open(&root), options(KINDS[2]).open_read_only(&root)] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid, "{open:o}");
        }
        let store: Store = options(KINDS[2]).allow_shared_root(true).open(&root).unwrap();
        store.close().unwrap();
        assert_eq!(mode(&root), open, "it was given another mode");
    }
    // One that they may read is how files travel.
    set_mode(&root, 0o644);
    options(KINDS[2]).open(&root).unwrap().close().unwrap();
    assert_eq!(mode(&root), 0o644);
}
