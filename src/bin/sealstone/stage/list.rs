//! `sealstone stage ls STORE [STAGE]`.

use sealstone::Store;
use sealstone::staging::{HandoffState, Stage};
use serde_json::{Value, json};

use super::args::StageLsArgs;
use crate::args::TimeFormat;
use crate::open::object;
use crate::output::{End, Output};
use crate::words::{counted, shown, size, time};

pub fn run(args: &StageLsArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    match &args.stage {
        Some(name) => {
            let stage = store.stage(name)?;
            match output.is_json {
                true => output.object(object(whole(&stage)?))?,
                false => lines(&stage, times, output)?,
            }
        }
        None => stages(&store, times, output)?,
    }
    Ok(0)
}

/// What the keys of a stage are made of.
fn shape_of(stage: &Stage) -> String {
    let fields = stage.key_shape().fields().iter();
    let fields: Vec<String> = fields.map(|(name, ty)| format!("{name}:{}", ty.name())).collect();
    if fields.is_empty() { "one key".to_owned() } else { fields.join(",") }
}

fn stages(store: &Store, times: TimeFormat, output: &mut Output) -> Result<(), End> {
    let mut list = Vec::new();
    for about in store.stages()? {
        let stage = store.stage(&about.name)?;
        let view = stage.view()?;
        let (rows, outputs) = (view.rows(), view.outputs().len());
        let published = view.outputs().map(|one| one.rows).fold(0u64, u64::saturating_add);
        let staged = rows.saturating_sub(published);
        let (groups, aside) = (stage.groups()?.len() as u64, stage.quarantine()?.len() as u64);
        if output.is_json {
            list.push(json!({
                "name": about.name, "id": about.id.0, "keys": shape_of(&stage), "rows": rows,
                "staged_rows": staged, "groups": groups, "outputs": outputs,
                "quarantine": aside, "created_unix_nanos": about.created,
            }));
            continue;
        }
        let quarantine =
            if aside == 0 { String::new() } else { format!("\t{aside} in quarantine") };
        output.line(&format!(
            "{}\t{}\t{} staged in {}\t{} in {}\t{}{quarantine}",
            shown(&about.name),
            shape_of(&stage),
            counted(staged, "row"),
            counted(groups, "group"),
            counted(published, "row"),
            counted(outputs as u64, "output"),
            time(about.created, times),
        ))?;
    }
    if output.is_json {
        output.object(object(json!({ "stages": list })))?;
    }
    Ok(())
}

fn state_name(state: HandoffState) -> &'static str {
    match state {
        HandoffState::Prepared => "prepared",
        HandoffState::Done => "done",
        HandoffState::RolledBack => "rolled back",
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything that is in a stage, for programs.
fn whole(stage: &Stage) -> Result<Value, End> {
    let view = stage.view()?;
    let groups: Vec<Value> = stage
        .groups()?
        .iter()
        .map(|one| {
            json!({
                "id": one.id.map(|id| id.0), "key": one.key.to_string(),
                "is_detached": one.is_detached, "rows": one.rows, "batches": one.batches,
                "bytes": one.len, "unsealed_rows": one.unsealed_rows,
                "first_unix_nanos": one.first_at, "last_unix_nanos": one.last_at,
                "failures": one.failures, "failure": one.failure,
            })
        })
        .collect();
    let parts: Vec<Value> = stage
        .parts()?
        .iter()
        .map(|one| {
            json!({
                "id": one.id.0, "group": one.group.0, "rows": one.rows, "batches": one.batches,
                "bytes": one.len,
            })
        })
        .collect();
    let outputs: Vec<Value> = view
        .outputs()
        .map(|one| {
            let groups: Vec<u64> = one.groups.iter().map(|id| id.0).collect();
            let merged: Vec<u64> = one.merged.iter().map(|id| id.0).collect();
            json!({
                "id": one.id.0, "key": one.key.to_string(), "form": one.form, "rows": one.rows,
                "bytes": one.len, "groups": groups, "merged": merged,
                "digest": one.digest.to_string(), "at_unix_nanos": one.at,
            })
        })
        .collect();
    let producers: Vec<Value> = stage
        .producers()?
        .iter()
        .map(|one| {
            json!({
                "name": one.producer, "sequence": one.sequence, "rows": one.rows,
                "batches": one.batches, "position": text_of(&one.position),
            })
        })
        .collect();
    let handoffs: Vec<Value> = stage
        .handoffs()?
        .iter()
        .map(|one| {
            json!({
                "id": one.id.0, "output": one.output.0, "target": one.target,
                "state": state_name(one.state), "attempts": one.attempts,
                "failure": one.failure, "evidence": text_of(&one.evidence),
                "at_unix_nanos": one.at,
            })
        })
        .collect();
    Ok(json!({
        "name": stage.name(), "id": stage.id().0, "keys": shape_of(stage), "rows": view.rows(),
        "unsealed_rows": view.unsealed_rows(), "groups": groups, "parts": parts,
        "outputs": outputs, "producers": producers,
        "quarantine": stage.quarantine()?.len(), "handoffs": handoffs,
    }))
}

fn lines(stage: &Stage, times: TimeFormat, output: &mut Output) -> Result<(), End> {
    let parts = stage.parts()?;
    for one in stage.groups()? {
        let id = one.id.map_or("-".to_owned(), |id| id.to_string());
        let state = if one.is_detached { "detached" } else { "open" };
        let mine = parts.iter().filter(|part| one.id == Some(part.group));
        let failure = match (&one.failure, one.failures) {
            (Some(why), times) => format!("\tfailed {times} times: {}", shown(why)),
            (None, _) => String::new(),
        };
        output.line(&format!(
            "group {id}\t{}\t{state}\t{}\t{} in {}\t{}{failure}",
            shown(&one.key.to_string()),
            counted(one.rows, "row"),
            size(one.len),
            counted(mine.clone().count() as u64, "part"),
            time(one.last_at, times),
        ))?;
        for part in mine.filter(|_| output.is_verbose).collect::<Vec<_>>() {
            let rows = counted(part.rows, "row");
            output.line(&format!("part {}\tof group {id}\t{rows}\t{}", part.id, size(part.len)))?;
        }
    }
    for one in stage.outputs()? {
        output.line(&format!(
            "output {}\t{}\t{}\t{}\t{}\t{}",
            one.id,
            shown(&one.key.to_string()),
            shown(&one.form),
            counted(one.rows, "row"),
            size(one.len),
            time(one.at, times),
        ))?;
    }
    for one in stage.producers()? {
        output.line(&format!(
            "producer {}\tnumber {}\t{}\t{}",
            shown(&one.producer),
            one.sequence,
            counted(one.rows, "row"),
            shown(&text_of(&one.position)),
        ))?;
    }
    for one in stage.quarantine()? {
        let (key, rows) = (one.key.to_string(), counted(one.rows, "row"));
        output.line(&format!(
            "quarantine {}\t{}\t{rows}\t{}",
            one.id,
            shown(&key),
            shown(&one.reason)
        ))?;
    }
    for one in stage.handoffs()? {
        let failure = one.failure.map_or(String::new(), |why| format!("\t{}", shown(&why)));
        output.line(&format!(
            "hand-off {}\toutput {}\t{}\t{}\t{}{failure}",
            one.id,
            one.output,
            state_name(one.state),
            shown(&one.target),
            time(one.at, times),
        ))?;
    }
    Ok(())
}
