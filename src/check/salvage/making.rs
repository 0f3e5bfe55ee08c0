//! The new store on disk: born, its rows written in one commit, its records appended.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::Salvaged;
use super::run::{NUMBERS_PASSED_OVER, counts_from};
use super::target::Target;
use crate::engine::{Append, Store};
use crate::error::Result;
use crate::ids::{OwnerId, StreamId};
use crate::journal::Payload;
use crate::limits::Limits;
use crate::manifest::{Birth, CheckIntegrity, CountersRow, Manifest, Open, Row, Write};
use crate::vfs::Step;

/// Records appended in one go.
const GROUP_BYTES: usize = 1 << 20;

impl Target<'_> {
    /// Writes the manifest: born as any, then every row in ONE transaction.
    pub(super) fn write(&mut self, created: Option<i64>) -> Result<()> {
        let (disk, root) = (&self.copier.source.disk, self.copier.root);
        let birth = Birth {
            store: self.salvaged.store,
            created,
            sealed_folders: self.copier.folders,
            single_file: false,
        };
        let nobody = OwnerId::from_parts(0, [0; 10]);
        let name = format!("{nobody}-{}", super::objects::unique(disk)?);
        Manifest::create(disk, root, &birth, &name)?;
        let open = Open { check_integrity: CheckIntegrity::Always, ..Open::default() };
        let manifest = Manifest::open(disk, root, &open)?;
        let (rows, objects) = (&self.rows, &self.objects);
        let counters = self.counters();
        manifest.write(None, Step::SalvageRows, |w| {
            w.raise_counters(&counters);
            put_all(w, &objects.files)?;
            put_all(w, &objects.inline)?;
            put_all(w, &objects.rows)?;
            put_all(w, &rows.recipes)?;
            put_all(w, &rows.object_snapshots)?;
            put_all(w, &rows.snapshot_names)?;
            put_all(w, &rows.streams)?;
            put_all(w, &rows.chunks)?;
            put_all(w, &rows.checkpoints)?;
            put_all(w, &rows.leases)?;
            put_all(w, &rows.recordings)?;
            put_all(w, &rows.names)?;
            put_all(w, &rows.stages)?;
            put_all(w, &rows.groups)?;
            put_all(w, &rows.parts)?;
            put_all(w, &rows.outputs)?;
            put_all(w, &rows.producers)?;
            rows.others.iter().try_for_each(|((table, key), value)| w.put_value(*table, key, value))
        })?;
        manifest.close()
    }

    /// Past every number that is used here, and past those that may have been given out since.
    fn counters(&self) -> CountersRow {
        let pass = |number: u64| number.saturating_add(NUMBERS_PASSED_OVER);
        let mut counters = self.rows.counters.clone();
        let file = self.objects.last_file();
        let recording = self.rows.recordings.keys().next_back().copied().unwrap_or_default();
        counters.commit_seq = counts_from(&self.salvaged);
        counters.epoch.0 = pass(counters.epoch.0);
        counters.object.0 = pass(counters.object.max(self.next_object).0);
        counters.file.0 = pass(counters.file.max(file).0);
        counters.lease.0 = pass(counters.lease.0);
        counters.recording.0 = pass(counters.recording.max(recording).0);
        counters.stream.0 = pass(counters.stream.max(self.next_stream).0);
        counters.checkpoint.0 = pass(counters.checkpoint.0);
        counters.receipt.0 = pass(counters.receipt.0);
        let stage = self.rows.stages.values().map(|row| row.stage).max().unwrap_or_default();
        counters.stage.0 = pass(counters.stage.max(stage).0);
        counters.group.0 = pass(counters.group.0);
        counters.part.0 = pass(counters.part.0);
        counters.output.0 = pass(counters.output.0);
        counters.quarantine.0 = pass(counters.quarantine.0);
        counters.handoff.0 = pass(counters.handoff.0);
        counters.object_snapshot.0 = pass(counters.object_snapshot.0);
        counters
    }

    /// Appends the unsealed records as any caller would, and closes the new store.
    pub(super) fn finish(mut self) -> Result<Salvaged> {
        let disk = Arc::clone(&self.copier.source.disk);
        let limits = Limits { background: false, ..Limits::default() };
        disk.mark(Step::SalvageRecords);
        let store = Store::options().disk(disk).limits(limits).open(self.copier.root)?;
        for (stream, payloads) in std::mem::take(&mut self.tails) {
            self.salvaged.records += payloads.len() as u64;
            append(&store, stream, payloads)?;
        }
        store.barrier()?;
        store.close()?;
        let salvaged = &mut self.salvaged;
        salvaged.objects = self.objects.rows.len() as u64;
        salvaged.bytes = self.objects.rows.values().map(|row| row.len).sum();
        salvaged.streams = self.rows.streams.len() as u64;
        salvaged.chunks = self.rows.chunks.len() as u64;
        Ok(self.salvaged)
    }
}

fn append(store: &Store, stream: StreamId, payloads: Vec<Payload>) -> Result<()> {
    let mut group = Vec::new();
    let mut bytes = 0;
    for payload in payloads {
        let Payload::Inline(payload) = payload else { continue };
        if bytes + payload.len() > GROUP_BYTES && !group.is_empty() {
            store.append(std::mem::take(&mut group))?;
            bytes = 0;
        }
        bytes += payload.len();
        group.push(Append { stream, payload: payload.to_vec() });
    }
    if !group.is_empty() {
        store.append(group)?;
    }
    Ok(())
}

fn put_all<R: Row>(w: &mut Write<'_>, rows: &BTreeMap<R::Key, R>) -> Result<()> {
    rows.iter().try_for_each(|(key, row)| w.put(key, row))
}
