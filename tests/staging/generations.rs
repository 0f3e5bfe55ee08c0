//! Generations of a key: do the rows of all of them reach outputs, each once?

use sealstone::Result;
use sealstone::manifest::{PartRow, Reading};
use sealstone::staging::{
    ConvertOptions, Converter, GroupView, Input, OutputReader, OutputWriter, PlanOptions, Ready,
    Stage,
};

use crate::support::{At, batches, books_close, each, put, reopen, texts};

/// Each batch becomes a line; a word is a row.
struct Lines;

impl Converter for Lines {
    fn form(&self) -> &str {
        "lines"
    }

    fn convert(
        &self,
        _: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        let mut rows = 0;
        for batch in input {
            let batch = batch?;
            out.put(batch.bytes())?;
            out.put(b"\n")?;
            rows += batch.rows();
        }
        Ok(rows)
    }

    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        let bytes = output.read_range(0..output.len())?;
        Ok(bytes.split(|byte| b" \n".contains(byte)).filter(|word| !word.is_empty()).count() as u64)
    }
}

/// Converts whatever is detached; how many groups that were.
fn convert(stage: &Stage) -> usize {
    let plan = stage.plan(&PlanOptions::default()).unwrap();
    let converted = plan.convert(&Lines, &ConvertOptions::default()).unwrap();
    for one in &converted {
        assert!(one.made.is_ok(), "{:?}", one.made);
    }
    converted.len()
}

/// The lines of all outputs, sorted.
fn lines(stage: &Stage) -> Vec<String> {
    let mut lines = Vec::new();
    for output in stage.outputs().unwrap() {
        let mut bytes = Vec::new();
        stage.copy_output(output.id, &mut bytes).unwrap();
        lines.extend(String::from_utf8(bytes).unwrap().lines().map(str::to_owned));
    }
    lines.sort();
    lines
}

/// Do batches that came before a flush, after it, and while the group before was converted reach outputs,
/// each once, whichever generation is converted first; and is nothing left behind?
#[test]
fn stg3_rows_of_all_generations_reach_outputs_once() {
    each(71, |disk, layout, store, stage| {
        let mut expected = Vec::new();
        for round in 0..5 {
            for late in ["early", "late"] {
                let text = format!("{round} {late}");
                put(&stage, "a", 1, &text);
                expected.push(text);
                if late == "early" || round != 3 {
                    stage.flush(&Ready::All).unwrap();
                }
            }
            if round % 2 == 1 {
                assert!(convert(&stage) > 1, "several generations of one key at once");
            }
        }
        stage.flush(&Ready::All).unwrap();
        stage.barrier().unwrap();
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        convert(&stage);
        assert_eq!(lines(&stage), expected);
        assert!(texts(&store).is_empty() && stage.groups().unwrap().is_empty());
        assert_eq!(store.snapshot().unwrap().list::<PartRow>(.., 1).unwrap().len(), 0);
        // A batch that comes now begins anew, and nothing of the outputs changes.
        put(&stage, "a", 1, "after all");
        assert_eq!(batches(&store)[0].0, At::Tail);
        stage.flush(&Ready::All).unwrap();
        assert_eq!(convert(&stage), 1);
        expected.push("after all".to_owned());
        assert_eq!(lines(&stage), expected);
        books_close(&store);
    });
}
