//! Merged: outputs that are in another one by now, and how they are known.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::Objects;
use super::stages::NewOutput;
use crate::digest::Digest;
use crate::ids::{OutputId, StageId};

/// What outputs that stay were merged from.
#[derive(Default)]
pub(super) struct Merged {
    /// By their bytes, as often as these were taken: outputs of equal bytes stand apart.
    digests: BTreeMap<Digest, u64>,
    ids: BTreeSet<(StageId, OutputId)>,
}

impl Merged {
    /// Those with numbers up to `upto` are outputs of the snapshot, which go by these.
    pub(super) fn absorb(&mut self, output: &NewOutput, upto: OutputId) {
        if output.row.merged.is_empty() {
            return;
        }
        self.ids.extend(output.row.merged.iter().map(|merged| (output.stage, *merged)));
        let inputs = output.inputs.iter().zip(&output.row.merged);
        for (digest, _) in inputs.filter(|(_, merged)| **merged > upto) {
            *self.digests.entry(*digest).or_default() += 1;
        }
    }

    /// Whether the rows of `output` are in one that was merged from it; asked once for each.
    pub(super) fn is_in_another(&mut self, output: &NewOutput, objects: &Objects) -> bool {
        let digest = objects.rows.get(&output.object).map(|row| row.digest);
        let count = digest.and_then(|digest| self.digests.get_mut(&digest));
        match count {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether it is an earlier try to merge what another one was merged from.
    pub(super) fn has_any(&self, output: &NewOutput) -> bool {
        output.row.merged.iter().any(|merged| self.ids.contains(&(output.stage, *merged)))
    }
}
