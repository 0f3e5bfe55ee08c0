//! Stages: names that lead to one each, groups that are the sum of their parts, and all that belongs to a
//! stage that stands.

use std::collections::{BTreeMap, HashMap};

use super::look::{Look, place_of};
use super::report::Severity;
use super::rows::{Used, each, each_whole, raise};
use crate::error::Result;
use crate::ids::{GroupId, ObjectId, StageId, StreamId};
use crate::manifest::{
    GroupRow, GroupState, HandoffRow, HandoffState, ObjectRow, OpenGroupRow, OutputRow, PartRow,
    ProducerRow, QuarantineRow, Reading, Row, Snapshot, StageRow, StreamRow,
};

/// What a group is by its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    parts: u64,
    rows: u64,
    batches: u64,
    len: u64,
}

#[derive(Default)]
struct Stages {
    names: HashMap<StageId, String>,
    intakes: HashMap<StreamId, StageId>,
    groups: BTreeMap<GroupId, StageId>,
    sums: HashMap<GroupId, Sum>,
}

/// Looks at every row of a stage.
pub(super) fn check_stages(look: &mut Look, snapshot: &Snapshot, used: &mut Used) -> Result<()> {
    let mut stages = Stages::default();
    each_whole::<StageRow>(look, snapshot, &mut |look, name, row| {
        raise(&mut used.stage, row.stage)?;
        check_stage(look, snapshot, &mut stages, name, row);
        Ok(())
    })?;
    each_whole::<PartRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.group, key.0)?;
        raise(&mut used.part, key.1)?;
        let sum = stages.sums.entry(key.0).or_default();
        sum.parts += 1;
        sum.rows = sum.rows.saturating_add(row.rows);
        sum.batches = sum.batches.saturating_add(row.batches);
        sum.len = sum.len.saturating_add(row.len);
        check_part(look, snapshot, &place_of::<PartRow>(key), row);
        Ok(())
    })?;
    check_groups(look, snapshot, &mut stages, used)?;
    check_parts(look, &stages);
    each_whole::<OutputRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.output, key.1)?;
        row.merged.iter().try_for_each(|output| raise(&mut used.output, *output))?;
        row.groups.iter().try_for_each(|group| raise(&mut used.group, *group))?;
        let place = place_of::<OutputRow>(key);
        check_owner(look, &stages, &place, key.0);
        check_len(look, snapshot, &place, row.object, row.len);
        Ok(())
    })?;
    each_whole::<ProducerRow>(look, snapshot, &mut |look, key, row| {
        let place = place_of::<ProducerRow>(key);
        check_owner(look, &stages, &place, key.stage);
        check_producer(look, &place, row);
        Ok(())
    })?;
    each_whole::<QuarantineRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.quarantine, key.1)?;
        raise(&mut used.group, row.group)?;
        let place = place_of::<QuarantineRow>(key);
        check_owner(look, &stages, &place, key.0);
        check_part(look, snapshot, &place, &row.part);
        Ok(())
    })?;
    each_whole::<HandoffRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.handoff, *key)?;
        raise(&mut used.stage, row.stage)?;
        raise(&mut used.output, row.output)?;
        if row.state == HandoffState::Prepared {
            check_owner(look, &stages, &place_of::<HandoffRow>(key), row.stage);
        }
        Ok(())
    })
}

fn check_stage(
    look: &mut Look,
    snapshot: &Snapshot,
    stages: &mut Stages,
    name: &String,
    row: &StageRow,
) {
    let place = place_of::<StageRow>(name);
    if let Some(other) = stages.names.insert(row.stage, name.clone()) {
        let what = format!("it is stage {}, and so is {other:?}", row.stage);
        look.find(Severity::Damage, place.as_str(), what, "they would share their batches");
    }
    for intake in &row.intakes {
        if let Some(other) = stages.intakes.insert(*intake, row.stage) {
            let what = format!("stream {intake} is its intake, and that of stage {other} as well");
            look.find(Severity::Damage, place.as_str(), what, "batches would be shown twice");
        }
        let what = match snapshot.get::<StreamRow>(intake) {
            Ok(None) => Some(format!("its intake, stream {intake}, has no row")),
            Ok(Some(stream)) if stream.taken_upto != stream.sealed_upto => {
                Some(format!("its intake, stream {intake}, has chunks"))
            }
            Ok(Some(stream)) if stream.recording.is_some() => {
                Some(format!("its intake, stream {intake}, belongs to a recording"))
            }
            // The table of streams tells of it.
            _ => None,
        };
        if let Some(what) = what {
            let means = "batches that were accepted there are lost";
            look.find(Severity::Damage, place.as_str(), what, means);
        }
    }
}

fn check_part(look: &mut Look, snapshot: &Snapshot, place: &str, row: &PartRow) {
    if row.first > row.upto {
        let what = format!("it is of records {}..{}", row.first, row.upto);
        look.find(Severity::Damage, place, what, "where its batches came from is not known");
    }
    // An intake that was taken over and sealed has no row any more.
    if let Ok(Some(stream)) = snapshot.get::<StreamRow>(&row.intake)
        && row.upto > stream.taken_upto
    {
        let what = format!(
            "it is of records up to {}, of stream {} only those below {} were taken",
            row.upto, row.intake, stream.taken_upto
        );
        look.find(Severity::Damage, place, what, "batches would be shown twice");
    }
}

fn check_groups(
    look: &mut Look,
    snapshot: &Snapshot,
    stages: &mut Stages,
    used: &mut Used,
) -> Result<()> {
    let mut open: HashMap<(StageId, Vec<u8>), GroupId> = HashMap::new();
    each_whole::<GroupRow>(look, snapshot, &mut |look, key, row| {
        raise(&mut used.group, key.1)?;
        let place = place_of::<GroupRow>(key);
        check_owner(look, stages, &place, key.0);
        if let Some(other) = stages.groups.insert(key.1, key.0) {
            let what = format!("stage {other} has a group {} as well", key.1);
            look.find(Severity::Damage, place.as_str(), what, "they would share their parts");
        }
        match row.state {
            GroupState::Detached { at } => raise(&mut used.commit_seq, at)?,
            GroupState::Open => {
                if let Some(other) = open.insert((key.0, row.key.clone()), key.1) {
                    let what = format!("group {other} of this key is open as well");
                    let means = "which of the two later batches come to is not known";
                    look.find(Severity::Damage, place.as_str(), what, means);
                }
            }
        }
        let sum = stages.sums.get(&key.1).copied().unwrap_or_default();
        let said = Sum { parts: sum.parts, rows: row.rows, batches: row.batches, len: row.len };
        if said != sum {
            let what = format!(
                "it says {} rows in {} batches of {} bytes, its {} parts have {}, {} and {}",
                row.rows, row.batches, row.len, sum.parts, sum.rows, sum.batches, sum.len
            );
            look.find(Severity::Damage, place.as_str(), what, "a part is missing, or one too many");
        } else if sum.parts == 0 {
            let means = "nothing is lost; it is converted to nothing";
            look.find(Severity::Warning, place, "it has no part", means);
        }
        Ok(())
    })?;
    each::<OpenGroupRow>(look, snapshot, &mut |look, key, _| {
        let fits = snapshot
            .get::<GroupRow>(&(key.stage, key.group))
            .map(|row| row.is_some_and(|row| row.state == GroupState::Open && row.key == key.key));
        if let Ok(false) = fits {
            let what = format!("group {} is not open, or has another key", key.group);
            let means = "later batches would come to a group that is none of theirs";
            look.find(Severity::Damage, place_of::<OpenGroupRow>(key), what, means);
        }
        Ok(())
    })
}

/// Parts whose group is not there.
fn check_parts(look: &mut Look, stages: &Stages) {
    let mut lost: Vec<_> =
        stages.sums.iter().filter(|(group, _)| !stages.groups.contains_key(*group)).collect();
    lost.sort_by_key(|(group, _)| **group);
    for (group, sum) in lost {
        let what = format!("{} parts are of group {group}, which has no row", sum.parts);
        let means = format!("{} rows are lost to every reader", sum.rows);
        look.find(Severity::Damage, PartRow::TABLE.name(), what, means);
    }
}

fn check_owner(look: &mut Look, stages: &Stages, place: &str, stage: StageId) {
    if !stages.names.contains_key(&stage) {
        let what = format!("stage {stage} of it is not there");
        look.find(Severity::Damage, place, what, "nobody can read it any more");
    }
}

fn check_producer(look: &mut Look, place: &str, row: &ProducerRow) {
    let is_rising = row.recent.windows(2).all(|two| two[0].0 < two[1].0);
    let newest = row.recent.last().map(|recent| recent.0);
    if !is_rising || (newest.is_some() && newest != row.last) {
        let what =
            format!("its last sequence is {:?}, the newest of its window {newest:?}", row.last);
        let means = "a repeated batch could be taken for a new one";
        look.find(Severity::Damage, place, what, means);
    }
}

fn check_len(look: &mut Look, snapshot: &Snapshot, place: &str, object: ObjectId, len: u64) {
    // An object that is not there was told with the row's edges.
    if let Ok(Some(row)) = snapshot.get::<ObjectRow>(&object)
        && row.len != len
    {
        let what = format!("it says {len} bytes, its object {object} has {}", row.len);
        look.find(Severity::Damage, place, what, "the output is another one than was published");
    }
}
