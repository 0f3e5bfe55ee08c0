//! What the journals hold, record by record: the part of each stream that chunks do not cover.

use std::collections::{BTreeMap, HashMap};

use super::report::Salvaged;
use super::rows::Rows;
use super::source::Source;
use crate::digest::Digest;
use crate::ids::{Generation, StreamId};
use crate::journal::{Expect, Payload, Record, Tail, scan};

/// The records of one stream, by generation and sequence.
pub(super) type OfStream = BTreeMap<(Generation, u64), Payload>;

/// The records of all streams.
#[derive(Debug, Default)]
pub(super) struct Tails {
    pub(super) streams: BTreeMap<StreamId, OfStream>,
    /// Payloads that records name.
    pub(super) payloads: HashMap<Digest, u64>,
}

impl Tails {
    pub(super) fn read(source: &Source, rows: &Rows, salvaged: &mut Salvaged) -> Self {
        let mut tails = Self::default();
        for journal in &source.journals {
            let expect = Expect {
                store: source.store,
                owner: journal.owner,
                n: journal.n,
                salt: None,
                end: None,
            };
            let place = journal.path.display().to_string();
            let scanned = scan(&*source.disk, &journal.path, &expect, &mut |_, records| {
                records.into_iter().for_each(|record| tails.take(record, rows));
                Ok(())
            });
            match scanned.map(|scan| scan.tail) {
                // A tear was never acknowledged.
                Ok(Tail::Clean | Tail::Torn { .. }) => {}
                Ok(Tail::Damaged { offset, upto }) => {
                    let why = format!("bytes {offset}..{upto} were durable and do not read");
                    salvaged.lose(format!("records in {place}"), 0, why);
                }
                Err(e) => salvaged.lose(format!("records in {place}"), 0, e),
            }
        }
        tails
    }

    fn take(&mut self, record: Record, rows: &Rows) {
        let at = record.sequence.0;
        match rows.streams.get(&record.stream) {
            // In a chunk, or moved back before the snapshot.
            Some(row) if record.generation <= row.generation && at < row.sealed_upto.0 => return,
            Some(row)
                if record.generation <= row.generation
                    && !crate::engine::is_kept(row, record.generation, record.sequence) =>
            {
                return;
            }
            // Retired before the snapshot.
            None if record.stream <= rows.counters.stream => return,
            _ => {}
        }
        if let Payload::Object { digest, .. } = &record.payload {
            *self.payloads.entry(*digest).or_default() += 1;
        }
        let of_stream = self.streams.entry(record.stream).or_default();
        of_stream.insert((record.generation, at), record.payload);
    }
}
