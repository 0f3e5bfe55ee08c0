//! Append: a batch becomes one record of the intake.
//!
//! STG9: its number and its source's position are in that record. STG7: nothing here waits for a seal or a
//! conversion.

use super::producer::{Judged, Producer};
use super::stage::Stage;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::{BatchHead, ProducerMark, encode_batch, fingerprint};
use crate::ids::StreamId;
use crate::journal::Ticket;
use crate::staging::describing::{Batch, Key, Produced};

/// The most rows of a batch: however many there are, their sum is one that a row may say.
pub(super) const ROWS_MAX: u64 = 1 << 32;

/// What became of a batch.
#[derive(Debug, Clone)]
pub struct Appended {
    /// Ask it how far the batch got. Of a repeat it is that of the first time.
    pub ticket: Ticket,
    /// It was taken before: nothing was appended.
    pub is_repeat: bool,
    /// Its rows.
    pub rows: u64,
}

impl Stage {
    /// Takes `batch` under `key`. With `produced` a batch that comes again is taken once, and how far the
    /// producer got is known after a restart. Blocks while the queue is full, and while twice
    /// `stage_unsealed_bytes` is unsealed, until that is sealed.
    ///
    /// # Errors
    /// Each leaves everything as it was: `Invalid` for a key of another shape, a batch without rows, a
    /// blank producer and number `u64::MAX`; `Conflict` for a number that another batch of the producer
    /// had, that was passed over, or that is older than the last 256, and for a producer that another
    /// process appends for;
    /// `LimitExceeded` for a key, a producer's name, a position or a batch that is too long, and for more
    /// than 2^32 rows in one; `NotFound` once the stage was removed; `DiskFull`; what sealing failed with,
    /// once so much is unsealed. What went wrong before and was told nobody.
    ///
    /// # Durability
    /// None (*Accepted*). [`Ticket::wait`], or [`Stage::barrier`], gives more.
    pub fn append(&self, key: &Key, batch: Batch, produced: Option<&Produced>) -> Result<Appended> {
        self.check("append")?;
        self.key_shape().check(key)?;
        if batch.rows() == 0 {
            return Err(Error::invalid("append", self.place(), "a batch has at least one row"));
        }
        if batch.rows() > ROWS_MAX {
            let cause = format!("a batch of {} rows; it has at most {ROWS_MAX}", batch.rows());
            return Err(Error::new(ErrorKind::LimitExceeded, "append", self.place(), cause));
        }
        if let Some(produced) = produced {
            produced.check(&self.place())?;
        }
        self.make_room()?;
        let key = key.to_bytes();
        let appended = match produced {
            None => self.take(&key, &batch, None).map(|ticket| (ticket, false)),
            Some(produced) => self.take_once(&key, &batch, produced),
        };
        let (ticket, is_repeat) = appended.map_err(|e| self.told(e))?;
        self.seal_when_due();
        Ok(Appended { ticket, is_repeat, rows: batch.rows() })
    }

    /// Takes a batch of a producer, unless it came before.
    fn take_once(&self, key: &[u8], batch: &Batch, produced: &Produced) -> Result<(Ticket, bool)> {
        let name = produced.producer.as_str();
        let mark = ProducerMark {
            name,
            sequence: produced.sequence,
            position: &produced.position,
            fingerprint: fingerprint(key, batch.form(), batch.rows(), batch.bytes()),
        };
        let slot = self.slot(name);
        let mut held = slot.lock();
        let producer = match &mut *held {
            Some(producer) => producer,
            empty => empty.insert(Producer::of(self.claimed_producer(name)?)),
        };
        match producer.judge(&mark)? {
            Judged::Repeat(Some(ticket)) => Ok((ticket, true)),
            // It was recovered, or sealed: either is durable.
            Judged::Repeat(None) => Ok((self.store.ticket_of_nothing()?, true)),
            Judged::New => {
                let ticket = self.take(key, batch, Some(mark))?;
                producer.took(&mark, batch.rows(), ticket.clone());
                Ok((ticket, false))
            }
        }
    }

    fn take(&self, key: &[u8], batch: &Batch, mark: Option<ProducerMark<'_>>) -> Result<Ticket> {
        let head = BatchHead {
            form: batch.form(),
            rows: batch.rows(),
            at: self.store.wall_nanos(),
            key,
            producer: mark,
        };
        let record = encode_batch(&head, batch.bytes())?;
        let part: [(StreamId, _); 1] = [(self.own_intake()?, 0..record.len())];
        loop {
            match self.store.try_append_parts(&record, &part) {
                Err(e) if e.kind() == ErrorKind::QueueFull => {
                    let bytes = self.store.frame_bytes_of(&part);
                    self.store.wait_for_room(bytes, None)?;
                }
                taken => return taken,
            }
        }
    }

    /// A stream that is not there is a stage that was removed.
    fn told(&self, e: Error) -> Error {
        let is_gone = e.kind() == ErrorKind::NotFound && self.memory.is_removed();
        if is_gone { self.removed() } else { e }
    }
}
