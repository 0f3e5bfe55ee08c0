//! Convert: the groups of a plan, several outputs at once, each group published or not.
//!
//! ```text
//!   plan ─▶ groups ─▶ slices of parts ──[convert_slice, on threads]──▶ written, counted
//!                                            all of a group ──▶ [publish_group] ──▶ outputs
//!                                            one of them failed ──▶ [note_failure] ──▶ free again
//! ```
//! STG29: as soon as one output of a group failed the others stop before their next batch. A group is
//! published by the caller's thread, when all of its outputs are written, and by nobody else.

use std::sync::atomic::{AtomicBool, Ordering};

use super::converter::Converter;
use super::failure::note_failure;
use super::input::Meter;
use super::options::ConvertOptions;
use super::plan::{Plan, Planned};
use super::publish::publish_group;
use super::quarantine::Quarantined;
use super::write::{Slice, With, convert_slice};
use crate::engine::Claim;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::OutputId;
use crate::staging::GroupView;

/// What became of a group.
#[derive(Debug, Clone)]
pub struct Converted {
    /// The group, as it was when it was planned.
    pub group: GroupView,
    /// What it became; or why nothing of it changed.
    pub made: Result<Made>,
}

/// What a group became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Made {
    /// Its outputs: none when its converter wrote no rows.
    pub outputs: Vec<OutputId>,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub len: u64,
    /// What of the group did not read, and was put aside with its bytes.
    pub quarantined: Vec<Quarantined>,
    /// Rows of the group that were not taken: they stay, for the next plan.
    pub rows_left: u64,
}

/// What is done for one group, by however many threads.
struct Job {
    group: Planned,
    slices: Vec<std::ops::Range<usize>>,
    has_failed: AtomicBool,
}

impl Job {
    fn new(group: Planned, parts_max: usize) -> Self {
        let (parts, step) = (group.parts.len(), parts_max.max(1));
        let slices = (0..parts).step_by(step).map(|at| at..parts.min(at.saturating_add(step)));
        Self { slices: slices.collect(), group, has_failed: AtomicBool::new(false) }
    }
}

impl Plan {
    /// Converts each group and publishes it, in ONE transaction for each: its outputs are there, what of
    /// its parts they hold is gone, what does not read is in quarantine, and the claim is released.
    /// Groups fail apart: of one that fails everything stays, and the next plan takes it up.
    ///
    /// # Errors
    /// Each group's own is in [`Converted::made`]: what the converter returned; `CallerPanicked`;
    /// `Damage` for an output that does not hold the rows that went into it; `LimitExceeded` for one that
    /// is too long; `Cancelled`; `DiskFull`, `Io`. `Invalid`, and no group was looked at, for bounds of 0.
    ///
    /// # Durability
    /// What is published is *Durable* when it returns.
    pub fn convert(
        mut self,
        converter: &dyn Converter,
        options: &ConvertOptions<'_>,
    ) -> Result<Vec<Converted>> {
        if options.threads_max == 0 || options.parts_per_output_max == 0 {
            let cause = "threads_max and parts_per_output_max are at least 1";
            return Err(Error::invalid("convert", self.stage.place(), cause));
        }
        let (stage, schema) = (self.stage.clone(), std::mem::take(&mut self.schema));
        let groups = std::mem::take(&mut self.groups).into_iter();
        let jobs: Vec<Job> =
            groups.map(|group| Job::new(group, options.parts_per_output_max)).collect();
        let meter = Meter::new(jobs.len() as u64, options.progress);
        let with = With { stage: &stage, converter, options, schema: &schema, meter: &meter };
        Ok(convert_all(&with, &jobs, &mut self.claims))
    }
}

/// A group's outputs as they come, and what became of it.
struct Coming {
    claim: Option<Claim>,
    slices: Vec<Option<Result<Slice>>>,
    missing: usize,
    made: Option<Result<Made>>,
}

fn convert_all(with: &With<'_>, jobs: &[Job], claims: &mut Vec<Claim>) -> Vec<Converted> {
    let claims =
        std::mem::take(claims).into_iter().map(Some).chain(std::iter::repeat_with(|| None));
    let mut coming: Vec<Coming> = jobs
        .iter()
        .zip(claims)
        .map(|(job, claim)| Coming {
            claim,
            slices: job.slices.iter().map(|_| None).collect(),
            missing: job.slices.len(),
            made: None,
        })
        .collect();
    let units: Vec<(usize, usize)> = jobs
        .iter()
        .enumerate()
        .flat_map(|(job, one)| (0..one.slices.len()).map(move |slice| (job, slice)))
        .collect();
    let unit = |at: u64| {
        let (job, slice) = *units.get(usize::try_from(at).ok()?)?;
        Some((job, slice, jobs.get(job)?))
    };
    let work = |at: u64| match unit(at) {
        Some((_, slice, job)) => {
            let parts = job.slices.get(slice).cloned().unwrap_or_default();
            convert_slice(with, &job.group, parts, &job.has_failed)
        }
        None => Err(Error::invalid("convert", "output", "there are fewer")),
    };
    let mut take = |at: u64, done: Result<Slice>| {
        let Some((number, slice, job)) = unit(at) else { return };
        let Some(group) = coming.get_mut(number) else { return };
        if done.is_err() {
            job.has_failed.store(true, Ordering::Release);
        }
        if let Some(place) = group.slices.get_mut(slice) {
            *place = Some(done);
        }
        group.missing -= 1;
        if group.missing == 0 {
            let slices = std::mem::take(&mut group.slices);
            let claim = group.claim.take();
            group.made = Some(decide(with, &job.group, claim, slices));
            with.meter.groups_done.fetch_add(1, Ordering::AcqRel);
        }
    };
    with.stage.store.at_once(with.options.threads_max, units.len() as u64, &work, &mut take);
    let ends = jobs.iter().zip(coming);
    let ends = ends.map(|(job, group)| {
        let nothing = || Ok(Made { rows_left: job.group.row.rows, ..Made::default() });
        Converted { group: job.group.view.clone(), made: group.made.unwrap_or_else(nothing) }
    });
    ends.collect()
}

/// All outputs of a group are written, or one of them failed.
fn decide(
    with: &With<'_>,
    group: &Planned,
    claim: Option<Claim>,
    slices: Vec<Option<Result<Slice>>>,
) -> Result<Made> {
    let Some(claim) = claim else {
        return Err(Error::invalid("convert", format!("group {}", group.id), "it has no claim"));
    };
    let (mut written, mut failed) = (Vec::new(), Vec::new());
    for slice in slices.into_iter().flatten() {
        match slice {
            Ok(slice) => written.push(slice),
            Err(e) => failed.push(e),
        }
    }
    // Those that only stopped because another one failed do not say why.
    let first = failed.iter().position(|e| e.kind() != ErrorKind::Cancelled).unwrap_or(0);
    let made = match failed.into_iter().nth(first) {
        Some(error) => {
            // STG20: what was written of it goes now, and nothing else does.
            drop(written);
            Err((error, claim))
        }
        None => publish_group(with, group, claim, written),
    };
    made.map_err(|(error, claim)| {
        let error = match error.kind() {
            ErrorKind::CallerPanicked => {
                error.told_of("convert", format!("group {} of {}", group.id, with.stage.place()))
            }
            _ => error,
        };
        note_failure(with.stage, group, claim, &error);
        error
    })
}
