//! Random runs against what can be said of any run: everything survived is what processes saw,
//! nothing pending survived after all syncs is that too, and nothing comes from nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sealstone::vfs::sim::{Outcome, Profile, Rng, SimDisk};
use sealstone::vfs::{Access, Disk, EntryKind, read_whole};

/// Every path with its content; directories have none.
type Seen = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Names each path that differs, with the lengths of its contents.
fn same(image: &Seen, wanted: &Seen, at: &str) {
    let paths: BTreeSet<_> = image.keys().chain(wanted.keys()).collect();
    let len = |content: Option<&Option<Vec<u8>>>| content.map(|c| c.as_ref().map(Vec::len));
    let differ = paths.into_iter().filter(|path| image.get(*path) != wanted.get(*path));
    let differ: Vec<_> =
        differ.map(|path| (path, len(image.get(path)), len(wanted.get(path)))).collect();
    assert!(differ.is_empty(), "{at}: (path, in the image, wanted) {differ:?}");
}

fn look(disk: &SimDisk, at: &Path, seen: &mut Seen) {
    for entry in disk.list(at).unwrap() {
        let path = at.join(&entry.name);
        if entry.kind == EntryKind::Directory {
            look(disk, &path, seen);
            seen.insert(path, None);
        } else {
            let file = disk.open(&path, Access::Read).unwrap();
            seen.insert(path, Some(read_whole(&*file, 1 << 20).unwrap()));
        }
    }
}

fn tree(disk: &SimDisk) -> Seen {
    let mut seen = Seen::new();
    look(disk, Path::new("/"), &mut seen);
    seen
}

fn path(rng: &mut Rng) -> PathBuf {
    let folder = ["/", "/d", "/e", "/d/f"][rng.index(4)];
    Path::new(folder).join(["a", "b", "c"][rng.index(3)])
}

/// One random call; refusals are part of the run.
fn act(disk: &SimDisk, rng: &mut Rng) {
    let (one, two) = (path(rng), path(rng));
    match rng.below(14) {
        0 | 1 => drop(disk.open(&one, Access::CreateNew)),
        2..=4 => {
            if let Ok(file) = disk.open(&one, Access::ReadWrite) {
                let mut bytes = vec![0; 1 + rng.index(1500)];
                rng.fill(&mut bytes);
                file.write_at(&bytes, rng.below(5000)).unwrap();
            }
        }
        5 => {
            if let Ok(file) = disk.open(&one, Access::ReadWrite) {
                file.set_len(rng.below(5000)).unwrap();
            }
        }
        6 | 7 => drop(disk.rename(&one, &two)),
        8 => drop(disk.link(&one, &two)),
        9 => drop(disk.unlink(&one)),
        10 | 11 => {
            if let Ok(file) = disk.open(&one, Access::ReadWrite) {
                file.sync_data().unwrap();
            }
        }
        12 => drop(disk.mkdir(Path::new(["/d", "/e", "/d/f", "/a"][rng.index(4)]))),
        _ => drop(disk.sync_dir(Path::new(["/", "/d", "/e", "/d/f"][rng.index(4)]))),
    }
}

fn sync_everything(disk: &SimDisk) {
    disk.sync_dir(Path::new("/")).unwrap();
    for (path, content) in tree(disk) {
        match content {
            Some(_) => disk.open(&path, Access::ReadWrite).unwrap().sync_data().unwrap(),
            None => disk.sync_dir(&path).unwrap(),
        }
    }
}

/// If everything pending survives, is that what processes saw? If everything was synced, is that
/// what survives, come what may?
///
/// A sync of the directory that a rename went to once let the file that had the name before win.
#[test]
fn all_survives_or_all_was_synced() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new(seed);
        for _ in 0..rng.below(80) {
            act(&disk, &mut rng);
        }
        let seen = tree(&disk);
        for profile in Profile::ALL {
            let mut cursor = disk.events().cursor(profile);
            cursor.advance_to(usize::MAX);
            let all = vec![Outcome::Full; cursor.pending_len()];
            same(&tree(&cursor.image(&all).disk()), &seen, &format!("seed {seed}, {profile:?}"));
        }
        sync_everything(&disk);
        for profile in Profile::ALL {
            let mut cursor = disk.events().cursor(profile);
            cursor.advance_to(usize::MAX);
            for outcomes in cursor.outcomes(&mut rng, 20) {
                let image = cursor.image(&outcomes.pending);
                same(&tree(&image.disk()), &seen, &format!("seed {seed}, {outcomes}"));
            }
        }
    }
}

/// Does any image, of any profile, hold a name or a byte that no run of the calls so far had?
/// A name may stand for whatever had it once, and a byte may be any that was written there, or
/// zero; nothing else.
#[test]
fn nothing_comes_from_nowhere() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new(seed);
        let mut names = BTreeSet::new();
        let mut bytes = vec![BTreeSet::from([0]); 7000];
        // Names and bytes that anything had, by the number of events.
        let mut cuts = Vec::new();
        for _ in 0..60 {
            act(&disk, &mut rng);
            for (path, content) in tree(&disk) {
                for (at, byte) in content.iter().flatten().enumerate() {
                    bytes[at].insert(*byte);
                }
                names.insert(path);
            }
            let events = disk.events().len();
            if cuts.last().is_none_or(|(cut, _, _)| *cut != events) {
                cuts.push((events, names.clone(), bytes.clone()));
            }
        }
        for profile in Profile::ALL {
            let mut cursor = disk.events().cursor(profile);
            for (cut, names, bytes) in &cuts {
                cursor.advance_to(*cut);
                for image in cursor.images(&mut rng, 8) {
                    for (path, content) in tree(&image.disk()) {
                        let at = format!("seed {seed}, {}: {}", image.outcomes(), path.display());
                        assert!(names.contains(&path), "{at}");
                        let known = |(at, byte): (usize, &u8)| bytes[at].contains(byte);
                        assert!(content.iter().flatten().enumerate().all(known), "{at}");
                    }
                }
            }
        }
    }
}
