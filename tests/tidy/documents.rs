//! Laws over docs/: what they list is what the code has, and every place they name exists.

use std::collections::BTreeSet;
use std::fs;

use sealstone::Limits;
use sealstone::protection::Protection;
use sealstone::vfs::Step;

use crate::source::{Source, crate_dir, sources, walk};
use crate::{assert_caught, assert_none};

pub fn document(name: &str) -> String {
    fs::read_to_string(crate_dir().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The cells of every table row below a heading that reads `heading`, up to the next heading of
/// its level. Backticks are taken off; rules between head and body are left out.
pub fn rows_below(document: &str, heading: &str) -> Vec<Vec<String>> {
    let level = |line: &str| line.bytes().take_while(|b| *b == b'#').count();
    let mut lines = document
        .lines()
        .skip_while(|line| level(line) == 0 || line.trim_start_matches('#').trim() != heading);
    let Some(first) = lines.next() else { return Vec::new() };
    lines
        .take_while(|line| level(line) == 0 || level(line) > level(first))
        .filter_map(cells)
        .collect()
}

/// The cells of a table row, or `None` for any other line.
pub fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    if inner.starts_with("---") || inner.starts_with(" ---") {
        return None;
    }
    let inner = inner.replace("\\|", "\u{1}");
    Some(inner.split('|').map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|")).collect())
}

/// The first cells of every table of a document that look like `protocol.step`.
fn steps_of(document: &str) -> Vec<String> {
    let named = |cell: &String| {
        cell.split_once('.').is_some_and(|(a, b)| {
            [a, b]
                .iter()
                .all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        })
    };
    document.lines().filter_map(cells).map(|mut row| row.swap_remove(0)).filter(named).collect()
}

/// Differences between what a document lists and what the code has, order included.
fn list_breaches(listed: &[String], has: &[&str]) -> Vec<String> {
    let mut breaches = Vec::new();
    for name in has {
        match listed.iter().filter(|l| l == name).count() {
            1 => {}
            n => breaches.push(format!("{name} is listed {n} times")),
        }
    }
    let unknown = listed.iter().filter(|name| !has.contains(&name.as_str()));
    breaches.extend(unknown.map(|name| format!("{name} does not exist")));
    if breaches.is_empty() && listed != has {
        breaches.push("the order differs".to_owned());
    }
    breaches
}

/// Variants that no file but their own names: a step that nothing announces, a switch that nothing
/// asks.
fn idle_variants(sources: &[Source], ty: &str, variants: &[String], home: &str) -> Vec<String> {
    let used: BTreeSet<String> = sources
        .iter()
        .filter(|source| source.path != home)
        .flat_map(|source| source.paths())
        .filter_map(|(_, path)| {
            let at = path.iter().position(|name| name == ty)?;
            path.get(at + 1).cloned()
        })
        .collect();
    let idle = variants.iter().filter(|variant| !used.contains(*variant));
    idle.map(|variant| format!("{ty}::{variant} is named nowhere but in {home}")).collect()
}

/// Does each step begin somewhere, and does each switch switch something?
#[test]
fn steps_and_switches_are_at_work() {
    let sources = sources("src");
    let steps: Vec<_> = Step::ALL.iter().map(|step| format!("{step:?}")).collect();
    assert_none("idle steps", idle_variants(&sources, "Step", &steps, "src/vfs/step.rs"));
    let switches: Vec<_> = Protection::ALL.iter().map(|one| format!("{one:?}")).collect();
    let idle = idle_variants(&sources, "Protection", &switches, "src/protection.rs");
    assert_none("idle switches", idle);
}

#[test]
fn an_idle_step_is_caught() {
    let home = Source::new("src/vfs/step.rs", "f(Step::A); f(Step::B);");
    let user = Source::new("src/x.rs", "disk.mark(Step::A); disk.mark(crate::vfs::Step::C);");
    let all = ["A", "B", "C"].map(str::to_owned);
    assert_caught(idle_variants(&[home, user], "Step", &all, "src/vfs/step.rs"), &["Step::B"]);
}

/// Rows of the table of mutants: (name, what, where the switch stands, what catches its absence).
fn mutant_breaches(
    rows: &[Vec<String>],
    variant_of: &dyn Fn(&str) -> String,
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut breaches = Vec::new();
    for row in rows {
        let (name, variant) = (&row[0], format!("Protection::{}", variant_of(&row[0])));
        for (column, cell) in [("switch", row.get(2)), ("catcher", row.get(3))] {
            let cell = cell.map_or("", String::as_str);
            if column == "catcher" && cell == "not yet" {
                continue;
            }
            let places: Vec<_> = cell.split(", ").map(|place| place.trim_matches('`')).collect();
            for place in places {
                let file = place.split(':').next().and_then(read);
                if !file.is_some_and(|text| text.contains(&variant)) {
                    breaches.push(format!("{name}: {column} {place:?} does not name {variant}"));
                }
            }
        }
    }
    breaches
}

/// Does each mutant's row lead to the switch, and to a test that turns it?
#[test]
fn mutants_lead_to_their_switch_and_their_test() {
    let rows = rows_below(&document("docs/INVARIANTS.md"), "Mutants");
    let variant_of = |name: &str| {
        let found = Protection::ALL.iter().find(|one| one.name() == name);
        found.map_or_else(String::new, |one| format!("{one:?}"))
    };
    let read = |file: &str| fs::read_to_string(crate_dir().join(file)).ok();
    let breaches = mutant_breaches(&rows[1.min(rows.len())..], &variant_of, &read);
    assert_none("docs/INVARIANTS.md, Mutants", breaches);
}

#[test]
fn a_mutant_that_nothing_turns_is_caught() {
    let read = |file: &str| (file == "src/a.rs").then(|| "Protection::One.is_on()".to_owned());
    let variant_of = |name: &str| if name == "one" { "One".to_owned() } else { "Two".to_owned() };
    let row = |text: &str| cells(text).unwrap();
    let rows = [
        row("| `one` | x | `src/a.rs:f` | not yet |"),
        row("| `one` | x | `src/a.rs:f` | `tests/b.rs:g` |"),
        row("| `two` | x | `src/a.rs:f` | not yet |"),
        row("| `one` | x | not yet | not yet |"),
    ];
    let caught = ["tests/b.rs", "Protection::Two", "not yet"];
    assert_caught(mutant_breaches(&rows, &variant_of, &read), &caught);
}

/// Is each step of each protocol explained where an engineer with a broken store looks it up?
#[test]
fn every_step_stands_in_protocols() {
    let names: Vec<_> = Step::ALL.iter().map(|step| step.name()).collect();
    assert_none(
        "docs/PROTOCOLS.md",
        list_breaches(&steps_of(&document("docs/PROTOCOLS.md")), &names),
    );
}

/// Does each protection have a row in the table of mutants, and each row a protection?
#[test]
fn every_protection_has_a_mutant() {
    let rows = rows_below(&document("docs/INVARIANTS.md"), "Mutants");
    let listed: Vec<_> = rows.iter().skip(1).map(|row| row[0].clone()).collect();
    let names: Vec<_> = Protection::ALL.iter().map(|protection| protection.name()).collect();
    assert_none("docs/INVARIANTS.md, Mutants", list_breaches(&listed, &names));
}

#[test]
fn a_step_that_is_missing_invented_or_moved_is_caught() {
    let document =
        "| step | on disk |\n|---|---|\n| `a.one` | x |\n| `a.two` | x.y |\n| `b.gone` | x |\n";
    let listed = steps_of(document);
    assert_caught(list_breaches(&listed, &["a.one", "a.two", "a.three"]), &["a.three", "b.gone"]);
    assert_caught(list_breaches(&listed, &["a.two", "a.one", "b.gone"]), &["order"]);
    assert_none("same", list_breaches(&listed, &["a.one", "a.two", "b.gone"]));
}

/// Names in backticks of the form `src/file.rs` or `src/file.rs:name` that lead nowhere.
fn place_breaches(path: &str, text: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut breaches = Vec::new();
    for quoted in text.split('`').skip(1).step_by(2) {
        let (file, item) = quoted.split_once(':').unwrap_or((quoted, ""));
        let folders = ["src/", "tests/", "examples/"];
        let rust = folders.iter().any(|f| file.starts_with(f)) && file.ends_with(".rs");
        if !rust || quoted.contains(char::is_whitespace) {
            continue;
        }
        match read(file) {
            None => breaches.push(format!("{path}: {quoted}: no such file")),
            Some(code) if !item.is_empty() && !defines(&code, item) => {
                breaches.push(format!("{path}: {quoted}: no such item"));
            }
            Some(_) => {}
        }
    }
    breaches
}

fn defines(code: &str, item: &str) -> bool {
    let words = crate::source::words(code);
    let kinds = ["fn", "struct", "enum", "trait", "const", "static", "mod", "type"];
    words.windows(2).any(|pair| kinds.contains(&pair[0].text.as_str()) && pair[1].text == item)
}

/// Targets of relative links that do not exist.
fn link_breaches(path: &str, text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut breaches = Vec::new();
    for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let target = target.split('#').next().unwrap_or("");
        if target.is_empty() || target.contains("://") {
            continue;
        }
        let mut place: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in target.split('/') {
            match part {
                ".." => drop(place.pop()),
                "." => {}
                part => place.push(part),
            }
        }
        if !exists(&place.join("/")) {
            breaches.push(format!("{path}: {target}: no such file"));
        }
    }
    breaches
}

/// Does every file, function and page that a document names exist? (Names outlive their things.)
#[test]
fn documents_name_only_what_exists() {
    let mut breaches = Vec::new();
    let read = |file: &str| fs::read_to_string(crate_dir().join(file)).ok();
    walk(&crate_dir(), &crate_dir(), &mut |path, bytes| {
        if path.ends_with(".md") {
            let text = String::from_utf8_lossy(bytes);
            breaches.extend(place_breaches(path, &text, &read));
            breaches.extend(link_breaches(path, &text, &|file| crate_dir().join(file).exists()));
        }
    });
    assert_none("a document points nowhere", breaches);
}

#[test]
fn a_place_that_does_not_exist_is_caught() {
    let read =
        |file: &str| (file == "src/a.rs").then(|| "pub fn open() {} // fn ghost()".to_owned());
    let text =
        "`src/a.rs:open` `src/a.rs` `src/b.rs` `src/a.rs:ghost` [x](FORMAT.md#y) [z](../no.md)";
    assert_caught(place_breaches("d.md", text, &read), &["src/b.rs", "ghost"]);
    let exists = |file: &str| file == "docs/FORMAT.md";
    assert_caught(link_breaches("docs/d.md", text, &exists), &["no.md"]);
}

/// `16 MiB` as a number; a bare number as itself.
fn quantity(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let scale = match unit {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "" | "ms" | "%" => 1,
        _ => return None,
    };
    number.replace(',', "").parse::<u64>().ok()?.checked_mul(scale)
}

/// Rows of (limit, default, ...) against the fields of the debug form of a struct.
fn limit_breaches(rows: &[Vec<String>], debug: &str) -> Vec<String> {
    let inside = debug.split_once('{').map_or("", |(_, rest)| rest.trim_end_matches('}'));
    let fields = inside.split(',').filter_map(|field| field.trim().split_once(": "));
    let mut breaches = Vec::new();
    let mut known = BTreeSet::new();
    for (name, value) in fields {
        known.insert(name);
        let row = rows.iter().find(|row| row[0] == name);
        let said = row.and_then(|row| row.get(1)).map_or("nothing", String::as_str);
        if said != value && quantity(said) != value.parse().ok() {
            breaches.push(format!("{name} is {value} by default, the document says {said}"));
        }
    }
    let unknown = rows.iter().map(|row| row[0].as_str()).filter(|name| !known.contains(name));
    breaches.extend(unknown.map(|name| format!("{name} is no limit")));
    breaches
}

/// Is each bound written down with the default that it really has?
#[test]
fn every_limit_is_documented_with_its_default() {
    let rows = rows_below(&document("docs/ARCHITECTURE.md"), "Limits");
    let debug = format!("{:?}", Limits::default());
    assert_none("docs/ARCHITECTURE.md, Limits", limit_breaches(&rows[1.min(rows.len())..], &debug));
}

#[test]
fn a_limit_with_another_default_is_caught() {
    let rows: Vec<_> = ["| `a` | 2 KiB |", "| `b` | true |", "| `c` | 7 ms |", "| `gone` | 1 |"]
        .iter()
        .filter_map(|r| cells(r))
        .collect();
    let debug = "Limits { a: 2048, b: true, c: 8, d: 1 }";
    assert_caught(limit_breaches(&rows, debug), &["c is 8", "d is 1", "gone"]);
}

/// The variants of `pub enum ErrorKind`, by the names that `name` gives them.
fn error_names(code: &Source) -> Vec<String> {
    let quoted = code.text.lines().filter_map(|line| {
        let (_, name) = line.trim().strip_prefix("Self::")?.split_once(" => \"")?;
        Some(name.trim_end_matches("\",").to_owned())
    });
    quoted.collect()
}

/// Does the operator's page say what each kind of error asks for?
#[test]
fn every_kind_of_error_stands_in_operations() {
    let code = Source::new("src/error.rs", &document("src/error.rs"));
    let names = error_names(&code);
    assert!(names.len() > 20 && names.contains(&"in_use".to_owned()), "{names:?}");
    let rows = rows_below(&document("docs/OPERATIONS.md"), "Errors");
    let listed: Vec<_> = rows.iter().skip(1).map(|row| row[0].clone()).collect();
    let has: Vec<_> = names.iter().map(String::as_str).collect();
    assert_none("docs/OPERATIONS.md, Errors", list_breaches(&listed, &has));
}

#[test]
fn a_kind_without_a_row_is_caught() {
    let code = Source::new(
        "src/error.rs",
        "            Self::Io => \"io\",\n            Self::Full => \"full\",\n",
    );
    let has = error_names(&code);
    let has: Vec<_> = has.iter().map(String::as_str).collect();
    assert_caught(list_breaches(&["io".to_owned()], &has), &["full"]);
}

/// Commands that CI takes from the README by their comment, and that are not there exactly once.
fn command_breaches(script: &str, readme: &str) -> Vec<String> {
    let section = readme.split("\n## ").find(|part| part.starts_with("Two commands\n"));
    let block = section.and_then(|part| part.split("```").nth(1)).unwrap_or("");
    let asked = script.split("readme_command '").skip(1).filter_map(|rest| rest.split('\'').next());
    let mut breaches = Vec::new();
    for name in asked {
        match block.lines().filter(|line| line.contains(&format!("# {name}"))).count() {
            1 => {}
            n => breaches.push(format!("{n} commands carry the comment \"# {name}\"")),
        }
    }
    if breaches.is_empty() && !script.contains("readme_command '") {
        breaches.push("CI takes no command from the README".to_owned());
    }
    breaches
}

/// Does CI run the very commands that users are told to run?
#[test]
fn ci_runs_the_commands_of_the_readme() {
    let breaches = command_breaches(&document(".ci/run"), &document("README.md"));
    assert_none("README.md, Two commands", breaches);
}

#[test]
fn a_command_that_left_the_readme_is_caught() {
    let script = "readme_command 'one'\nreadme_command 'two'\n";
    let readme = "# x\n## Two commands\n```sh\na # one\nb # other\n```\n## End\nc # two\n";
    assert_caught(command_breaches(script, readme), &["# two"]);
    assert_caught(command_breaches("", readme), &["takes no command"]);
}

/// Suites under tests/ that the page of suites does not list.
fn suite_breaches(rows: &[Vec<String>], files: &[String]) -> Vec<String> {
    let suite = |file: &String| {
        let inside = file.strip_prefix("tests/")?;
        let name = inside.strip_suffix("/main.rs").or_else(|| inside.strip_suffix(".rs"))?;
        (!name.contains('/')).then(|| name.to_owned())
    };
    let has: BTreeSet<String> = files.iter().filter_map(suite).collect();
    let cells = rows.iter().flat_map(|row| row[0].split(", "));
    let said: BTreeSet<String> = cells.map(|name| name.trim_matches('`').to_owned()).collect();
    let missing = has.difference(&said).map(|name| format!("{name} is not listed"));
    missing.chain(said.difference(&has).map(|name| format!("{name} is no suite"))).collect()
}

/// Does the page of suites tell what each of them asks?
#[test]
fn every_suite_says_what_it_asks() {
    let rows = rows_below(&document("docs/RELIABILITY.md"), "Suites");
    let files: Vec<_> = sources("tests").into_iter().map(|source| source.path).collect();
    let breaches = suite_breaches(&rows[1.min(rows.len())..], &files);
    assert_none("docs/RELIABILITY.md, Suites", breaches);
}

#[test]
fn a_suite_that_is_not_listed_is_caught() {
    let rows = [cells("| `a`, `b` | x |").unwrap(), cells("| `gone` | x |").unwrap()];
    let files = ["tests/a.rs", "tests/b/main.rs", "tests/b/c.rs", "tests/new.rs"];
    let files = files.map(str::to_owned);
    assert_caught(suite_breaches(&rows, &files), &["new is not", "gone is no suite"]);
}
