//! JSON lines to compressed JSON lines: is each line there once, byte for byte, for a reader that is not ours?
#![cfg(feature = "interop")]

use sealstone::ErrorKind;
use sealstone::staging::{
    Batch, ConvertOptions, JsonLinesToZstd, MergeOptions, OutputView, PlanOptions, Ready, Stage,
};

use crate::support::{each, key, put};
use crate::words::is_tidy;

fn lines(stage: &Stage, schema: &str, text: &str) {
    stage.append(&key(schema, 1), Batch::json_lines(text).unwrap(), None).unwrap();
}

/// Converts all that is there, and returns the rows that were published.
fn convert(stage: &Stage) -> u64 {
    stage.flush(&Ready::All).unwrap();
    let plan = stage.plan(&PlanOptions::default()).unwrap();
    let converted = plan.convert(&JsonLinesToZstd::new(), &ConvertOptions::default()).unwrap();
    converted.into_iter().map(|group| group.made.unwrap().rows).sum()
}

/// An output as zstd reads it.
fn decompressed(stage: &Stage, output: &OutputView) -> String {
    let mut bytes = Vec::new();
    stage.copy_output(output.id, &mut bytes).unwrap();
    assert_eq!((output.form.as_str(), output.len), ("jsonl.zst", bytes.len() as u64));
    String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap()
}

/// STG23, STG24: has an output the lines of its batches in their order, without blank ones, and has a merge of
/// outputs those of all, with what it was made of gone?
#[test]
fn stg24_lines_are_converted_and_merged_byte_for_byte() {
    each(81, |_, _, store, stage| {
        lines(&stage, "a", "{\"n\":1}\r\n\n  {\"n\": 2, \"t\":\"\u{fc}\"}  \n[3]");
        lines(&stage, "a", "7\n");
        lines(&stage, "b", "{\"other\":true}");
        assert_eq!(convert(&stage), 5);
        let first = "{\"n\":1}\n{\"n\": 2, \"t\":\"\u{fc}\"}\n[3]\n7\n";
        let outputs = stage.outputs().unwrap();
        assert_eq!(outputs.iter().map(|one| one.rows).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(decompressed(&stage, &outputs[0]), first);
        assert_eq!(decompressed(&stage, &outputs[1]), "{\"other\":true}\n");
        let long: String = (0..20_000).map(|n| format!("{{\"line\":{n}}}\n")).collect();
        lines(&stage, "a", &long);
        assert_eq!(convert(&stage), 20_000);
        let merge = || stage.merge(&MergeOptions::default(), &JsonLinesToZstd::new()).unwrap();
        let merged = merge();
        assert_eq!((merged.len(), merged[0].inputs.len()), (1, 2));
        let id = *merged[0].output.as_ref().unwrap();
        let outputs = stage.outputs().unwrap();
        let one = outputs.iter().find(|one| one.id == id).unwrap();
        assert_eq!((outputs.len(), one.rows), (2, 20_004));
        assert_eq!(decompressed(&stage, one), first.to_owned() + &long);
        assert_eq!(stage.view().unwrap().rows(), 20_005);
        assert!(merge().is_empty());
        assert!(store.claims(10).unwrap().is_empty());
        assert!(store.accounts().unwrap().are_closed());
    });
}

/// Is a batch that is no JSON lines refused, with its rows and all others of its group where they were?
#[test]
fn stg23_what_is_no_lines_stays() {
    each(82, |_, _, store, stage| {
        lines(&stage, "a", "{}\n");
        put(&stage, "a", 1, "some words");
        stage.flush(&Ready::All).unwrap();
        let plan = stage.plan(&PlanOptions::default()).unwrap();
        let converted = plan.convert(&JsonLinesToZstd::new(), &ConvertOptions::default()).unwrap();
        let refused = converted[0].made.as_ref().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
        assert!(stage.outputs().unwrap().is_empty());
        assert_eq!(stage.view().unwrap().rows(), 3);
        is_tidy(&store, &stage);
    });
}
