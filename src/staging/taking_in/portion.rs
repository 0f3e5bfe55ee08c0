//! Portion: how much of what is unsealed one publication takes.
//!
//! Its draft is a copy in memory, and its transaction holds the store's only write lock: both are bounded,
//! whatever was left unsealed. The rest is sealed by the next one.

use std::collections::{BTreeMap, BTreeSet};

use crate::Limits;
use crate::format::staged::{BATCH_HEAD_BYTES_MAX, decode_batch};
use crate::ids::{Sequence, StreamId};
use crate::journal::Payload;

/// The most parts that one publication begins.
const PARTS_MAX: usize = 4096;

/// Where the intakes ended when sealing began: what is appended meanwhile is for the next time.
pub(super) type Ends = BTreeMap<StreamId, Sequence>;

/// What one publication may still take.
#[derive(Debug)]
pub(super) struct Portion {
    bytes: u64,
    parts: usize,
    is_begun: bool,
}

impl Portion {
    pub(super) fn new(limits: &Limits) -> Self {
        let bytes = limits.stage_unsealed_bytes.saturating_mul(2);
        Self { bytes, parts: PARTS_MAX, is_begun: false }
    }

    /// How many records from the beginning of the tail of one intake fit: of the first tail that has any, one
    /// at least.
    pub(super) fn take(&mut self, tail: &[(Sequence, Payload)]) -> usize {
        let mut keys = BTreeSet::new();
        for (at, (_, payload)) in tail.iter().enumerate() {
            let (bytes, key) = match payload {
                Payload::Inline(whole) => {
                    (whole.len(), decode_batch(whole).ok().map(|(head, _)| head.key))
                }
                Payload::Object { .. } => (BATCH_HEAD_BYTES_MAX, None),
            };
            // One whose key is not known here may be of another part than all others.
            let parts = usize::from(key.is_none_or(|key| keys.insert(key)));
            let fits = bytes as u64 <= self.bytes && parts <= self.parts;
            if !fits && self.is_begun {
                (self.bytes, self.parts) = (0, 0);
                return at;
            }
            self.bytes = self.bytes.saturating_sub(bytes as u64);
            self.parts = self.parts.saturating_sub(parts);
            self.is_begun = true;
        }
        tail.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::staged::{BatchHead, Form, encode_batch};

    fn tail(keys: &[u64], len: usize) -> Vec<(Sequence, Payload)> {
        let record = |key: &u64| {
            let key = key.to_be_bytes();
            let head =
                BatchHead { form: Form::Opaque, rows: 1, at: None, key: &key, producer: None };
            Payload::Inline(encode_batch(&head, &vec![b'x'; len]).unwrap().into())
        };
        keys.iter().enumerate().map(|(at, key)| (Sequence(at as u64), record(key))).collect()
    }

    fn portion(bytes: u64) -> Portion {
        Portion { bytes, parts: PARTS_MAX, is_begun: false }
    }

    /// Is a portion bounded by its bytes, and is one record taken however long it is?
    #[test]
    fn a_portion_ends_at_its_bytes() {
        let records = tail(&[1; 10], 1000);
        assert_eq!(portion(1 << 20).take(&records), 10);
        assert_eq!(portion(4400).take(&records), 4);
        let mut little = portion(10);
        assert_eq!((little.take(&[]), little.take(&records), little.take(&records)), (0, 1, 0));
    }

    /// Is it bounded by the parts that it begins, over all intakes?
    #[test]
    fn a_portion_ends_at_its_parts() {
        let keys: Vec<u64> = (0..PARTS_MAX as u64 + 100).collect();
        assert_eq!(portion(1 << 30).take(&tail(&keys, 1)), PARTS_MAX);
        let mut both = portion(1 << 30);
        let one_key = vec![7; PARTS_MAX * 2];
        assert_eq!(both.take(&tail(&one_key, 1)), one_key.len());
        assert_eq!(both.take(&tail(&keys, 1)), PARTS_MAX - 1);
        assert_eq!(both.take(&tail(&keys, 1)), 0);
    }
}
