//! The rows that a label tells of, kept short: what does not fit is left out, the least needed first.

use std::collections::BTreeSet;

use super::seal::RowText;
use crate::sealed::Referrer;

/// Past this sum of keys and values only rows without their values are told, and past four times
/// it none.
const LABEL_BYTES: usize = 1 << 20;

/// Collects rows for one label, each once.
#[derive(Debug, Default)]
pub(super) struct LabelRows {
    rows: Vec<Referrer>,
    seen: BTreeSet<(Option<u32>, u8, Vec<u8>)>,
    bytes: usize,
}

impl LabelRows {
    /// The row that is to refer to extent number `extent`.
    pub(super) fn referrer(&mut self, extent: u32, row: RowText) {
        self.push(Some(extent), row);
    }

    /// A row without which others say little.
    pub(super) fn context(&mut self, row: &RowText) {
        if self.bytes + row.2.len() <= LABEL_BYTES
            && !self.seen.contains(&(None, row.0, row.1.clone()))
        {
            self.push(None, row.clone());
        }
    }

    fn push(&mut self, extent: Option<u32>, (table, key, mut value): RowText) {
        if self.bytes + value.len() > LABEL_BYTES {
            value.clear();
        }
        if self.bytes > 4 * LABEL_BYTES || !self.seen.insert((extent, table, key.clone())) {
            return;
        }
        self.bytes += key.len() + value.len() + 32;
        self.rows.push(Referrer { extent, table, key, value });
    }

    pub(super) fn into_rows(self) -> Vec<Referrer> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a label stay short, whatever the rows take?
    #[test]
    fn a_label_stays_short() {
        let mut rows = LabelRows::default();
        for extent in 0..100_000u32 {
            let row = (15, extent.to_be_bytes().repeat(4), vec![7; 500]);
            rows.context(&(13, vec![1], vec![9; 1000]));
            rows.referrer(extent, row);
        }
        let rows = rows.into_rows();
        assert!(rows.len() > 50_000 && rows[0].value.len() == 1000);
        let bytes: usize = rows.iter().map(|row| row.key.len() + row.value.len() + 32).sum();
        assert!(bytes <= 4 * LABEL_BYTES + 600, "{bytes}");
        assert_eq!(rows.iter().filter(|row| row.extent.is_none()).count(), 1);
    }
}
