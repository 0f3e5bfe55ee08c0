//! Laws over the modules: the import table, the homes of foreign things, title pages, file lengths.

use std::collections::BTreeMap;

use crate::source::{Source, Word, sources, starts_with};
use crate::{assert_caught, assert_none};

/// Each room, and the rooms it may name. Its own is always open; arrows only point down.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("clock", &[]),
    ("protection", &[]),
    ("ids", &["error"]),
    ("digest", &["error"]),
    ("limits", &["error"]),
    ("codec", &["error"]),
    ("vfs", GROUND),
    ("format", GROUND),
    ("manifest", ABOVE_FORMAT),
    ("journal", ABOVE_FORMAT),
    ("sealed", ABOVE_FORMAT),
    ("engine", ABOVE_TRUTH),
    ("check", ABOVE_ENGINE),
    ("interop", ABOVE_ENGINE),
    ("recording", &["check", "interop"]),
    ("state", ABOVE_ENGINE),
    ("staging", &["check", "interop"]),
    ("objects", &["check", "interop"]),
    // The crash campaign, with feature `sim`: it looks at everything below a face, and plays on one.
    ("campaign", &["check", "state"]),
];
const GROUND: &[&str] = &["error", "ids", "digest", "limits", "clock", "codec", "protection"];
const ABOVE_FORMAT: &[&str] = &["vfs", "format"];
const ABOVE_TRUTH: &[&str] = &["manifest", "journal", "sealed"];
const ABOVE_ENGINE: &[&str] = &["engine"];

/// The folders of a room, and those that each may name.
const FOLDERS_OF_RECORDING: &[(&str, &[&str])] = &[
    ("describing", &[]),
    ("keeping", &["describing"]),
    ("reading", &["describing", "keeping"]),
    ("finding", &["describing", "reading"]),
    ("writing", &["describing", "keeping", "reading"]),
    ("resuming", &["describing", "keeping", "reading", "writing"]),
    ("files", &["describing", "keeping", "reading", "writing"]),
];

/// What the command line tool may not name: it lives on the public interface.
const CLOSED_TO_BIN: &[&str] = &["format", "manifest", "journal", "sealed", "codec", "protection"];

fn may_import(room: &str, other: &str) -> bool {
    let Some((_, direct)) = MAY_IMPORT.iter().find(|(name, _)| *name == room) else {
        return false;
    };
    room == other || direct.iter().any(|below| may_import(below, other))
}

/// What the crate's root re-exports, and the room each name comes from.
fn door(sources: &[Source]) -> BTreeMap<String, String> {
    let lib = sources.iter().find(|source| source.path == "src/lib.rs");
    lib.iter()
        .flat_map(|source| source.paths())
        .filter(|(_, path)| path.len() > 1)
        .filter_map(|(_, path)| {
            Some((path.last()?.clone(), path[usize::from(path[0] == "crate")].clone()))
        })
        .collect()
}

fn import_breaches(sources: &[Source]) -> Vec<String> {
    let door = door(sources);
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.path != "src/lib.rs") {
        let bin = source.path.starts_with("src/bin/");
        let room = source.module().first().cloned().unwrap_or_default();
        for (line, path) in source.paths() {
            let ours = if bin { "sealstone" } else { "crate" };
            let Some(name) = path.get(1).filter(|_| path[0] == ours || path[0] == "super") else {
                continue;
            };
            let other = door.get(name).unwrap_or(name);
            let allowed = match (bin, path[0] == "super") {
                (_, true) => false,
                (true, _) => {
                    source.path.starts_with("src/bin/campaign")
                        || !CLOSED_TO_BIN.contains(&other.as_str())
                }
                (false, _) => may_import(&room, other),
            };
            if !allowed {
                breaches.push(format!(
                    "{}:{line}: {room} may not name {}",
                    source.path,
                    path.join("::")
                ));
            }
        }
    }
    breaches
}

/// Does every room name only rooms below it? (An arrow upwards is where import circles begin.)
#[test]
fn rooms_name_only_rooms_below() {
    assert_none("an arrow points up or sideways", import_breaches(&sources("src")));
}

#[test]
fn an_arrow_that_points_up_is_caught() {
    let lib = Source::new("src/lib.rs", "pub use engine::Store; pub use error::{Error, Result};");
    let bad = Source::new(
        "src/journal/scan.rs",
        "use crate::{error::Error, vfs::Disk, manifest::Row};\nuse super::super::engine::open::X;\n\
         fn f() -> crate::Result<()> { crate::Store::new() }\nuse super::super::super::gone::Y;\n\
         #[cfg(test)] mod tests { use crate::engine::Store; }",
    );
    let bin =
        Source::new("src/bin/sealstone/ls.rs", "use sealstone::{engine::Store, manifest::Key};");
    assert_caught(
        import_breaches(&[lib, bad, bin]),
        &["manifest::Row", "engine::open::X", "crate::Store", "super", "manifest::Key"],
    );
}

fn folder_breaches(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("src/recording/")) {
        let module = source.module();
        let Some(folder) = module.get(1) else { continue };
        let known = FOLDERS_OF_RECORDING.iter().find(|(name, _)| name == folder);
        let Some((_, below)) = known else {
            breaches.push(format!("{}: no folder has it", source.path));
            continue;
        };
        for (line, path) in source.paths() {
            // The bare room is `pub(in crate::recording)`.
            let Some(other) = path.get(2).map(String::as_str) else { continue };
            if path[..2] != ["crate", "recording"] {
                continue;
            }
            if other != folder && !below.contains(&other) {
                let path = path.join("::");
                breaches.push(format!("{}:{line}: {folder} may not name {path}", source.path));
            }
        }
    }
    breaches
}

/// Do the folders inside a room keep to the arrows on its title page?
#[test]
fn folders_name_only_folders_below() {
    assert_none("an arrow points up or sideways", folder_breaches(&sources("src")));
}

#[test]
fn a_folder_that_names_one_above_is_caught() {
    let bad = Source::new(
        "src/recording/reading/stream.rs",
        "use crate::recording::describing::Every;\nuse super::field::FieldRead;\n\
         use crate::recording::writing::Recorder;\nuse super::super::Decoders;",
    );
    let flat = Source::new("src/recording/flat.rs", "use crate::engine::Store;");
    assert_caught(folder_breaches(&[bad, flat]), &["writing::Recorder", "Decoders", "flat.rs"]);
}

/// A foreign thing, as the beginning of a path, and the places that may name it.
const HOMES: &[(&str, &[&str])] = &[
    ("redb", &["src/manifest/"]),
    ("std::fs", &["src/vfs/real"]),
    ("std::os", &["src/vfs/"]),
    ("nix", &["src/vfs/"]),
    ("fastcdc", &["src/objects/storing/"]),
    ("zstd", &["src/format/"]),
    ("pco", &["src/format/"]),
    ("bincode", &["src/codec.rs"]),
    ("csv", &["src/interop/"]),
    ("serde_json", &["src/interop/", "src/bin/"]),
    ("arrow_array", &["src/interop/arrow/"]),
    ("arrow_buffer", &["src/interop/arrow/"]),
    ("arrow_ipc", &["src/interop/arrow/"]),
    ("arrow_schema", &["src/interop/arrow/"]),
    ("arrow_select", &["src/interop/arrow/"]),
    ("parquet", &["src/interop/arrow/"]),
    ("blake3", &["src/digest.rs"]),
    ("crc32c", &["src/digest.rs"]),
    ("ulid", &["src/ids.rs"]),
    ("std::time::SystemTime", &["src/clock.rs"]),
    ("std::time::Instant", &["src/clock.rs"]),
    ("SystemTime", &["src/clock.rs"]),
    ("Instant", &["src/clock.rs"]),
    ("std::thread::spawn", &["src/engine/worker.rs", "src/bin/campaign"]),
    ("std::thread::scope", &["src/engine/worker.rs", "src/bin/campaign"]),
    // Nobody can wait for standard input until a given time.
    (
        "std::thread::Builder",
        &["src/engine/worker.rs", "src/bin/campaign", "src/bin/sealstone/stage/lines.rs"],
    ),
    (
        "std::thread::sleep",
        &["src/engine/worker.rs", "src/engine/enter.rs", "src/manifest/turn.rs"],
    ),
    ("thread::spawn", &["src/engine/worker.rs", "src/bin/campaign"]),
    ("thread::scope", &["src/engine/worker.rs", "src/bin/campaign"]),
    ("thread::Builder", &["src/engine/worker.rs", "src/bin/campaign"]),
    ("thread::sleep", &["src/engine/worker.rs", "src/engine/enter.rs", "src/manifest/turn.rs"]),
    ("clap", &["src/bin/"]),
    ("clap_complete", &["src/bin/"]),
    ("clap_mangen", &["src/bin/"]),
    ("indicatif", &["src/bin/"]),
];

/// Methods of `Path` that reach the disk behind the back of `vfs`.
const DISK_METHODS: &[&str] = &[
    "exists",
    "try_exists",
    "is_dir",
    "symlink_metadata",
    "canonicalize",
    "read_dir",
    "read_link",
];

fn home_breaches(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources {
        let at_home = |homes: &[&str]| homes.iter().any(|home| source.path.starts_with(home));
        for (line, path) in source.paths() {
            let path = path.join("::");
            for (thing, homes) in HOMES {
                let named = path == *thing || path.starts_with(&format!("{thing}::"));
                if named && !at_home(homes) {
                    let homes = homes.join(", ");
                    breaches.push(format!("{}:{line}: {path} belongs in {homes}", source.path));
                }
            }
        }
        for at in source.code.windows(3).filter(|at| at[0].text == "." && at[2].text == "(") {
            if DISK_METHODS.contains(&at[1].text.as_str()) && !at_home(&["src/vfs/real"]) {
                let (line, method) = (at[1].line, &at[1].text);
                breaches.push(format!("{}:{line}: .{method}() reaches past vfs", source.path));
            }
        }
    }
    breaches
}

/// Does each foreign thing have one home? (Another hash, disk or clock must change one file.)
#[test]
fn foreign_things_stay_at_home() {
    assert_none("a foreign thing outside its home", home_breaches(&sources("src")));
}

#[test]
fn a_foreign_thing_abroad_is_caught() {
    let bad = Source::new(
        "src/engine/open.rs",
        "use redb::Database;\nuse std::{io, fs};\nuse std::time::{Duration, Instant};\n\
         fn f(p: &Path) { std::thread::spawn(|| 1); if p.exists() {} }\n\
         #[cfg(test)] mod tests { use std::fs; }",
    );
    let good = Source::new("src/manifest/backend.rs", "use redb::Database;");
    assert_caught(
        home_breaches(&[bad, good]),
        &["redb::Database", "std::fs", "Instant", "std::thread::spawn", "exists"],
    );
}

fn title_page_breaches(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources {
        let head = source.text.lines().find(|line| !line.starts_with("#![")).unwrap_or("");
        if !head.starts_with("//!") {
            breaches.push(format!("{}:1: a file opens with //! what it is for", source.path));
        }
        if !source.path.ends_with("/mod.rs") && source.path != "src/lib.rs" {
            continue;
        }
        for (line, word) in definitions(source) {
            breaches.push(format!("{}:{line}: a title page defines nothing: {word}", source.path));
        }
    }
    breaches
}

/// The beginnings of items that are neither `mod` nor `use`.
fn definitions(source: &Source) -> Vec<(usize, String)> {
    let words = &source.code;
    let (mut found, mut i) = (Vec::new(), 0);
    while i < words.len() {
        if words[i].text == "#" {
            i = behind_brackets(source, i);
            continue;
        }
        let start = i;
        if words[i].text == "pub" {
            i += 1;
            if starts_with(&words[i..], &["("]) {
                i = behind_brackets(source, i);
            }
        }
        let word = words.get(i).map_or("", |w| w.text.as_str());
        let end = words[i..].iter().position(|w| w.text == ";").map_or(words.len(), |n| i + n);
        let opens = words[i..end].iter().any(|w| w.text == "{");
        let known = match word {
            "use" => true,
            "mod" => !opens,
            "compile_error" => source.path == "src/lib.rs",
            _ => false,
        };
        if !known {
            found.push((words[start].line, word.to_owned()));
        }
        i = end + 1;
    }
    found
}

/// The index behind the first bracketed group at or after `i`.
fn behind_brackets(source: &Source, mut i: usize) -> usize {
    let mut depth = 0;
    while i < source.code.len() {
        match source.code[i].text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
        i += 1;
    }
    i
}

/// Is each folder's mod.rs a title page only, and does each file say what it is for?
#[test]
fn title_pages_define_nothing() {
    assert_none("not a title page", title_page_breaches(&sources("src")));
}

#[test]
fn a_title_page_that_defines_is_caught() {
    let good =
        "//! x: y.\n#[cfg(feature = \"sim\")]\npub mod sim;\nmod a;\npub(crate) use a::{B, C};\n";
    assert_none("good", title_page_breaches(&[Source::new("src/x/mod.rs", good)]));
    let bad = "//! x: y.\nmod a;\npub fn f() {}\n";
    let bare = "use crate::error::Error;\n";
    assert_caught(
        title_page_breaches(&[Source::new("src/x/mod.rs", bad), Source::new("src/x/a.rs", bare)]),
        &["fn", "opens with //!"],
    );
}

/// Words that make a name say nothing.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "base", "common", "manager", "helper", "helpers", "misc"];
const LINES_MAX: usize = 600;
/// One screen, about.
const FUNCTION_LINES_MAX: usize = 70;
/// Ways to panic. Bytes from disk and a caller's arguments deserve a typed error.
const PANICKING_METHODS: &[&str] = &["unwrap", "expect", "unwrap_err", "expect_err"];
const PANICKING_MACROS: &[&str] = &["panic", "unreachable", "todo", "unimplemented", "dbg"];
/// Files that may panic, and why. None may.
const MAY_PANIC: &[(&str, &str)] = &[];

fn length_breaches(sources: &[Source]) -> Vec<String> {
    let too_long = sources.iter().filter(|source| source.text.lines().count() > LINES_MAX);
    too_long.map(|s| format!("{}: {} lines", s.path, s.text.lines().count())).collect()
}

/// Functions outside tests that are longer than a screen.
fn long_functions(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources {
        let words = &source.code;
        for at in (0..words.len()).filter(|at| words[*at].text == "fn") {
            let Some(last) = body_end(&words[at..]) else { continue };
            let lines = words[at + last].line - words[at].line + 1;
            if lines > FUNCTION_LINES_MAX {
                let name = words.get(at + 1).map_or("", |word| word.text.as_str());
                breaches.push(format!("{}:{}: {name}: {lines} lines", source.path, words[at].line));
            }
        }
    }
    breaches
}

/// The index of the brace that closes the body of the function at the start of `words`.
fn body_end(words: &[Word]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, word) in words.iter().enumerate() {
        match word.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" if depth <= 1 => return Some(at),
            "}" => depth -= 1,
            ";" if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn name_breaches(sources: &[Source]) -> Vec<String> {
    let empty = |source: &&Source| {
        source.module().iter().any(|name| name.split('_').any(|part| EMPTY_NAMES.contains(&part)))
    };
    sources.iter().filter(empty).map(|source| source.path.clone()).collect()
}

fn panic_breaches(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|s| MAY_PANIC.iter().all(|(path, _)| s.path != *path)) {
        for at in source.code.windows(3) {
            let word = at[1].text.as_str();
            let method =
                at[0].text == "." && at[2].text == "(" && PANICKING_METHODS.contains(&word);
            let called = at[2].text == "!" && at[0].text != "." && PANICKING_MACROS.contains(&word);
            if method || called {
                breaches.push(format!("{}:{}: {word}", source.path, at[1].line));
            }
        }
    }
    breaches
}

/// Does each file still do one thing?
#[test]
fn no_source_file_swells() {
    assert_none("above 600 lines", length_breaches(&sources("src")));
    assert_none("longer than a screen", long_functions(&sources("src")));
    assert_none("a name that says nothing", name_breaches(&sources("src")));
}

#[test]
fn a_swollen_or_empty_named_file_is_caught() {
    let long = Source::new("src/engine/open.rs", &"//! x\n".repeat(LINES_MAX + 1));
    let body = "let x = [0; 2];\n".repeat(FUNCTION_LINES_MAX);
    let text =
        format!("trait T {{ fn g(&self) -> u8; }}\nfn f(x: [u8; 2]) {{\n{body}}}\nfn h() {{}}\n");
    assert_caught(long_functions(&[Source::new("src/a.rs", &text)]), &["f: 72 lines"]);
    let idle = Source::new("src/engine/path_utils.rs", "//! x\n");
    assert_caught(length_breaches(&[long, Source::new("src/a.rs", "//! x\n")]), &["601 lines"]);
    assert_caught(name_breaches(&[idle, Source::new("src/basement.rs", "")]), &["path_utils"]);
}

/// P9: can code outside tests reach a panic by way of an unmet expectation?
#[test]
fn p9_nothing_under_src_unwraps() {
    assert_none("a way to panic", panic_breaches(&sources("src")));
}

#[test]
fn an_unwrap_is_caught() {
    let bad = Source::new(
        "src/a.rs",
        "fn f() { x.unwrap(); y.expect(\"z\"); panic!(\"no\"); s.unwrap_or(1) }\n\
         // x.unwrap()\n#[cfg(test)] mod tests { fn g() { x.unwrap() } }",
    );
    assert_caught(panic_breaches(&[bad]), &["unwrap", "expect", "panic"]);
}
