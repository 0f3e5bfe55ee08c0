//! `sealstone scrub STORE`: sealed files are read from the medium, a budget at a time.

use sealstone::engine::{ScrubBudget, ScrubFinding};
use serde_json::{Value, json};

use super::args::ScrubArgs;
use super::kept;
use crate::failure::DAMAGED;
use crate::open::open;
use crate::output::{End, Output};
use crate::words::{counted, shown, size};

/// Bytes of one call, between which progress is shown.
const STEP_BYTES: u64 = 64 << 20;

pub fn run(args: &ScrubArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, false)?;
    let bar = output.progress("scrub", args.bytes, true);
    let (mut files, mut bytes, mut found) = (0u64, 0u64, 0u64);
    let (mut damaged, mut is_done) = (Vec::new(), false);
    while !is_done && args.bytes.is_none_or(|most| bytes < most) {
        let left = args.bytes.map_or(STEP_BYTES, |most| (most - bytes).min(STEP_BYTES));
        let step = store.scrub(ScrubBudget { bytes: left })?;
        files += step.files;
        bytes = bytes.saturating_add(step.bytes);
        found += step.findings.len() as u64;
        for finding in &step.findings {
            tell(finding, output)?;
        }
        (damaged, is_done) = (step.damaged, step.is_done);
        bar.set_position(bytes);
    }
    bar.finish_and_clear();
    store.close()?;
    if output.is_json {
        let damaged: Vec<u64> = damaged.iter().map(|file| file.0).collect();
        output.message(
            "summary",
            json!({
                "command": "scrub", "files": files, "bytes": bytes, "findings": found,
                "damaged_files": damaged, "is_done": is_done,
            }),
        )?;
    } else {
        let pass = if is_done { "the pass is done" } else { "the next call goes on from here" };
        output.remark(&format!(
            "{} with {} read, {}; {pass}, {} in it",
            counted(files, "file"),
            size(bytes),
            counted(found, "finding"),
            counted(damaged.len() as u64, "damaged file"),
        ))?;
    }
    Ok(if damaged.is_empty() { 0 } else { DAMAGED })
}

fn tell(finding: &ScrubFinding, output: &mut Output) -> Result<(), End> {
    if output.is_json {
        let objects: Vec<Value> =
            finding.objects.iter().map(|(_, digest)| json!(digest.to_string())).collect();
        return output.message(
            "finding",
            json!({
                "severity": "damage", "file": finding.file.0, "place": finding.error.place(),
                "what": finding.error.chain(), "objects": objects,
                "losers": finding.losers.iter().map(kept::fields).collect::<Vec<_>>(),
            }),
        );
    }
    output.line(&format!("damage file {}: {}", finding.file, shown(&finding.error.chain())))?;
    for (_, digest) in &finding.objects {
        output.line(&format!("  object {digest} does not read"))?;
    }
    for loser in &finding.losers {
        output.line(&format!("  {} loses by it", shown(&kept::text(loser))))?;
    }
    Ok(())
}
