//! Pieces: which batches of a part an output holds, and what is left of the part without them.

use crate::ids::{Sequence, StreamId};
use crate::manifest::PartRow;

/// Records of a stream that have one key: what a part is known by before its row is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) intake: StreamId,
    pub(super) first: Sequence,
    pub(super) upto: Sequence,
    pub(super) key: Vec<u8>,
}

/// Batches of a part that an output holds, by their place in it.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) span: Span,
    pub(super) from: u64,
    pub(super) upto: u64,
    rows: u64,
    len: u64,
}

impl Span {
    pub(super) fn of(row: &PartRow, key: &[u8]) -> Self {
        let (intake, first, upto) = (row.intake, row.first, row.upto);
        Self { intake, first, upto, key: key.to_vec() }
    }
}

impl Piece {
    /// What a label says: its part's row, counting only what the output holds.
    pub(super) fn of(row: &PartRow, key: &[u8]) -> Self {
        let (from, upto) = (row.skip, row.skip.saturating_add(row.batches));
        Self { span: Span::of(row, key), from, upto, rows: row.rows, len: row.len }
    }

    /// Whether a batch is in both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.span == other.span && self.from < other.upto && other.from < self.upto
    }
}

/// Whether all batches of `piece` are in `published`.
pub(super) fn is_covered(piece: &Piece, published: &[Piece]) -> bool {
    let own: Vec<&Piece> = published.iter().filter(|other| other.span == piece.span).collect();
    behind(piece.from, &own).0 >= piece.upto
}

/// The first batch from `at` on that is in none of `pieces`; rows and bytes of those before it.
fn behind(mut at: u64, pieces: &[&Piece]) -> (u64, u64, u64) {
    let (mut rows, mut len) = (0u64, 0u64);
    while let Some(piece) = pieces.iter().find(|piece| piece.from <= at && at < piece.upto) {
        at = piece.upto;
        (rows, len) = (rows.saturating_add(piece.rows), len.saturating_add(piece.len));
    }
    (at, rows, len)
}

/// What is left of a part.
pub(super) enum Rest {
    /// All of it: no output has any.
    All,
    /// Nothing: outputs have it.
    Nothing,
    /// The batches behind those that outputs have.
    Behind(PartRow),
    /// Batches before some that outputs have, which no row can tell.
    Between,
}

/// What is left of the part of `row` without `published`.
pub(super) fn rest(row: &PartRow, key: &[u8], published: &[Piece]) -> Rest {
    let span = Span::of(row, key);
    let end = row.skip.saturating_add(row.batches);
    let own: Vec<&Piece> = published
        .iter()
        .filter(|piece| piece.span == span && piece.upto > row.skip && piece.from < end)
        .collect();
    if own.is_empty() {
        return Rest::All;
    }
    let (at, rows, len) = behind(row.skip, &own);
    if at >= end {
        return Rest::Nothing;
    }
    if at == row.skip || own.iter().any(|piece| piece.from > at || piece.from < row.skip) {
        return Rest::Between;
    }
    Rest::Behind(PartRow {
        skip: at,
        batches: end - at,
        rows: row.rows.saturating_sub(rows),
        len: row.len.saturating_sub(len),
        ..row.clone()
    })
}
