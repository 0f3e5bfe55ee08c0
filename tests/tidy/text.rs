//! Laws over the text of every file: ids of promises cited, no path of a machine, nothing left over.

use std::collections::BTreeSet;

use crate::source::{Source, crate_dir, sources, walk};
use crate::{assert_caught, assert_none};

/// Promises of the design, and guarantees of the reliability page (there is no G23).
fn every_id() -> Vec<String> {
    let promises = (1..=10).map(|n| format!("P{n}"));
    let guarantees = (1..=26).filter(|n| *n != 23).map(|n| format!("G{n}"));
    promises.chain(guarantees).collect()
}

/// Whether `line` names `id`: as a word of its own, or in a test's name as `p3_` or `_g7_`.
pub fn names(line: &str, id: &str) -> bool {
    let lower = id.to_lowercase();
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == id || (word.contains('_') && word.split('_').any(|part| part == lower)))
}

/// The ids in the first column of the tables below a heading, and the text of their last column.
fn listed(document: &str, heading: &str) -> Vec<(String, String)> {
    let rows = crate::documents::rows_below(document, heading);
    rows.into_iter()
        .filter(|cells| every_id().contains(&cells[0]))
        .map(|cells| (cells[0].clone(), cells.last().cloned().unwrap_or_default()))
        .collect()
}

/// Each id stands once, as shown or as not yet shown with a reason; a shown one is cited by tests,
/// and a shown promise also at the line that upholds it.
fn citation_breaches(document: &str, sources: &[Source], tests: &[Source]) -> Vec<String> {
    let shown: Vec<_> =
        ["Promises", "Guarantees"].iter().flat_map(|h| listed(document, h)).collect();
    let not_yet = listed(document, "Not yet shown");
    let mut breaches = Vec::new();
    for id in every_id() {
        let count = |list: &[(String, String)]| list.iter().filter(|(name, _)| *name == id).count();
        if count(&shown) + count(&not_yet) != 1 {
            breaches.push(format!(
                "{id} stands {} times among shown and not yet shown",
                count(&shown) + count(&not_yet)
            ));
        }
        if not_yet.iter().any(|(name, reason)| *name == id && reason.len() < 10) {
            breaches.push(format!("{id} is not yet shown, without a reason"));
        }
        if count(&shown) == 0 {
            continue;
        }
        let in_tests = tests.iter().any(|test| test.text.lines().any(|line| names(line, &id)))
            || sources.iter().any(|source| source.lines(true).any(|(_, line)| names(line, &id)));
        if !in_tests {
            breaches.push(format!("{id} is cited by no test"));
        }
        // A title page promises, the files behind it uphold.
        let upheld = |line: &str| line.split_once("//").is_some_and(|(_, note)| names(note, &id));
        let files = sources.iter().filter(|s| !s.path.ends_with("mod.rs"));
        if id.starts_with('P')
            && !files.into_iter().any(|s| s.lines(false).any(|(_, line)| upheld(line)))
        {
            breaches.push(format!("{id} is cited at no line of src that upholds it"));
        }
    }
    breaches
}

/// Tests of the crate, without these laws: a law that names an id does not show it.
fn other_tests() -> Vec<Source> {
    sources("tests").into_iter().filter(|test| !test.path.starts_with("tests/tidy")).collect()
}

/// Is each promise upheld by a line that says so, and shown by a test that says so?
#[test]
fn every_shown_id_is_cited() {
    let document = std::fs::read_to_string(crate_dir().join("docs/INVARIANTS.md")).unwrap();
    assert_none(
        "docs/INVARIANTS.md",
        citation_breaches(&document, &sources("src"), &other_tests()),
    );
}

#[test]
fn an_id_that_nothing_cites_is_caught() {
    let mut document = "## Promises\n\n| id | x |\n|---|---|\n| P1 | a |\n| P2 | a |\n".to_owned();
    document.push_str("## Guarantees\n| G1 | a |\n| G10 | a |\n## Not yet shown\n| G2 | |\n| G1 | it comes with x |\n");
    for id in
        every_id().iter().filter(|id| !["P1", "P2", "G1", "G2", "G3", "G10"].contains(&id.as_str()))
    {
        document.push_str(&format!("| {id} | it comes with a later room |\n"));
    }
    let src = Source::new(
        "src/a/mod.rs",
        "//! P2 is promised here.\n#[cfg(test)]\nmod tests {\n// P1\n}\n",
    );
    let upholds = Source::new("src/a/b.rs", "let x = 1; // P1: so.\n");
    let test = Source::new("tests/b.rs", "fn g1_ends_well_p2() {}\n// G11\n");
    assert_caught(
        citation_breaches(&document, &[src, upholds], &[test]),
        &[
            "P2 is cited at no line",
            "G1 stands 2",
            "G2 is not yet",
            "G3 stands 0",
            "G10 is cited by no test",
        ],
    );
}

/// Paths that exist on one machine only, and marks of unfinished work.
fn stray_breaches(path: &str, text: &str) -> Vec<String> {
    let machine =
        ["/wo_rk/", "/fa_rm/", "/ro_ot/", "/ho_me/", "/bash_jo_bs"].map(|p| p.replace('_', ""));
    let unfinished = ["TO_DO", "FIX_ME", "XX_X:", "#[ig_nore"].map(|p| p.replace('_', ""));
    let mut breaches = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let found = machine.iter().chain(&unfinished).filter(|word| line.contains(word.as_str()));
        breaches.extend(found.map(|word| format!("{path}:{}: {word}", at + 1)));
    }
    breaches
}

/// Does the crate read the same on every machine, with nothing left for later?
#[test]
fn no_machine_path_and_nothing_left_over() {
    let mut breaches = Vec::new();
    let mut seen = BTreeSet::new();
    walk(&crate_dir(), &crate_dir(), &mut |path, bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            seen.insert(path.to_owned());
            breaches.extend(stray_breaches(path, text));
        }
    });
    assert!(seen.contains("Cargo.toml") && seen.contains("src/lib.rs"), "{seen:?}");
    assert_none("text that does not belong", breaches);
}

#[test]
fn a_machine_path_is_caught() {
    let bad = "let x = \"/wo_rk/data\"; // TO_DO: mend\nlet network = 1;\n".replace('_', "");
    assert_caught(stray_breaches("a.rs", &bad), &["work", &"TO_DO".replace("_", "")]);
}
