//! Journals: each row has its file and each file its row; frames read up to what was durable; what
//! they hold of each stream.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::look::{Look, place_of};
use super::report::Severity;
use crate::digest::Digest;
use crate::error::{ErrorKind, Result};
use crate::format::layout;
use crate::ids::{Generation, OwnerId, Sequence, StreamId};
use crate::journal::{self, Expect, Payload, Record, Tail};
use crate::manifest::{JournalRow, JournalState, OwnerRow, Reading};

/// A record that some journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) generation: Generation,
    /// Names the payload: two copies of a record are the same.
    pub(super) payload: Digest,
    /// The payload is an object of this digest.
    pub(super) is_object: bool,
}

/// What all journals hold, by stream.
#[derive(Debug, Default)]
pub(super) struct Tails {
    pub(super) records: HashMap<StreamId, BTreeMap<Sequence, Held>>,
    /// Part of a journal does not read: holes were told already.
    pub(super) is_partial: bool,
    /// The last record of each stream for which some row says that its journal is needed; `None`
    /// while an owner has not ended, who knows it in memory.
    pub(super) needed: Option<BTreeMap<StreamId, Sequence>>,
}

/// The lowest sequence of each stream and generation in one journal.
type Firsts = BTreeMap<(StreamId, Generation), Sequence>;

type JournalKey = (OwnerId, u64);

/// How often journals may move on while they are read.
const TRIES_MAX: usize = 16;

/// Looks at every journal, and gathers the unsealed records.
pub(super) fn check_journals(look: &mut Look, living: &[OwnerId]) -> Result<Tails> {
    for last in [false; TRIES_MAX].into_iter().chain([true]) {
        let rows = match look.store.snapshot()?.list::<JournalRow>(.., usize::MAX) {
            Ok(rows) => rows,
            Err(e) => {
                look.failed(&e, "journals were not looked at");
                return Ok(Tails { is_partial: true, ..Tails::default() });
            }
        };
        if !last && moved_on(look, &rows)? {
            continue;
        }
        let needed = needed_of(look, &rows)?;
        let mut tails = Tails { needed, ..Tails::default() };
        look.begin("journals", rows.len() as u64)?;
        for (key, row) in &rows {
            check_journal(look, *key, row, living, &mut tails)?;
            look.report.looked_at.journals += 1;
            look.did(1)?;
        }
        check_names(look, &rows, living);
        return Ok(tails);
    }
    Ok(Tails::default())
}

/// What the rows of journals say that their files are needed for, where every owner has ended.
fn needed_of(
    look: &Look,
    rows: &[(JournalKey, JournalRow)],
) -> Result<Option<BTreeMap<StreamId, Sequence>>> {
    let mut needed = BTreeMap::new();
    let snapshot = look.store.snapshot()?;
    for ((owner, _), row) in rows {
        for owner in [*owner, row.keeper] {
            let known = snapshot.get::<OwnerRow>(&owner);
            if matches!(known, Ok(Some(OwnerRow { ended: None, .. })) | Err(_)) {
                return Ok(None);
            }
        }
        for (stream, last) in &row.needed {
            let most = needed.entry(*stream).or_insert(*last);
            *most = (*most).max(*last);
        }
    }
    Ok(Some(needed))
}

/// Whether a file is missing whose row is gone by now: a writer forgot it meanwhile.
fn moved_on(look: &mut Look, rows: &[(JournalKey, JournalRow)]) -> Result<bool> {
    for ((owner, n), row) in rows {
        let path = layout::journal(&look.root, *owner, *n);
        if matches!(look.disk.meta(&path), Ok(None)) {
            let now = look.store.snapshot()?.get::<JournalRow>(&(*owner, *n));
            if !matches!(&now, Ok(Some(now)) if now == row) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn check_journal(
    look: &mut Look,
    (owner, n): JournalKey,
    row: &JournalRow,
    living: &[OwnerId],
    tails: &mut Tails,
) -> Result<()> {
    let path = layout::journal(&look.root, owner, n);
    if let Ok(None) = look.store.snapshot()?.get::<OwnerRow>(&owner) {
        let means = "the order of its records among those of others is not known";
        let place = place_of::<JournalRow>(&(owner, n));
        look.find(Severity::Warning, place, "its owner has no row", means);
    }
    let end = match row.state {
        JournalState::Finished { end } | JournalState::Adopted { end } => Some(end),
        JournalState::Open | JournalState::SetAside { .. } => None,
    };
    let expect = Expect { store: look.meta.store, owner, n, salt: Some(row.salt), end };
    let mut firsts = Firsts::new();
    let mut copies = Vec::new();
    let scan = journal::scan(&*look.disk, &path, &expect, &mut |_, records| {
        for record in records {
            if let Some(sequence) = tails.take(&record, &mut firsts) {
                copies.push((record.stream, sequence));
            }
        }
        Ok(())
    });
    let lost = "the unsealed records that only it holds are lost; `streams` tells which";
    let scan = match scan {
        Ok(scan) => scan,
        Err(e) => {
            tails.is_partial = true;
            look.failed(&e, lost);
            return Ok(());
        }
    };
    look.report.bytes_read += scan.end;
    look.report.looked_at.records += scan.records;
    for (stream, sequence) in copies {
        let what = format!("record {sequence} of stream {stream} differs from its copy");
        look.find(Severity::Damage, path.display(), what, "which of the two is true is not known");
    }
    match (&row.state, scan.tail) {
        (JournalState::SetAside { from, reason }, _) => {
            tails.is_partial = true;
            let what = format!("it was set aside from byte {from} on ({reason})");
            look.find(Severity::Warning, path.display(), what, "what lies behind is not shown");
        }
        (_, Tail::Damaged { offset, upto }) => {
            tails.is_partial = true;
            let what = format!("bytes {offset}..{upto} were durable and do not read");
            look.find(Severity::Damage, path.display(), what, lost);
        }
        (_, Tail::Torn { bytes }) if !living.contains(&owner) => {
            let what = format!("{bytes} bytes of an incomplete write at {}", scan.end);
            let means = "a crash left them; none of them was acknowledged as durable";
            look.find(Severity::Note, path.display(), what, means);
        }
        _ => {}
    }
    check_firsts(look, (owner, n), row, &firsts, &scan.tail);
    Ok(())
}

impl Tails {
    /// Takes a record in; its sequence when another journal holds another record in its place.
    fn take(&mut self, record: &Record, firsts: &mut Firsts) -> Option<Sequence> {
        let Record { stream, generation, sequence, .. } = *record;
        let lowest = firsts.entry((stream, generation)).or_insert(sequence);
        *lowest = sequence.min(*lowest);
        let (payload, is_object) = match &record.payload {
            Payload::Inline(bytes) => (Digest::of(bytes), false),
            Payload::Object { digest, .. } => (*digest, true),
        };
        let held = Held { generation, payload, is_object };
        let of_stream = self.records.entry(stream).or_default();
        match of_stream.get(&sequence) {
            Some(kept) if kept.generation == generation && *kept != held => return Some(sequence),
            Some(kept) if kept.generation >= generation => {}
            _ => {
                of_stream.insert(sequence, held);
            }
        }
        None
    }
}

fn check_firsts(look: &mut Look, key: JournalKey, row: &JournalRow, firsts: &Firsts, tail: &Tail) {
    if row.first.is_empty() || matches!(tail, Tail::Damaged { .. }) {
        return;
    }
    let told: Firsts = row.first.iter().map(|(s, g, first)| ((*s, *g), *first)).collect();
    if told != *firsts {
        let what = "the first records that it names are not those of its file";
        let means = "records are read from the file: nothing is lost";
        look.find(Severity::Warning, place_of::<JournalRow>(&key), what, means);
    }
}

/// Files without a row.
fn check_names(look: &mut Look, rows: &[(JournalKey, JournalRow)], living: &[OwnerId]) {
    let dir = layout::journal_dir(&look.root);
    let entries = match look.disk.list(&dir) {
        Ok(entries) => entries,
        Err(e) => {
            let kind = if e.kind() == io::ErrorKind::NotFound { "missing" } else { "unreadable" };
            let means = "nothing can be appended";
            look.find(Severity::Warning, dir.display(), format!("the folder is {kind}"), means);
            return;
        }
    };
    for entry in entries {
        let path = dir.join(&entry.name);
        let Some(key) = layout::parse_journal(&entry.name) else {
            look.find(Severity::Note, path.display(), "a stray", "it is not ours, and left alone");
            continue;
        };
        if !rows.iter().any(|(named, _)| *named == key) && !living.contains(&key.0) {
            let (what, means) = match journal::read_header(&*look.disk, &path) {
                Ok(header) if header.store != look.meta.store => {
                    (format!("a journal of store {}", header.store), "it is not this store's")
                }
                Err(e) if e.kind() != ErrorKind::Damage => (e.to_string(), "it was not read"),
                _ => ("no row names it".to_owned(), "the next opening for writing removes it"),
            };
            look.find(Severity::Note, path.display(), what, means);
        }
    }
}
