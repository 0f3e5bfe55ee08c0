//! `sealstone fork STORE RECORDING NEW` and `sealstone plan STORE RECORDING`: where a recording goes on.

use sealstone::recording::{ResumeFrom, ResumePlan};
use serde_json::{Map, Value, json};

use super::args::{ForkArgs, PlanArgs};
use super::ls::status_name;
use super::output::{End, Output};
use super::words::shown;

pub fn fork(args: &ForkArgs, output: &mut Output) -> Result<u8, End> {
    if args.dry_run {
        let store = output.opening().open_read_only(&args.store)?;
        let plan = store.resume(&args.recording).from(args.from).plan()?;
        tell(&plan, output)?;
        return Ok(0);
    }
    let store = output.opening().open(&args.store)?;
    store.fork(&args.recording, args.from, &args.new)?;
    let fork = store.recording(&args.new)?;
    let records: u64 = fork.streams()?.iter().map(|stream| stream.record_count()).sum();
    if output.is_json {
        let mut object = Map::new();
        object.insert("recording".to_owned(), json!(args.new));
        object.insert("fork_of".to_owned(), json!(args.recording));
        object.insert("records".to_owned(), json!(records));
        output.object(object)?;
    } else {
        output.remark(&format!(
            "{} begins as {} was, with {records} records",
            shown(&args.new),
            shown(&args.recording)
        ))?;
    }
    store.close()?;
    Ok(0)
}

pub fn plan(args: &PlanArgs, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let plan = store.resume(&args.recording).from(args.from).plan()?;
    tell(&plan, output)?;
    Ok(0)
}

fn tell(plan: &ResumePlan, output: &mut Output) -> Result<(), End> {
    if !output.is_json {
        return plan.to_string().lines().try_for_each(|line| output.line(&shown(line)));
    }
    let streams: Vec<Value> = plan
        .streams
        .iter()
        .map(|stream| {
            json!({
                "name": stream.name, "records": stream.records, "kept": stream.kept,
                "cut": stream.cut(), "sealed_cut": stream.sealed_cut,
            })
        })
        .collect();
    let passed_over: Vec<Value> = plan
        .passed_over
        .iter()
        .map(|(id, why)| json!({ "checkpoint": id.0, "cause": why }))
        .collect();
    let undecodable: Vec<Value> = plan
        .undecodable
        .iter()
        .map(|bad| json!({ "stream": bad.stream, "first": bad.first, "records": bad.records }))
        .collect();
    let mut object = Map::new();
    object.insert("recording".to_owned(), json!(plan.recording));
    object.insert("status".to_owned(), json!(status_name(&plan.status)));
    object.insert("checkpoint".to_owned(), json!(plan.checkpoint.map(|id| id.0)));
    object.insert("iteration".to_owned(), json!(plan.iteration));
    object.insert("records_cut".to_owned(), json!(plan.cut()));
    object.insert("streams".to_owned(), Value::Array(streams));
    object.insert("passed_over".to_owned(), Value::Array(passed_over));
    object.insert("undecodable".to_owned(), Value::Array(undecodable));
    object.insert("refused".to_owned(), json!(plan.refused));
    output.object(object)
}

/// `latest`, `end`, or the number of a checkpoint.
pub fn parse_from(text: &str) -> Result<ResumeFrom, String> {
    match text {
        "latest" => Ok(ResumeFrom::LatestCheckpoint),
        "end" => Ok(ResumeFrom::Tail),
        number => match number.parse() {
            Ok(number) => Ok(ResumeFrom::Checkpoint(sealstone::ids::CheckpointId(number))),
            Err(_) => Err("give latest, end, or the number of a checkpoint".to_owned()),
        },
    }
}
