//! The command line of stages: would a script be misled, and does a producer that was stopped anywhere take
//! each line once?
#![cfg(feature = "cli")]

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use sealstone::Store;
use sealstone::staging::{
    Batch, ConvertOptions, JsonLinesToZstd, Key, KeyPart, PlanOptions, Produced,
};

use crate::commands::{Home, json, ran, run, sealstone, text};

/// `lines` lines of three hosts and two minutes.
fn input(lines: std::ops::Range<usize>) -> String {
    lines
        .map(|n| {
            let (host, minute) = (n % 3, 40 + n % 2);
            format!("{{\"host\":\"h{host}\",\"at\":\"2026-12-01T09:{minute}:07Z\",\"n\":{n}}}\n")
        })
        .collect()
}

/// The lines of the stage, in order of their bytes.
fn lines(store: &str, stage: &str) -> Vec<String> {
    let told = run(&["stage", "cat", store, stage]);
    let mut lines: Vec<String> =
        String::from_utf8(told.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// From lines to files and away, by hand: does each command say what it did, a dry run do nothing, and a
/// second publication nothing more?
#[test]
fn stages_from_the_command_line() {
    let home = Home::new();
    let (store, out) = (home.text("s.stone"), home.text("out"));
    let file = home.file("in.jsonl", input(0..60));
    let append = ["stage", "append", &store, "logs", &file, "--key", "host,at:minute"];
    let dry = json(&[&append[..], &["-n"]].concat(), 0);
    assert_eq!((&dry["rows"], &dry["dry_run"]), (&60.into(), &true.into()));
    assert!(!Path::new(&store).exists());
    let done = json(&append, 0);
    assert_eq!(
        (&done["rows"], &done["batches"], &done["message_type"]),
        (&60.into(), &6.into(), &"summary".into())
    );
    assert_eq!(lines(&store, "logs"), sorted(&input(0..60)));
    assert_eq!(
        run(&["stage", "cat", &store, "logs", "--key", "host=h1/at=2026-12-01T09:41"])
            .stdout
            .lines_count(),
        10
    );

    let before = ["stage", "flush", &store, "logs", "--before", "2026-12-01T09:41"];
    json(&[&before[..], &["-n"]].concat(), 0);
    let told = json(&["stage", "ls", &store, "logs"], 0);
    assert_eq!((told["parts"].as_array().unwrap().len(), &told["rows"]), (0, &60.into()));
    let flushed = json(&before, 0);
    assert_eq!((&flushed["rows"], flushed["detached"].as_array().unwrap().len()), (&60.into(), 3));
    let told = json(&["stage", "ls", &store, "logs"], 0);
    assert_eq!(told["parts"].as_array().unwrap().len(), 6);
    assert_eq!(
        told["groups"].as_array().unwrap().iter().filter(|g| g["is_detached"] == true).count(),
        3
    );
    assert!(ran(&["stage", "rm", &store, "logs"], 1).contains("60 rows are not in any output"));

    let none = home.text("none");
    assert!(
        ran(&["stage", "publish", &store, "logs", &none], 0).contains("3 groups are detached and")
    );
    let opened = Store::open(&store).unwrap();
    let stage = opened.stage("logs").unwrap();
    let plan = stage.plan(&PlanOptions::default()).unwrap();
    let held = json(&["claims", &store], 0);
    let groups = held["claims"].as_array().unwrap().iter().filter(|claim| claim["kind"] == "group");
    assert_eq!(groups.count(), 3);
    assert!(ran(&["claims", &store], 0).contains("\tgroup\tprocess "));
    let converted = plan.convert(&JsonLinesToZstd, &ConvertOptions::default()).unwrap();
    assert!(converted.iter().all(|one| one.made.is_ok()), "{converted:?}");
    drop(stage);
    opened.close().unwrap();

    json(&["stage", "cat", &store, "logs"], 0);
    ran(&["stage", "cat", &store, "logs"], 0);
    let publish = ["stage", "publish", &store, "logs", &out];
    let would = json(&[&publish[..], &["-n"]].concat(), 0);
    assert_eq!(would["would"].as_array().unwrap().len(), 3);
    assert!(!Path::new(&out).exists());
    assert_eq!(json(&publish, 0)["published"], 3);
    let files = || std::fs::read_dir(&out).unwrap().count();
    let again = json(&publish, 0);
    assert_eq!(
        (&again["published"], &again["published_before"], files()),
        (&0.into(), &3.into(), 3)
    );
    let told = json(&["stage", "ls", &store, "logs"], 0);
    assert_eq!(told["handoffs"][0]["state"], "done");
    assert_eq!(told["outputs"].as_array().unwrap().len(), 3);
    let listed = ran(&["stage", "ls", &store, "logs", "-v"], 0);
    for word in ["open\t10 rows", "output 1\thost=h", "hand-off 1\toutput 1\tdone"] {
        assert!(listed.contains(word), "{listed}");
    }
    assert_eq!(
        json(&["stage", "quarantine", "ls", &store, "logs"], 0)["quarantine"],
        serde_json::json!([])
    );
    assert_eq!(
        json(&["stage", "quarantine", "retry", &store, "logs"], 0)["ids"],
        serde_json::json!([])
    );
    ran(&["stage", "quarantine", "export", &store, "logs", "7", "-o", &home.text("q")], 1);
    json(&["stage", "rm", &store, "logs", "--force", "-n"], 0);
    assert_eq!(json(&["stage", "rm", &store, "logs", "--force"], 0)["outputs"], 3);
    assert_eq!(json(&["stage", "ls", &store], 0)["stages"], serde_json::json!([]));
    assert_eq!(files(), 3);
    ran(&["check", &store], 0);
    ran(&["stage", "ls", &home.text("none")], 10);
    ran(&["stage", "ls", &store, "none"], 1);
    ran(&["stage", "append", &store], 2);
}

/// Are groups converted to compressed lines and published, each line once, with what a dry run says it would;
/// and is nothing done where nothing is left, or where no form is given?
#[test]
fn stage_convert_writes_json_lines() {
    let home = Home::new();
    let (store, out) = (home.text("s.stone"), home.text("out"));
    let file = home.file("in.jsonl", input(0..60));
    json(&["stage", "append", &store, "logs", &file, "--key", "host,at:minute"], 0);
    json(&["stage", "flush", &store, "logs", "--all"], 0);
    let convert = ["stage", "convert", &store, "logs", "--jsonl"];
    let would = ran(&[&convert[..], &["-n"]].concat(), 0);
    assert_eq!(would.lines().filter(|line| line.ends_with("\t10 rows")).count(), 6, "{would}");
    let some = json(&[&convert[..], &["--groups", "2"]].concat(), 0);
    assert_eq!((&some["groups"], &some["rows"]), (&2.into(), &20.into()));
    let rest = json(&convert, 0);
    assert_eq!(
        (&rest["groups"], &rest["outputs"], &rest["rows"], &rest["failed"]),
        (&4.into(), &4.into(), &40.into(), &0.into())
    );
    assert_eq!(json(&convert, 0)["groups"], 0);
    assert_eq!(json(&["stage", "publish", &store, "logs", &out], 0)["published"], 6);
    let mut found = String::new();
    for file in std::fs::read_dir(&out).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        found += &String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap();
    }
    assert_eq!(sorted(&found), sorted(&input(0..60)));
    ran(&["stage", "convert", &store, "logs"], 2);
    #[cfg(not(feature = "parquet"))]
    assert!(ran(&["stage", "convert", &store, "logs", "--parquet"], 1).contains("cli,parquet"));
    ran(&["check", &store], 0);
}

trait Lines {
    fn lines_count(&self) -> usize;
}

impl Lines for Vec<u8> {
    fn lines_count(&self) -> usize {
        self.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// Is a line without a key told by its number, and passed over only when asked; do patterns and constants
/// make keys; does the store come from the environment?
#[test]
fn lines_without_a_key_are_told() {
    let home = Home::new();
    let store = home.text("s.stone");
    let file = home
        .file("a.log", "web - [2026-12-01 09:40:00] a\nnothing\nweb - [2026-12-01 09:41:00] b\n");
    let append = ["stage", "append", &store, "text", &file, "--constant", "site=x", "--pattern"];
    let append = [&append[..], &["{host} {} [{time:minute}]"]].concat();
    assert!(ran(&append, 1).contains("line 2: it is not like the pattern; --skip"));
    let done = json(&[&append[..], &["--skip"]].concat(), 3);
    assert_eq!((&done["rows"], &done["skipped"]), (&2.into(), &1.into()));
    let with =
        |args: &[&str]| sealstone().env("SEALSTONE_STORE", &store).args(args).output().unwrap();
    let told = with(&["stage", "ls", "text"]);
    assert!(text(&told).contains("site=x/host=web/time=2026-12-01T09:41"), "{}", text(&told));
    let told = with(&["stage", "--json", "ls", "text"]);
    assert_eq!(told.status.code(), Some(0), "{}", text(&told));
    let told = with(&["stage", "quarantine", "-q", "ls", "text"]);
    assert_eq!(told.status.code(), Some(0), "{}", text(&told));
    let told = with(&["stage", "quarantine", "ls", "text"]);
    assert_eq!(told.status.code(), Some(0), "{}", text(&told));
    assert_eq!(with(&["claims"]).status.code(), Some(0));
    let bad = ["stage", "append", &store, "x", &file, "--key", "a:word"];
    assert!(ran(&bad, 2).contains("no type of a key"));
    for dry in [&[][..], &["-n"]] {
        let other = [&["stage", "append", &store, "text", &file][..], dry].concat();
        assert!(ran(&other, 2).contains("give --key site,host,time:minute"));
    }
    let directory = home.text(".");
    let directory = directory.as_str();
    assert!(ran(&["stage", "append", &store, "x", directory], 1).contains("give - for a pipe"));
    assert!(
        ran(&["stage", "flush", &store, "text", "--before", "29935300"], 2).contains("a number")
    );
    assert!(ran(&["stage", "flush", &store, "text"], 0).contains("--all or --before"));
    ran(&["stage", "publish", &store, "text", &home.text("o"), "--mode", "044"], 2);
}

/// A producer that was stopped between two batches of one read of its input: are the missing ones appended
/// and no other, and is another input refused?
#[test]
fn stg9_stg10_a_stopped_append_goes_on_where_it_was() {
    let home = Home::new();
    let store = home.text("s.stone");
    let whole = input(0..40);
    let file = home.file("in.jsonl", &whole);
    let append = |file: &str| {
        let (store, file) = (store.clone(), file.to_owned());
        move |code: i32| {
            let key = ["--key", "host,at:minute", "--producer", "p", "--rows", "10"];
            json(&[&["stage", "append", &store, "logs", &file][..], &key].concat(), code)
        }
    };
    // The first ten lines are six batches; two of them were taken.
    let ten = input(0..10);
    let opened = Store::create(&store).unwrap();
    let shape = sealstone::staging::KeyShape::new().text("host").minute("at");
    let stage = opened.create_stage("logs", &shape).unwrap();
    for n in 0..2usize {
        let of_key = ten.lines().enumerate().filter(|(at, _)| at % 6 == n);
        let bytes: String = of_key.map(|(_, line)| format!("{line}\n")).collect();
        let minute = 29_935_300 + n as i64;
        let key = Key::new([KeyPart::Text(format!("h{n}")), KeyPart::Minute(minute)]);
        let position =
            format!("{{\"from\":0,\"to\":{},\"lines\":10,\"batch\":{n},\"batches\":6}}", ten.len());
        let produced = Produced::new("p", n as u64 + 1).at(position);
        stage.append(&key, Batch::json_lines(bytes).unwrap(), Some(&produced)).unwrap();
    }
    stage.barrier().unwrap();
    drop(stage);
    opened.close().unwrap();

    let changed = home.file("changed.jsonl", whole.replace("\"n\":7}", "\"n\":8}"));
    assert_eq!(append(&changed)(1)["kind"], "conflict");
    let done = append(&file)(0);
    assert_eq!(done["sequence"], 24);
    assert_eq!(lines(&store, "logs"), sorted(&whole));
    assert_eq!(append(&file)(0)["rows"], 0);

    // A line that is being written is left until it has its end.
    let more = input(40..43);
    std::fs::write(&file, whole.clone() + &more[..more.len() - 5]).unwrap();
    assert_eq!(append(&file)(3)["rows"], 2);
    std::fs::write(&file, whole.clone() + &more).unwrap();
    assert_eq!(append(&file)(0)["rows"], 1);
    assert_eq!(lines(&store, "logs"), sorted(&(whole + &more)));
    // The log was rotated: another one of the name, and longer by now.
    let rotated = home.file("rotated.jsonl", input(100..200));
    assert_eq!(append(&rotated)(1)["kind"], "conflict");
    assert_eq!(lines(&store, "logs").len(), 43);
    let short = home.file("short.jsonl", input(0..3));
    assert_eq!(append(&short)(1)["kind"], "conflict");
}

/// Does a conversion of which every group fails fail, and say that each stays as it was?
#[test]
fn stg20_a_conversion_that_makes_nothing_fails() {
    let home = Home::new();
    let store = home.text("s.stone");
    let file = home.file("a.log", "one\ntwo\n");
    ran(&["stage", "append", &store, "text", &file, "--constant", "site=x"], 0);
    ran(&["stage", "flush", &store, "text", "--all"], 0);
    let convert = ["stage", "convert", &store, "text", "--jsonl"];
    assert!(ran(&convert, 1).contains("stays as it was"));
    let told = json(&convert, 1);
    assert_eq!((&told["failed"], &told["groups"]), (&1.into(), &1.into()));
    let more = home.file("b.jsonl", input(0..3));
    ran(&["stage", "append", &store, "json", &more, "--constant", "site=x"], 0);
    ran(&["stage", "flush", &store, "json", "--all"], 0);
    assert_eq!(json(&["stage", "convert", &store, "json", "--jsonl"], 0)["rows"], 3);
}

/// Is a line whose key is too long one line that is told and can be passed over, and a long line one that
/// ends no producer?
#[test]
fn stg10_one_hostile_line_stops_nothing() {
    let home = Home::new();
    let store = home.text("s.stone");
    let long = format!("{{\"host\":\"{}\"}}\n", "x".repeat(3000));
    let file = home.file("in.jsonl", format!("{}{long}{}", input(0..3), input(3..6)));
    let append = ["stage", "append", &store, "logs", &file, "--key", "host", "--producer", "p"];
    assert!(ran(&append, 1).contains("line 4: its key"));
    let done = json(&[&append[..], &["--skip"]].concat(), 3);
    assert_eq!((&done["rows"], &done["skipped"]), (&6.into(), &1.into()));

    let line = |bytes: usize| format!("{{\"host\":\"h\",\"t\":\"{}\"}}\n", "y".repeat(bytes));
    let big = home.file("big.jsonl", &(line(7 << 20) + &line(14 << 20) + &line(9)));
    let append = ["stage", "append", &store, "big", &big, "--key", "host", "--producer", "b"];
    let done = json(&append, 0);
    assert_eq!((&done["rows"], &done["batches"]), (&3.into(), &3.into()));
    assert_eq!(json(&append, 0)["rows"], 0);
    ran(&[&append[..], &["--row-size-max", "16MiB"]].concat(), 2);
}

/// Killed while it reads standard input, again and again: is each line taken once in the end?
#[test]
fn stg9_a_killed_append_takes_each_line_once() {
    let home = Home::new();
    let store = home.text("s.stone");
    let whole = input(0..400);
    let args = ["stage", "append", &store, "logs", "--key", "host,at:minute", "--producer", "p"];
    let args = [&args[..], &["--rows", "7", "--linger", "20ms"]].concat();
    for round in 1..6usize {
        let mut child =
            sealstone().args(&args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(&whole.as_bytes()[..whole.len() * round / 6]);
        std::thread::sleep(std::time::Duration::from_millis(100 + 60 * round as u64));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut child =
        sealstone().args(&args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(whole.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(lines(&store, "logs"), sorted(&whole));
    ran(&["check", &store], 0);
}

/// Can a group be put into quarantine by hand and given back; are rows of JSON lines printed wherever they are, an
/// output through zstd included; and are groups of one key converted alone, with what is left told?
#[test]
fn groups_are_set_aside_and_outputs_printed_from_the_command_line() {
    let home = Home::new();
    let store = home.text("s.stone");
    let file = home.file("in.jsonl", input(0..60));
    ran(&["stage", "append", &store, "logs", &file, "--key", "host"], 0);
    ran(&["stage", "flush", &store, "logs", "--all"], 0);
    let quarantine = |args: &[&'static str]| {
        let mut all = vec!["stage".to_owned(), "quarantine".to_owned(), args[0].to_owned()];
        all.extend([store.clone(), "logs".to_owned()]);
        all.extend(args[1..].iter().map(|arg| (*arg).to_owned()));
        all
    };
    let add = quarantine(&["add", "1", "--why", "it is broken"]);
    let add: Vec<&str> = add.iter().map(String::as_str).collect();
    let dry = json(&[&add[..], &["-n"]].concat(), 0);
    assert_eq!((&dry["parts"], dry["ids"].as_array().unwrap().len()), (&1.into(), 0));
    assert_eq!(json(&add, 0)["parts"], 1);
    ran(&add, 1);
    let list = json(&["stage", "quarantine", "ls", &store, "logs"], 0);
    assert_eq!(list["quarantine"][0]["reason"], "it is broken");
    let convert = ["stage", "convert", &store, "logs", "--jsonl"];
    let one = json(&[&convert[..], &["--key", "host=h1"]].concat(), 0);
    assert_eq!(
        (&one["groups"], &one["rows"], &one["rows_left"]),
        (&1.into(), &20.into(), &0.into())
    );
    assert_eq!(json(&convert, 0)["groups"], 1);
    assert_eq!(lines(&store, "logs"), sorted(&input(0..60)));
    let told = run(&["stage", "cat", &store, "logs", "--json"]);
    assert!(!String::from_utf8(told.stdout).unwrap().contains("\"hex\""));
    json(&["stage", "quarantine", "retry", &store, "logs"], 0);
    assert_eq!(json(&convert, 0)["rows"], 20);
    assert_eq!(lines(&store, "logs"), sorted(&input(0..60)));
}
