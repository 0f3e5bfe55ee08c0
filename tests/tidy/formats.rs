//! Laws over docs/FORMAT.md: byte layouts equal the constants, rows equal the structures.

use crate::documents::{cells, document};
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
    record::RECORD_LAYOUT,
    sealed::HEADER_LAYOUT,
    footer::ENTRY_LAYOUT,
    trailer::TRAILER_LAYOUT,
    label::LABEL_END_LAYOUT,
    column::HEADER_LAYOUT,
    column::TRAILER_LAYOUT,
];

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

/// Is each byte layout written down as the constants have it?
#[test]
fn layouts_equal_the_constants() {
    assert_none("docs/FORMAT.md", layout_breaches(&document("docs/FORMAT.md"), LAYOUTS));
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
}
