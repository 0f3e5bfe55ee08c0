//! A producer, as far as this opening knows: what it sent last, and the tickets of that.

use std::collections::VecDeque;

use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::ProducerMark;
use crate::journal::Ticket;
use crate::manifest::ProducerRow;
use crate::protection::Protection;

/// So many of a producer's last batches are known again when they come again.
pub(super) const WINDOW: usize = 256;

/// What a producer sent.
#[derive(Debug, Default)]
pub(super) struct Producer {
    /// As it will be in its row once everything is sealed.
    pub(super) row: ProducerRow,
    /// Of those that this opening took.
    tickets: VecDeque<(u64, Ticket)>,
}

/// What a batch of a producer is.
#[derive(Debug)]
pub(super) enum Judged {
    /// One that it did not send before.
    New,
    /// One that it did: with the ticket, where this opening took it.
    Repeat(Option<Ticket>),
}

impl Producer {
    pub(super) fn of(row: ProducerRow) -> Self {
        Self { row, tickets: VecDeque::new() }
    }

    /// STG10: whether a batch is new.
    ///
    /// # Errors
    /// `Conflict` for a number that another batch had, that is too old to be known, or that was passed
    /// over.
    pub(super) fn judge(&self, mark: &ProducerMark<'_>) -> Result<Judged> {
        let Some(last) = self.row.last else { return Ok(Judged::New) };
        let sequence = mark.sequence;
        if sequence > last || !Protection::StageProducerWindow.is_on() {
            return Ok(Judged::New);
        }
        let refuse = |cause: String| {
            let place = format!("producer {:?}", mark.name);
            Err(Error::new(ErrorKind::Conflict, "append", place, cause))
        };
        let known = self.row.recent.iter().find(|(known, _)| *known == sequence);
        match known {
            Some((_, fingerprint)) if *fingerprint == mark.fingerprint => {
                let ticket = self.tickets.iter().find(|(of, _)| *of == sequence);
                Ok(Judged::Repeat(ticket.map(|(_, ticket)| ticket.clone())))
            }
            Some(_) => refuse(format!("number {sequence} was another batch")),
            None if self.row.recent.first().is_some_and(|(oldest, _)| sequence < *oldest) => {
                refuse(format!(
                    "number {sequence} is older than the last {} that are known; its last is {last}",
                    self.row.recent.len()
                ))
            }
            None => {
                refuse(format!("number {sequence} was passed over: {last} was taken behind it"))
            }
        }
    }

    /// Takes in a batch that was accepted.
    pub(super) fn took(&mut self, mark: &ProducerMark<'_>, rows: u64, ticket: Ticket) {
        count(&mut self.row, mark, rows);
        self.tickets.push_back((mark.sequence, ticket));
        if self.tickets.len() > WINDOW {
            self.tickets.pop_front();
        }
    }
}

/// Counts a batch of a producer. In whatever order batches are counted, the row is the same; one that it
/// counts already, as after salvage, is not counted again.
pub(in crate::staging) fn count(row: &mut ProducerRow, mark: &ProducerMark<'_>, rows: u64) {
    if row.recent.contains(&(mark.sequence, mark.fingerprint)) {
        return;
    }
    row.batches += 1;
    row.rows = row.rows.saturating_add(rows);
    if row.last.is_none_or(|last| last <= mark.sequence) {
        row.last = Some(mark.sequence);
        row.position = mark.position.to_vec();
    }
    let at = row.recent.partition_point(|(sequence, _)| *sequence <= mark.sequence);
    row.recent.insert(at, (mark.sequence, mark.fingerprint));
    if row.recent.len() > WINDOW {
        row.recent.remove(0);
    }
}
