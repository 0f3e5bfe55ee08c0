//! Seal: what was drafted becomes parts of open groups, in one transaction.
//!
//! P4: parts, groups, what producers sent, and the new beginning of the intakes are ONE transaction: a
//! reader finds each batch in the tail before, in a part after.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::aside::RecordAside;
use super::draft::{Drafted, GroupDraft, PartDraft};
use super::flush::Flushed;
use super::producer::count;
use super::stage::Stage;
use super::tail::object_named;
use crate::engine::{Claim, Content, Taken, retire_intake};
use crate::error::Result;
use crate::format::staged::ProducerMark;
use crate::ids::{GroupId, ObjectId, PartId, StageId};
use crate::manifest::{
    GroupRow, GroupState, Key, OpenGroupKey, OpenGroupRow, PartRow, ProducerKey, ProducerRow,
    Reading, Table, Write, to_value,
};
use crate::protection::Protection;
use crate::vfs::Step;

/// The most rows of a group: a key with more begins another one.
const GROUP_ROWS_MAX: u64 = 1 << 59;

/// Which groups are detached with what is sealed.
#[derive(Debug, Default)]
pub(super) struct Detach {
    /// Of each key that the rule said is ready: the group that it was asked about.
    pub(super) ready: BTreeMap<Vec<u8>, Option<GroupId>>,
    /// Whatever group of the key is open by then.
    pub(super) is_forced: bool,
}

impl Stage {
    /// Seals `drafted` and detaches the groups of `detach`. The claim on the stage, where it is held,
    /// ends in the same transaction.
    pub(super) fn seal_drafted(
        &self,
        mut drafted: Drafted,
        detach: &Detach,
        claim: Option<Claim>,
    ) -> Result<Flushed> {
        let contents = self.contents(&mut drafted)?;
        let set = self.store.seal_contents(contents)?;
        let spare = std::mem::take(&mut drafted.spare);
        let flushed =
            self.store.publish_taking(set, Step::StageSeal, &drafted.taken, |w, objects| {
                if let Some(claim) = &claim {
                    claim.release_in(w)?;
                }
                let mut row = self.row(w)?;
                let mut objects = objects.iter().copied();
                let mut flushed = Flushed::default();
                for (key, draft) in &drafted.groups {
                    let (group, row, is_new) = self.group_for(w, key, draft, &mut flushed)?;
                    let row = GroupRow {
                        rows: row.rows.saturating_add(draft.rows),
                        batches: row.batches + draft.batches,
                        len: row.len.saturating_add(draft.len),
                        first_at: earlier(row.first_at, draft.first_at),
                        last_at: row.last_at.max(draft.last_at),
                        ..row
                    };
                    for part in &draft.parts {
                        let Some(object) = objects.next() else { break };
                        put_part(w, group, part, object)?;
                        flushed.parts += 1;
                    }
                    w.put(&(self.id(), group), &row)?;
                    flushed.rows = flushed.rows.saturating_add(draft.rows);
                    flushed.batches += draft.batches;
                    if detach.says(key, group, is_new) {
                        flushed.detached.extend(self.detach(w, group)?);
                    }
                }
                let mut unread = drafted.unread.iter();
                unread.try_for_each(|record| record.put(w, self, &mut objects))?;
                let untouched =
                    detach.ready.iter().filter(|(key, _)| !drafted.groups.contains_key(*key));
                for (_, group) in untouched {
                    if let Some(group) = group {
                        flushed.detached.extend(self.detach(w, *group)?);
                    }
                }
                self.count_producers(w, &drafted)?;
                if !spare.is_empty() {
                    row.intakes.retain(|intake| !spare.contains(intake));
                    w.put(&self.memory.name, &row)?;
                    spare.iter().try_for_each(|intake| retire_intake(w, *intake))?;
                }
                flushed.detached.sort_unstable();
                Ok(flushed)
            })?;
        self.memory.pause.lock().end();
        if let Some(claim) = claim {
            claim.released();
        }
        self.memory.intakes.lock().retain(|intake| !spare.contains(intake));
        self.release_idle();
        drafted.unread.into_iter().for_each(|record| self.store.tell_health(record.why));
        Ok(flushed)
    }

    /// The contents of the parts, in the order of the groups. What the label says of a part is as far as
    /// it is known: the part itself tells its stage, and its batches their key.
    fn contents(&self, drafted: &mut Drafted) -> Result<Vec<Content>> {
        let snapshot = self.store.snapshot()?;
        // One for all parts: it has the stage's schema.
        let stage: Arc<[_]> = Arc::new([(
            Table::Stages.number(),
            self.memory.name.to_bytes(),
            to_value(&self.memory.name.to_bytes(), &self.row(&snapshot)?)?,
        )]);
        let key = (GroupId(0), PartId(0)).to_bytes();
        let mut contents = Vec::new();
        for part in drafted.groups.values_mut().flat_map(|draft| &mut draft.parts) {
            let value = to_value(&key, &part.row(ObjectId(0), Vec::new()))?;
            let referrer = Some((Table::Parts.number(), key.clone(), value));
            let context = Arc::clone(&stage);
            contents.push(Content { context, ..Content::new(part.take_content(), referrer) });
        }
        contents.extend(drafted.unread.iter().filter_map(RecordAside::content));
        Ok(contents)
    }

    /// The group that `draft` comes to: where the open one is full it is detached, and another begins.
    fn group_for(
        &self,
        w: &mut Write,
        key: &[u8],
        draft: &GroupDraft,
        flushed: &mut Flushed,
    ) -> Result<(GroupId, GroupRow, bool)> {
        let open = self.open_group(w, key)?;
        if !is_full(&open.1, draft) {
            return Ok(open);
        }
        flushed.detached.extend(self.detach(w, open.0)?);
        self.open_group(w, key)
    }

    /// The open group of `key`, or a new one; whether it is new.
    fn open_group(&self, w: &mut Write, key: &[u8]) -> Result<(GroupId, GroupRow, bool)> {
        // STG1: what is detached does not change.
        if let Some(group) = open_group_of(w, self.id(), key)? {
            return Ok((group, w.require::<GroupRow>(&(self.id(), group))?, false));
        }
        let row = GroupRow {
            key: key.to_vec(),
            state: GroupState::Open,
            rows: 0,
            batches: 0,
            len: 0,
            first_at: None,
            last_at: None,
            failures: 0,
            failure: None,
        };
        Ok((w.next_group_id()?, row, true))
    }

    /// Detaches a group that is still open.
    fn detach(&self, w: &mut Write, group: GroupId) -> Result<Option<GroupId>> {
        let at = w.commit_seq();
        match w.get::<GroupRow>(&(self.id(), group))? {
            Some(row) if row.state == GroupState::Open => {
                let state = GroupState::Detached { at };
                w.put(&(self.id(), group), &GroupRow { state, ..row })?;
                Ok(Some(group))
            }
            _ => Ok(None),
        }
    }

    fn count_producers(&self, w: &mut Write, drafted: &Drafted) -> Result<()> {
        for (name, sent) in &drafted.producers {
            let key = ProducerKey { stage: self.id(), name: name.clone() };
            let mut row = w.get::<ProducerRow>(&key)?.unwrap_or_default();
            for one in sent {
                let (sequence, fingerprint) = (one.sequence, one.fingerprint);
                let mark = ProducerMark { name, sequence, position: &one.position, fingerprint };
                count(&mut row, &mark, one.rows);
            }
            w.put(&key, &row)?;
        }
        Ok(())
    }
}

impl Detach {
    /// Whether the rule was asked about this group, and said that it is ready.
    fn says(&self, key: &[u8], group: GroupId, is_new: bool) -> bool {
        self.ready.get(key).is_some_and(|asked| {
            self.is_forced || (asked.is_none() && is_new) || *asked == Some(group)
        })
    }
}

/// The open group of `key`.
pub(super) fn open_group_of(
    rows: &impl Reading,
    stage: StageId,
    key: &[u8],
) -> Result<Option<GroupId>> {
    if !Protection::StageGroupDetached.is_on() {
        let all =
            rows.list::<GroupRow>((stage, GroupId(0))..=(stage, GroupId(u64::MAX)), usize::MAX)?;
        return Ok(all.into_iter().rfind(|(_, row)| row.key == key).map(|((_, group), _)| group));
    }
    let at = |group| OpenGroupKey { stage, key: key.to_vec(), group };
    let found = rows.last::<OpenGroupRow>(at(GroupId(0))..=at(GroupId(u64::MAX)))?;
    Ok(found.map(|(open, _)| open.group))
}

/// Whether a group is to take no more: with the draft its row would say more rows than any may.
fn is_full(group: &GroupRow, draft: &GroupDraft) -> bool {
    group.rows > 0 && group.rows.saturating_add(draft.rows) > GROUP_ROWS_MAX
}

fn put_part(w: &mut Write, group: GroupId, part: &PartDraft, object: ObjectId) -> Result<()> {
    let mut payloads = Vec::with_capacity(part.named.len());
    for digest in &part.named {
        payloads.push(object_named(w, digest)?);
    }
    payloads.sort_unstable();
    payloads.dedup();
    let id = w.next_part_id()?;
    w.put(&(group, id), &part.row(object, payloads))
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl PartDraft {
    fn row(&self, object: ObjectId, payloads: Vec<ObjectId>) -> PartRow {
        let Taken { stream, first, upto } = self.from;
        PartRow {
            object,
            payloads,
            rows: self.rows,
            batches: self.batches,
            skip: 0,
            len: self.len,
            intake: stream,
            first,
            upto,
        }
    }
}
