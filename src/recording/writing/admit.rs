//! Admission: a group of records goes into the queue as a whole, or waits, or is refused, as its
//! streams want it.
//!
//! ```text
//!   group ──▶ room? ──yes──▶ accepted
//!               └─no─▶ without what may be dropped ──room?──yes──▶ accepted, the rest counted
//!                                  └─no─▶ somebody fails at once? ──yes──▶ refused
//!                                               └─no─▶ waits, with no lock held ──▶ from the top
//! ```

use std::time::Duration;

use super::recorded::Group;
use super::recorder::{Recorder, State};
use super::ring::Kept;
use crate::clock::monotonic_nanos;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::behind_dropped;
use crate::journal::Ticket;
use crate::protection::Protection;
use crate::recording::describing::{Moment, Overflow};

/// What becomes of a record of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recording) enum Fate {
    Queued,
    Kept,
    Dropped,
}

/// Whether a stream's wish counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insists {
    /// Each stream does what it does when the queue is full.
    No,
    /// Every record goes to the queue, and waits for it.
    Yes,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Attempt {
    Taken(Ticket),
    /// There is no room for `bytes`; the group is handed back.
    Full {
        group: Group,
        bytes: u64,
        patience: Option<Duration>,
    },
}

impl Recorder {
    /// Accepts what was collected, as one group, and counts it; or hands it back.
    pub(super) fn attempt(&self, state: &mut State, insists: Insists) -> Result<Attempt> {
        // Full chunks that could not be published hold memory: nothing more before they are.
        if state.batch.is_due() {
            self.publish(state)?;
        }
        let State { streams, group, .. } = &mut *state;
        let of = |position: usize| streams.get(position).map(|s| s.overflow).unwrap_or_default();
        let Group { records, fates, .. } = group;
        fates.clear();
        fates.extend(records.iter().map(|record| match of(record.stream) {
            Overflow::Ring { .. } if insists == Insists::No => Fate::Kept,
            _ => Fate::Queued,
        }));
        let mut ticket = None;
        while state.group.fates.contains(&Fate::Queued) {
            match self.offer(state) {
                Ok(taken) => {
                    ticket = Some(taken);
                    break;
                }
                Err(e) if e.kind() != ErrorKind::QueueFull => return Err(e),
                // A stream that drops counts as not due.
                Err(_) if insists == Insists::No && leave_out(state) => {}
                Err(e) => return self.full(state, insists, e),
            }
        }
        self.count(state);
        let ticket = match (ticket, &state.ticket) {
            (Some(ticket), _) => {
                state.ticket = Some(ticket.clone());
                ticket
            }
            (None, Some(last)) => last.clone(),
            (None, None) => self.store.ticket_of_nothing()?,
        };
        // The records are accepted whatever becomes of the chunks; the next call tries again.
        if state.batch.is_due() {
            let _ = self.publish(state);
        }
        Ok(Attempt::Taken(ticket))
    }

    /// Ends an attempt: waits for room, with no lock held, and tries again, as long as its streams
    /// are patient.
    pub(super) fn settle(
        &self,
        operation: &'static str,
        mut attempt: Attempt,
        insists: Insists,
    ) -> Result<Ticket> {
        let since = monotonic_nanos();
        loop {
            let (group, bytes, patience) = match attempt {
                Attempt::Taken(ticket) => return Ok(ticket),
                Attempt::Full { group, bytes, patience } => (group, bytes, patience),
            };
            let waited = Duration::from_nanos(monotonic_nanos().saturating_sub(since));
            self.store.wait_for_room(bytes, patience.map(|most| most.saturating_sub(waited)))?;
            attempt = self.locked(operation, |state| {
                state.group = group;
                recheck(state, &self.name)?;
                self.attempt(state, insists)
            })?;
        }
    }

    /// Hands what is to be queued to the store.
    fn offer(&self, state: &mut State) -> Result<Ticket> {
        let State { streams, group, .. } = state;
        let Group { bytes, parts, records, fates, offered, .. } = group;
        let whole = bytes.len();
        offered.clear();
        for ((part, record), fate) in parts.iter().zip(records.iter()).zip(fates.iter()) {
            if *fate != Fate::Queued {
                continue;
            }
            let (stream, range) = part.clone();
            let dropped = streams.get(record.stream).map_or(0, |stream| stream.dropped);
            // The first of its stream tells it.
            let tells = dropped > 0 && offered.iter().all(|(earlier, _)| *earlier != stream);
            let range = if tells { behind_dropped(bytes, range, dropped) } else { range };
            offered.push((stream, range));
        }
        // P1: one frame for all of them. The mutants make one of each: until one has no room, or
        // whatever becomes of the others.
        let is_asked_alone = !Protection::GroupAdmission.is_on();
        let is_whole = Protection::ObservationWhole.is_on() && !is_asked_alone;
        let frame = if is_whole { offered.len() } else { 1 };
        let mut taken: Option<Result<Ticket>> = None;
        for parts in offered.chunks(frame.max(1)) {
            let next = self.store.try_append_parts(bytes, parts);
            match &taken {
                Some(Err(_)) => {}
                _ => taken = Some(next),
            }
            if !is_asked_alone && matches!(taken, Some(Err(_))) {
                break;
            }
        }
        let taken = taken.unwrap_or_else(|| self.store.ticket_of_nothing());
        bytes.truncate(whole);
        taken
    }

    /// What a group is told for which there is no room.
    fn full(&self, state: &mut State, insists: Insists, refused: Error) -> Result<Attempt> {
        let bytes = self.store.frame_bytes_of(&state.group.offered);
        let group = std::mem::take(&mut state.group);
        let mut patience: Option<Duration> = None;
        for (record, fate) in group.records.iter().zip(&group.fates) {
            let Some(stream) = state.streams.get(record.stream) else { continue };
            if *fate != Fate::Queued || insists == Insists::Yes {
                continue;
            }
            match stream.overflow {
                Overflow::Fail => {
                    let cause = refused.cause();
                    let place = format!("stream {:?}", stream.name);
                    return Err(Error::new(ErrorKind::QueueFull, "append", place, cause));
                }
                Overflow::BlockFor(most) => {
                    patience = Some(patience.map_or(most, |least| least.min(most)));
                }
                _ => {}
            }
        }
        Ok(Attempt::Full { group, bytes, patience })
    }

    /// Counts what became of each record.
    fn count(&self, state: &mut State) {
        let State { streams, batch, group, observed, .. } = state;
        let Group { bytes, parts, records, fates, .. } = group;
        *observed = group.observed.max(*observed);
        for ((recorded, fate), (_, range)) in records.iter().zip(fates).zip(parts) {
            let Some(stream) = streams.get_mut(recorded.stream) else { continue };
            match fate {
                Fate::Queued => {
                    if let Some(span) = stream.count(recorded) {
                        batch.push(recorded.stream, span);
                    }
                }
                Fate::Dropped => stream.leave_out(1),
                Fate::Kept => {
                    let payload = bytes.get(range.clone()).unwrap_or_default().to_vec();
                    stream.keep(Kept { payload, counted: recorded.counted }, recorded.sampled);
                }
            }
        }
    }

    /// Records what the stream, by its position, keeps in memory. What comes meanwhile is kept as
    /// before.
    ///
    /// # Errors
    /// `Invalid` for an unknown stream; as [`Recorder::append_all`]. What was not recorded then stays
    /// kept.
    ///
    /// # Durability
    /// None (*Accepted*): wait on the ticket, which is of the last of them, or call
    /// [`Recorder::barrier`]. Where nothing was kept the ticket is of what was accepted last.
    pub fn trigger(&self, stream: usize) -> Result<Ticket> {
        let mut upto = None;
        loop {
            let attempt = self.locked("trigger", |state| {
                let Some(open) = state.streams.get_mut(stream) else {
                    let cause = format!("there is no stream number {stream}");
                    return Err(Error::invalid("trigger", format!("{:?}", self.name), cause));
                };
                let last = *upto.get_or_insert_with(|| open.ring.promise());
                let most = self.store.limits().queue_bytes / 4;
                let count = state.group.collect_kept(stream, open, last, most);
                let attempt = self.attempt(state, Insists::Yes)?;
                if let (Attempt::Taken(_), Some(open)) = (&attempt, state.streams.get_mut(stream)) {
                    open.ring.recorded(count);
                }
                Ok((attempt, count))
            })?;
            match attempt {
                (Attempt::Taken(ticket), 0) => return Ok(ticket),
                (Attempt::Taken(_), _) => {}
                // What is kept stays where it is, and is collected again.
                (Attempt::Full { bytes, .. }, _) => self.store.wait_for_room(bytes, None)?,
            }
        }
    }
}

/// Leaves out what may be dropped; false where there is nothing more of that.
fn leave_out(state: &mut State) -> bool {
    let State { streams, group, .. } = state;
    let mut is_any = false;
    for (record, fate) in group.records.iter().zip(&mut group.fates) {
        let is_droppable =
            streams.get(record.stream).is_some_and(|stream| stream.overflow == Overflow::Drop);
        if *fate == Fate::Queued && is_droppable {
            *fate = Fate::Dropped;
            is_any = true;
        }
    }
    is_any
}

/// Others went ahead while the group waited: whether it can still come behind them. Of an observation
/// what its streams have by now is forgotten, since it says the same, whoever made it.
fn recheck(state: &mut State, name: &str) -> Result<()> {
    let State { streams, group, observed, .. } = state;
    check_observed(group.observed, *observed)
        .map_err(|cause| Error::invalid("observe", format!("{name:?}"), cause))?;
    let mut before: Vec<Option<Moment>> = vec![None; streams.len()];
    let mut at = 0;
    while let Some(record) = group.records.get(at) {
        let now = Moment { iteration: record.counted.iteration, time: record.counted.time };
        let Some((stream, before)) = streams.get(record.stream).zip(before.get_mut(record.stream))
        else {
            break;
        };
        let has_it = stream.last().is_some_and(|(last, _)| last == now.iteration);
        if has_it && group.observed.is_some() {
            group.records.remove(at);
            group.parts.remove(at);
            continue;
        }
        stream.check_order(now, *before).map_err(|e| {
            let cause = format!("others went ahead while it waited: {}", e.cause());
            let place = format!("stream {:?} iteration {}", stream.name, now.iteration);
            Error::new(e.kind(), "append", place, cause)
        })?;
        *before = Some(now);
        at += 1;
    }
    Ok(())
}

/// REC15: why an observation at `now` cannot come behind the one at `last`.
pub(super) fn check_observed(
    now: Option<i64>,
    last: Option<i64>,
) -> std::result::Result<(), String> {
    match now.zip(last) {
        Some((now, last)) if now < last && Protection::ObservedOrder.is_on() => {
            Err(format!("iteration {now} lies before {last}"))
        }
        _ => Ok(()),
    }
}
