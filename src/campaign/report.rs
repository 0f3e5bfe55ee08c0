//! What a campaign counted, and how it is told.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::check::Checked;
use crate::vfs::Step;
use crate::vfs::sim::Profile;

/// Counts of one worker, or of all.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Images checked.
    pub images: u64,
    /// Those of them that were crashes inside a recovery.
    pub nested: u64,
    /// Those of them that were crashes inside the recovery of a crash inside a recovery.
    pub twice: u64,
    /// Equal images, not checked again.
    pub duplicates: u64,
    /// Histories cut.
    pub histories: u64,
    /// The most calls to the disk that an opening took.
    pub calls_max: u64,
    /// Images at most, for a bounded look.
    pub images_max: Option<u64>,
    /// What was shown, by profile.
    pub outcomes: BTreeMap<(String, &'static str), u64>,
    /// The step under way at the cut.
    pub steps: BTreeMap<Step, u64>,
}

/// The name of an outcome of an image under a profile.
pub fn outcome_name(outcome: &str, profile: Profile) -> (String, &'static str) {
    (outcome.to_owned(), profile.name())
}

impl Tally {
    /// A tally that is full after so many images.
    pub fn up_to(images: u64) -> Self {
        Self { images_max: Some(images), ..Self::default() }
    }

    /// Whether it is full.
    pub fn is_full(&self) -> bool {
        self.images_max.is_some_and(|max| self.images >= max)
    }

    pub(super) fn count(
        &mut self,
        profile: Profile,
        step: Option<Step>,
        checked: &Checked,
        crashes: usize,
    ) {
        self.images += 1;
        self.nested += u64::from(crashes > 1);
        self.twice += u64::from(crashes > 2);
        self.calls_max = self.calls_max.max(checked.calls);
        *self.outcomes.entry(outcome_name(&checked.outcome, profile)).or_default() += 1;
        if let Some(step) = step {
            *self.steps.entry(step).or_default() += 1;
        }
    }

    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Self) {
        self.images += other.images;
        self.nested += other.nested;
        self.twice += other.twice;
        self.duplicates += other.duplicates;
        self.histories += other.histories;
        self.calls_max = self.calls_max.max(other.calls_max);
        for (name, count) in &other.outcomes {
            *self.outcomes.entry(name.clone()).or_default() += count;
        }
        for (step, count) in &other.steps {
            *self.steps.entry(*step).or_default() += count;
        }
    }

    /// Steps that a store can reach and at which nothing was cut.
    pub fn steps_missing(&self) -> Vec<&'static str> {
        // A salvage is cut by itself, and counts its own steps; events are of recordings, whose
        // histories are cut in tests/recording, and stages are cut in tests/staging.
        let apart = [
            "salvage.",
            "event.",
            "stage.",
            "output.",
            "group.",
            "quarantine.",
            "handoff.",
            "prepare.",
            "put.",
            "names.",
            "snapshot_names.",
            "name_handoff.",
            "retire.switch",
            "retire.part",
            "scrub.",
        ];
        let is_apart = |step: &Step| apart.iter().any(|protocol| step.name().starts_with(protocol));
        let missing = |step: &&Step| !self.steps.contains_key(step) && !is_apart(step);
        Step::ALL.iter().filter(missing).map(|step| step.name()).collect()
    }

    /// The histograms as text.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "images {}, inside a recovery {} ({} %), two deep {}, duplicates {}, histories {}, \
             calls of an opening at most {}",
            self.images,
            self.nested,
            self.nested * 100 / self.images.max(1),
            self.twice,
            self.duplicates,
            self.histories,
            self.calls_max
        );
        let _ = writeln!(text, "outcomes:");
        for ((outcome, profile), count) in &self.outcomes {
            let _ = writeln!(text, "  {profile:6} {outcome:24} {count:8}");
        }
        let _ = writeln!(text, "steps at the cut:");
        for step in Step::ALL {
            let count = self.steps.get(step).copied().unwrap_or_default();
            let _ = writeln!(text, "  {:20} {count:8}", step.name());
        }
        text
    }
}
