//! Laws over docs/FORMAT.md: byte layouts equal the constants, rows equal the structures.

use std::collections::BTreeSet;

use sealstone::format::head;
use sealstone::manifest::Table;

use crate::documents::{cells, document, rows_below};
use crate::source::{Source, sources};
use crate::{assert_caught, assert_none};

/// A layout: its fields as (name, offset, width).
type Layout = &'static [(&'static str, usize, usize)];

macro_rules! layouts {
    ($($module:ident::$table:ident),* $(,)?) => {
        &[$((
            concat!(stringify!($module), "::", stringify!($table)),
            sealstone::format::$module::$table,
        )),*]
    };
}

/// The layouts that are compared with docs/FORMAT.md.
const LAYOUTS: &[(&str, Layout)] = layouts![
    frame::HEADER_LAYOUT,
    frame::FRAME_LAYOUT,
    framed::END_LAYOUT,
    record::RECORD_LAYOUT,
    sealed::HEADER_LAYOUT,
    footer::ENTRY_LAYOUT,
    trailer::TRAILER_LAYOUT,
    label::LABEL_END_LAYOUT,
    snapshot::SNAPSHOT_HEADER_LAYOUT,
    staged::BATCH_LAYOUT,
    staged::PART_HEADER_LAYOUT,
    staged::PART_FRAME_LAYOUT,
    column::HEADER_LAYOUT,
    column::TRAILER_LAYOUT,
];

/// HEAD, whose file keeps its offsets one by one.
const HEAD: &[(&str, Layout)] = &[(
    "head",
    &[
        ("magic", 0, head::VERSION_AT),
        ("version", head::VERSION_AT, head::STORE_AT - head::VERSION_AT),
        ("store", head::STORE_AT, head::COMMIT_AT - head::STORE_AT),
        ("commit", head::COMMIT_AT, head::QUIET_AT - head::COMMIT_AT),
        ("quiet_since", head::QUIET_AT, head::CHECKSUM_AT - head::QUIET_AT),
        ("checksum", head::CHECKSUM_AT, head::BYTES - head::CHECKSUM_AT),
    ],
)];

/// Encoded structures, as (part, type), compared with docs/FORMAT.md in the same way.
const STRUCTURES: &[(&str, &[(&str, &str)])] = &[
    ("column::FOOTER_LAYOUT", sealstone::format::column::FOOTER_LAYOUT),
    ("column::BLOCK_ROW_LAYOUT", sealstone::format::column::BLOCK_ROW_LAYOUT),
];

/// The rows of the first table behind the mark of a layout.
fn table_of(document: &str, kind: &str, name: &str) -> Vec<Vec<String>> {
    let mark = format!("<!-- {kind}: {name} -->");
    let behind = document.lines().skip_while(|line| line.trim() != mark).skip(1);
    let table = behind.skip_while(|line| line.trim().is_empty()).take_while(|l| l.starts_with('|'));
    table.filter_map(cells).skip(1).collect()
}

fn structure_breaches(document: &str, structures: &[(&str, &[(&str, &str)])]) -> Vec<String> {
    let mut breaches = Vec::new();
    for (name, parts) in structures {
        let rows = table_of(document, "structure", name).into_iter().map(|mut row| {
            row.truncate(2);
            row
        });
        let parts = parts.iter().map(|(part, ty)| vec![part.to_string(), ty.to_string()]);
        if !rows.clone().eq(parts.clone()) {
            let (rows, parts) = (rows.collect::<Vec<_>>(), parts.collect::<Vec<_>>());
            breaches.push(format!("{name}: {rows:?} should be {parts:?}"));
        }
    }
    breaches
}

fn layout_breaches(document: &str, layouts: &[(&str, Layout)]) -> Vec<String> {
    let mut breaches = Vec::new();
    for (name, layout) in layouts {
        let rows = table_of(document, "layout", name);
        if rows.len() != layout.len() {
            breaches.push(format!("{name} has {} fields, {} rows", layout.len(), rows.len()));
        }
        for (row, (field, offset, width)) in rows.iter().zip(*layout) {
            let has = [field.to_lowercase(), offset.to_string(), width.to_string()];
            if row.get(..3) != Some(&has[..]) {
                breaches.push(format!("{name}: {row:?} should begin {has:?}"));
            }
        }
    }
    let marks = document
        .lines()
        .filter_map(|l| l.trim().strip_prefix("<!-- layout: ")?.strip_suffix(" -->"));
    for mark in marks.filter(|mark| layouts.iter().all(|(name, _)| name != mark)) {
        breaches.push(format!("{mark} is marked as a layout and is none"));
    }
    breaches
}

/// Layouts that a format file defines.
fn defined_layouts(sources: &[Source]) -> BTreeSet<String> {
    let formats = sources.iter().filter(|source| source.path.starts_with("src/format/"));
    formats
        .flat_map(|source| {
            let module = source.module().get(1).cloned().unwrap_or_default();
            let named = |text: &str| text.ends_with("_LAYOUT") || text == "LAYOUT";
            let names = source.code.iter().filter(move |word| named(&word.text));
            names.map(move |word| format!("{module}::{}", word.text)).collect::<Vec<_>>()
        })
        .collect()
}

fn unlisted_layouts<'a>(sources: &[Source], listed: impl Iterator<Item = &'a str>) -> Vec<String> {
    let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
    defined_layouts(sources).difference(&listed).cloned().collect()
}

/// Is each byte layout written down as the constants have it?
#[test]
fn layouts_equal_the_constants() {
    let listed = LAYOUTS.iter().map(|(name, _)| *name);
    let listed = listed.chain(STRUCTURES.iter().map(|(name, _)| *name));
    let unlisted = unlisted_layouts(&sources("src"), listed);
    assert_none("list it here and write it down in docs/FORMAT.md", unlisted);
    let layouts = [LAYOUTS, HEAD].concat();
    assert_none("docs/FORMAT.md", layout_breaches(&document("docs/FORMAT.md"), &layouts));
}

/// Is each encoded structure written down part by part?
#[test]
fn structures_equal_the_constants() {
    assert_none("docs/FORMAT.md", structure_breaches(&document("docs/FORMAT.md"), STRUCTURES));
}

#[test]
fn a_structure_that_differs_is_caught() {
    let document = "<!-- structure: a -->\n\n| part | type |\n|---|---|\n| x | u8 |\n";
    assert_none("same", structure_breaches(document, &[("a", &[("x", "u8")])]));
    assert_caught(structure_breaches(document, &[("a", &[("x", "u16")])]), &["a: "]);
    assert_caught(structure_breaches(document, &[("b", &[("x", "u8")])]), &["b: "]);
}

#[test]
fn a_layout_that_differs_is_caught() {
    let document = "<!-- layout: a::LAYOUT -->\n\n| field | offset | width |\n|---|---|---|\n\
                    | `magic` | 0 | 8 |\n| `end` | 8 | 4 |\n\ntext\n<!-- layout: gone::LAYOUT -->\n";
    let same: &[(&str, Layout)] = &[("a::LAYOUT", &[("MAGIC", 0, 8), ("END", 8, 4)])];
    assert_caught(layout_breaches(document, same), &["gone"]);
    let other: &[(&str, Layout)] = &[
        ("a::LAYOUT", &[("MAGIC", 0, 8), ("END", 8, 8)]),
        ("b::LAYOUT", &[("X", 0, 1)]),
        ("gone::LAYOUT", &[]),
    ];
    assert_caught(layout_breaches(document, other), &["a::LAYOUT: [\"end\"", "b::LAYOUT has 1"]);
    let new = Source::new("src/format/b.rs", "fields! { X_LAYOUT: A 0..8; }");
    assert_caught(unlisted_layouts(&[new], ["a::LAYOUT"].into_iter()), &["b::X_LAYOUT"]);
}

/// A type of row, as the source writes it down.
#[derive(Debug, PartialEq)]
struct RowType {
    name: String,
    table: String,
    version: String,
    fields: Vec<String>,
}

/// Every `impl Row for NAME`, with the fields of `struct NAME` in order: the order of their bytes.
fn row_types(sources: &[Source]) -> Vec<RowType> {
    let mut types = Vec::new();
    for source in sources {
        let words: Vec<&str> = source.code.iter().map(|word| word.text.as_str()).collect();
        for at in (0..words.len()).filter(|at| words[*at..].starts_with(&["impl", "Row", "for"])) {
            let name = words[at + 3];
            let behind = |pattern: &[&str], skip: usize| {
                let found = words[at..].windows(pattern.len()).position(|w| w == pattern);
                found.map_or("", |n| words[at + n + pattern.len() + skip])
            };
            types.push(RowType {
                name: name.to_owned(),
                table: behind(&["const", "TABLE", ":", "Table", "=", "Table", "::"], 0)
                    .to_lowercase(),
                version: behind(&["const", "VERSION", ":", "u8", "="], 0).to_owned(),
                fields: fields_of(&words, name),
            });
        }
    }
    types
}

/// The public fields of a structure, outside brackets of any kind.
fn fields_of(words: &[&str], name: &str) -> Vec<String> {
    let Some(start) = words.windows(3).position(|w| w == ["struct", name, "{"]) else {
        return Vec::new();
    };
    let (mut depth, mut fields) = (0, Vec::new());
    for at in start + 2..words.len() {
        match words[at] {
            "{" | "(" | "[" | "<" => depth += 1,
            "}" | ")" | "]" | ">" => depth -= 1,
            ":" if depth == 1 => fields.push(words[at - 1].to_owned()),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    fields
}

fn row_breaches(rows: &[Vec<String>], types: &[RowType]) -> Vec<String> {
    let mut breaches = Vec::new();
    for ty in types {
        let has = [&ty.name, &ty.version, &ty.fields.join(", ")];
        let table = |cell: &str| cell.replace('_', "") == ty.table;
        let said = rows.iter().find(|row| table(&row[0]) && row.get(2) == Some(has[0]));
        let wrong = |row: &&Vec<String>| row.get(3) != Some(has[1]) || row.get(4) != Some(has[2]);
        match said {
            None => breaches.push(format!("{} of table {} has no line", ty.name, ty.table)),
            Some(row) if wrong(&row) => breaches.push(format!("{row:?} should end {has:?}")),
            Some(_) => {}
        }
    }
    let known =
        |row: &&Vec<String>| types.iter().any(|ty| ty.name == row[2]) || row[2] == "none yet";
    breaches
        .extend(rows.iter().filter(|row| !known(row)).map(|row| format!("{} is no row", row[2])));
    breaches
}

/// Do rows hold what the page says, in the order of their bytes?
#[test]
fn rows_equal_the_structures() {
    let types = row_types(&sources("src"));
    let rows = rows_below(&document("docs/FORMAT.md"), "Rows");
    assert_none("docs/FORMAT.md, Rows", row_breaches(&rows[1.min(rows.len())..], &types));
}

#[test]
fn a_row_that_differs_is_caught() {
    let source = Source::new(
        "src/manifest/rows/a.rs",
        "pub struct ARow { pub x: Vec<(u8, Vec<u8>)>, pub y: u64 }\n\
         impl Row for ARow { type Key = u64; const TABLE: Table = Table::BigThings; const VERSION: u8 = 1; }\n\
         pub struct BRow;\nimpl Row for BRow { const TABLE: Table = Table::B; const VERSION: u8 = 2; }",
    );
    let types = row_types(&[source]);
    let row = |text: &str| cells(text).unwrap();
    let good =
        [row("| `big_things` | u64 | `ARow` | 1 | x, y |"), row("| `b` | u64 | `BRow` | 2 | |")];
    assert_none("good", row_breaches(&good, &types));
    let bad =
        [row("| `big_things` | u64 | `ARow` | 1 | y, x |"), row("| `c` | u64 | `CRow` | 1 | |")];
    assert_caught(row_breaches(&bad, &types), &["should end", "BRow of table b", "CRow is no row"]);
}

/// Tables by number and name against the lines of the page.
fn table_breaches(rows: &[Vec<String>], tables: &[(u8, &str)]) -> Vec<String> {
    let said: Vec<_> = rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let has: Vec<_> = tables.iter().map(|(n, name)| (n.to_string(), (*name).to_owned())).collect();
    let missing = has.iter().filter(|table| !said.contains(table));
    let strange = said.iter().filter(|table| !has.contains(table));
    let missing = missing.map(|(n, name)| format!("table {n} {name} has no line"));
    missing.chain(strange.map(|(n, name)| format!("table {n} {name} is none"))).collect()
}

/// Does each table of the manifest stand in the drawn tree, under the number that is on disk?
#[test]
fn every_table_is_drawn() {
    let tables: Vec<_> = Table::ALL.iter().map(|table| (table.number(), table.name())).collect();
    let page = document("docs/FORMAT.md");
    let rows = rows_below(&page, "Tables");
    assert_none("docs/FORMAT.md, Tables", table_breaches(&rows[1.min(rows.len())..], &tables));
    let (_, tree) = page.split_once("<!-- tree -->").expect("the page has a tree");
    let tree: BTreeSet<&str> = tree
        .split("```")
        .nth(1)
        .unwrap_or("")
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let missing = tables.iter().filter(|(_, name)| !tree.contains(name));
    assert_none("not in the drawn tree", missing.map(|(_, name)| (*name).to_owned()).collect());
}

#[test]
fn a_table_without_a_line_is_caught() {
    let rows = [cells("| 0 | `meta` | x |").unwrap(), cells("| 2 | `gone` | x |").unwrap()];
    assert_caught(table_breaches(&rows, &[(0, "meta"), (1, "new")]), &["1 new", "2 gone"]);
}
