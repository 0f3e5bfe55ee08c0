//! `sealstone gc STORE`: bytes are given back.

use sealstone::Store;
use sealstone::engine::{Budget, Phases, Reclaimed};
use serde_json::{Value, json};

use super::args::GcArgs;
use crate::failure::LOST;
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{counted, size};

pub fn run(args: &GcArgs, output: &mut Output) -> Result<u8, End> {
    let mut budget = Budget { dead_percent: args.dead_percent, ..Budget::default() };
    if let Some(bytes) = args.budget {
        budget.copy_bytes = bytes;
    }
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    if args.dry_run {
        return would(&store, budget, output);
    }
    let bar = output.progress("gc", None, true);
    let mut done = store.reclaim(budget)?;
    // Without a budget of its own it goes on as long as that gives something back.
    let mut gave = given_back(&done);
    while args.budget.is_none() && done.is_more_left && gave > 0 {
        bar.set_position(done.bytes);
        let more = store.reclaim(budget)?;
        gave = given_back(&more);
        add(&mut done, more);
    }
    bar.finish_and_clear();
    store.close()?;
    tell(&done, output)?;
    Ok(if done.is_held_by_salvage { LOST } else { 0 })
}

/// Whether a round got anywhere.
fn given_back(done: &Reclaimed) -> u64 {
    done.files + done.compacted + done.orphans + done.recipes + done.references
}

fn add(done: &mut Reclaimed, more: Reclaimed) {
    done.files += more.files;
    done.bytes += more.bytes;
    done.compacted += more.compacted;
    done.moved_bytes += more.moved_bytes;
    done.orphans += more.orphans;
    done.orphan_bytes += more.orphan_bytes;
    done.recipes += more.recipes;
    done.references += more.references;
    done.phases.retire += more.phases.retire;
    done.phases.index += more.phases.index;
    done.phases.manifest += more.phases.manifest;
    done.phases.unlink += more.phases.unlink;
    // What was not done is as the last round found it.
    done.unreadable = more.unreadable;
    done.not_unlinked = more.not_unlinked;
    done.is_more_left = more.is_more_left;
    done.is_held = more.is_held;
    done.is_held_by_salvage = more.is_held_by_salvage;
}

/// How long each phase took, for programs.
pub fn phases_json(phases: &Phases) -> Value {
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    json!({
        "retire": nanos(phases.retire), "index": nanos(phases.index),
        "manifest": nanos(phases.manifest), "unlink": nanos(phases.unlink),
    })
}

/// How long each phase took, for people.
pub fn phases_text(phases: &Phases) -> String {
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    format!(
        "retire {:.1} ms, index {:.1} ms, manifest {:.1} ms, unlink {:.1} ms",
        millis(phases.retire),
        millis(phases.index),
        millis(phases.manifest),
        millis(phases.unlink),
    )
}

const HELD_BY_SALVAGE: &str = "the store was salvaged, and not all of it came back: nothing is given back until \
                               `sealstone release`";

fn tell(done: &Reclaimed, output: &mut Output) -> Result<(), End> {
    if done.is_held_by_salvage {
        output.warn(HELD_BY_SALVAGE);
    }
    if done.not_unlinked > 0 {
        let files = counted(done.not_unlinked, "file");
        output.warn(&format!("the disk did not let go of {files}: the next gc tries again"));
    }
    if done.unreadable > 0 {
        let files = counted(done.unreadable, "partly dead file");
        output.warn(&format!("{files} left: something in them does not read, see `check`"));
    }
    if output.is_json {
        return output.object(object(json!({
            "command": "gc", "dry_run": false, "files": done.files, "bytes": done.bytes,
            "rewritten": done.compacted, "bytes_moved": done.moved_bytes, "orphans": done.orphans,
            "bytes_orphans": done.orphan_bytes, "recipes": done.recipes,
            "references": done.references, "not_unlinked": done.not_unlinked,
            "unreadable": done.unreadable, "is_more_left": done.is_more_left,
            "is_held": done.is_held, "is_held_by_salvage": done.is_held_by_salvage,
            "phases_nanos": phases_json(&done.phases),
        })));
    }
    let left = match (done.is_held, done.is_more_left) {
        (true, _) => "; the rest is being read or backed up: call again",
        (false, true) => "; more is left: call again",
        (false, false) => "",
    };
    output.remark(&format!(
        "{} given back in {}, {} in {}; {} rewritten with {}{left}",
        size(done.bytes),
        counted(done.files, "file"),
        size(done.orphan_bytes),
        counted(done.orphans, "orphan"),
        counted(done.compacted, "file"),
        size(done.moved_bytes),
    ))?;
    if output.is_verbose {
        output.remark(&phases_text(&done.phases))?;
    }
    Ok(())
}

fn would(store: &Store, budget: Budget, output: &mut Output) -> Result<u8, End> {
    let plan = store.reclaim_plan(budget)?;
    if plan.is_held_by_salvage {
        output.warn(HELD_BY_SALVAGE);
    }
    if output.is_json {
        output.object(object(json!({
            "command": "gc", "dry_run": true, "files": plan.files, "bytes": plan.bytes,
            "rewritten": plan.compacted, "bytes_moved": plan.moved_bytes,
            "bytes_dead": plan.dead_bytes, "orphans": plan.orphans,
            "bytes_orphans": plan.orphan_bytes, "recipes": plan.recipes, "held": plan.held,
            "is_more_left": plan.is_more_left, "is_held_by_salvage": plan.is_held_by_salvage,
        })))?;
        return Ok(0);
    }
    output.remark(&format!(
        "{} would be given back in {}, {} in {}; {} would be rewritten with {}, for {} of dead bytes",
        size(plan.bytes),
        counted(plan.files, "file"),
        size(plan.orphan_bytes),
        counted(plan.orphans, "orphan"),
        counted(plan.compacted, "file"),
        size(plan.moved_bytes),
        size(plan.dead_bytes),
    ))?;
    if plan.recipes > 0 {
        let recipes = counted(plan.recipes, "retired recipe");
        output.remark(&format!("{recipes} would be taken apart; what that frees is told then"))?;
    }
    Ok(0)
}
