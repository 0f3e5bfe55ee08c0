//! Rows that refer to what is not there: they are taken out or cut, and what nothing refers to any
//! more is kept by a lease.

use std::collections::{BTreeMap, BTreeSet};

use super::files::named;
use super::report::Unconfirmed;
use super::target::Target;
use crate::engine::{SALVAGE_HOLD, SALVAGE_HOLDER};
use crate::ids::{LeaseId, ObjectId, RecordingId, StreamId};
use crate::manifest::{LeaseRow, RecordingNameRow, StateBytes, StreamRow, edges_of_value};

impl Target<'_> {
    /// Takes out what refers to bytes or records that are not there, and keeps what nothing refers
    /// to any more by a lease.
    pub(super) fn settle_rows(&mut self) {
        self.settle_recipes();
        self.count_snapshots();
        self.settle_leases();
        self.settle_checkpoints();
        self.settle_recordings();
        let (objects, salvaged) = (&self.objects, &mut self.salvaged);
        self.rows.others.retain(|(table, key), value| {
            let edges = edges_of_value(*table, key, value).unwrap_or_default();
            let lost = edges.iter().find(|object| !objects.rows.contains_key(object));
            if let Some(object) = lost {
                let why = objects.lost.get(object).cloned().unwrap_or_default();
                salvaged.lose(named(*table, key), 0, why);
            }
            lost.is_none() && edges_of_value(*table, key, value).is_ok()
        });
        self.keep_unnamed();
        if !self.salvaged.is_whole() {
            self.hold();
        }
    }

    /// Nothing is reclaimed while somebody may still look for what did not come back.
    fn hold(&mut self) {
        let row = LeaseRow {
            holder: SALVAGE_HOLDER.to_owned(),
            purpose: SALVAGE_HOLD.to_owned(),
            deadline: None,
            objects: Vec::new(),
        };
        self.lease(row);
    }

    fn lease(&mut self, row: LeaseRow) {
        let last = self.rows.leases.keys().next_back().copied().unwrap_or_default();
        let lease = LeaseId(last.max(self.rows.counters.lease).0 + 1);
        self.rows.counters.lease = lease;
        self.rows.leases.insert(lease, row);
    }

    fn settle_leases(&mut self) {
        for (lease, row) in &mut self.rows.leases {
            let objects = std::mem::take(&mut row.objects);
            let (there, gone): (Vec<_>, Vec<_>) =
                objects.into_iter().partition(|o| self.objects.rows.contains_key(o));
            row.objects = there;
            for object in gone {
                let why = self.objects.lost.get(&object).cloned().unwrap_or_default();
                let what = format!("object {object} of lease {lease} of {:?}", row.holder);
                self.salvaged.lose(what, 0, why);
            }
        }
    }

    fn settle_checkpoints(&mut self) {
        let ends: BTreeMap<StreamId, u64> = self
            .tails
            .iter()
            .filter_map(|(stream, tail)| {
                let row = self.rows.streams.get(stream)?;
                Some((*stream, row.sealed_upto.0 + tail.len() as u64))
            })
            .collect();
        let (rows, objects, salvaged) = (&self.rows.streams, &self.objects, &mut self.salvaged);
        self.rows.checkpoints.retain(|(scope, id), row| {
            let what = format!("checkpoint {id} of scope {scope}");
            if let StateBytes::Object(object) = row.state
                && !objects.rows.contains_key(&object)
            {
                let why = objects.lost.get(&object).cloned().unwrap_or_default();
                salvaged.lose(what, 0, why);
                return false;
            }
            let beyond = row.cursors.iter().find(|cursor| {
                // One that a rewind went back beyond was no use before.
                let is_cut = |of: &StreamRow| {
                    of.cuts.iter().any(|c| c.generation > cursor.generation && c.at < cursor.end)
                };
                let end = ends.get(&cursor.stream);
                end.is_some_and(|end| *end < cursor.end.0)
                    && !rows.get(&cursor.stream).is_some_and(is_cut)
            });
            if let Some(cursor) = beyond {
                let why =
                    format!("records of stream {} below {} are lost", cursor.stream, cursor.end);
                salvaged.lose(what, 0, why);
            }
            beyond.is_none()
        });
    }

    /// Recordings that only labels know get their names, as far as those are free.
    fn settle_recordings(&mut self) {
        let new = self.rows.counters.recording;
        let streams = &self.rows.streams;
        for (recording, row) in self.rows.recordings.range_mut(RecordingId(new.0 + 1)..) {
            row.streams.retain(|stream| streams.contains_key(stream));
            if self.rows.names.contains_key(&row.name) {
                row.name = format!("{} (recording {recording})", row.name);
            }
            let named = RecordingNameRow { recording: *recording };
            self.rows.names.insert(row.name.clone(), named);
            let name = row.name.clone();
            self.salvaged.unconfirmed.push(Unconfirmed::Recording { name });
        }
        let recordings = &self.rows.recordings;
        for row in self.rows.streams.values_mut() {
            row.recording = row.recording.filter(|recording| recordings.contains_key(recording));
        }
    }

    /// G25: what verifies and has no row to refer to it is kept all the same, and listed.
    fn keep_unnamed(&mut self) {
        let mut unnamed: BTreeSet<ObjectId> = self.objects.rows.keys().copied().collect();
        for row in self.rows.chunks.values() {
            unnamed.remove(&row.object);
            row.payloads.iter().for_each(|object| {
                unnamed.remove(object);
            });
        }
        for object in self.rows.leases.values().flat_map(|row| &row.objects) {
            unnamed.remove(object);
        }
        for row in self.rows.parts.values() {
            unnamed.remove(&row.object);
            row.payloads.iter().for_each(|object| {
                unnamed.remove(object);
            });
        }
        for row in self.rows.outputs.values() {
            unnamed.remove(&row.object);
        }
        for piece in self.rows.recipes.values().flat_map(|row| &row.pieces) {
            unnamed.remove(&piece.object);
        }
        for row in self.rows.snapshot_names.values() {
            unnamed.remove(&row.object);
        }
        for row in self.rows.checkpoints.values() {
            if let StateBytes::Object(object) = &row.state {
                unnamed.remove(object);
            }
        }
        for ((table, key), value) in &self.rows.others {
            for object in edges_of_value(*table, key, value).unwrap_or_default() {
                unnamed.remove(&object);
            }
        }
        if unnamed.is_empty() {
            return;
        }
        for object in &unnamed {
            let of = self.told.get(object).cloned();
            let of = of.unwrap_or_else(|| "which a lost row referred to".to_owned());
            if let Some(row) = self.objects.rows.get(object) {
                let (digest, len) = (row.digest, row.len);
                self.salvaged.unconfirmed.push(Unconfirmed::Object { digest, len, of });
            }
        }
        let row = LeaseRow {
            holder: SALVAGE_HOLDER.to_owned(),
            purpose: "objects that verify and that no row is known to refer to".to_owned(),
            deadline: None,
            objects: unnamed.into_iter().collect(),
        };
        self.lease(row);
    }
}
