//! Stores with nothing wrong.

use std::ops::ControlFlow;
use std::sync::Arc;

use sealstone::ErrorKind;
use sealstone::check::{CheckOptions, Severity, check};
use sealstone::engine::Budget;
use sealstone::vfs::RealDisk;

use crate::support::{fill, filled, killed, look, look_at, on, root, sim, small, text};

/// Does a check of a store with everything in it find nothing, closed and beside its writer?
#[test]
fn p10_a_store_with_nothing_wrong_has_no_finding() {
    let disk = filled(1);
    for fast in [false, true] {
        let report = look_at(&disk, &root(), fast).unwrap();
        assert!(report.findings.is_empty(), "{}", text(&report));
        assert!(report.accounts.unwrap().are_closed());
        let at = report.looked_at;
        for (what, n) in [
            ("rows", at.rows),
            ("edges", at.edges),
            ("objects", at.objects),
            ("files", at.files),
            ("journals", at.journals),
            ("records", at.records),
            ("streams", at.streams),
            ("chunks", at.chunks),
        ] {
            assert!(n > 0, "no {what} were looked at");
        }
    }
    let store = on(Arc::new(disk.process(9))).open(root()).unwrap();
    let report = look(&disk);
    assert!(report.findings.is_empty(), "beside its writer: {}", text(&report));
    store.reclaim(Budget::default()).unwrap();
    let report = look(&disk);
    assert!(report.findings.is_empty(), "after reclaim: {}", text(&report));
}

/// Is what a kill leaves told as notes, and as nothing worse?
#[test]
fn a_killed_store_has_notes_only() {
    let disk = killed(2);
    let report = look(&disk);
    assert!(report.is_good() && report.notes > 0, "{}", text(&report));
    on(Arc::new(disk.process(9))).open(root()).unwrap().close().unwrap();
    let report = look(&disk);
    assert!(report.findings.is_empty(), "after recovery: {}", text(&report));
}

/// Is what is not ours told as a note and otherwise left alone?
#[test]
fn strays_and_orphans_are_notes() {
    use sealstone::vfs::{Access, Disk};
    let disk = filled(3);
    let unique = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let orphan = format!("{}-{unique}", "00".repeat(32));
    let names = [
        "notes.txt".to_owned(),
        "journal/notes.txt".to_owned(),
        "owners/notes.txt".to_owned(),
        "tmp/notes.txt".to_owned(),
        "sealed/notes.txt".to_owned(),
        "sealed/00/notes.txt".to_owned(),
        format!("sealed/00/{orphan}"),
        format!("sealed/01/{orphan}"),
        format!("journal/{unique}-3.journal"),
        format!("tmp/{unique}-{unique}"),
        "HEAD.next".to_owned(),
    ];
    for name in &names {
        disk.open(&root().join(name), Access::CreateNew).unwrap();
    }
    let report = look(&disk);
    assert!(report.is_good(), "{}", text(&report));
    assert_eq!(report.findings.len(), names.len(), "{}", text(&report));
    for name in &names {
        let told = report.findings.iter().any(|finding| finding.place.ends_with(name.as_str()));
        assert!(told, "{name} was not told: {}", text(&report));
    }
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Note));
}

/// Can a caller end a check, and is it told how far it is?
#[test]
fn a_check_can_be_ended() {
    let disk = filled(4);
    let options = CheckOptions { disk: Some(Arc::new(disk)), ..CheckOptions::default() };
    let mut parts = Vec::new();
    check(root(), &options, &mut |progress| {
        assert!(progress.done <= progress.total, "{progress:?}");
        parts.push(progress.part);
        ControlFlow::Continue(())
    })
    .unwrap();
    parts.dedup();
    assert_eq!(parts, ["rows", "journals", "streams", "files", "names"]);
    for end in parts {
        let ended = check(root(), &options, &mut |progress| match progress.part == end {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

/// Is nothing a look at nothing?
#[test]
fn what_is_no_store_is_an_error() {
    let disk = sim(5);
    assert_eq!(look_at(&disk, &root(), false).unwrap_err().kind(), ErrorKind::NoStore);
    let disk = filled(5);
    sealstone::vfs::Disk::unlink(&disk, &root().join("manifest.redb")).unwrap();
    assert_eq!(look_at(&disk, &root(), false).unwrap_err().kind(), ErrorKind::ManifestLost);
}

/// Does the same hold on a real disk?
#[test]
fn a_real_store_has_no_finding() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let store = on(RealDisk::new()).limits(small()).create(&path).unwrap();
    fill(&store, 6);
    store.close().unwrap();
    let report =
        check(&path, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.findings.is_empty(), "{}", text(&report));
}
