//! Would a script be misled: by an exit code, a JSON shape, a line on the wrong stream?
#![cfg(feature = "cli")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

#[path = "commands/mod.rs"]
mod commands;

use commands::{Home, listing, run, sealstone};

const WEATHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nyc-weather-2013.csv");

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn assert_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(output), stderr(output));
}

/// The only JSON object of a short command.
#[track_caller]
fn object(output: &Output) -> Value {
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["schema"], 1);
    value
}

/// The JSON objects of a long command, one on each line.
#[track_caller]
fn messages(output: &Output) -> Vec<Value> {
    let lines = stdout(output);
    let parsed = lines.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["schema"], 1, "{line}");
        assert!(value["message_type"].is_string(), "{line}");
        value
    });
    parsed.collect()
}

/// Is a manifest compacted only when asked to, and is what it says the truth?
#[test]
fn compact_says_before_and_after_and_a_dry_run_writes_nothing() {
    let home = Home::new();
    let store = home.weather();
    let before = listing(Path::new(&store));
    let dry = run(&["compact", &store, "-n", "--json"]);
    assert_code(&dry, 0);
    let dry = object(&dry);
    assert_eq!((&dry["command"], &dry["dry_run"]), (&"compact".into(), &true.into()));
    assert_eq!(listing(Path::new(&store)), before);
    let done = object(&run(&["compact", &store, "--json"]));
    assert_eq!((&done["commit"], &done["rows"]), (&dry["commit"], &dry["rows"]));
    assert_eq!(done["bytes_before"], dry["bytes_before"]);
    let len = std::fs::metadata(Path::new(&store).join("manifest.redb")).unwrap().len();
    assert_eq!(done["bytes_after"], len);
    let said = run(&["compact", &store]);
    assert_code(&said, 0);
    assert!(stdout(&said).contains("it was"), "{}", stdout(&said));
    assert_code(&run(&["check", &store]), 0);
    assert_code(&run(&["compact", &home.text("none.stone")]), 10);
}

/// Does a backup restore by being opened, grow by what is new, and refuse what is not its own?
#[test]
fn backup_copies_verifies_and_refuses() {
    let home = Home::new();
    let (store, to) = (home.weather(), home.text("copy.stone"));
    let dry = run(&["backup", &store, &to, "-n", "--json"]);
    assert_code(&dry, 0);
    let dry = messages(&dry).pop().unwrap();
    assert_eq!((&dry["message_type"], &dry["dry_run"]), (&"summary".into(), &true.into()));
    assert!(!Path::new(&to).exists());
    let before = listing(Path::new(&store));
    let made = run(&["backup", &store, &to, "--json"]);
    assert_code(&made, 0);
    let made = messages(&made).pop().unwrap();
    assert_eq!(listing(Path::new(&store)), before, "the store was changed");
    for field in ["commit", "files", "files_copied", "bytes_copied"] {
        assert!(made[field].as_u64().unwrap() > 0, "{made}");
    }
    assert!(made["onto_commit"].is_null());
    assert_eq!(dry["bytes_copied"], made["bytes_copied"]);
    assert_code(&run(&["check", &to]), 0);
    let values = |store: &str| run(&["export", store, "w"]).stdout;
    assert!(values(&to) == values(&store));

    let again = run(&["backup", &store, &to, "--fast"]);
    assert_code(&again, 0);
    let said = stdout(&again);
    assert!(said.contains("0 files copied with 0 B") && said.contains("it was at"), "{said}");
    assert_code(&run(&["import", &store, WEATHER, "--name", "more"]), 0);
    let more = messages(&run(&["backup", &store, &to, "--json"])).pop().unwrap();
    assert!(more["files_copied"].as_u64() < more["files"].as_u64(), "{more}");

    let foreign = home.text("foreign.stone");
    assert_code(&run(&["import", &foreign, WEATHER, "--name", "f"]), 0);
    let refused = run(&["backup", &store, &foreign]);
    assert_code(&refused, 1);
    assert!(stderr(&refused).contains("hint: give a new directory"), "{}", stderr(&refused));
    assert_code(&run(&["backup", &store, &store]), 2);
    assert_code(&run(&["backup", &home.text("none"), &to]), 10);
    // Written to, it is a store of its own, and no backup any more.
    assert_code(&run(&["import", &to, WEATHER, "--name", "own"]), 0);
    assert_code(&run(&["backup", &store, &to]), 1);
}

/// Is a salvaged store that lost something reclaimed only after `release`, which says whether it was
/// held, and is a refusal of it one?
#[test]
fn release_lets_a_salvaged_store_be_reclaimed() {
    let home = Home::new();
    let (store, new) = (home.weather(), home.text("new.stone"));
    std::fs::remove_file(Path::new(&store).join("manifest.redb")).unwrap();
    let sealed = listing(&Path::new(&store).join("sealed")).into_iter();
    let largest = sealed.filter(|(path, ..)| path.is_file()).max_by_key(|(_, len, _)| *len);
    std::fs::remove_file(largest.unwrap().0).unwrap();
    assert_code(&run(&["salvage", &store, &new]), 3);
    let was_held = || {
        let told = run(&["release", &new, "--json"]);
        assert_code(&told, 0);
        let told = object(&told);
        assert_eq!(told["command"], "release");
        told["was_held"].clone()
    };
    assert_eq!(was_held(), true);
    assert_eq!(was_held(), false);
    let said = run(&["release", &new]);
    assert_code(&said, 0);
    assert!((stdout(&said) + &stderr(&said)).contains("was not held"));
    assert_code(&run(&["release", &home.text("none.stone")]), 10);
}

trait Weather {
    fn weather(&self) -> String;
}

impl Weather for Home {
    /// A store with the weather in it.
    fn weather(&self) -> String {
        let store = self.text("w.stone");
        let output = run(&["import", &store, WEATHER, "--name", "w", "--stream-by", "origin"]);
        assert_code(&output, 0);
        store
    }
}

/// Do import, check and export tell what they did, and does the export hold the input's values?
#[test]
fn the_main_job_from_the_command_line() {
    let home = Home::new();
    let store = home.text("w.stone");
    let imported = run(&["import", &store, WEATHER, "--stream-by", "origin"]);
    assert_code(&imported, 0);
    let said = stdout(&imported);
    for part in ["26,115 rows", "391,725 values", "23,974 missing", "3 streams", "2.2 MiB read"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(stderr(&imported), "");
    let checked = run(&["check", &store]);
    assert_code(&checked, 0);
    assert!(stdout(&checked).contains("is good"), "{}", stdout(&checked));
    let exported = run(&["export", &store, "nyc-weather-2013"]);
    assert_code(&exported, 0);
    let input = std::fs::read_to_string(WEATHER).unwrap();
    assert!(stdout(&exported) == input.replace(",1e3,", ",1000,"), "the values differ");
    let file = home.text("out.jsonl");
    let exported = run(&["export", &store, "nyc-weather-2013", "-o", &file]);
    assert_code(&exported, 0);
    assert!(stdout(&exported).contains("26,115 rows"), "{}", stdout(&exported));
    let again = run(&["import", &store, &file, "--name", "again", "--stream-by", "origin"]);
    assert_code(&again, 0);
    let twice = run(&["export", &store, "again", "--format", "jsonl"]);
    assert!(twice.stdout == std::fs::read(&file).unwrap(), "JSON lines did not come back");
    let refused = run(&["export", &store, "again", "-o", &file]);
    assert_code(&refused, 1);
    assert!(stderr(&refused).contains("it is there already"), "{}", stderr(&refused));
}

/// Has each failure its own exit code, one error line, and what can be done?
#[test]
fn exit_codes_tell_what_happened() {
    let home = Home::new();
    let store = home.weather();
    let absent = home.text("absent.stone");
    for verb in [vec!["info"], vec!["ls"], vec!["check"], vec!["cat"], vec!["export"]] {
        let mut args = vec![verb[0], &absent];
        if matches!(verb[0], "cat" | "export") {
            args.push("w");
        }
        let output = run(&args);
        assert_code(&output, 10);
        assert!(stderr(&output).starts_with("error: open "), "{}", stderr(&output));
        assert!(stderr(&output).contains("\nhint: "), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    assert!(!home.path("absent.stone").exists(), "an inspecting command created something");

    for usage in [
        vec!["frobnicate"],
        vec!["ls"],
        vec!["import", &store],
        vec!["import", &store, WEATHER, "--type", "x"],
        vec!["import", &store, WEATHER, "--type", "x=float"],
        vec!["import", &store, WEATHER, "--chunk-size", "64mb"],
        vec!["import", &store, WEATHER, "--infer-rows", "0"],
        vec!["import", &store, "-"],
        vec!["import", &store, "file.unknown"],
        vec!["cat", &store, "w", "--stream", "EWR", "--records", "7..3"],
        vec!["cat", &store, "w", "--records", "0..3"],
        vec!["ls", &store, "--color", "sometimes"],
        vec!["ls", &store, "-q", "-v"],
    ] {
        let output = run(&usage);
        assert_code(&output, 2);
        assert!(stderr(&output).contains("error: "), "{usage:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{usage:?}");
    }

    for missing in [
        vec!["ls", &store, "nope"],
        vec!["cat", &store, "w", "--stream", "nope"],
        vec!["cat", &store, "w", "--fields", "nope"],
        vec!["export", &store, "w", "--fields", "nope"],
        vec!["import", &store, "nope.csv"],
        vec!["import", &store, WEATHER, "--name", "w"],
    ] {
        let output = run(&missing);
        assert_code(&output, 1);
        assert_eq!(stderr(&output).matches("error: ").count(), 1, "{}", stderr(&output));
    }
    let taken = stderr(&run(&["import", &store, WEATHER, "--name", "w"]));
    assert!(taken.contains("--replace"), "{taken}");
    assert_code(&run(&["import", &store, WEATHER, "--name", "w", "--replace"]), 0);
    assert_code(&run(&["--help"]), 0);
    assert_code(&run(&["--version"]), 0);
}

/// Is a store in use 11 for a writer, open to readers, and its holder named?
#[test]
fn g17_a_store_in_use_is_11_for_a_writer_only() {
    let home = Home::new();
    let store = home.weather();
    let holder = sealstone::Store::open(&store).unwrap();
    let refused = run(&["import", &store, WEATHER, "--name", "again"]);
    assert_code(&refused, 11);
    let pid = format!("process {}", std::process::id());
    assert!(stderr(&refused).contains(&pid), "{}", stderr(&refused));
    for args in [vec!["ls", &store], vec!["info", &store], vec!["check", &store]] {
        assert_code(&run(&args), 0);
    }
    drop(holder);
}

/// Is damage 4, with a finding that says where?
#[test]
fn g12_damage_is_4() {
    let home = Home::new();
    let store = home.weather();
    let sealed = listing(Path::new(&store));
    let (path, len, _) = sealed
        .iter()
        .filter(|(path, ..)| path.is_file() && path.to_str().unwrap().contains("/sealed/"))
        .max_by_key(|(_, len, _)| *len)
        .unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    bytes[*len as usize / 2] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
    let output = run(&["check", &store, "--json"]);
    assert_code(&output, 4);
    let messages = messages(&output);
    let finding = messages.iter().find(|m| m["message_type"] == "finding").unwrap();
    assert_eq!(finding["severity"], "damage");
    for key in ["place", "what", "means"] {
        assert!(finding[key].is_string(), "{finding}");
    }
    let summary = messages.last().unwrap();
    assert_eq!(summary["message_type"], "summary");
    assert!(summary["damages"].as_u64().unwrap() > 0);
    let output = run(&["export", &store, "w"]);
    assert_code(&output, 4);
    assert!(stderr(&output).contains("sealed/"), "{}", stderr(&output));
}

/// Are short answers one JSON object, and long ones a message on each line?
#[test]
fn json_has_the_promised_shapes() {
    let home = Home::new();
    let store = home.weather();
    let info = object(&run(&["info", &store, "--json"]));
    for key in ["store", "format", "layout", "commit", "witness", "direct_io", "bytes", "rows"] {
        assert!(!info[key].is_null(), "{key}: {info}");
    }
    let recordings = object(&run(&["ls", &store, "--json"]));
    assert_eq!(recordings["recordings"][0]["name"], "w");
    assert_eq!(recordings["recordings"][0]["records"], 26_115);
    let recording = object(&run(&["ls", &store, "w", "--json"]));
    assert_eq!(recording["status"], "complete");
    assert_eq!(recording["streams"][1]["name"], "JFK");
    assert_eq!(recording["streams"][1]["iterations"][0], 8_703);
    assert_eq!(recording["fields"][5]["type"], "f64");
    assert_eq!(recording["metadata"]["import.source"], "nyc-weather-2013.csv");

    let imported = run(&["import", &store, WEATHER, "--name", "x", "--json"]);
    let imported = messages(&imported);
    let summary = imported.last().unwrap();
    assert_eq!(summary["message_type"], "summary");
    assert_eq!((&summary["rows"], &summary["missing"]), (&26_115.into(), &23_974.into()));
    let checked = messages(&run(&["check", &store, "--json"]));
    assert_eq!(checked.last().unwrap()["is_good"], true);
    let args =
        ["cat", &store, "w", "--stream", "LGA", "--records", "0..2", "--fields", "temp", "--json"];
    let records = messages(&run(&args));
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["iteration"], 17_409);
    assert!(records[0]["values"]["temp"].is_f64());

    let failed = run(&["ls", &store, "nope", "--json"]);
    assert_code(&failed, 1);
    let error = &messages(&failed)[0];
    assert_eq!(error["message_type"], "error");
    assert_eq!((&error["kind"], &error["exit_code"]), (&"not_found".into(), &1.into()));
    assert!(stderr(&failed).starts_with("error: "));
}

/// Does a late conflict name line, row, column, value, type and way out, and does the way out work?
#[test]
fn a_late_conflict_says_the_way_out() {
    let home = Home::new();
    let store = home.text("l.stone");
    let rows: String = (0..30).map(|n| format!("{n}\n")).collect();
    let file = home.file("late.csv", format!("x\n{rows}warm\n"));
    let output = run(&["import", &store, &file, "--infer-rows", "20"]);
    assert_code(&output, 1);
    assert_eq!(
        stderr(&output),
        "error: import late.csv line 32 (row 30) column \"x\": \"warm\" is not i64, as the first \
         20 rows were; to accept it: --type x=string\n"
    );
    assert_eq!(stdout(&run(&["ls", &store])), "", "something of it stayed");
    let output = run(&["import", &store, &file, "--infer-rows", "20", "--type", "x=string"]);
    assert_code(&output, 0);
    let file = home.file("two.csv", "x\n1\nNA\n\"\"\n");
    let output = run(&["import", &store, &file]);
    assert_code(&output, 3);
    assert!(stderr(&output).starts_with("warning: column \"x\""), "{}", stderr(&output));
}

/// Does an input that is no table create no store, and a failed replacement keep what was there?
#[test]
fn a_bad_input_changes_nothing() {
    let home = Home::new();
    let store = home.text("new.stone");
    for (name, content, kind) in
        [("twice.csv", "a,a\n1,2\n", 1), ("empty.csv", "", 1), ("list.jsonl", "[1]\n", 1)]
    {
        let file = home.file(name, content);
        assert_code(&run(&["import", &store, &file]), kind);
        assert!(!home.path("new.stone").exists(), "{name} left an empty store");
    }
    let file = home.file("w.csv", "a\n1\n");
    assert_code(&run(&["import", &store, &file, "--stream-by", "nope"]), 2);
    assert!(!home.path("new.stone").exists());

    assert_code(&run(&["import", &store, &file]), 0);
    let late = home.file("late.csv", "a\n1\n2\nwarm\n");
    let replace = ["import", &store, &late, "--name", "w", "--replace", "--infer-rows", "2"];
    assert_code(&run(&replace), 1);
    assert_eq!(stdout(&run(&["export", &store, "w"])), "a\n1\n");
    assert_eq!(stdout(&run(&["ls", &store])).lines().count(), 1);
    assert_code(&run(&replace[..6]), 0);
    assert_eq!(stdout(&run(&["export", &store, "w"])), "a\n1\n2\nwarm\n");
}

/// Can a value that names a stream, or a column, move the cursor of whoever lists or imports it?
#[test]
fn names_from_a_file_are_harmless_on_a_terminal() {
    let home = Home::new();
    let store = home.text("n.stone");
    let content = "who,\"x\x1b[7m\"\na,1\n\"b\x1b[2J\nc\",2\n";
    let file = home.file("n.csv", content);
    let imported = run(&["import", &store, &file, "--stream-by", "who", "-v"]);
    assert_code(&imported, 0);
    for output in [&imported, &run(&["ls", &store, "n", "-v"])] {
        assert!(!stdout(output).contains('\x1b'), "{}", stdout(output));
        assert!(stdout(output).contains("b\\u{1b}[2J\\nc"), "{}", stdout(output));
    }
    assert_eq!(stdout(&run(&["export", &store, "n"])).replace('"', ""), content.replace('"', ""));
    let absent = run(&["cat", &store, "n", "--stream", "\x1b[2J"]);
    assert_code(&absent, 1);
    assert!(!stderr(&absent).contains('\x1b'), "{}", stderr(&absent));
    let named = run(&["import", &store, &file, "--name", "two\nlines"]);
    assert_code(&named, 2);
    assert!(stderr(&named).contains("control character"), "{}", stderr(&named));
}

/// Does a dry run say what would happen and write nothing, not even a store?
#[test]
fn a_dry_run_writes_nothing() {
    let home = Home::new();
    let store = home.text("d.stone");
    let output = run(&["import", &store, WEATHER, "-n", "--stream-by", "origin"]);
    assert_code(&output, 0);
    let said = stdout(&output);
    for part in ["would import", "field temp f64", "stream JFK 8,706 records"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!home.path("d.stone").exists());
    let store = home.weather();
    let before = listing(Path::new(&store));
    let output = home.text("out.csv");
    assert_code(&run(&["export", &store, "w", "-o", &output, "-n"]), 0);
    assert!(!home.path("out.csv").exists());
    assert_eq!(listing(Path::new(&store)), before);
}

/// Do inspecting commands leave every file as it was, its time of change included?
#[test]
fn g20_inspecting_commands_change_nothing() {
    let home = Home::new();
    let store = home.weather();
    let before = listing(Path::new(&store));
    for args in [
        vec!["ls", &store],
        vec!["ls", &store, "w", "-v"],
        vec!["info", &store, "-v", "--time-format", "unix"],
        vec!["check", &store],
        vec!["check", &store, "--fast"],
        vec!["cat", &store, "w", "--iterations", "5..10"],
        vec!["export", &store, "w"],
    ] {
        assert_code(&run(&args), 0);
        assert_eq!(listing(Path::new(&store)), before, "{args:?}");
    }
}

/// Is the store taken from the environment, and what is quiet quiet?
#[test]
fn the_store_may_come_from_the_environment() {
    let home = Home::new();
    let store = home.weather();
    let with =
        |args: &[&str]| sealstone().env("SEALSTONE_STORE", &store).args(args).output().unwrap();
    let listed = with(&["ls"]);
    assert_code(&listed, 0);
    assert!(stdout(&listed).starts_with("w\tcomplete\t"), "{}", stdout(&listed));
    assert!(stdout(&with(&["--json", "ls", "w"])).contains("\"JFK\""));
    let wrong = with(&["ls", "nope"]);
    assert_code(&wrong, 1);
    assert!(stderr(&wrong).contains("SEALSTONE_STORE is set"), "{}", stderr(&wrong));
    let quiet = with(&["import", WEATHER, "--name", "q", "-q"]);
    assert_code(&quiet, 0);
    assert_eq!((stdout(&quiet), stderr(&quiet)), (String::new(), String::new()));
}

/// Does a reader that goes away end the command in silence?
#[test]
fn a_closed_pipe_is_silent() {
    let home = Home::new();
    let store = home.weather();
    for args in [vec!["export", &store, "w"], vec!["cat", &store, "w", "--json"], vec!["man"]] {
        let mut child =
            sealstone().args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        drop(out);
        let ended = child.wait().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "{args:?}");
        assert_eq!(ended.code(), Some(0), "{args:?}");
    }
}

/// Are messages plain where no terminal is, coloured when asked, and is NO_COLOR no obstacle to that?
#[test]
fn colour_is_for_terminals_or_on_demand() {
    let home = Home::new();
    let store = home.text("no.stone");
    assert!(!stderr(&run(&["ls", &store])).contains('\x1b'));
    assert!(stderr(&run(&["ls", &store, "--color", "always"])).contains('\x1b'));
    assert!(!stderr(&run(&["ls", &store, "--color", "never"])).contains('\x1b'));
}

/// Does standard input work as a file?
#[test]
fn standard_input_is_a_file_too() {
    let home = Home::new();
    let store = home.text("s.stone");
    let mut child = sealstone()
        .args(["import", &store, "-", "--name", "in", "--format", "csv", "--delimiter", "tab"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a\tb\n1\tx\n").unwrap();
    assert_code(&child.wait_with_output().unwrap(), 0);
    assert_eq!(stdout(&run(&["cat", &store, "in"])), "stream,iteration,a,b\nrows,0,1,x\n");
}

/// Does a recording whose streams have some of the fields each print, alone and together?
#[test]
fn cat_and_export_print_streams_that_have_some_of_the_fields() {
    use sealstone::recording::{Field, FieldType, Schema, Value};
    let home = Home::new();
    let path = home.text("s.stone");
    let store = sealstone::Store::create(&path).unwrap();
    let fields = ["x", "y", "z"].map(|name| Field::new(name, FieldType::I64));
    let schema = Schema::new(fields.to_vec()).unwrap();
    let run_of = store.record("r", &schema).stream("a", ["x", "y"]).stream("b", ["y"]);
    let recorder = run_of.start().unwrap();
    recorder.append(0, 0, &[Value::I64(1), Value::I64(2)]).unwrap();
    recorder.append(1, 0, &[Value::I64(3)]).unwrap();
    recorder.complete().unwrap();
    store.close().unwrap();
    let cat = |more: &[&str]| {
        let output = run(&[&["cat", path.as_str(), "r"], more].concat());
        assert_code(&output, 0);
        stdout(&output)
    };
    assert_eq!(cat(&[]), "stream,iteration,x,y\na,0,1,2\nb,0,,3\n");
    assert_eq!(cat(&["--stream", "b"]), "stream,iteration,y\nb,0,3\n");
    assert_eq!(cat(&["--fields", "y,x"]), "stream,iteration,y,x\na,0,2,1\nb,0,3,\n");
    assert_eq!(cat(&["--fields", "x"]), "stream,iteration,x\na,0,1\nb,0,\n");
    let absent = run(&["cat", &path, "r", "--stream", "b", "--fields", "x"]);
    assert!(!absent.status.success() && stderr(&absent).contains("no such field"));
    let export = run(&["export", &path, "r"]);
    assert_code(&export, 0);
    assert_eq!(stdout(&export), "x,y,z\n1,2,\n,3,\n");
    let export = run(&["export", &path, "r", "--stream", "b"]);
    assert_code(&export, 0);
}

/// Are completions and the manual there, for packagers?
#[test]
fn completions_and_manual_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_code(&output, 0);
        assert!(stdout(&output).contains("sealstone"));
    }
    let manual = run(&["man"]);
    assert_code(&manual, 0);
    assert!(stdout(&manual).contains(".TH sealstone"));
}

/// Can an import that was killed be found, read, and replaced?
#[test]
#[cfg(target_os = "linux")]
fn a_killed_import_can_be_replaced() {
    let home = Home::new();
    let store = home.text("k.stone");
    let mut child = sealstone()
        .args(["import", &store, "-", "--name", "k", "--format", "csv", "--chunk-size", "32KiB"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a,b\n").unwrap();
    let mut rng = 1u64;
    let mut line = String::new();
    // Enough that the first chunks are published.
    for n in 0..60_000u64 {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        line.clear();
        line.push_str(&format!("{n},{rng}{rng}text{rng}\n"));
        stdin.write_all(line.as_bytes()).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    let listed = object(&run(&["ls", &store, "--json"]));
    assert_eq!(listed["recordings"][0]["status"], "running");
    assert!(listed["recordings"][0]["records"].as_u64().unwrap() > 0);
    let file = home.file("k.csv", "a\n1\n");
    assert_code(&run(&["import", &store, &file]), 1);
    assert_code(&run(&["import", &store, &file, "--replace"]), 0);
    assert_eq!(stdout(&run(&["export", &store, "k"])), "a\n1\n");
    assert_code(&run(&["check", &store]), 0);
}

/// Is a store packed and unpacked whole, does every command open both, and is a name that is taken
/// left alone?
#[test]
fn a_store_is_packed_and_unpacked_and_every_command_opens_it() {
    let home = Home::new();
    let store = home.weather();
    let (file, back) = (home.text("one.stone"), home.text("back.stone"));
    let dry = object(&run(&["pack", &store, &file, "-n", "--json"]));
    assert_eq!((&dry["command"], &dry["dry_run"]), (&"pack".into(), &true.into()));
    assert!(!std::path::Path::new(&file).exists());
    let packed = object(&run(&["pack", &store, &file, "--json"]));
    assert_eq!((&packed["files"], &packed["was_there"]), (&dry["files"], &false.into()));
    let info = object(&run(&["info", &file, "--json"]));
    assert_eq!(info["layout"], "single-file");
    assert_code(&run(&["check", &file]), 0);
    assert_code(&run(&["unpack", &file, &back]), 0);
    let (one, other) = (
        run(&["cat", &file, "w", "--stream", "EWR"]),
        run(&["cat", &back, "w", "--stream", "EWR"]),
    );
    assert_eq!(one.stdout, other.stdout);
    assert_code(&run(&["pack", &back, &store]), 1);
    assert_code(&run(&["unpack", &store, &home.text("no.stone")]), 2);
}

/// Does `follow` print each record once and the end, for people and for programs?
#[test]
fn follow_prints_what_is_there_and_ends() {
    let home = Home::new();
    let store = home.weather();
    let output = run(&["follow", &store, "w", "--json"]);
    assert_code(&output, 0);
    let told = messages(&output);
    let records = told.iter().filter(|one| one["message_type"] == "record").count();
    assert_eq!(records, 26_115);
    assert_eq!(told.last().unwrap()["message_type"], "ended");
    assert_eq!(told.last().unwrap()["status"], "complete");
    let output = run(&["follow", &store, "w", "--no-wait", "--level", "sealed"]);
    assert_code(&output, 0);
    let lines = stdout(&output);
    assert!(lines.lines().next().unwrap().starts_with("record\t"), "{lines:.200}");
    assert_eq!(lines.lines().last(), Some("ended\tcomplete"));
    assert_code(&run(&["follow", &store, "another"]), 1);
    let output = run(&["events", &store, "w"]);
    assert_code(&output, 0);
    assert_eq!(stdout(&output), "");
}

/// Does `retire` say what would go and why, write nothing with `--dry-run`, and then do it?
#[test]
fn retire_shows_a_plan_before_it_is_done() {
    let home = Home::new();
    let store = home.weather();
    assert_code(&run(&["retire", &store]), 2);
    let output = run(&["retire", &store, "--keep-newest", "0", "--dry-run", "--json"]);
    assert_code(&output, 0);
    let plan = object(&output);
    assert_eq!(plan["planned"][0]["name"], "w");
    assert_eq!(plan["planned"][0]["why"], "none is kept");
    assert!(plan["now_unix_nanos"].is_i64(), "{plan}");
    assert_eq!(plan["retired"], serde_json::json!([]));
    let output = run(&["retire", &store, "--older-than", "1d"]);
    assert_code(&output, 0);
    assert!(stdout(&output).contains("0 recordings retired"), "{}", stdout(&output));
    assert_code(&run(&["retire", &store, "another"]), 1);
    assert_code(&run(&["retire", &store, "w", "-n"]), 0);
    assert!(stdout(&run(&["ls", &store])).contains("w\t"), "a dry run wrote");
    assert_code(&run(&["retire", &store, "w"]), 0);
    assert_eq!(stdout(&run(&["ls", &store])), "");
    assert_code(&run(&["check", &store]), 0);
}

/// Does `plan` say, and say once, what the program that resumes would meet, and nothing of its own
/// reading?
#[test]
fn plan_tells_what_a_resume_would_meet() {
    let home = Home::new();
    let store = home.weather();
    let output = run(&["plan", &store, "w", "--from", "end"]);
    assert_code(&output, 0);
    let refused: Vec<_> = stdout(&output)
        .lines()
        .filter_map(|line| line.trim().strip_prefix("it would be refused: ").map(str::to_owned))
        .collect();
    assert!(refused.len() == 1 && refused[0].starts_with("it is complete"), "{refused:?}");
    let told = object(&run(&["plan", &store, "w", "--from", "end", "--json"]));
    assert_eq!(told["refused"], serde_json::json!(refused));
    let output = run(&["plan", &store, "w"]);
    assert_code(&output, 1);
    let said = "error: resume \"w\": there is no checkpoint of it that stands\n";
    assert_eq!(stderr(&output), said);
}

/// Is a file of JSON lines read as empty when its rows may be as long as a number can say?
#[test]
fn the_largest_row_size_is_no_row_size_at_all() {
    let home = Home::new();
    for (name, content) in [("w.jsonl", "{\"a\":1}\n{\"a\":2}\n"), ("v.csv", "a\n1\n2\n")] {
        let (store, file) = (home.text(&format!("{name}.stone")), home.file(name, content));
        let most = u64::MAX.to_string();
        assert_code(&run(&["import", &store, &file, "--name", "w", "--row-size-max", &most]), 0);
        let format = name.rsplit('.').next().unwrap();
        let exported = run(&["export", &store, "w", "--format", format]);
        assert_eq!(stdout(&exported), content);
    }
}

/// Is the last iteration that there can be shown where the end is left open?
#[test]
fn cat_shows_the_last_iteration_that_there_can_be() {
    let home = Home::new();
    let store = home.text("w.stone");
    let file = home.file("w.csv", "n,x\n3,1\n9223372036854775807,2\n");
    let import = ["import", &store, &file, "--name", "w", "--iteration", "n"];
    assert_code(&run(&import), 0);
    let shown = |range: &str| {
        let output = run(&["cat", &store, "w", "--iterations", range]);
        assert_code(&output, 0);
        stdout(&output).lines().skip(1).count()
    };
    assert_eq!((shown("5.."), shown(".."), shown("..9223372036854775807")), (1, 2, 1));
}

/// Is a store whose directory others may enter opened only when that is allowed, and left with its mode?
#[cfg(unix)]
#[test]
fn obj32_a_directory_that_others_may_enter_is_opened_when_allowed() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let store = home.weather();
    let mode = || std::fs::metadata(&store).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o755)).unwrap();
    for command in [&["info", &store][..], &["check", &store], &["compact", &store]] {
        let refused = run(command);
        assert_code(&refused, 2);
        assert!(stderr(&refused).contains("allow a shared root"), "{}", stderr(&refused));
        let allowed: Vec<&str> = command.iter().copied().chain(["--allow-shared-root"]).collect();
        assert_code(&run(&allowed), 0);
        assert_eq!(mode(), 0o755, "it was given another mode");
    }
}
