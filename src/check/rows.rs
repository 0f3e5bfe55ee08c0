//! Rows: each one decodes, says nothing against itself, and has the edges and index rows that
//! follow from it.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Bound, ControlFlow};

use super::look::{Look, place_of};
use super::report::Severity;
use crate::digest::Digest;
use crate::error::Result;
use crate::format::footer::CODEC_NONE;
use crate::format::framed::decode_all;
use crate::ids::{CommitSeq, EventId, FileId, LeaseId, ObjectId, RecordingId};
use crate::manifest::{
    CheckpointRow, ChunkRow, ClaimRow, CountersRow, EdgeKey, EventRow, FileRow, GroupRow,
    HandoffRow, HistoryRow, InlineRow, JournalRow, Key, LeaseRow, LeasedRow, NameHandoffRow,
    NameRow, ObjectRow, ObjectSnapshotRow, OutputRow, OwnerRow, ParameterRow, PartRow, Place,
    PreparationRow, ProducerRow, QuarantineRow, Raw, Reading, ReceiptRow, RecipeRow,
    RecordingNameRow, RecordingRow, RetiringRow, Row, ScrubRow, Snapshot, SnapshotNameRow,
    SnapshotRow, StageRow, StreamRow, Table, from_value,
};

/// The highest number of each kind that any row uses.
pub(super) type Used = CountersRow;

/// What the rows say, as far as later parts need it.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) used: Used,
    pub(super) files: Vec<(FileId, FileRow)>,
    /// The objects that lie in each file, by their own rows.
    pub(super) objects: HashMap<FileId, InFile>,
}

#[derive(Debug, Default)]
pub(super) struct InFile {
    pub(super) objects: Vec<ObjectId>,
    pub(super) bytes: u64,
}

/// What is done with each row.
type Visit<'v, R> = dyn FnMut(&mut Look<'_>, &<R as Row>::Key, &R) -> Result<()> + 'v;

/// Tables that this release has rows for.
const KNOWN: &[Table] = &[
    Table::Meta,
    Table::Edges,
    Table::Digests,
    Table::FileObjects,
    Table::Condemned,
    Table::ParameterOrder,
    OwnerRow::TABLE,
    ClaimRow::TABLE,
    JournalRow::TABLE,
    LeaseRow::TABLE,
    ObjectRow::TABLE,
    InlineRow::TABLE,
    FileRow::TABLE,
    RecordingRow::TABLE,
    RecordingNameRow::TABLE,
    StreamRow::TABLE,
    ChunkRow::TABLE,
    CheckpointRow::TABLE,
    EventRow::TABLE,
    ReceiptRow::TABLE,
    NameRow::TABLE,
    HistoryRow::TABLE,
    SnapshotRow::TABLE,
    ParameterRow::TABLE,
    StageRow::TABLE,
    GroupRow::TABLE,
    Table::OpenGroups,
    PartRow::TABLE,
    OutputRow::TABLE,
    ProducerRow::TABLE,
    QuarantineRow::TABLE,
    HandoffRow::TABLE,
    Table::HandoffOrder,
    RecipeRow::TABLE,
    RetiringRow::TABLE,
    LeasedRow::TABLE,
    PreparationRow::TABLE,
    ObjectSnapshotRow::TABLE,
    SnapshotNameRow::TABLE,
    NameHandoffRow::TABLE,
    ScrubRow::TABLE,
];

/// Looks at every row of every table that this release knows.
pub(super) fn check_rows(look: &mut Look, snapshot: &Snapshot) -> Result<Known> {
    let total = KNOWN.iter().filter_map(|table| snapshot.count(*table).ok()).sum();
    look.begin("rows", total)?;
    let mut known = Known::default();
    check_bytes(look, snapshot, &mut known)?;
    let used = &mut known.used;
    each_whole::<OwnerRow>(look, snapshot, &mut |_, _, row| raise(&mut used.epoch, row.epoch))?;
    each_whole::<ClaimRow>(look, snapshot, &mut |_, _, row| raise(&mut used.epoch, row.epoch))?;
    each_whole::<JournalRow>(look, snapshot, &mut |_, _, _| Ok(()))?;
    each_whole::<LeaseRow>(look, snapshot, &mut |_, key, _| {
        // The highest bit tells the leases of journals from all others; it is no part of the count.
        raise(&mut used.lease, LeaseId(key.0 & !(1 << 63)))
    })?;
    each_whole::<RecordingRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.recording, *key)?;
        check_recording(look, snapshot, *key, row)
    })?;
    each_whole::<RecordingNameRow>(look, snapshot, &mut |look, key, row| {
        check_name(look, snapshot, key, row)
    })?;
    each_whole::<ParameterRow>(look, snapshot, &mut |look, key, _| {
        if let Ok(None) = snapshot.get::<RecordingRow>(&key.recording) {
            let what = format!("recording {} of it is not there", key.recording);
            let means = "nothing is lost; queries pass it over";
            look.find(Severity::Warning, place_of::<ParameterRow>(key), what, means);
        }
        raise(&mut used.recording, key.recording)
    })?;
    each_whole::<StreamRow>(look, snapshot, &mut |_, key, _| raise(&mut used.stream, *key))?;
    each_whole::<ChunkRow>(look, snapshot, &mut |_, key, _| raise(&mut used.stream, key.0))?;
    each_whole::<CheckpointRow>(look, snapshot, &mut |_, key, _| {
        raise(&mut used.checkpoint, key.1)
    })?;
    each_whole::<EventRow>(look, snapshot, &mut |look, key, _| {
        raise(&mut used.recording, key.0)?;
        check_event(look, snapshot, key)
    })?;
    each_whole::<ReceiptRow>(look, snapshot, &mut |_, key, row| {
        raise(&mut used.commit_seq, row.commit)?;
        raise(&mut used.receipt, *key)
    })?;
    super::values::check_values(look, snapshot, &mut used.commit_seq)?;
    super::stages::check_stages(look, snapshot, used)?;
    super::objects::check_object_rows(look, snapshot, used)?;
    let mut newest = None;
    each_whole::<SnapshotRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.commit_seq, CommitSeq(*key))?;
        check_chain(look, newest.replace(*key), *key, row);
        Ok(())
    })?;
    for table in Table::ALL.iter().filter(|table| !KNOWN.contains(table)) {
        let rows = snapshot.count(*table).unwrap_or(0);
        if rows > 0 {
            let what = format!("{rows} rows, of which this release knows none");
            look.find(Severity::Note, table.name(), what, "they were not looked at");
        }
    }
    check_counters(look, snapshot, &known.used)?;
    Ok(known)
}

/// Each snapshot of the rows is a base, the first one, or onto the one before it.
fn check_chain(look: &mut Look, before: Option<u64>, key: u64, row: &SnapshotRow) {
    if row.onto.map(|onto| onto.0) != before {
        let place = place_of::<SnapshotRow>(&key);
        let what = format!("it is onto {:?}, and {before:?} stands before it", row.onto);
        look.find(Severity::Damage, &place, what, "salvage could not use it");
    }
}

/// Objects, inline bytes and files.
fn check_bytes(look: &mut Look, snapshot: &Snapshot, known: &mut Known) -> Result<()> {
    let Known { used, files, objects } = known;
    each::<ObjectRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.object, *key)?;
        if let Ok(Some(_)) = snapshot.get::<RetiringRow>(key) {
            // Nobody finds it, and nothing follows from it any more.
            super::objects::check_retiring(look, snapshot, *key, row);
            return Ok(());
        }
        check_follows::<ObjectRow>(look, snapshot, key, row);
        if let Place::Extent { file, .. } = row.place {
            let in_file = objects.entry(file).or_default();
            in_file.objects.push(*key);
            in_file.bytes = in_file.bytes.saturating_add(row.stored_len);
        }
        check_object(look, snapshot, *key, row)
    })?;
    each_whole::<InlineRow>(look, snapshot, &mut |look, key, row| {
        check_inline(look, snapshot, *key, row)
    })?;
    each_whole::<FileRow>(look, snapshot, &mut |_, key, row| {
        files.push((*key, row.clone()));
        raise(&mut used.commit_seq, row.sealed)?;
        raise(&mut used.file, *key)
    })
}

/// [`each`], and what follows from each row is there.
pub(super) fn each_whole<R: Row>(
    look: &mut Look,
    snapshot: &Snapshot,
    visit: &mut Visit<'_, R>,
) -> Result<()> {
    each::<R>(look, snapshot, &mut |look, key, row| {
        check_follows::<R>(look, snapshot, key, row);
        visit(look, key, row)
    })
}

pub(super) fn raise<N: Ord + Copy>(highest: &mut N, seen: N) -> Result<()> {
    *highest = seen.max(*highest);
    Ok(())
}

/// Decodes each row of a table; one that does not decode is a finding, and the next is looked at.
pub(super) fn each<R: Row>(
    look: &mut Look,
    snapshot: &Snapshot,
    visit: &mut Visit<'_, R>,
) -> Result<()> {
    let mut ended: Result<()> = Ok(());
    let all = (Bound::Unbounded, Bound::Unbounded);
    let scanned = snapshot.raw_scan(R::TABLE, all, false, &mut |key, value| {
        look.report.looked_at.rows += 1;
        let one = R::Key::from_bytes(key).and_then(|at| Ok((at, from_value::<R>(key, value)?)));
        let went_on = match one {
            Ok((key, row)) => visit(look, &key, &row),
            Err(e) => {
                look.failed(&e, "what the row said is lost");
                Ok(())
            }
        };
        ended = went_on.and_then(|()| look.did(1));
        Ok(if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    if let Err(e) = scanned {
        look.failed(&e, format!("rows of {} behind it were not looked at", R::TABLE.name()));
    }
    ended
}

/// Goes through a table once more; what does not decode was told the first time.
pub(super) fn each_again<R: Row>(
    snapshot: &Snapshot,
    visit: &mut dyn FnMut(&R::Key, &R) -> Result<()>,
) -> Result<()> {
    let mut ended: Result<()> = Ok(());
    let all = (Bound::Unbounded, Bound::Unbounded);
    let scanned = snapshot.raw_scan(R::TABLE, all, false, &mut |key, value| {
        if let (Ok(key), Ok(row)) = (R::Key::from_bytes(key), from_value::<R>(key, value)) {
            ended = visit(&key, &row);
        }
        Ok(if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    drop(scanned);
    ended
}

/// Whether a row is there; `None` when that cannot be told, which was reported.
fn is_there(look: &mut Look, snapshot: &Snapshot, table: Table, key: &[u8]) -> Option<bool> {
    match snapshot.raw_get(table, key) {
        Ok(found) => Some(found.is_some()),
        Err(e) => {
            look.failed(&e, format!("whether a row of {} is there is not known", table.name()));
            None
        }
    }
}

/// The row does not contradict itself, and what follows from it is there.
fn check_follows<R: Row>(look: &mut Look, snapshot: &Snapshot, key: &R::Key, row: &R) {
    let place = || place_of::<R>(key);
    if let Some(contradiction) = row.contradiction() {
        look.find(Severity::Damage, place(), contradiction, "the row cannot be relied on");
    }
    let mut objects = BTreeSet::new();
    row.edges(&mut |object| {
        objects.insert(object);
    });
    for object in objects {
        let edge = EdgeKey { object, table: R::TABLE, key: key.to_bytes() };
        if is_there(look, snapshot, Table::Edges, &edge.to_bytes()) == Some(false) {
            let what = format!("it refers to object {object}, and no edge says so");
            let means = "reclaim could take away what it needs: do not reclaim";
            look.find(Severity::Damage, place(), what, means);
        }
        if is_there(look, snapshot, Table::Objects, &object.to_bytes()) == Some(false) {
            let what = format!("it refers to object {object}, which has no row");
            look.find(Severity::Damage, place(), what, "those bytes are lost");
        }
    }
    let mut derived = Vec::new();
    row.derived(key, &mut |table, index| derived.push((table, index)));
    for (table, index) in derived {
        if is_there(look, snapshot, table, &index) == Some(false) {
            let what = format!("its row in {} is missing", table.name());
            look.find(Severity::Damage, place(), what, "its bytes are there, the index is not");
        }
    }
}

fn check_object(
    look: &mut Look,
    snapshot: &Snapshot,
    object: ObjectId,
    row: &ObjectRow,
) -> Result<()> {
    look.report.looked_at.objects += 1;
    let place = place_of::<ObjectRow>(&object);
    match snapshot.has_edges(object) {
        Ok(true) => {}
        Ok(false) => {
            let means = "its bytes are kept and never given back";
            look.find(Severity::Damage, place.as_str(), "nothing refers to it", means);
        }
        Err(e) => look.failed(&e, "whether anything refers to it is not known"),
    }
    match row.place {
        Place::Inline => {
            if is_there(look, snapshot, Table::Inline, &object.to_bytes()) == Some(false) {
                let means = super::files::lost(snapshot, &[object]);
                look.find(Severity::Damage, place, "its inline row is missing", means);
            }
        }
        Place::Extent { file, offset } => match snapshot.get::<FileRow>(&file) {
            Ok(Some(to)) if offset.checked_add(row.stored_len).is_some_and(|end| end <= to.len) => {
            }
            Ok(found) => {
                let what = match found {
                    Some(_) => format!("it reaches past the end of file {file}"),
                    None => format!("it lies in file {file}, which has no row"),
                };
                let means = super::files::lost(snapshot, &[object]);
                look.find(Severity::Damage, place, what, means);
            }
            // The table of files tells of it.
            Err(_) => {}
        },
        Place::Recipe => super::objects::check_recipe(look, snapshot, object, row),
    }
    Ok(())
}

fn check_inline(
    look: &mut Look,
    snapshot: &Snapshot,
    object: ObjectId,
    row: &InlineRow,
) -> Result<()> {
    let place = place_of::<InlineRow>(&object);
    match snapshot.get::<ObjectRow>(&object) {
        Ok(Some(of)) if of.place == Place::Inline => {
            let len = row.bytes.len() as u64;
            let differs = match of.codec {
                CODEC_NONE => Digest::of(&row.bytes) != of.digest,
                _ => !decode_all(&row.bytes, of.len).is_ok_and(|raw| Digest::of(&raw) == of.digest),
            };
            if len != of.stored_len || differs {
                let what = format!("its {len} bytes are not those that its object names");
                let means = super::files::lost(snapshot, &[object]);
                look.find(Severity::Damage, place, what, means);
            }
        }
        Ok(_) => {
            let what = "no object has its bytes here";
            look.find(Severity::Damage, place, what, "the bytes are never given back");
        }
        // The table of objects tells of it.
        Err(_) => {}
    }
    Ok(())
}

fn check_recording(
    look: &mut Look,
    snapshot: &Snapshot,
    recording: RecordingId,
    row: &RecordingRow,
) -> Result<()> {
    let place = place_of::<RecordingRow>(&recording);
    match snapshot.get::<RecordingNameRow>(&row.name) {
        Ok(Some(named)) if named.recording == recording => {}
        Ok(_) => {
            let what = format!("its name {:?} does not lead to it", row.name);
            look.find(Severity::Damage, place.as_str(), what, "it is found by its number only");
        }
        Err(_) => {}
    }
    for stream in &row.streams {
        if let Ok(None) = snapshot.get::<StreamRow>(stream) {
            let what = format!("stream {stream} of it is not there");
            look.find(Severity::Warning, place.as_str(), what, "it may have been retired alone");
        }
    }
    Ok(())
}

fn check_name(
    look: &mut Look,
    snapshot: &Snapshot,
    name: &String,
    row: &RecordingNameRow,
) -> Result<()> {
    let found = snapshot.get::<RecordingRow>(&row.recording);
    if matches!(&found, Ok(Some(of)) if of.name == *name) || found.is_err() {
        return Ok(());
    }
    let what = format!("it leads to recording {}, which is not of this name", row.recording);
    let means = "the name cannot be used";
    look.find(Severity::Damage, place_of::<RecordingNameRow>(name), what, means);
    Ok(())
}

fn check_event(look: &mut Look, snapshot: &Snapshot, key: &(RecordingId, EventId)) -> Result<()> {
    if !matches!(snapshot.get::<RecordingRow>(&key.0), Ok(None)) {
        return Ok(());
    }
    let what = format!("recording {} is not there", key.0);
    look.find(Severity::Warning, place_of::<EventRow>(key), what, "nobody can read it any more");
    Ok(())
}

/// A number is never given twice: the counters stand at or above every one that is used.
fn check_counters(look: &mut Look, snapshot: &Snapshot, used: &Used) -> Result<()> {
    let counters = match snapshot.counters() {
        Ok(counters) => counters,
        Err(e) => {
            look.failed(&e, "numbers could be given twice");
            return Ok(());
        }
    };
    let pairs: [(&str, u64, u64); 16] = [
        ("commit_seq", used.commit_seq.0, counters.commit_seq.0),
        ("epoch", used.epoch.0, counters.epoch.0),
        ("object", used.object.0, counters.object.0),
        ("file", used.file.0, counters.file.0),
        ("lease", used.lease.0, counters.lease.0),
        ("recording", used.recording.0, counters.recording.0),
        ("stream", used.stream.0, counters.stream.0),
        ("checkpoint", used.checkpoint.0, counters.checkpoint.0),
        ("receipt", used.receipt.0, counters.receipt.0),
        ("stage", used.stage.0, counters.stage.0),
        ("group", used.group.0, counters.group.0),
        ("part", used.part.0, counters.part.0),
        ("output", used.output.0, counters.output.0),
        ("quarantine", used.quarantine.0, counters.quarantine.0),
        ("handoff", used.handoff.0, counters.handoff.0),
        ("object_snapshot", used.object_snapshot.0, counters.object_snapshot.0),
    ];
    for (name, used, counter) in pairs {
        if used > counter {
            let what = format!("it stands at {counter}, and a row uses {used}");
            let means = "the next number given out would be given twice";
            look.find(Severity::Damage, format!("counter {name}"), what, means);
        }
    }
    Ok(())
}
