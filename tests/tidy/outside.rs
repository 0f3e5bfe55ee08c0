//! The house as an outside user sees it: every public name is written down in the small crate under
//! `tests/outside`, which `.ci/run` compiles, and every public type there goes to another thread.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, sources, starts_with};
use crate::{assert_caught, assert_none};

/// The crash campaign is a tool of the house: named by its module.
const NAMED_WHOLE: &[&str] = &["sealstone::campaign"];

/// Rooms whose public types are handles, or go into them: each has a line in `threads.rs`.
const SHARED: &[&str] = &[
    "sealstone",
    "sealstone::engine",
    "sealstone::state",
    "sealstone::recording",
    "sealstone::staging",
    "sealstone::journal",
    "sealstone::check",
    "sealstone::interop",
    "sealstone::vfs",
    "sealstone::manifest",
    "sealstone::sealed",
];

/// What starts with a capital there and is no type that could be shared: traits, names of
/// functions, and what lives inside one call: a transaction, a rule, and what a converter is given.
const NOT_SHARED: &[&str] = &[
    "sealstone::Result",
    "sealstone::vfs::AroundDisk",
    "sealstone::vfs::AroundFile",
    "sealstone::vfs::Disk",
    "sealstone::vfs::File",
    "sealstone::vfs::Held",
    "sealstone::journal::OnFrame",
    "sealstone::journal::Registrar",
    "sealstone::recording::Observable",
    "sealstone::recording::ValueMap",
    "sealstone::manifest::BodyRow",
    "sealstone::manifest::Key",
    "sealstone::manifest::PassRow",
    "sealstone::manifest::Raw",
    "sealstone::manifest::Reading",
    "sealstone::manifest::Row",
    "sealstone::manifest::Write",
    "sealstone::recording::Element",
    "sealstone::recording::Number",
    "sealstone::recording::Progress",
    "sealstone::staging::Converter",
    "sealstone::staging::Input",
    "sealstone::staging::Merger",
    "sealstone::staging::OnProgress",
    "sealstone::staging::OutputWriter",
    "sealstone::staging::PlanOptions",
    "sealstone::staging::Ready",
    "sealstone::staging::Target",
];

/// Every name that a user can write, with its path, from the title pages and the files behind them.
fn public_names(sources: &[Source]) -> BTreeSet<String> {
    let by_module: BTreeMap<Vec<String>, &Source> = sources
        .iter()
        .filter(|source| !source.path.starts_with("src/bin/"))
        .map(|source| (source.module(), source))
        .collect();
    let mut names = BTreeSet::new();
    open_room(&by_module, &[], &[], &mut names);
    names
}

/// Adds what the module `at` makes public, under the path `shown`.
fn open_room(
    by_module: &BTreeMap<Vec<String>, &Source>,
    at: &[String],
    shown: &[String],
    names: &mut BTreeSet<String>,
) {
    let Some(source) = by_module.get(at) else { return };
    let words: Vec<&str> = source.code.iter().map(|word| word.text.as_str()).collect();
    let name = |last: &str| {
        let whole = ["sealstone".to_owned()].into_iter().chain(shown.iter().cloned());
        whole.chain([last.to_owned()]).collect::<Vec<_>>().join("::")
    };
    let below = |of: &[String], last: &str| [of, &[last.to_owned()]].concat();
    let mut depth = 0usize;
    for (i, word) in words.iter().enumerate() {
        match *word {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if *word != "pub" || depth > 0 {
            continue;
        }
        match words.get(i + 1).copied().unwrap_or("") {
            "mod" => {
                open_room(by_module, &below(at, words[i + 2]), &below(shown, words[i + 2]), names)
            }
            "use" => {
                let end = words[i..].iter().position(|word| *word == ";").map_or(i, |n| i + n);
                let item = Source::new(&source.path, &words[i + 1..=end].join(" "));
                for (_, path) in item.paths() {
                    match path.last().map(String::as_str) {
                        Some("*") => {
                            open_room(by_module, &below(at, &path[path.len() - 2]), shown, names)
                        }
                        Some(last) => drop(names.insert(name(last))),
                        None => {}
                    }
                }
            }
            kind => {
                let behind =
                    if starts_with(&source.code[i + 1..], &["const", "fn"]) { 3 } else { 2 };
                let kinds = ["struct", "enum", "trait", "fn", "const", "type", "static"];
                if let Some(last) = words.get(i + behind).filter(|_| kinds.contains(&kind)) {
                    names.insert(name(last));
                }
            }
        }
    }
    // Names that a macro makes: `Epoch(u64);` and `OwnerId;` in the list of ids.
    if at == ["ids"] {
        let made = source.text.lines().filter_map(|line| line.strip_prefix("    "));
        let made = made.filter_map(|line| line.trim_end().strip_suffix(';'));
        let made = made.map(|line| line.split('(').next().unwrap_or(line));
        let made = made
            .filter(|m| m.starts_with(char::is_uppercase) && m.chars().all(char::is_alphanumeric));
        names.extend(made.map(name));
    }
}

/// Every path of the crate that a file of the outside user writes.
fn written(sources: &[Source], file: Option<&str>) -> BTreeSet<String> {
    sources
        .iter()
        .filter(|source| file.is_none_or(|file| source.path.ends_with(file)))
        .flat_map(|source| source.paths())
        .map(|(_, path)| path.join("::"))
        .collect()
}

fn unnamed(names: &BTreeSet<String>, written: &BTreeSet<String>) -> Vec<String> {
    let whole =
        |name: &&String| !NAMED_WHOLE.iter().any(|whole| name.starts_with(&format!("{whole}::")));
    let missing = names.iter().filter(whole).filter(|name| !written.contains(*name));
    missing.map(|name| format!("{name}: add it to tests/outside/src/names.rs")).collect()
}

fn unshared(names: &BTreeSet<String>, written: &BTreeSet<String>) -> Vec<String> {
    let is_type = |name: &&String| {
        let (room, last) = name.rsplit_once("::").unwrap_or(("", name));
        SHARED.contains(&room)
            && last.starts_with(char::is_uppercase)
            && last.chars().any(char::is_lowercase)
            && !NOT_SHARED.contains(&name.as_str())
    };
    let missing = names.iter().filter(is_type).filter(|name| !written.contains(*name));
    missing.map(|name| format!("{name}: add it to tests/outside/src/threads.rs")).collect()
}

/// Can an outside user write down every public name? (The crate that tries is compiled by CI.)
#[test]
fn every_public_name_is_written_down_outside() {
    let names = public_names(&sources("src"));
    assert!(names.len() > 200 && names.contains("sealstone::state::Batch"), "{}", names.len());
    let outside = written(&sources("tests/outside/src"), None);
    assert_none("a public name that tests/outside does not write", unnamed(&names, &outside));
}

/// Is each public type shown to be `Send`, `Sync` and `Debug`?
#[test]
fn every_public_type_goes_to_another_thread() {
    let names = public_names(&sources("src"));
    let shared = written(&sources("tests/outside/src"), Some("threads.rs"));
    assert_none("a public type that may be bound to its thread", unshared(&names, &shared));
    let stale = NOT_SHARED.iter().filter(|name| !names.contains(**name));
    assert_none("exempt, and not there", stale.map(|name| (*name).to_owned()).collect());
}

/// Does CI compile the outside user's crate?
#[test]
fn ci_compiles_the_outside_user() {
    let script = std::fs::read_to_string(crate::source::crate_dir().join(".ci/run")).unwrap();
    assert!(script.contains("--manifest-path tests/outside/Cargo.toml"), "no stage compiles it");
}

#[test]
fn a_name_that_is_not_written_is_caught() {
    let room = [
        Source::new("src/lib.rs", "pub mod a;\nmod hidden;\npub use a::{A, Cat};"),
        Source::new("src/a/mod.rs", "mod b;\npub use b::{A, make};\npub use rows::*;"),
        Source::new("src/a/rows/mod.rs", "pub use x::Row;"),
        Source::new("src/hidden.rs", "pub struct Unseen;"),
    ];
    let names = public_names(&room);
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = [
        "sealstone::A",
        "sealstone::Cat",
        "sealstone::a::A",
        "sealstone::a::Row",
        "sealstone::a::make",
    ];
    assert_eq!(listed, all);
    let outside = Source::new("tests/outside/src/names.rs", "use sealstone::{A, a::{A, Row}};");
    let outside = written(&[outside], None);
    assert_caught(unnamed(&names, &outside), &["sealstone::Cat", "sealstone::a::make"]);
    assert_caught(unshared(&names, &BTreeSet::new()), &["add it to tests/outside/src/threads.rs"]);
}
