//! Draft: the unsealed batches of the intakes that are ours, by key, as parts that can be sealed.

use std::collections::BTreeMap;

use super::aside::RecordAside;
use super::portion::{Ends, Portion};
use super::stage::Stage;
use super::tail::{TailBatch, TailRecord, each_batch};
use crate::digest::Digest;
use crate::engine::Taken;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::PartBuilder;
use crate::ids::{Sequence, StreamId};
use crate::protection::Protection;

/// What can be sealed.
#[derive(Debug, Default)]
pub(super) struct Drafted {
    /// What leaves the intakes.
    pub(super) taken: Vec<Taken>,
    /// The intakes that nothing is left in, but for the one that is appended to.
    pub(super) spare: Vec<StreamId>,
    /// Something did not fit: it is for another publication.
    pub(super) is_cut: bool,
    /// By key, as bytes.
    pub(super) groups: BTreeMap<Vec<u8>, GroupDraft>,
    /// What producers sent, by name.
    pub(super) producers: BTreeMap<String, Vec<Sent>>,
    /// Records that are no batch, or do not read.
    pub(super) unread: Vec<RecordAside>,
}

/// Batches of one key.
#[derive(Debug, Default)]
pub(super) struct GroupDraft {
    pub(super) rows: u64,
    pub(super) batches: u64,
    pub(super) len: u64,
    pub(super) first_at: Option<i64>,
    pub(super) last_at: Option<i64>,
    pub(super) parts: Vec<PartDraft>,
}

/// Batches of one key and one intake.
#[derive(Debug)]
pub(super) struct PartDraft {
    pub(super) from: Taken,
    pub(super) rows: u64,
    pub(super) batches: u64,
    pub(super) len: u64,
    /// Objects that hold some of them.
    pub(super) named: Vec<Digest>,
    builder: Option<PartBuilder>,
}

/// A batch of a producer.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) sequence: u64,
    pub(super) position: Vec<u8>,
    pub(super) fingerprint: [u8; 16],
    pub(super) rows: u64,
}

impl Drafted {
    /// Whether sealing it would change nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.unread.is_empty() && self.spare.is_empty()
    }

    fn take(&mut self, stage: &Stage, from: Taken, batch: &TailBatch<'_>) -> Result<()> {
        let (head, len) = (&batch.head, batch.len());
        let draft = match self.groups.get_mut(head.key) {
            Some(draft) => draft,
            None => self.groups.entry(head.key.to_vec()).or_default(),
        };
        draft.rows = draft.rows.saturating_add(head.rows);
        draft.batches += 1;
        draft.len = draft.len.saturating_add(len);
        draft.first_at = match (draft.first_at, head.at) {
            (Some(first), Some(at)) => Some(first.min(at)),
            (first, at) => first.or(at),
        };
        draft.last_at = draft.last_at.max(head.at);
        draft.put(stage, from, batch)?;
        if let Some(mark) = &head.producer {
            let (sequence, fingerprint) = (mark.sequence, mark.fingerprint);
            let sent =
                Sent { sequence, position: mark.position.to_vec(), fingerprint, rows: head.rows };
            match self.producers.get_mut(mark.name) {
                Some(all) => all.push(sent),
                None => drop(self.producers.insert(mark.name.to_owned(), vec![sent])),
            }
        }
        Ok(())
    }
}

impl GroupDraft {
    /// Puts a batch into the last part, or into another one where that is full.
    fn put(&mut self, stage: &Stage, from: Taken, batch: &TailBatch<'_>) -> Result<()> {
        if let Some(part) = self.parts.last_mut().filter(|part| part.from == from) {
            match part.put(batch) {
                Err(e) if e.kind() == ErrorKind::LimitExceeded => {}
                put => return put,
            }
        }
        let builder = PartBuilder::new(stage.id(), from.stream, from.first, from.upto);
        let (named, builder) = (Vec::new(), Some(builder));
        let mut part = PartDraft { from, rows: 0, batches: 0, len: 0, named, builder };
        part.put(batch)?;
        self.parts.push(part);
        Ok(())
    }
}

impl PartDraft {
    fn put(&mut self, batch: &TailBatch<'_>) -> Result<()> {
        let Some(builder) = &mut self.builder else {
            return Err(Error::invalid("seal", "part", "it was built already"));
        };
        match batch.record {
            TailRecord::Held { whole, .. } => builder.push(batch.sequence, whole)?,
            TailRecord::Named { digest, len, head } => {
                builder.push_named(batch.sequence, digest, len, head)?;
                self.named.push(*digest);
            }
        }
        self.rows = self.rows.saturating_add(batch.head.rows);
        self.batches += 1;
        self.len = self.len.saturating_add(batch.len());
        Ok(())
    }

    /// Its bytes, once.
    pub(super) fn take_content(&mut self) -> Vec<u8> {
        self.builder.take().map(PartBuilder::finish).unwrap_or_default()
    }
}

impl Stage {
    /// Drafts what is unsealed of the intakes that are ours, up to `ends`, as much as one publication takes.
    /// An intake that has no end there gets it. The caller holds `sealing`.
    pub(super) fn draft(&self, ends: &mut Ends) -> Result<Drafted> {
        let intakes = self.memory.intakes.lock().clone();
        let (mut drafted, mut portion) = (Drafted::default(), Portion::new(self.store.limits()));
        for (at, stream) in intakes.into_iter().enumerate() {
            let (first, mut tail) = self.store.unsealed(stream)?;
            let behind = |count: usize| Sequence(first.0.saturating_add(count as u64));
            let whole = tail.len();
            let end = *ends.entry(stream).or_insert(behind(tail.len()));
            tail.truncate(usize::try_from(end.0.saturating_sub(first.0)).unwrap_or(usize::MAX));
            let fitting = portion.take(&tail);
            if fitting < tail.len() {
                drafted.is_cut = true;
                if fitting == 0 {
                    continue;
                }
                tail.truncate(fitting);
            } else if at > 0 && fitting == whole {
                drafted.spare.push(stream);
            }
            let upto = behind(tail.len());
            let taken = Taken { stream, first, upto };
            each_batch(self, stream, &tail, &mut |batch| match batch {
                Ok(batch) => drafted.take(self, taken, &batch),
                // P7: only what is in quarantine leaves the intake.
                Err(_) if !Protection::StageRecordAside.is_on() => Ok(()),
                Err(unread) => {
                    drafted.unread.push(RecordAside::of(self, stream, unread)?);
                    Ok(())
                }
            })?;
            drafted.taken.push(taken);
        }
        Ok(drafted)
    }
}
