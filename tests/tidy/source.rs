//! Reads source files as words: no comments, no strings, inline modules known, test code apart.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One word or sign of code, and the line it stands on, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    pub text: String,
    pub line: usize,
}

/// One file of the crate.
#[derive(Debug)]
pub struct Source {
    /// Relative to the crate, with slashes.
    pub path: String,
    pub text: String,
    /// Its code, without comments, strings and `#[cfg(test)]` items.
    pub code: Vec<Word>,
    /// Lines that belong to `#[cfg(test)]` items.
    pub test_lines: BTreeSet<usize>,
    /// Modules that `#[cfg(test)] mod name;` puts into files of their own.
    test_files: Vec<String>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let words = words(text);
        let (kept, test_lines, test_files) = without_tests(&words);
        Self { path: path.to_owned(), text: text.to_owned(), code: kept, test_lines, test_files }
    }

    /// The lines outside, or inside, test items.
    pub fn lines(&self, of_tests: bool) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
            .filter(move |(at, _)| self.test_lines.contains(at) == of_tests)
    }

    /// The module path of this file below `crate`.
    pub fn module(&self) -> Vec<String> {
        let inside = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut names: Vec<_> = inside.split('/').map(str::to_owned).collect();
        if names.last().is_some_and(|name| name == "mod" || name == "lib" || name == "main") {
            names.pop();
        }
        names
    }

    /// Every path in the code, `use` trees taken apart, `self` and `super` resolved to `crate`.
    pub fn paths(&self) -> Vec<(usize, Vec<String>)> {
        paths(&self.code, &self.module())
    }
}

/// Where the crate lies.
pub fn crate_dir() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into()).into()
}

/// Every Rust file under `folder`, test-only files marked as such.
pub fn sources(folder: &str) -> Vec<Source> {
    let mut files = Vec::new();
    walk(&crate_dir(), &crate_dir().join(folder), &mut |path, bytes| {
        if path.ends_with(".rs") {
            files.push(Source::new(path, &String::from_utf8_lossy(bytes)));
        }
    });
    assert!(!files.is_empty(), "no source file under {folder}: a law over nothing holds nothing");
    mark_test_files(&mut files);
    files
}

/// Files that only tests compile have no code outside tests.
pub fn mark_test_files(files: &mut [Source]) {
    let named: BTreeSet<String> = files
        .iter()
        .flat_map(|file| {
            let folder = match file.path.strip_suffix("/mod.rs") {
                Some(folder) => folder.to_owned(),
                None if file.path.ends_with("lib.rs") => "src".to_owned(),
                None => file.path.trim_end_matches(".rs").to_owned(),
            };
            file.test_files.iter().map(move |name| format!("{folder}/{name}")).collect::<Vec<_>>()
        })
        .collect();
    for file in files {
        let stem = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
        if named.iter().any(|name| stem == name || stem.starts_with(&format!("{name}/"))) {
            file.code.clear();
            file.test_lines = (1..=file.text.lines().count()).collect();
        }
    }
}

/// Shows every file of the crate that is kept in version control, but for bulky test data.
pub fn walk(root: &Path, folder: &Path, show: &mut dyn FnMut(&str, &[u8])) {
    let mut names: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    names.sort();
    for path in names {
        let inside = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        let skipped = [
            "target",
            "benches/target",
            ".git",
            "tests/data",
            "fuzz/target",
            "tests/outside/target",
            "PLAN.md",
        ];
        let golden = inside.starts_with("tests/golden/") && path.is_file();
        if skipped.contains(&inside.as_str())
            || inside.ends_with(".stone")
            || (golden && !inside.ends_with(".rs"))
        {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, show);
        } else if let Ok(bytes) = fs::read(&path) {
            show(&inside, &bytes);
        }
    }
}

/// Cuts code into words and signs. `::` is one sign; comments, strings, characters and lifetimes
/// leave nothing behind.
pub fn words(text: &str) -> Vec<Word> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut i, mut line, mut out) = (0, 1, Vec::new());
    while i < chars.len() {
        let start = i;
        let c = at(i);
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && at(i) != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            i = block_comment_end(&chars, i);
        } else if let Some(end) = string_end(&chars, i) {
            i = end;
        } else if c == '\'' {
            i = quote_end(&chars, i);
        } else if c.is_alphanumeric() || c == '_' {
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            out.push(Word { text: chars[start..i].iter().collect(), line });
        } else {
            i += if c == ':' && at(i + 1) == ':' { 2 } else { 1 };
            if !c.is_whitespace() {
                out.push(Word { text: chars[start..i].iter().collect(), line });
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    out
}

fn block_comment_end(chars: &[char], mut i: usize) -> usize {
    let mut depth = 0;
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

/// The end of the string that begins at `i`, prefix included, or `None` if none does.
fn string_end(chars: &[char], start: usize) -> Option<usize> {
    let mut i = start;
    while i < start + 2 && chars.get(i).is_some_and(|c| "brc".contains(*c)) {
        i += 1;
    }
    let raw = i > start && chars[i - 1] == 'r';
    let mut hashes = 0;
    while raw && chars.get(i) == Some(&'#') {
        (i, hashes) = (i + 1, hashes + 1);
    }
    if chars.get(i) != Some(&'"') {
        return None;
    }
    i += 1;
    while i < chars.len() {
        match chars[i] {
            '\\' if !raw => i += 2,
            '"' if chars[i + 1..].iter().take_while(|c| **c == '#').count() >= hashes => {
                return Some(i + 1 + hashes);
            }
            _ => i += 1,
        }
    }
    Some(i)
}

/// The end of a character, or of the quote alone where a lifetime begins.
fn quote_end(chars: &[char], i: usize) -> usize {
    if chars.get(i + 1) == Some(&'\\') {
        let close = chars[i + 3..].iter().position(|c| *c == '\'');
        return close.map_or(chars.len(), |n| i + 4 + n);
    }
    if chars.get(i + 2) == Some(&'\'') { i + 3 } else { i + 1 }
}

/// The words outside `#[cfg(test)]` items, the lines inside them, and test modules kept in files.
fn without_tests(words: &[Word]) -> (Vec<Word>, BTreeSet<usize>, Vec<String>) {
    let (mut kept, mut lines, mut files) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut i = 0;
    while i < words.len() {
        if !starts_with(&words[i..], &["#", "[", "cfg", "(", "test", ")", "]"]) {
            kept.push(words[i].clone());
            i += 1;
            continue;
        }
        let end = item_end(words, i + 7);
        let item: Vec<&str> = words[i + 7..end].iter().map(|w| w.text.as_str()).collect();
        if let ["mod", name, ";"] = item[..] {
            files.push(name.to_owned());
        }
        lines.extend(words[i].line..=words[end - 1].line);
        i = end;
    }
    (kept, lines, files)
}

/// The index after the item that begins at `i`: after its `;`, or after its closing brace.
fn item_end(words: &[Word], mut i: usize) -> usize {
    let mut depth = 0usize;
    while i < words.len() {
        match words[i].text.as_str() {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" if depth <= 1 => {
                return i + 1 + usize::from(starts_with(&words[i + 1..], &[";"]));
            }
            "}" => depth -= 1,
            ";" if depth == 0 => return i + 1,
            _ => {}
        }
        i += 1;
    }
    i
}

pub fn starts_with(words: &[Word], pattern: &[&str]) -> bool {
    words.len() >= pattern.len() && words.iter().zip(pattern).all(|(w, p)| w.text == *p)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn paths(words: &[Word], file: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut module = file.to_vec();
    let (mut depth, mut inline) = (0, Vec::new());
    let mut i = 0;
    while i < words.len() {
        let word = words[i].text.as_str();
        let before = i.checked_sub(1).map_or("", |b| words[b].text.as_str());
        match word {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                    module.pop();
                }
            }
            "mod" if words.get(i + 2).is_some_and(|w| w.text == "{") => {
                module.push(words[i + 1].text.clone());
                inline.push(depth);
            }
            "use" if words.get(i + 1).is_some_and(|w| w.text != "<") => {
                let mut tree = Vec::new();
                i = use_tree(words, i + 1, &[], &mut tree);
                found.extend(tree.into_iter().map(|(line, path)| (line, resolve(path, &module))));
                continue;
            }
            _ if is_name(word) && before != "::" && before != "." => {
                let (line, mut path) = (words[i].line, vec![word.to_owned()]);
                while starts_with(&words[i + 1..], &["::"])
                    && words.get(i + 2).is_some_and(|w| is_name(&w.text))
                {
                    path.push(words[i + 2].text.clone());
                    i += 2;
                }
                if path.len() > 1 {
                    found.push((line, resolve(path, &module)));
                }
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Takes a `use` tree apart; returns the index behind it.
fn use_tree(
    words: &[Word],
    mut i: usize,
    prefix: &[String],
    out: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut path = prefix.to_vec();
    while i < words.len() {
        let word = &words[i];
        match word.text.as_str() {
            "{" => {
                i += 1;
                while i < words.len() && words[i].text != "}" {
                    i = use_tree(words, i, &path, out);
                    i += usize::from(words.get(i).is_some_and(|w| w.text == ","));
                }
                return i + 1;
            }
            "," | ";" | "}" => break,
            "as" => i += 1,
            "::" => {}
            name => path.push(name.to_owned()),
        }
        i += 1;
    }
    let line = words.get(i.saturating_sub(1)).map_or(0, |w| w.line);
    out.push((line, path));
    i
}

/// Turns `self` and `super` into `crate` paths; one that climbs past the crate keeps its `super`.
fn resolve(mut path: Vec<String>, module: &[String]) -> Vec<String> {
    if !matches!(path[0].as_str(), "self" | "super") {
        return path;
    }
    let mut base = module.to_vec();
    while path.first().is_some_and(|name| name == "self" || name == "super") {
        if path[0] == "super" && base.pop().is_none() {
            return path;
        }
        path.remove(0);
    }
    std::iter::once("crate".to_owned()).chain(base).chain(path).collect()
}

/// Does the reader see through comments, strings, characters, lifetimes and groups?
#[test]
fn paths_are_found_wherever_they_hide() {
    let text = r##"
        //! use crate::comment::X;
        /* use crate::block::X; /* nested */ */
        use super::{lower::A, super::room::{B as C, D}};
        use std::{fs, io};
        fn f<'a>(x: &'a str) -> char {
            let _ = ("crate::string::X", r#"crate::raw::"X"#, b"\"crate::bytes::X");
            let _ = ('"', '\'', crate::seen::X::<u8>::new());
            'x'
        }
        mod inner { use super::sibling::E; use super::super::F; }
        #[cfg(test)]
        mod tests { use crate::testing::X; }
    "##;
    let source = Source::new("src/one/two.rs", text);
    let found: Vec<String> = source.paths().iter().map(|(_, path)| path.join("::")).collect();
    let expected = [
        "crate::one::lower::A",
        "crate::room::B",
        "crate::room::D",
        "std::fs",
        "std::io",
        "crate::seen::X",
        "crate::one::two::sibling::E",
        "crate::one::F",
    ];
    assert_eq!(found, expected);
    assert_eq!(source.lines(true).count(), 2);
}

/// Is a test module that lies in a file of its own told apart from code?
#[test]
fn test_files_hold_no_code() {
    let mut files = [
        Source::new("src/room/mod.rs", "mod a;\n#[cfg(test)]\nmod proof;\n"),
        Source::new("src/room/proof.rs", "fn f() { x.unwrap() }\n"),
    ];
    mark_test_files(&mut files);
    assert!(!files[0].code.is_empty() && files[1].code.is_empty());
    assert_eq!(files[1].lines(true).count(), 1);
}
