//! Sealed files: there, as long as their rows say, with the content that their digests name; each
//! object in them; the books.

use super::look::{Look, failure, finding, place_of};
use super::report::{Finding, Severity};
use super::rows::{InFile, Known};
use crate::engine::stored;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{FileId, ObjectId};
use crate::manifest::{
    CheckpointRow, ChunkRow, Edge, FileRow, FileState, HistoryKey, HistoryRow, Key, LeaseRow,
    LeasedRow, NameHandoffRow, NameKey, NameRow, Namespace, ObjectRow, OutputRow, PartRow, Place,
    Reading, RecipeRow, Row, Snapshot, SnapshotNameKey, SnapshotNameRow, SnapshotRow,
};
use crate::sealed::{Expect, Reader};
use std::path::PathBuf;

/// Referring rows that a finding names.
const NAMED_MAX: usize = 8;
/// How often a file's row may move while the file is looked at.
const TRIES_MAX: usize = 8;

/// Looks at the books of every file, and at every file that should be there.
pub(super) fn check_files(look: &mut Look, known: &Known) -> Result<()> {
    look.begin("files", known.files.iter().map(|(_, row)| row.len).sum())?;
    let none = InFile::default();
    for (file, row) in &known.files {
        let held = known.objects.get(file).unwrap_or(&none);
        check_books(look, *file, row, held);
        check_file(look, *file, row, &held.objects)?;
        look.report.looked_at.files += 1;
        look.did(row.len)?;
    }
    Ok(())
}

fn check_books(look: &mut Look, file: FileId, row: &FileRow, held: &InFile) {
    let place = place_of::<FileRow>(&file);
    if row.live != held.bytes {
        let what = format!("it calls {} bytes live, its objects take {}", row.live, held.bytes);
        let means = "space is given back too early or never";
        look.find(Severity::Damage, place.as_str(), what, means);
    }
    let is_going = row.state != FileState::Sealed;
    if is_going != held.objects.is_empty() {
        let what = format!("its state is {:?} with {} objects", row.state, held.objects.len());
        let means =
            if is_going { "reclaim would take their bytes" } else { "it is never given back" };
        look.find(Severity::Damage, place, what, means);
    }
}

/// Looks again where the row moved meanwhile.
fn check_file(look: &mut Look, file: FileId, row: &FileRow, objects: &[ObjectId]) -> Result<()> {
    let mut row = row.clone();
    for _ in 0..TRIES_MAX {
        let found = look_at(look, &row, file, objects);
        if found.is_empty() {
            return Ok(());
        }
        match look.store.snapshot()?.get::<FileRow>(&file) {
            Ok(Some(now)) if now != row => row = now,
            Ok(None) => return Ok(()),
            _ => {
                found.into_iter().for_each(|one| look.report.push(one));
                return Ok(());
            }
        }
    }
    Ok(())
}

fn path_of(look: &Look, row: &FileRow) -> PathBuf {
    layout::sealed(&look.root, &row.digest, row.unique, look.meta.sealed_folders)
}

fn look_at(look: &mut Look, row: &FileRow, file: FileId, objects: &[ObjectId]) -> Vec<Finding> {
    let mut found = Vec::new();
    let path = path_of(look, row);
    if row.state != FileState::Sealed {
        // Its unlink may have happened, or may happen now.
        if row.state == FileState::Condemned && matches!(look.disk.meta(&path), Ok(None)) {
            let means = "nothing is lost: its every byte was retired";
            found.push(finding(Severity::Warning, path.display(), "the file is missing", means));
        }
        return found;
    }
    let snapshot = match look.store.snapshot() {
        Ok(snapshot) => snapshot,
        Err(e) => return vec![failure(Severity::Damage, &e, "the file was not looked at")],
    };
    let expect =
        Expect { len: Some(row.len), digest: Some(row.digest), store: Some(look.meta.store) };
    let reader = match Reader::open(&look.disk, &path, &expect) {
        Ok(reader) => reader,
        Err(e) => {
            return vec![failure(Severity::Damage, &e, lost(&snapshot, objects))];
        }
    };
    check_label(look, &reader, &mut found);
    if !look.fast {
        check_content(look, &reader, row, &snapshot, (file, objects), &mut found);
    }
    found
}

fn check_label(look: &Look, reader: &Reader, found: &mut Vec<Finding>) {
    let means = "its content is not concerned; salvage would not know what referred to it";
    match reader.label() {
        Ok(label) if label.store != look.meta.store => {
            let what = format!("by its label store {} sealed it", label.store);
            let place = reader.path().display();
            found.push(finding(Severity::Warning, place, what, means));
        }
        Ok(_) => {}
        Err(e) => found.push(failure(Severity::Warning, &e, means)),
    }
}

fn check_content(
    look: &mut Look,
    reader: &Reader,
    row: &FileRow,
    snapshot: &Snapshot,
    (file, objects): (FileId, &[ObjectId]),
    found: &mut Vec<Finding>,
) {
    let whole = reader.verify(&row.digest);
    look.report.bytes_read += row.len;
    let footer = reader.footer();
    let mut is_lost = false;
    for object in objects {
        let Ok(Some(of)) = snapshot.get::<ObjectRow>(object) else { continue };
        let Place::Extent { file: at, offset } = of.place else { continue };
        if at != file {
            continue;
        }
        if let Err(e) = read_object(reader, offset, &of) {
            is_lost = true;
            found.push(failure(Severity::Damage, &e, lost(snapshot, &[*object])));
            continue;
        }
        look.report.bytes_read += of.stored_len;
        let is_described = footer.as_ref().is_ok_and(|footer| {
            footer.extents.iter().any(|one| {
                let e = one.extent;
                (e.digest, e.len, e.codec) == (of.digest, of.len, of.codec)
                    && (e.offset, e.stored_len) == (offset, of.stored_len)
            })
        });
        if !is_described && footer.is_ok() {
            let what = format!("its footer has no extent as object {object} is");
            let means = "the object reads; salvage would not find it";
            found.push(finding(Severity::Warning, reader.path().display(), what, means));
        }
    }
    if let Err(e) = footer {
        let means = "objects are read without it; salvage would not find them";
        found.push(failure(Severity::Warning, &e, means));
    } else if let (Err(e), false) = (whole, is_lost) {
        let means = "no object that stands lies there: nothing is lost";
        found.push(failure(Severity::Warning, &e, means));
    }
}

/// Reads an object, every block verified, and compares its digest with that of what readers get.
fn read_object(reader: &Reader, offset: u64, row: &ObjectRow) -> Result<()> {
    let digest = reader.digest_of(&stored(row, offset))?;
    if digest != row.digest {
        let place = format!("{} at {offset}", reader.path().display());
        let cause = format!("the object there is {digest}, its row says {}", row.digest);
        return Err(Error::new(ErrorKind::Damage, "verify", place, cause));
    }
    Ok(())
}

/// What is lost when these objects do not read.
pub(super) fn lost(snapshot: &Snapshot, objects: &[ObjectId]) -> String {
    if objects.is_empty() {
        return "no object lies there: nothing is lost".to_owned();
    }
    let mut named = Vec::new();
    let mut more = false;
    for object in objects {
        for edge in snapshot.edges_of(*object, NAMED_MAX).unwrap_or_default() {
            if named.len() < NAMED_MAX {
                named.push(describe(snapshot, &edge));
            } else {
                more = true;
            }
        }
    }
    let and_more = if more { ", and more" } else { "" };
    format!("lost: {} ({} objects){and_more}", named.join(", "), objects.len())
}

/// The name of a file as people write it.
pub(super) fn file_name(key: &NameKey) -> Option<String> {
    let (namespace, name) = key.name.split_once('\0')?;
    (key.namespace == Namespace::OBJECTS).then(|| format!("{namespace}/{name}"))
}

/// What an object is to those that refer to it.
fn described(snapshot: &Snapshot, object: ObjectId) -> String {
    let edges = snapshot.edges_of(object, NAMED_MAX).unwrap_or_default();
    let of = edges.iter().filter(|edge| edge.table != RecipeRow::TABLE);
    let named: Vec<String> = of.map(|edge| describe(snapshot, edge)).collect();
    if named.is_empty() { format!("object {object}") } else { named.join(" and ") }
}

/// What a referring row is, for people.
fn describe(snapshot: &Snapshot, edge: &Edge) -> String {
    let known = if edge.table == ChunkRow::TABLE {
        <ChunkRow as Row>::Key::from_bytes(&edge.key).ok().and_then(|key| {
            let row = snapshot.get::<ChunkRow>(&key).ok()??;
            let end = row.first.0.saturating_add(row.records);
            Some(format!("records {}..{end} of stream {}", row.first, key.0))
        })
    } else if edge.table == CheckpointRow::TABLE {
        let key = <CheckpointRow as Row>::Key::from_bytes(&edge.key).ok();
        key.map(|(scope, id)| format!("the state of checkpoint {id} of scope {scope}"))
    } else if edge.table == LeaseRow::TABLE {
        let key = <LeaseRow as Row>::Key::from_bytes(&edge.key).ok();
        key.and_then(|key| {
            let row = snapshot.get::<LeaseRow>(&key).ok()??;
            Some(format!("what lease {key} of {:?} keeps ({})", row.holder, row.purpose))
        })
    } else if edge.table == NameRow::TABLE {
        let key = NameKey::from_bytes(&edge.key).ok();
        key.map(|key| match file_name(&key) {
            Some(name) => format!("the file {name:?}"),
            None => format!("the value of {:?}", key.name),
        })
    } else if edge.table == RecipeRow::TABLE {
        let key = <RecipeRow as Row>::Key::from_bytes(&edge.key).ok();
        key.map(|(whole, _)| format!("a piece of {}", described(snapshot, whole)))
    } else if edge.table == LeasedRow::TABLE {
        <LeasedRow as Row>::Key::from_bytes(&edge.key).ok().and_then(|(lease, _)| {
            let row = snapshot.get::<LeaseRow>(&lease).ok()??;
            Some(format!("what lease {lease} of {:?} keeps ({})", row.holder, row.purpose))
        })
    } else if edge.table == SnapshotNameRow::TABLE {
        SnapshotNameKey::from_bytes(&edge.key).ok().map(|key| {
            let name = file_name(&key.name).unwrap_or(key.name.name);
            format!("the file {name:?} of snapshot {}", key.snapshot)
        })
    } else if edge.table == NameHandoffRow::TABLE {
        let key = <NameHandoffRow as Row>::Key::from_bytes(&edge.key).ok();
        key.map(|handoff| format!("what publication {handoff} names"))
    } else if edge.table == HistoryRow::TABLE {
        let key = HistoryKey::from_bytes(&edge.key).ok();
        key.map(|key| format!("generation {} of {:?}", key.generation, key.name))
    } else if edge.table == SnapshotRow::TABLE {
        let key = <SnapshotRow as Row>::Key::from_bytes(&edge.key).ok();
        key.map(|commit| format!("the snapshot of commit {commit}, for salvage alone"))
    } else if edge.table == PartRow::TABLE {
        <PartRow as Row>::Key::from_bytes(&edge.key).ok().and_then(|key| {
            let row = snapshot.get::<PartRow>(&key).ok()??;
            Some(format!("{} rows of group {}", row.rows, key.0))
        })
    } else if edge.table == OutputRow::TABLE {
        let key = <OutputRow as Row>::Key::from_bytes(&edge.key).ok();
        key.map(|(stage, output)| format!("output {output} of stage {stage}"))
    } else {
        None
    };
    known.unwrap_or_else(|| format!("what a row of {} refers to", edge.table.name()))
}
