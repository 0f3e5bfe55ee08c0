//! `sealstone stage publish STORE STAGE DIR`: outputs become files, each once.

use sealstone::ErrorKind;
use sealstone::staging::{DirectoryTarget, HandedOff, HandoffId, HandoffState, Stage, Target};
use sealstone::{Error, Result};
use serde_json::{Value, json};

use super::args::PublishArgs;
use crate::open::open;
use crate::output::{End, Output};
use crate::words::{counted, shown};

pub fn run(args: &PublishArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let stage = store.stage(&args.stage)?;
    let mut target = DirectoryTarget::new(&args.directory).mode(args.mode);
    if let Some(ending) = &args.ending {
        target = target.ending(ending);
    }
    if args.dry_run {
        return would(args, &stage, &target, output);
    }
    let mut told = Told::default();
    for id in &args.roll_back {
        stage.roll_back(HandoffId(*id), &target)?;
        told.rolled_back += 1;
    }
    if args.roll_back.is_empty() {
        for one in stage.resume_handoffs(&target)? {
            told.tell(one.output.0, one.result, output)?;
        }
    }
    if args.roll_back.is_empty() && !args.resume {
        for one in stage.outputs()? {
            if !told.seen.contains(&one.id.0) {
                told.tell(one.id.0, stage.hand_off(one.id, &target), output)?;
            }
        }
    }
    let detached = stage.groups()?.iter().filter(|group| group.is_detached).count() as u64;
    if detached > 0 && args.roll_back.is_empty() && !args.resume {
        let groups = match detached {
            1 => "1 group is".to_owned(),
            n => format!("{} are", counted(n, "group")),
        };
        output.warn(&format!("{groups} detached and not converted: see `stage convert`"));
    }
    let (others, name) = (stage.handoffs()?, target.name());
    let others = others.iter().filter(|one| one.target != name);
    let undecided = others.filter(|one| one.state == HandoffState::Prepared).count() as u64;
    if undecided > 0 {
        let handoffs = counted(undecided, "hand-off");
        output.warn(&format!("{handoffs} to other targets not decided: see `stage ls`"));
    }
    store.close()?;
    told.end(args, output)
}

#[derive(Debug, Default)]
struct Told {
    seen: Vec<u64>,
    done: u64,
    before: u64,
    rolled_back: u64,
    failed: Vec<(u64, Error)>,
}

impl Told {
    fn tell(&mut self, id: u64, result: Result<HandedOff>, output: &mut Output) -> Result<(), End> {
        self.seen.push(id);
        match result {
            Ok(done) if done.is_repeat => self.before += 1,
            Ok(done) => {
                self.done += 1;
                let evidence = String::from_utf8_lossy(&done.evidence).into_owned();
                let file = evidence.split(' ').next().unwrap_or_default();
                match output.is_json {
                    true => output.message(
                        "published",
                        json!({ "output": id, "handoff": done.id.0, "file": file }),
                    )?,
                    false => output.line(&shown(file))?,
                }
            }
            // Whoever is at work on it will finish it.
            Err(e) if e.kind() == ErrorKind::Conflict => {
                output.warn(&format!("output {id} is left to another one: {}", e.cause()));
            }
            Err(e) => {
                output.warn(&format!("output {id} is not there: {}", e.chain()));
                self.failed.push((id, e));
            }
        }
        Ok(())
    }

    fn end(self, args: &PublishArgs, output: &mut Output) -> Result<u8, End> {
        if output.is_json {
            let failed: Vec<Value> = self
                .failed
                .iter()
                .map(|(id, e)| json!({ "output": id, "kind": e.kind().name(), "chain": e.chain() }))
                .collect();
            output.message(
                "summary",
                json!({
                    "command": "publish", "dry_run": false, "stage": args.stage,
                    "published": self.done, "published_before": self.before,
                    "rolled_back": self.rolled_back, "failed": failed,
                }),
            )?;
        } else if self.rolled_back > 0 {
            output.remark(&format!("{} rolled back", counted(self.rolled_back, "hand-off")))?;
        } else {
            output.remark(&format!(
                "{} published to {}, {} there before",
                counted(self.done, "output"),
                shown(&args.directory.to_string_lossy()),
                counted(self.before, "output"),
            ))?;
        }
        match self.failed.into_iter().next() {
            Some((_, first)) => Err(End::Failed(first)),
            None => Ok(0),
        }
    }
}

/// What would be handed off, or gone on with.
fn would(
    args: &PublishArgs,
    stage: &Stage,
    target: &DirectoryTarget,
    output: &mut Output,
) -> Result<u8, End> {
    let name = target.name();
    let known = stage.handoffs()?;
    let stands = |id: u64, state: HandoffState| {
        known.iter().any(|one| one.output.0 == id && one.target == name && one.state == state)
    };
    let mut list = Vec::new();
    for one in stage.outputs()? {
        let is_begun = stands(one.id.0, HandoffState::Prepared);
        if stands(one.id.0, HandoffState::Done) || (args.resume && !is_begun) {
            continue;
        }
        list.push((one.id.0, one.key.to_string(), is_begun));
    }
    if output.is_json {
        let would: Vec<Value> = list
            .iter()
            .map(|(id, key, is_begun)| json!({ "output": id, "key": key, "is_begun": is_begun }))
            .collect();
        let fields = json!({
            "command": "publish", "dry_run": true, "stage": args.stage, "would": would
        });
        output.message("summary", fields)?;
        return Ok(0);
    }
    for (id, key, is_begun) in &list {
        let begun = if *is_begun { "\tbegun" } else { "" };
        output.line(&format!("output {id}\t{}{begun}", shown(key)))?;
    }
    output.remark(&format!("{} would be published", counted(list.len() as u64, "output")))?;
    Ok(0)
}
