//! `sealstone stage cat STORE STAGE`: the rows of a stage, wherever they are.

use std::io::Write;

use sealstone::staging::{Origin, ReadBatch};
use serde_json::{Value, json};

use super::args::StageCatArgs;
use crate::failure::LOST;
use crate::output::{End, Output};

pub fn run(args: &StageCatArgs, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let stage = store.stage(&args.stage)?;
    let wanted = match &args.key {
        Some(key) => Some(stage.key_shape().parse(key)?),
        None => None,
    };
    let view = stage.view()?;
    let (mut passed_over, mut unread) = (0u64, 0u64);
    for batch in view.batches() {
        let batch = match batch {
            Ok(batch) => batch,
            Err(e) => {
                output.warn(&e.chain());
                unread += 1;
                continue;
            }
        };
        if wanted.as_ref().is_some_and(|wanted| *wanted != batch.key) {
            continue;
        }
        if output.is_json {
            output.message("batch", fields(&batch))?;
            continue;
        }
        match batch.text() {
            Ok(Some(text)) => {
                output.stdout().write_all(text.as_bytes())?;
                if !text.is_empty() && !text.ends_with('\n') {
                    output.line("")?;
                }
            }
            Ok(None) => passed_over += batch.rows,
            Err(e) => {
                output.warn(&e.chain());
                unread += 1;
            }
        }
    }
    if passed_over > 0 {
        output.warn(&format!(
            "{passed_over} rows are in outputs or batches that are no text: --json prints them as hex, \
             `stage publish` copies outputs"
        ));
    }
    Ok(if unread > 0 { LOST } else { 0 })
}

fn fields(batch: &ReadBatch) -> Value {
    let (origin, id) = match batch.origin {
        Origin::Tail => ("tail", None),
        Origin::Part => ("part", None),
        Origin::Output(id) => ("output", Some(id.0)),
        Origin::Quarantine(id) => ("quarantine", Some(id.0)),
        _ => ("unknown", None),
    };
    let mut fields = json!({
        "key": batch.key.to_string(), "form": batch.form, "rows": batch.rows, "origin": origin,
        "id": id,
    });
    let (name, text) = match batch.text() {
        Ok(Some(text)) => ("text", text.into_owned()),
        _ => ("hex", batch.bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
    };
    if let Value::Object(fields) = &mut fields {
        fields.insert(name.to_owned(), Value::String(text));
    }
    fields
}
