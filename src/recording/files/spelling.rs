//! What a recording keeps of the file it came from: its name and format, and how each column
//! spells a missing value, so that an export spells it again.

use crate::interop::{Missing, Plan};

/// Metadata key of the file's name.
pub const SOURCE: &str = "import.source";
/// Metadata key of its format.
pub const FORMAT: &str = "import.format";
/// Metadata keys of the spellings, before the column's name.
const MISSING: &str = "import.missing.";

const NULL: &str = "null";
const ABSENT: &str = "absent";
const TEXT: &str = "text ";

/// The spellings of all columns that have one.
pub fn metadata(plans: &[Plan]) -> Vec<(String, String)> {
    let known = plans.iter().filter_map(|plan| Some((plan, plan.missing.as_ref()?)));
    known
        .map(|(plan, missing)| {
            let text = match missing {
                Missing::Text(text) => format!("{TEXT}{text}"),
                Missing::Absent => ABSENT.to_owned(),
                _ => NULL.to_owned(),
            };
            (format!("{MISSING}{}", plan.name), text)
        })
        .collect()
}

/// The spelling of a column.
pub fn of(metadata: &[(String, String)], column: &str) -> Option<Missing> {
    let (_, text) = metadata.iter().find(|(key, _)| key.strip_prefix(MISSING) == Some(column))?;
    match text.as_str() {
        NULL => Some(Missing::Null),
        ABSENT => Some(Missing::Absent),
        text => text.strip_prefix(TEXT).map(|text| Missing::Text(text.to_owned())),
    }
}

/// What the stream of rows without a value is called.
pub fn stream_name(plan: &Plan) -> &str {
    match &plan.missing {
        Some(Missing::Text(text)) if !text.trim().is_empty() => text,
        _ => "missing",
    }
}
