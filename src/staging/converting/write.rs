//! One output: written into a temporary file, sealed, opened again and counted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::converter::Converter;
use super::failure::failed_last;
use super::input::{Input, Meter, Used};
use super::options::ConvertOptions;
use super::output_reader::{OutputReader, Sealed};
use super::output_writer::OutputWriter;
use super::plan::Planned;
use crate::engine::{Content, RowText, SealedSet};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{ObjectId, OutputId};
use crate::manifest::{
    Key as _, ObjectRow, OutputRow, PartRow, ProducerKey, ProducerRow, Reading, Table, to_value,
};
use crate::protection::Protection;
use crate::staging::Stage;
use crate::staging::describing::Said;

/// After so many failures bytes that the disk refuses are taken for bytes that do not read.
const REFUSALS_MAX: u32 = 2;

/// An output that no row names yet.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) set: SealedSet,
    pub(super) rows: u64,
    pub(super) len: u64,
    pub(super) form: String,
    pub(super) schema: Vec<u8>,
}

/// What became of the parts of one output.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) used: Vec<Used>,
    pub(super) output: Option<Written>,
}

/// What all outputs of a conversion are made with.
pub(super) struct With<'a> {
    pub(super) stage: &'a Stage,
    pub(super) converter: &'a dyn Converter,
    pub(super) options: &'a ConvertOptions<'a>,
    pub(super) schema: &'a [u8],
    pub(super) meter: &'a Meter<'a>,
}

/// Tells the other outputs of a group when this one ends in any way but well.
struct TellFailure<'a>(Option<&'a AtomicBool>);

impl Drop for TellFailure<'_> {
    fn drop(&mut self) {
        if let Some(has_failed) = self.0 {
            has_failed.store(true, Ordering::Release);
        }
    }
}

/// Converts parts number `slice` of a group.
pub(super) fn convert_slice(
    with: &With<'_>,
    group: &Planned,
    slice: std::ops::Range<usize>,
    has_failed: &AtomicBool,
) -> Result<Slice> {
    let mut tell = TellFailure(Some(has_failed));
    let parts = group.parts.get(slice).unwrap_or_default();
    let (store, stage) = (&with.stage.store, with.stage.id());
    let even_refused = group.row.failures >= REFUSALS_MAX && failed_last(&group.row);
    let tells = (has_failed, with.meter);
    let mut input = Input::new((store, stage), parts, with.schema, even_refused, tells);
    Said::Form.check("convert", with.converter.form().len())?;
    if parts.iter().all(|(_, row)| row.batches == 0) {
        // Nothing is left to convert: parts that read go, others to quarantine.
        input.drain()?;
        tell.0 = None;
        return Ok(Slice { used: input.finish()?.0, output: None });
    }
    let content = Content::new(Vec::new(), None);
    let mut said = 0;
    let written =
        write(with.stage, content, with.options.output_bytes_max, has_failed, |out, content| {
            said = with.converter.convert(&group.view, &mut input, out)?;
            describe(content, with, group, input.used())?;
            Ok(said > 0)
        });
    // What the input met comes first: the converter may only have passed it on.
    let (used, given) = input.finish()?;
    let output = match written? {
        None => None,
        Some(set) => {
            let counts = Counts { given, said };
            let form = with.converter.form().to_owned();
            let (set, schema) = validate(set, &counts, &mut |reader, count| match count {
                true => with.converter.count_rows(reader).map(Found::Rows),
                false => with.converter.schema(reader).map(Found::Schema),
            })?;
            let len = set.lens().first().copied().unwrap_or(0);
            Some(Written { set, rows: said, len, form, schema })
        }
    };
    tell.0 = None;
    Ok(Slice { used, output })
}

/// Writes one content; `fill` says whether it is wanted.
pub(super) fn write(
    stage: &Stage,
    content: Content,
    len_max: u64,
    has_failed: &AtomicBool,
    fill: impl FnOnce(&mut OutputWriter<'_>, &mut Content) -> Result<bool>,
) -> Result<Option<SealedSet>> {
    let mut is_wanted = true;
    let sealed = stage.store.seal_written(content, |to, content| {
        let mut out = OutputWriter::new(to, len_max, has_failed);
        if fill(&mut out, content)? {
            return out.finish().map(drop);
        }
        // An output that could not be written is none that has no rows.
        out.check()?;
        is_wanted = false;
        Err(Error::new(ErrorKind::Cancelled, "convert", "output", "it has no rows"))
    });
    match sealed {
        Err(_) if !is_wanted => Ok(None),
        sealed => sealed.map(Some),
    }
}

/// The rows that an output must have, by two who should know.
pub(super) struct Counts {
    /// Those of the batches that were read.
    pub(super) given: u64,
    /// Those that its converter says it wrote.
    pub(super) said: u64,
}

/// What was found in an output.
pub(super) enum Found {
    Rows(u64),
    Schema(Vec<u8>),
}

/// Opens a sealed output again and counts its rows; then asks for its schema.
pub(super) fn validate(
    set: SealedSet,
    counts: &Counts,
    look: &mut dyn FnMut(&mut OutputReader, bool) -> Result<Found>,
) -> Result<(SealedSet, Vec<u8>)> {
    let sealed = Sealed::new(set);
    // STG24: nothing is retired for an output that does not give its rows back.
    if Protection::StageValidateFirst.is_on() {
        let rows = match look(&mut OutputReader::sealed(&sealed)?, true)? {
            Found::Rows(rows) => rows,
            Found::Schema(_) => 0,
        };
        if rows != counts.given || rows != counts.said {
            let cause = format!(
                "it holds {rows} rows; its converter says {}, and the batches that it read have {}; \
                 it was not published, and they stay",
                counts.said, counts.given
            );
            return Err(Error::damage("convert", "output", cause));
        }
    }
    let schema = match look(&mut OutputReader::sealed(&sealed)?, false)? {
        Found::Schema(schema) => schema,
        Found::Rows(_) => Vec::new(),
    };
    Said::Schema.check("convert", schema.len())?;
    Ok((sealed.take()?, schema))
}

/// What the label of the output's file says: its row, as far as it is known, its stage, and of each part
/// what of it the output holds.
///
/// And how far the producers of its batches got: all that they sent is in parts or outputs by now.
fn describe(
    content: &mut Content,
    with: &With<'_>,
    group: &Planned,
    (used, producers): (&[Used], &BTreeSet<String>),
) -> Result<()> {
    let row = OutputRow {
        object: ObjectId(0),
        key: group.row.key.clone(),
        groups: vec![group.id],
        merged: Vec::new(),
        rows: used.iter().fold(0, |rows, used| rows.saturating_add(used.rows_in_output())),
        len: 0,
        form: with.converter.form().to_owned(),
        schema: Vec::new(),
        at: with.stage.store.wall_nanos(),
    };
    content.referrer = Some(row_text(with.stage, &row)?);
    let snapshot = with.stage.store.snapshot()?;
    let mut context = vec![stage_text(with.stage)?];
    for Used { part, row, batches, rows, len, .. } in used.iter().filter(|used| used.batches > 0) {
        let piece = PartRow { batches: *batches, rows: *rows, len: *len, ..row.clone() };
        let key = (group.id, *part).to_bytes();
        let value = to_value(&key, &piece)?;
        context.push((Table::Parts.number(), key, value));
        let object = snapshot.get::<ObjectRow>(&row.object)?;
        content.inputs.extend(object.map(|object| object.digest));
    }
    for name in producers {
        let key = ProducerKey { stage: with.stage.id(), name: name.clone() };
        if let Some(row) = snapshot.get::<ProducerRow>(&key)? {
            context.push(producer_text(&key, &row)?);
        }
    }
    content.context = context.into();
    Ok(())
}

/// How far a producer got, for a label: salvage lets none send again what it brings back.
pub(super) fn producer_text(key: &ProducerKey, row: &ProducerRow) -> Result<RowText> {
    let key = key.to_bytes();
    let value = to_value(&key, row)?;
    Ok((Table::Producers.number(), key, value))
}

/// The row of a stage, for a label: salvage learns its name where no snapshot has it.
pub(super) fn stage_text(stage: &Stage) -> Result<RowText> {
    let row = stage.row(&stage.store.snapshot()?)?;
    let key = stage.name().to_owned().to_bytes();
    let value = to_value(&key, &row)?;
    Ok((Table::Stages.number(), key, value))
}

/// A row of an output that has no number yet, for a label.
pub(super) fn row_text(stage: &Stage, row: &OutputRow) -> Result<RowText> {
    let key = (stage.id(), OutputId(0)).to_bytes();
    let value = to_value(&key, row)?;
    Ok((Table::Outputs.number(), key, value))
}
