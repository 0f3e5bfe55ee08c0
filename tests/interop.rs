//! Could reading a file of others change a value, take one for another, or run out of memory?
#![cfg(feature = "interop")]

use sealstone::ErrorKind;
use sealstone::format::column::{Field, FieldType, Value};
use sealstone::interop::{Cells, Format, OutColumn, ReadOptions, RowWriter, Table};

fn options() -> ReadOptions {
    ReadOptions::new("input")
}

/// Reads all of `input` and writes it again in the same format.
fn round_trip(format: Format, input: &str, options: ReadOptions) -> sealstone::Result<String> {
    let mut table = Table::open(input.as_bytes(), format, options.clone())?;
    let mut first = Cells::default();
    while table.next_row(&mut first)?.is_some() {}
    let columns = table.plans().iter().map(|p| OutColumn::new(&p.name, p.missing.clone()));
    let mut writer = RowWriter::new(Vec::new(), format, columns.collect())?;
    let mut table = Table::open(input.as_bytes(), format, options)?;
    let mut cells = Cells::default();
    while table.next_row(&mut cells)?.is_some() {
        writer.row(&cells.values())?;
    }
    let bytes = writer.finish()?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn types(format: Format, input: &str) -> Vec<FieldType> {
    let table = Table::open(input.as_bytes(), format, options()).unwrap();
    table.plans().iter().map(|plan| plan.ty).collect()
}

fn refusal(format: Format, input: &str, options: ReadOptions) -> String {
    let error = round_trip(format, input, options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    error.to_string()
}

/// Does CSV come out as it went in, quotes, line breaks, NA and empty texts included?
#[test]
fn csv_comes_out_as_it_went_in() {
    for input in [
        "a,b\n1,x\n2,y\n",
        "a,b\nNA,NA\n1.5,NA\n",
        "a,b\n,\n1,\n",
        "t\n\"a \"\"quoted\"\" text\"\n\"two\nlines\"\n\"x,y\"\n",
        "t,u\nNA,1\n,2\nNA,3\n",
        "zip,phone\n00501,+49123\n10001,5\n",
        "x\n12.658579999999999\n1012\n0.1\n-0\n",
        "id\n12345678901234567890\n5\n",
        "b\ntrue\nfalse\n",
        "b\nTRUE\nfalse\n",
        "x\n1e300\n1e-300\nNaN\ninf\n-inf\n",
    ] {
        assert_eq!(round_trip(Format::Csv, input, options()).unwrap(), input);
    }
}

/// Does JSON come out as it went in, null and absent keys, nested and mixed values included?
#[test]
fn json_lines_come_out_as_they_went_in() {
    for input in [
        "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\"}\n",
        "{\"a\":null}\n{\"a\":1.5}\n",
        "{\"a\":1,\"b\":2}\n{\"a\":2}\n",
        "{\"a\":[1, 2]}\n{\"a\":{\"k\":1.10}}\n{\"a\":\"t\"}\n{\"a\":3}\n",
        "{\"a\":\"tab\\tand \\\"quotes\\\" and é\"}\n",
        "{\"a b\":true}\n{\"a b\":false}\n",
        "{\"a\":12345678901234567890}\n",
        "{\"a\":\"\"}\n{\"a\":null}\n{\"a\":\"NA\"}\n",
    ] {
        assert_eq!(round_trip(Format::Jsonl, input, options()).unwrap(), input);
    }
}

/// Are types the narrowest that hold the sample, and a missing value of no type?
#[test]
fn types_are_the_narrowest_that_hold_the_sample() {
    use FieldType::{Bool, F64, I64, Json, String as Text};
    assert_eq!(
        types(Format::Csv, "a,b,c,d,e\n1,1,true,x,NA\n2,1.5,false,1,\n"),
        [I64, F64, Bool, Text, Text]
    );
    let json = "{\"a\":1,\"b\":1.5,\"c\":true,\"d\":\"x\",\"e\":null,\"f\":[]}\n";
    assert_eq!(types(Format::Jsonl, json), [I64, F64, Bool, Text, Json, Json]);
}

/// Does a value that contradicts the sample name file, line, row, column, value, type, way out?
#[test]
fn a_late_conflict_names_row_and_column() {
    let rows: String = (0..20).map(|n| format!("{n},1\n")).collect();
    let input = format!("a,b\n{rows}warm,2\n");
    let mut short = options();
    short.infer_rows = 10;
    assert_eq!(
        refusal(Format::Csv, &input, short.clone()),
        "import input line 22 (row 20) column \"a\": \"warm\" is not i64, as the first 10 rows \
         were; to accept it: --type a=string"
    );
    let given = options().column_type("a", FieldType::Bool);
    assert!(refusal(Format::Csv, &input, given).contains("is not bool, as was given"));
    let input = format!("a,b\n{rows}1.5,2\n");
    assert!(refusal(Format::Csv, &input, short.clone()).contains("--type a=f64"));
    let rows: String = (0..20).map(|n| format!("{{\"a\":{n}}}\n")).collect();
    let conflict = refusal(Format::Jsonl, &format!("{rows}{{\"a\":[1]}}\n"), short.clone());
    assert!(conflict.contains("line 21 (row 20) column \"a\": \"[1]\" is not i64"), "{conflict}");
    let unknown = refusal(Format::Jsonl, &format!("{rows}{{\"z\":1}}\n"), short);
    assert!(unknown.contains("column \"z\"") && unknown.contains("--type z="), "{unknown}");
}

/// Does a given type win over what the sample would say?
#[test]
fn a_given_type_wins() {
    let text = options().column_type("a", FieldType::String);
    let table = Table::open("a\n1\n2\n".as_bytes(), Format::Csv, text).unwrap();
    assert_eq!(table.plans()[0].ty, FieldType::String);
    let later = options().column_type("late", FieldType::F64);
    let mut table = Table::open("{\"a\":1}\n".as_bytes(), Format::Jsonl, later).unwrap();
    let mut cells = Cells::default();
    table.next_row(&mut cells).unwrap();
    assert_eq!(table.plans()[1].name, "late");
    let absent = options().column_type("b", FieldType::F64);
    let error = Table::open("a\n1\n".as_bytes(), Format::Csv, absent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let twice = options().column_type("a", FieldType::F64).column_type("a", FieldType::I64);
    assert!(twice.check().is_err());
}

/// Is hostile CSV refused by row, without a panic?
#[test]
fn hostile_csv_is_refused_by_row() {
    let csv = |input: &str| refusal(Format::Csv, input, options());
    assert!(csv("").contains("no header"));
    assert!(csv("a,a\n1,2\n").contains("used twice"));
    assert!(csv("a,\n1,2\n").contains("blank"));
    assert_eq!(
        csv("a,b\n1,2\n3\n"),
        "import input line 3 (row 1): it has 1 values under a header of 2"
    );
    let bytes = b"a,b\n1,\xff\xfe\n";
    let mut table = Table::open(&bytes[..], Format::Csv, options()).unwrap();
    let error = table.next_row(&mut Cells::default()).unwrap_err().to_string();
    assert!(error.contains("line 2 (row 0) column \"b\"") && error.contains("UTF-8"), "{error}");
}

/// Is hostile JSON refused by line, without a panic or a deep stack?
#[test]
fn hostile_json_is_refused_by_line() {
    let json = |input: &str| refusal(Format::Jsonl, input, options());
    for bad in ["[1]", "{\"a\":1", "{\"a\":1}}", "{\"a\":1,\"a\":2}", "\"x\"", "{a:1}", "nul"] {
        let error = json(&format!("{{\"a\":1}}\n{bad}\n"));
        assert!(error.contains("line 2 (row 1)"), "{error}");
    }
    assert!(json("").contains("no column"));
    let deep = format!("{{\"a\":{}1{}}}\n", "[".repeat(200_000), "]".repeat(200_000));
    let _ = round_trip(Format::Jsonl, &deep, options());
}

/// Does a quote that is never closed, or an endless line, stop at the bound?
#[test]
fn an_endless_row_stops_at_the_bound() {
    let mut small = options();
    small.record_bytes_max = 100_000;
    let endless = format!("a\n1\n\"{}", "x".repeat(5_000_000));
    let error = refusal(Format::Csv, &endless, small.clone());
    assert!(error.contains("line 3 (row 1)") && error.contains("quote"), "{error}");
    let endless = format!("{{\"a\":1}}\n{{\"a\":\"{}", "x".repeat(5_000_000));
    let error = refusal(Format::Jsonl, &endless, small.clone());
    assert!(error.contains("line 2 (row 1): it is longer than 100000 bytes"), "{error}");
    let fits = format!("a\n\"{}\"\n", "x\n".repeat(40_000));
    assert_eq!(round_trip(Format::Csv, &fits, small).unwrap(), fits);
}

/// Can a line of very many keys, or a header of very many commas, hold up an import or fill memory?
#[test]
fn g22_very_many_columns_are_refused_at_once() {
    let keys: Vec<String> = (0..200_000).map(|n| format!("\"k{n}\":1")).collect();
    let line = format!("{{{}}}\n", keys.join(","));
    let started = std::time::Instant::now();
    let error = refusal(Format::Jsonl, &line, options());
    assert!(error.contains("column \"k4096\": 4096 columns are the most"), "{error}");
    let mut few = options();
    few.infer_rows = 1;
    let error = refusal(Format::Jsonl, &format!("{{\"a\":1}}\n{line}"), few.clone());
    assert!(error.contains("row 1) column \"k0\": none of the first 1 rows"), "{error}");
    let odd = refusal(Format::Jsonl, "{\"a\":1}\n{\"b\\u001b[1m\":1}\n", few);
    assert!(!odd.contains('\x1b'), "{odd:?}");
    let error = refusal(Format::Csv, &format!("{}\n1\n", ",".repeat(1 << 20)), options());
    assert_eq!(error, "import input line 1 (row 0): it has 1048577 columns; 4096 is the most");
    let error = refusal(Format::Csv, &format!("{}\n1\n", ",".repeat(5 << 20)), options());
    assert!(error.contains("longer than 4206592 bytes"), "{error}");
    println!("{:?}", started.elapsed());
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

/// Do numbers of every width and arrays come in as they are given, and out as they came?
#[test]
fn numbers_of_every_width_and_arrays_keep_their_text() {
    let field = |name: &str, kind: &str| Field::of_kind(name, kind).unwrap();
    let given = options()
        .column_field(field("f", "f32"))
        .column_field(field("b", "u8"))
        .column_field(field("n", "i16"))
        .column_field(field("u", "u64"))
        .column_field(field("m", "f32[2, _]"));
    let csv = "f,b,n,u,m\n0.1,255,-32768,18446744073709551615,\"[[1.5,0.1],[2,3]]\"\n\
        NaN,0,7,0,\"[[],[]]\"\n1e-40,,1,1,\"[[\"\"NaN\"\"],[\"\"-inf\"\"]]\"\n";
    assert_eq!(round_trip(Format::Csv, csv, given.clone()).unwrap(), csv);
    let json = "{\"f\":0.1,\"b\":255,\"n\":-32768,\"u\":18446744073709551615,\"m\":[[1.5],[\"NaN\"]]}\n\
        {\"f\":\"inf\",\"b\":null,\"n\":0,\"u\":1,\"m\":null}\n";
    assert_eq!(round_trip(Format::Jsonl, json, given).unwrap(), json);
    for (kind, text) in [
        ("u8", "256"),
        ("u8", "-1"),
        ("i16", "1.5"),
        ("f32", "1e39"),
        ("f32", "16777217"),
        ("f32[2]", "[1]"),
        ("f32[2]", "[1,null]"),
        ("u8[_]", "[1,256]"),
        ("u8[_]", "[[1]]"),
        ("u8[_, _]", "[[1],[1,2]]"),
        ("bool[_]", "[\"NaN\"]"),
        ("u8[1]", "1"),
    ] {
        let wrong = format!("{{\"x\":{text}}}\n");
        let refused = refusal(Format::Jsonl, &wrong, options().column_field(field("x", kind)));
        assert!(refused.contains(&format!("is not {kind}")), "{refused}");
    }
}

/// Does an array without elements come back with the axes that its type fixes?
#[test]
fn arrays_without_elements_come_back() {
    let given = |kind: &str| options().column_field(Field::of_kind("m", kind).unwrap());
    let axes = |format: Format, input: &str, kind: &str| -> Vec<u32> {
        let mut table = Table::open(input.as_bytes(), format, given(kind)).unwrap();
        let mut cells = Cells::default();
        table.next_row(&mut cells).unwrap().unwrap();
        let Value::Array(array) = cells.get(0) else { panic!("{input}") };
        assert!(array.elements().is_empty());
        array.axes().to_vec()
    };
    for (kind, text, expected) in [
        ("f64[_, 3]", "[]", vec![0, 3]),
        ("f64[2, _, 3]", "[[],[]]", vec![2, 0, 3]),
        ("f64[_, _]", "[[],[]]", vec![2, 0]),
        // How long an axis is that no type fixes, behind an empty one, is not in the text.
        ("f64[_, _]", "[]", vec![0, 0]),
    ] {
        let csv = format!("m\n\"{text}\"\n");
        let json = format!("{{\"m\":{text}}}\n");
        assert_eq!(axes(Format::Csv, &csv, kind), expected);
        assert_eq!(axes(Format::Jsonl, &json, kind), expected);
        let expected = if text.contains(',') { csv.clone() } else { csv.replace('"', "") };
        assert_eq!(round_trip(Format::Csv, &csv, given(kind)).unwrap(), expected);
        assert_eq!(round_trip(Format::Jsonl, &json, given(kind)).unwrap(), json);
    }
}
