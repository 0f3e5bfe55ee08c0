//! Streams: chunks one behind the other from `taken_upto` up to `sealed_upto`, unsealed records without a hole behind
//! them, cuts in order, checkpoints within.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::journals::Tails;
use super::look::{Look, place_of};
use super::report::Severity;
use super::rows::each_again;
use crate::engine::is_kept;
use crate::error::Result;
use crate::ids::{Generation, Ordinal, Sequence, StreamId};
use crate::manifest::{CheckpointRow, ChunkRow, Reading, Snapshot, StreamRow, Table};

/// Where each stream ends, by rows and journals.
type Ends = HashMap<StreamId, (StreamRow, Sequence)>;

/// Looks at every stream. The rows are read after the journals were: what was sealed meanwhile is
/// in the chunks.
pub(super) fn check_streams(look: &mut Look, mut tails: Tails) -> Result<()> {
    let snapshot = look.store.snapshot()?;
    let count = |table| snapshot.count(table).unwrap_or(0);
    look.begin("streams", count(Table::Streams) + count(Table::Checkpoints))?;
    let mut ends = Ends::new();
    each_again::<StreamRow>(&snapshot, &mut |stream, row| {
        look.report.looked_at.streams += 1;
        check_cuts(look, *stream, row);
        check_chunks(look, &snapshot, *stream, row);
        let end = check_tail(look, &snapshot, *stream, row, &mut tails);
        ends.insert(*stream, (row.clone(), end));
        look.did(1)
    })?;
    each_again::<CheckpointRow>(&snapshot, &mut |key, row| {
        check_cursors(look, key, row, &ends, tails.is_partial);
        look.did(1)
    })
}

fn check_cuts(look: &mut Look, stream: StreamId, row: &StreamRow) {
    let sorted = row
        .cuts
        .windows(2)
        .all(|two| two[0].at < two[1].at && two[0].generation < two[1].generation);
    let newest = row.cuts.last().map_or(Generation(0), |cut| cut.generation);
    if !sorted || newest != row.generation {
        let what = format!("its cuts {:?} do not lead to generation {}", row.cuts, row.generation);
        let means = "which records count beyond a cut is not known";
        look.find(Severity::Damage, place_of::<StreamRow>(&stream), what, means);
    }
}

fn check_chunks(look: &mut Look, snapshot: &Snapshot, stream: StreamId, row: &StreamRow) {
    let (mut ordinal, mut next) = (Ordinal(0), row.taken_upto);
    let range = (stream, Ordinal(0))..=(stream, Ordinal(u64::MAX));
    let scanned = snapshot.scan::<ChunkRow>(range, &mut |key, chunk| {
        look.report.looked_at.chunks += 1;
        let place = place_of::<ChunkRow>(&key);
        if key.1 != ordinal {
            let what = format!("chunk {ordinal} of the stream was to come here");
            look.find(Severity::Damage, place.as_str(), what, "a chunk is missing or misnamed");
        }
        if chunk.first != next {
            let what = format!("it begins with record {}, where {next} was to come", chunk.first);
            let means = "records are missing, or shown twice";
            look.find(Severity::Damage, place.as_str(), what, means);
        }
        let end = Sequence(chunk.first.0.saturating_add(chunk.records));
        let last = Sequence(end.0.saturating_sub(1));
        let counts = chunk.records > 0 && chunk.records <= chunk.records_written;
        if !counts || !is_kept(row, chunk.generation, last) {
            let what = format!(
                "{} of {} rows of generation {} count, which the stream's cuts contradict",
                chunk.records, chunk.records_written, chunk.generation
            );
            look.find(Severity::Damage, place, what, "records that were cut off are shown");
        }
        ordinal = key.1.next().unwrap_or(key.1);
        next = end;
        Ok(ControlFlow::Continue(()))
    });
    if let Err(e) = scanned {
        look.failed(&e, format!("chunks of stream {stream} behind it were not looked at"));
        return;
    }
    if (ordinal, next) != (row.next_ordinal, row.sealed_upto) {
        let what = format!(
            "its chunks end before chunk {ordinal} and record {next}, it says {} and {}",
            row.next_ordinal, row.sealed_upto
        );
        let means = format!("records {next}..{} are lost", row.sealed_upto);
        look.find(Severity::Damage, place_of::<StreamRow>(&stream), what, means);
    }
}

/// The unsealed records of a stream follow each other. Returns where it ends.
fn check_tail(
    look: &mut Look,
    snapshot: &Snapshot,
    stream: StreamId,
    row: &StreamRow,
    tails: &mut Tails,
) -> Sequence {
    let place = place_of::<StreamRow>(&stream);
    let mut next = row.sealed_upto;
    for (sequence, held) in tails.records.remove(&stream).unwrap_or_default() {
        if sequence < row.sealed_upto || !is_kept(row, held.generation, sequence) {
            continue;
        }
        if sequence != next {
            let severity = if tails.is_partial { Severity::Warning } else { Severity::Damage };
            let what = format!("record {next} is in no journal, record {sequence} is");
            let means = format!("records {next}..{sequence} of stream {stream} are lost");
            look.find(severity, place.as_str(), what, means);
        }
        if held.is_object && !snapshot.object_of(&held.payload).is_ok_and(|of| !of.is_empty()) {
            let what = format!("record {sequence} is object {}, which no row has", held.payload);
            look.find(Severity::Damage, place.as_str(), what, "the record is lost");
        }
        next = Sequence(sequence.0.saturating_add(1));
    }
    if let Some(needed) = tails.needed.as_ref().filter(|_| !tails.is_partial)
        && next > row.sealed_upto
        && needed.get(&stream).is_none_or(|last| last.0.saturating_add(1) < next.0)
    {
        let first = needed.get(&stream).map_or(row.sealed_upto.0, |last| last.0.saturating_add(1));
        let what = format!("no journal's row says that it is needed for records {first}..{next}");
        look.find(Severity::Damage, place, what, "the next reclaim would remove them");
    }
    next
}

fn check_cursors(
    look: &mut Look,
    key: &<CheckpointRow as crate::manifest::Row>::Key,
    row: &CheckpointRow,
    ends: &Ends,
    is_partial: bool,
) {
    for cursor in &row.cursors {
        // A stream that was retired needs no records.
        let Some((stream, end)) = ends.get(&cursor.stream) else { continue };
        let last = Sequence(cursor.end.0.saturating_sub(1));
        let is_whole = cursor.end <= *end || !is_kept(stream, cursor.generation, last);
        if cursor.generation <= stream.generation && is_whole {
            continue;
        }
        let severity = if is_partial { Severity::Warning } else { Severity::Damage };
        let what = format!(
            "it covers stream {} up to record {}, generation {}; the stream ends at {end}, \
             generation {}",
            cursor.stream, cursor.end, cursor.generation, stream.generation
        );
        let means = "a run cannot resume from it without those records";
        look.find(severity, place_of::<CheckpointRow>(key), what, means);
    }
}
