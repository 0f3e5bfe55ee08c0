//! The command line of objects: would a script be misled, does a put that was stopped anywhere go on, and does
//! a name ever choose where bytes go?

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sealstone::objects::Digest;
use serde_json::Value;

use crate::commands::{Home, json, listing, ran, run, sealstone, text, told};
use crate::made::noise as content;

/// A folder with three files, two of which are the same, and a link.
fn tree(home: &Home) -> String {
    std::fs::create_dir_all(home.path("tree/sub")).unwrap();
    let large = content(1, 3 << 20);
    home.file("tree/large", &large);
    home.file("tree/sub/same", &large);
    home.file("tree/sub/small", "some text\n");
    std::os::unix::fs::symlink("small", home.path("tree/sub/link")).unwrap();
    home.text("tree")
}

fn digest_of(file: &str) -> String {
    Digest::of(&std::fs::read(file).unwrap()).to_string()
}

/// The fields of one namespace's names: (name, digest).
fn names(store: &str, namespace: &str) -> Vec<(String, String)> {
    let mut told = told(&["names", store, namespace], 0);
    assert_eq!(told.pop().unwrap()["count"], told.len());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    told.iter().map(|one| (text(&one["name"]), text(&one["digest"]))).collect()
}

/// From files to names, snapshots and away, by hand: does each command say what it did, and a dry run do
/// nothing?
#[test]
fn obj27_a_life_from_the_command_line() {
    let home = Home::new();
    let (store, tree) = (home.text("s.stone"), tree(&home));
    let before = listing(Path::new(&tree));
    let put = ["put", &store, &tree, "--name", "data/v1", "--recursive"];
    let dry = json(&[&put[..], &["-n"]].concat(), 3);
    assert_eq!(
        (&dry["files"], &dry["dry_run"], &dry["skipped"]),
        (&3.into(), &true.into(), &1.into())
    );
    assert_eq!(dry["bytes_new"], (3 << 20) + 10);
    assert!(!Path::new(&store).exists());
    let done = told(&put, 3);
    assert_eq!(done.len(), 4);
    assert_eq!(done[0]["name"], "data/v1/large");
    assert_eq!(done[0]["digest"], digest_of(&home.text("tree/large")));
    assert!(done[0]["pieces"].as_u64().unwrap() > 1 && done[1]["bytes_new"] == 0, "{done:?}");
    let summary = done.last().unwrap();
    assert_eq!((&summary["message_type"], &summary["names"]), (&"summary".into(), &3.into()));
    assert_eq!(summary["bytes_new"], (3 << 20) + 10);
    assert_eq!(listing(Path::new(&tree)), before, "a source was changed");
    assert_eq!(told(&["names", &store], 0)[0]["namespace"], "data");
    let listed = names(&store, "data");
    assert_eq!(listed.len(), 3);
    assert_eq!(told(&["names", &store, "data", "v1/sub/"], 0).len(), 3);
    assert!(json(&["lease", "ls", &store], 0)["preparations"].as_array().unwrap().is_empty());

    let out = home.text("out");
    let got = json(&["get", &store, "data/v1/large", "-o", &out], 0);
    assert_eq!(got["bytes"], 3 << 20);
    assert_eq!(digest_of(&out), listed[0].1);
    assert_eq!(run(&["get", &store, &listed[2].1]).stdout, b"some text\n");
    assert_eq!(run(&["get", &store, "data/v1/sub/small", "--range", "5..9"]).stdout, b"text");
    assert_eq!(run(&["get", &store, "data/v1/sub/small", "--range", "5.."]).stdout, b"text\n");

    let made = json(&["snapshot", "create", &store, "first", "data"], 0);
    assert_eq!((&made["names"], &made["state"]), (&3.into(), &"committed".into()));
    let small = home.file("small", "other text\n");
    let again = json(&["put", &store, &small, "--name", "data/v1/sub/small"], 0);
    assert_eq!(again["replaced"], 1);
    assert_eq!(run(&["get", &store, "data/v1/sub/small"]).stdout, b"other text\n");
    let then = ["get", &store, "data/v1/sub/small", "--snapshot", "first"];
    assert_eq!(run(&then).stdout, b"some text\n");
    assert_eq!(told(&["snapshot", "cat", &store, "first"], 0).len(), 4);
    assert!(ran(&["snapshot", "ls", &store], 0).contains("first\tcommitted\t3 names"));

    let usage = json(&["du", &store], 0);
    assert_eq!((&usage["namespaces"][0]["names"], &usage["bytes"]["dead"]), (&3.into(), &0.into()));
    assert!(usage["bytes"]["shared"].as_u64().unwrap() >= 3 << 20, "{usage}");
    let why = ran(&["why", &store, &listed[2].1], 0);
    assert!(why.contains("kept by snapshot first: data/v1/sub/small"), "{why}");
    assert!(ran(&["why", &store, "data/v1/large"], 0).contains("kept by name data/v1/sub/same"));

    // Two names and the snapshot at once; one thing is not there, and told.
    let things = ["--name", "data/v1/large", "--name", "data/v1/sub/same", "--name", "data/none"];
    let retire = [&["retire", &store, "--snapshot", "first"][..], &things].concat();
    assert_eq!(json(&[&retire[..], &["-n"]].concat(), 3)["things"], 3);
    assert_eq!(names(&store, "data").len(), 3);
    let retired = json(&retire, 3);
    assert_eq!((&retired["things"], &retired["transactions"]), (&3.into(), &1.into()));
    assert_eq!(retired["unknown"][0], "name data/none");
    assert!(retired["phases_nanos"]["manifest"].as_u64().unwrap() > 0);
    assert!(retired["bytes"].as_u64().unwrap() >= 3 << 20);
    let gone = json(&["gc", &store, "-n"], 0);
    assert!(gone["bytes"].as_u64().unwrap() >= 3 << 20, "{gone}");
    assert!(json(&["du", &store], 0)["bytes"]["condemned"].as_u64().unwrap() >= 3 << 20);
    let given = json(&["gc", &store], 0);
    assert!(given["bytes"].as_u64().unwrap() >= 3 << 20, "{given}");
    let why = ran(&["why", &store, "data/v1/large"], 0);
    assert!(why.contains("retired by commit") && why.contains("retired by hand"), "{why}");

    let last = names(&store, "data").pop().unwrap();
    let wrong = ["names", "rm", &store, &last.0, &listed[0].1];
    assert!(ran(&wrong, 1).contains(&format!("it stands for {}", last.1)));
    json(&["names", "rm", &store, &last.0, &last.1, "-n"], 0);
    json(&["names", "rm", &store, &last.0, &last.1], 0);
    assert!(ran(&["names", "rm", &store, &last.0, &last.1], 1).contains("nothing stands there"));
    json(&["gc", &store], 0);
    let usage = json(&["du", &store], 0);
    assert!(usage["namespaces"].as_array().unwrap().is_empty());
    for class in ["dead", "condemned", "orphan", "inline", "shared"] {
        assert_eq!(usage["bytes"][class], 0, "{usage}");
    }
    assert!(json(&["scrub", &store], 0)["is_done"] == true);
    ran(&["check", &store], 0);
}

/// Is each command told for people as well, on the right stream, and quiet when asked?
#[test]
fn every_command_speaks_to_people() {
    let home = Home::new();
    let store = home.text("s.stone");
    let file = home.file("a", "abc");
    let digest = digest_of(&file);
    let put = ran(&["put", &store, &file, "--name", "n/a"], 0);
    assert!(
        put.starts_with(&format!("{digest}\t3 B\tn/a\n")) && put.contains("1 name published"),
        "{put}"
    );
    assert_eq!(ran(&["names", &store], 0), "n\n");
    assert!(
        ran(&["names", &store, "n"], 0).starts_with(&format!("n/a\t{digest}\t3 B\tgeneration "))
    );
    assert!(ran(&["snapshot", "create", &store, "s", "-n"], 0).contains("would keep 1 name"));
    assert!(ran(&["snapshot", "create", &store, "s"], 0).contains("keeps 1 name with 3 B"));
    assert!(ran(&["snapshot", "cat", &store, "s"], 0).contains(&digest));
    assert!(ran(&["snapshot", "rm", &store, "s", "-n"], 0).contains("would be retired"));
    assert!(ran(&["snapshot", "rm", &store, "s"], 0).contains("snapshot s with 1 name retired"));
    ran(&["snapshot", "rm", &store, "s"], 1);
    assert!(ran(&["du", &store], 0).contains("condemned\t0 B"));
    assert!(ran(&["gc", &store, "-n"], 0).contains("would be given back"));
    assert!(ran(&["gc", &store, "-v"], 0).contains("unlink"));
    assert_eq!(ran(&["gc", &store, "-q"], 0), "");
    assert!(ran(&["scrub", &store], 0).contains("the pass is done"));
    assert!(
        ran(&["retire", &store, "--name", "n/a"], 0).contains("1 thing retired in 1 transaction")
    );
    assert!(ran(&["why", &store, &digest], 0).contains("retired by commit"));
    let of_lease = ["publish", "abandon"].map(|word| ["lease", word]);
    let of_snapshot = ["create", "rm"].map(|word| ["snapshot", word]);
    let of_names = [["names", "rm"]];
    let two = of_lease.iter().chain(&of_snapshot).chain(&of_names).map(|words| &words[..]);
    let one = ["put", "get", "retire", "scrub", "gc"].map(|word| [word]);
    for command in one.iter().map(|words| &words[..]).chain(two) {
        let help = ran(&[command, &["--help"]].concat(), 0);
        assert!(help.contains("urabl"), "{command:?} does not say what is durable: {help}");
    }
}

/// Are contents leased until they are published or given up, and is a preparation gone that keeps nothing?
#[test]
fn obj6_what_is_put_under_a_lease_is_published_later_or_given_up() {
    let home = Home::new();
    let store = home.text("s.stone");
    let (one, two) = (home.file("one", "1"), home.file("two", "2"));
    ran(&["put", &store, &one, "--lease", "later"], 0);
    let told = json(&["put", &store, &two, "--lease", "later"], 0);
    assert_eq!((&told["preparation"], &told["names"]), (&"later".into(), &0.into()));
    let listed = &json(&["lease", "ls", &store], 0)["preparations"][0];
    assert_eq!((&listed["objects"], &listed["bytes"]), (&2.into(), &2.into()));
    assert!(listed["open_by"].is_null());
    assert!(ran(&["lease", "ls", &store], 0).starts_with("later\t"));
    let named = |name: &str, file: &str| format!("{name}={}", digest_of(file));
    let (first, other) = (named("n/one", &one), named("n/two", &two));
    let publish = |names: &[&str], code| {
        json(&[&["lease", "publish", &store, "later"][..], names].concat(), code)
    };
    assert_eq!(publish(&[&first, "-n"], 0)["names"][0]["stands"], Value::Null);
    assert!(names(&store, "n").is_empty());
    // All or nothing: nothing keeps the second one.
    let unknown = format!("n/none={}", Digest::of(b"none"));
    assert_eq!(publish(&[&first, &unknown], 1)["kind"], "not_found");
    assert!(names(&store, "n").is_empty());
    assert_eq!(publish(&[&first], 0)["is_preparation_gone"], false);
    assert_eq!(publish(&[&other, "--expect", &digest_of(&one)], 1)["kind"], "conflict");
    assert_eq!(publish(&[&other, "--expect", "nothing"], 0)["is_preparation_gone"], true);
    assert_eq!(names(&store, "n").len(), 2);

    let third = home.file("third", content(3, 100_000));
    ran(&["put", &store, &third, "--lease", "never"], 0);
    assert!(ran(&["why", &store, &digest_of(&third)], 0).contains("kept by preparation never"));
    assert_eq!(json(&["lease", "abandon", &store, "never", "-n"], 0)["kept"], 1);
    assert_eq!(json(&["lease", "abandon", &store, "never"], 0)["objects"], 1);
    ran(&["lease", "abandon", &store, "never"], 1);
    ran(&["put", &store, &third, "--lease", "again"], 0);
    assert_eq!(json(&["retire", &store, "--preparation", "again"], 0)["things"], 1);
    ran(&["get", &store, &digest_of(&third)], 1);
}

/// Does a bounded retirement take its rows away in several transactions, and end as one that is not bounded?
#[test]
fn obj16_a_bounded_retirement_ends_as_any_other() {
    let home = Home::new();
    let store = home.text("s.stone");
    let file = home.file("large", content(4, 40 << 20));
    ran(&["put", &store, &file, "--name", "n/large", "--pieces", "4KiB,16KiB,64KiB"], 0);
    let retired = json(&["retire", &store, "--name", "n/large", "--rows-max", "1"], 0);
    assert!(retired["transactions"].as_u64().unwrap() > 2, "{retired}");
    assert_eq!(retired["is_more_left"], false);
    json(&["gc", &store], 0);
    let usage = json(&["du", &store], 0);
    assert_eq!((&usage["retiring"], &usage["bytes"]["condemned"]), (&0.into(), &0.into()));
    ran(&["check", &store], 0);
}

/// Do bytes go only where they were told to, and is a file replaced only when that is asked for?
#[test]
fn a_name_never_chooses_a_path() {
    let home = Home::new();
    let store = home.text("s.stone");
    let file = home.file("a", "abc");
    ran(&["put", &store, &file, "--name", "n/../../evil"], 0);
    std::fs::create_dir(home.path("in")).unwrap();
    let out = home.text("in/out");
    ran(&["get", &store, "n/../../evil", "-o", &out, "-n"], 0);
    assert!(listing(&home.path("in")).is_empty());
    ran(&["get", &store, "n/../../evil", "-o", &out], 0);
    assert_eq!(listing(&home.path("in")).len(), 1);
    assert!(!home.path("evil").exists());

    std::fs::write(&out, "mine").unwrap();
    for dry in [&[][..], &["-n"]] {
        let refused = ran(&[&["get", &store, "n/../../evil", "-o", &out][..], dry].concat(), 1);
        assert!(
            refused.contains("it is there already") && refused.contains("--force"),
            "{refused}"
        );
    }
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");
    ran(&["get", &store, "n/../../evil", "-o", &out, "--force"], 0);
    assert_eq!(std::fs::read(&out).unwrap(), b"abc");
    // What is no regular file is nobody's to replace, and nothing is written through a link.
    let link = home.text("in/link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(
        ran(&["get", &store, "n/../../evil", "-o", &link, "--force"], 1)
            .contains("no regular file")
    );
    assert!(
        ran(&["get", &store, "n/../../evil", "-o", &home.text("in"), "--force"], 1)
            .contains("no regular")
    );
    assert_eq!(listing(&home.path("in")).len(), 2);
    // Taken in again by its path, a link is not followed either.
    let told = ran(&["put", &store, &home.text("in"), "-r", "--name", "m"], 3);
    assert!(told.contains("link is skipped"), "{told}");
}

/// Is the store not taken into itself where it is given by a link and stands below what is put?
#[test]
fn a_store_behind_a_link_is_not_put_into_itself() {
    let home = Home::new();
    let tree = tree(&home);
    let real = home.text("tree/s.stone");
    ran(&["put", &real, &home.file("a", "abc"), "--name", "n/a"], 0);
    let link = home.text("to-it");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let said = ran(&["put", &link, &tree, "-r", "--name", "data"], 3);
    assert!(said.contains("it is the store"), "{said}");
    let named: Vec<_> = names(&link, "data").into_iter().map(|(name, _)| name).collect();
    assert_eq!(named, ["data/large", "data/sub/same", "data/sub/small"]);
}

/// Does a snapshot that cannot be made leave nothing behind; and is there a way to be rid of one that was stopped?
#[test]
fn obj11_a_snapshot_that_was_not_made_is_not_there() {
    let home = Home::new();
    let store = home.text("s.stone");
    ran(&["put", &store, &home.file("a", "abc"), "--name", "n/a"], 0);
    let said = ran(&["snapshot", "create", &store, "s", "n/a", "n/typo"], 1);
    assert!(said.contains("n/typo"), "{said}");
    assert!(json(&["snapshot", "ls", &store], 0)["snapshots"].as_array().unwrap().is_empty());
    {
        let opened = sealstone::Store::open(&store).unwrap();
        let draft = opened.objects().snapshot("s").unwrap();
        draft.add(&"n/a".parse().unwrap()).unwrap();
        drop(draft);
        opened.close().unwrap();
    }
    let said = ran(&["snapshot", "rm", &store, "s"], 1);
    assert!(said.contains("--open"), "{said}");
    ran(&["snapshot", "rm", &store, "s", "--open", "-n"], 0);
    assert_eq!(json(&["snapshot", "ls", &store], 0)["snapshots"][0]["state"], "open");
    ran(&["snapshot", "rm", &store, "s", "--open"], 0);
    assert!(json(&["snapshot", "ls", &store], 0)["snapshots"].as_array().unwrap().is_empty());
}

/// Are wrong arguments refused before anything is written, with the exit code that says so?
#[test]
fn wrong_arguments_are_refused() {
    let home = Home::new();
    let store = home.text("s.stone");
    let file = home.file("a", "abc");
    let digest = digest_of(&file);
    for usage in [
        vec!["put", &store, &file],
        vec!["put", &store, &file, "--name", "no-slash"],
        vec!["put", &store, &file, "--name", "/x"],
        vec!["put", &store, &home.text(""), "--name", "n/x"],
        vec!["put", &store, &file, "--name", "n/x", "--pieces", "1,2"],
        vec!["put", &store, &file, "--name", "n/x", "--expect", "what"],
        vec!["put", &store, &file, "--lease", "x", "--expect", "any"],
        vec!["put", &store, &file, "--name", "n/x", "--compress", "always"],
    ] {
        ran(&usage, 2);
        assert!(!Path::new(&store).exists(), "{usage:?}");
    }
    ran(&["put", &store, &home.text("none"), "--name", "n/x"], 1);
    for command in ["names", "du", "gc", "scrub"] {
        ran(&[command, &store], 10);
    }
    for rest in
        [vec!["get", &store, &digest], vec!["why", &store, &digest], vec!["lease", "ls", &store]]
    {
        ran(&rest, 10);
    }
    ran(&["put", &store, &file, "--name", "n/x"], 0);
    let equal = format!("n/x={digest}");
    for usage in [
        vec!["get", &store, "neither"],
        vec!["get", &store, "n/x", "--json"],
        vec!["get", &store, "n/x", "--range", "9..2"],
        vec!["get", &store, "n/x", "--range", "0..4"],
        vec!["get", &store, "n/x", "--force"],
        vec!["get", &store, &digest, "--snapshot", "s"],
        vec!["names", &store, "a/b"],
        vec!["names"],
        vec!["names", "rm", &store, "n/x"],
        vec!["names", "rm", &store, "n/x", "12"],
        vec!["lease", "publish", &store, "p"],
        vec!["lease", "publish", &store, "p", "n/x"],
        vec!["retire", &store],
        vec!["retire", &store, "run", "--name", "n/x"],
        vec!["retire", &store, "--name", "n/x", "--keep-newest", "1"],
        vec!["retire", &store, "run", "--rows-max", "1"],
        vec!["gc", &store, "--dead-percent", "0"],
        vec!["scrub", &store, "--bytes", "0"],
        vec!["why", &store, "neither"],
    ] {
        ran(&usage, 2);
    }
    for unknown in [
        vec!["get", &store, "n/none"],
        vec!["get", &store, "n/x", "--snapshot", "none"],
        vec!["why", &store, "n/none"],
        vec!["lease", "publish", &store, "none", &equal],
        vec!["snapshot", "cat", &store, "none"],
    ] {
        ran(&unknown, 1);
    }
    assert!(names(&store, "none").is_empty());
    // With the store of the environment, also behind a command of two words.
    let with = |args: &[&str]| {
        let output = sealstone().args(args).env("SEALSTONE_STORE", &store).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(with(&["names"]), "n\n");
    assert!(with(&["names", "n"]).starts_with("n/x\t"));
    assert_eq!(with(&["get", "n/x"]), "abc");
    assert_eq!(with(&["lease", "-q", "ls"]), "");
    with(&["names", "rm", "n/x", &digest]);
    // A namespace may be called as the command.
    with(&["put", &file, "--name", "rm/x"]);
    assert!(with(&["names", "--", "rm"]).starts_with("rm/x\t"));
}

/// Is damage told with file, object and who loses by it, is no wrong byte given out, and does putting the same
/// content again heal it?
#[test]
fn obj2_damage_is_told_and_put_again_is_healed() {
    let home = Home::new();
    let store = home.text("s.stone");
    let (bad, good) = (home.file("bad", content(5, 200_000)), home.file("good", "abc"));
    let never = ["--compress", "never"];
    ran(&[&["put", &store, &bad, "--name", "n/bad"][..], &never].concat(), 0);
    ran(&["put", &store, &good, "--name", "n/good"], 0);
    let sealed = listing(&Path::new(&store).join("sealed")).into_iter();
    let files = sealed.filter(|(path, len, _)| path.is_file() && *len > 100_000);
    let (path, _, _) = files.max_by_key(|(_, len, _)| *len).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100_000] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let out = home.text("out");
    let refused = ran(&["get", &store, "n/bad", "-o", &out], 4);
    assert!(refused.contains(path.file_name().unwrap().to_str().unwrap()), "{refused}");
    assert!(!Path::new(&out).exists());
    assert!(
        listing(&home.path(""))
            .iter()
            .all(|(path, ..)| !path.to_string_lossy().contains("unfinished"))
    );
    assert_eq!(run(&["get", &store, "n/good"]).stdout, b"abc");
    let found = told(&["scrub", &store], 4);
    assert_eq!(found[0]["message_type"], "finding");
    assert_eq!(found[0]["objects"][0], digest_of(&bad));
    assert_eq!(
        (&found[0]["losers"][0]["kind"], &found[0]["losers"][0]["which"]),
        (&"name".into(), &"n/bad".into())
    );
    let number = found[0]["file"].as_u64().unwrap();
    assert_eq!(found.last().unwrap()["damaged_files"][0], number);
    for file in [path.to_str().unwrap(), &number.to_string()] {
        let why = json(&["why", &store, file], 0);
        assert_eq!(why["file"]["file"], number);
        assert_eq!(why["file"]["objects"][0]["keepers"][0]["which"], "n/bad");
    }
    ran(&["check", &store], 4);

    ran(&[&["put", &store, &bad, "--name", "n/bad"][..], &never].concat(), 0);
    ran(&["get", &store, "n/bad", "-o", &out], 0);
    assert_eq!(digest_of(&out), digest_of(&bad));
    ran(&["gc", &store], 0);
    ran(&["scrub", &store], 0);
    ran(&["check", &store], 0);
}

/// A put whose process is killed while it reads standard input, after part of it is stored: is nothing visible,
/// does the same command go on, and is nothing left over in the end?
#[test]
fn obj6_a_killed_put_goes_on() {
    let home = Home::new();
    let store = home.text("s.stone");
    let whole = content(6, 96 << 20);
    let put = ["put", &store, "-", "--name", "n/large"];
    let mut child = sealstone()
        .args(put)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&whole[..80 << 20]).unwrap();
    let since = Instant::now();
    let pieces = || json(&["lease", "ls", &store], 0)["preparations"][0]["pieces"].as_u64();
    while pieces().unwrap_or(0) == 0 {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing was stored");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    assert!(names(&store, "n").is_empty());
    let file = home.file("large", &whole);
    let told = json(&["put", &store, &file, "--name", "n/large"], 0);
    let new = told["bytes_new"].as_u64().unwrap();
    assert!(new < (48 << 20), "{told}: what was stored was stored again");
    let digest = Digest::of(&whole).to_string();
    assert_eq!(names(&store, "n"), [("n/large".to_owned(), digest)]);
    assert!(json(&["lease", "ls", &store], 0)["preparations"].as_array().unwrap().is_empty());
    ran(&["gc", &store], 0);
    let usage = json(&["du", &store], 0);
    assert_eq!((&usage["bytes"]["condemned"], &usage["bytes"]["orphan"]), (&0.into(), &0.into()));
    assert!(usage["bytes"]["live"].as_u64().unwrap() < (101 << 20), "{usage}");
    ran(&["check", &store, "--fast"], 0);
}
