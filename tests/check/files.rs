//! Files that are damaged, cut short, missing, in another's place or of another store.

use std::path::{Path, PathBuf};

use sealstone::ErrorKind;
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk};

use crate::support::{
    bytes_of, files, filled, flip, look, look_at, name_of, names, replace, root, text,
};

fn is_manifest(path: &Path) -> bool {
    path.ends_with("manifest.redb")
}

fn is_sealed(path: &Path) -> bool {
    path.starts_with(root().join("sealed"))
}

/// The sealed files that rows call sealed, not condemned.
fn sealed(disk: &SimDisk) -> Vec<PathBuf> {
    let all = files(disk).into_iter().map(|(path, _)| path).filter(|path| is_sealed(path));
    let live: Vec<_> = all
        .filter(|path| {
            let bytes = bytes_of(disk, path);
            disk.unlink(path).unwrap();
            let report = look(disk);
            let file = disk.open(path, Access::CreateNew).unwrap();
            sealstone::vfs::write_all_at(&*file, &bytes, 0).unwrap();
            report.damages > 0
        })
        .collect();
    assert!(live.len() > 3);
    live
}

/// Is a flipped bit anywhere in a sealed file, a journal or HEAD told with the file's name? (P6, G12)
#[test]
fn g12_a_flipped_bit_is_told_with_its_file() {
    let disk = filled(11);
    let live = sealed(&disk);
    let mut looked = 0;
    for (path, len) in files(&disk) {
        if is_manifest(&path) || (is_sealed(&path) && !live.contains(&path)) {
            continue;
        }
        // What lies behind a journal's end is nobody's.
        let used = bytes_of(&disk, &path).iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
        let step = (used.min(len) / 23).max(1);
        for at in (0..used.min(len)).step_by(step as usize).chain([used - 1]) {
            flip(&disk, &path, at);
            let report = look(&disk);
            assert!(names(&report, name_of(&path)), "{at} of {path:?}: {}", text(&report));
            flip(&disk, &path, at);
            looked += 1;
        }
    }
    assert!(looked > 150, "{looked}");
    assert!(look(&disk).findings.is_empty());
}

/// Is a flipped bit in the manifest an error, a finding, or in a page that nothing uses; never a
/// panic, and never silence about a row that changed? (G11)
#[test]
fn g11_a_flipped_bit_in_the_manifest_never_panics() {
    let disk = filled(12);
    let path = root().join("manifest.redb");
    let len = disk.meta(&path).unwrap().unwrap().len;
    let mut told = 0;
    for at in (0..len).step_by((len / 150) as usize) {
        flip(&disk, &path, at);
        match look_at(&disk, &root(), false) {
            Err(e) => {
                assert!(
                    [ErrorKind::Damage, ErrorKind::NewerFormat].contains(&e.kind()),
                    "{at}: {e:?}"
                );
                told += 1;
            }
            Ok(report) => told += usize::from(!report.is_good()),
        }
        // The fast one leaves redb's own pages unread; it must not panic either.
        let _ = look_at(&disk, &root(), true);
        flip(&disk, &path, at);
    }
    assert!(told > 0, "no flipped bit was in a page in use");
    assert!(look(&disk).findings.is_empty());
}

/// Is a file that is gone, cut short or emptied told with its name, and what is lost?
#[test]
fn g21_a_missing_or_short_file_is_told() {
    let disk = filled(13);
    let live = sealed(&disk);
    for (path, len) in files(&disk) {
        if is_manifest(&path) || (is_sealed(&path) && !live.contains(&path)) {
            continue;
        }
        let whole = bytes_of(&disk, &path);
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
        for cut in [0, 1, used / 2, used - 1] {
            disk.open(&path, Access::ReadWrite).unwrap().set_len(cut).unwrap();
            for fast in [false, true] {
                let report = look_at(&disk, &root(), fast).unwrap();
                assert!(
                    names(&report, name_of(&path)),
                    "{cut} of {len}, {path:?}: {}",
                    text(&report)
                );
            }
            replace(&disk, &path, &whole);
        }
        disk.unlink(&path).unwrap();
        let report = look(&disk);
        assert!(names(&report, name_of(&path)), "{path:?}: {}", text(&report));
        if is_sealed(&path) {
            let lost = report.findings.iter().any(|f| f.means.starts_with("lost: "));
            assert!(lost, "{}", text(&report));
        }
        let file = disk.open(&path, Access::CreateNew).unwrap();
        sealstone::vfs::write_all_at(&*file, &whole, 0).unwrap();
    }
    assert!(look(&disk).findings.is_empty());
}

/// Are two files that changed places told, both of them, fast or not?
#[test]
fn g21_files_that_changed_places_are_told() {
    let disk = filled(14);
    let live = sealed(&disk);
    for pair in live.windows(2) {
        let (one, other) = (bytes_of(&disk, &pair[0]), bytes_of(&disk, &pair[1]));
        replace(&disk, &pair[0], &other);
        replace(&disk, &pair[1], &one);
        for fast in [false, true] {
            let report = look_at(&disk, &root(), fast).unwrap();
            assert!(pair.iter().all(|path| names(&report, name_of(path))), "{}", text(&report));
        }
        replace(&disk, &pair[0], &one);
        replace(&disk, &pair[1], &other);
    }
}

/// Is a file of another store told as foreign, be it sealed, a journal, HEAD or the manifest?
#[test]
fn g21_files_of_another_store_are_told() {
    let (disk, other) = (filled(15), filled(16));
    let (live, theirs) = (sealed(&disk), sealed(&other));
    replace(&disk, &live[0], &bytes_of(&other, &theirs[0]));
    // As long as ours, so that nothing but the label tells.
    let report = look(&disk);
    assert!(names(&report, name_of(&live[0])), "{}", text(&report));

    let disk = filled(15);
    let journal = |disk: &SimDisk| {
        let is_journal = |path: &PathBuf| path.extension() == Some("journal".as_ref());
        files(disk).into_iter().map(|(path, _)| path).find(is_journal).unwrap()
    };
    replace(&disk, &journal(&disk), &bytes_of(&other, &journal(&other)));
    assert_eq!(look_at(&disk, &root(), false).unwrap_err().kind(), ErrorKind::Foreign);

    for name in ["HEAD", "manifest.redb"] {
        let disk = filled(15);
        replace(&disk, &root().join(name), &bytes_of(&other, &root().join(name)));
        assert_eq!(
            look_at(&disk, &root(), false).unwrap_err().kind(),
            ErrorKind::Foreign,
            "{name}"
        );
    }
}

/// Does one damaged file leave the others looked at?
#[test]
fn p6_damage_does_not_stop_the_rest() {
    let disk = filled(17);
    let live = sealed(&disk);
    let whole = look(&disk).looked_at;
    for path in &live {
        flip(&disk, path, 50);
    }
    let report = look(&disk);
    assert_eq!(report.looked_at, whole);
    for path in &live {
        assert!(names(&report, name_of(path)), "{path:?}: {}", text(&report));
    }
}
