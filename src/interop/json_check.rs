//! Whether a text is one JSON value.

use serde::de::IgnoredAny;

/// Looks at all of `text`, texts and numbers within included.
///
/// # Errors
/// Where it stops being one value.
pub(crate) fn check_json(text: &[u8]) -> Result<(), serde_json::Error> {
    // Values are skipped, not read: that texts are UTF-8 is looked at apart.
    let text = std::str::from_utf8(text).map_err(serde::de::Error::custom)?;
    serde_json::from_str::<IgnoredAny>(text).map(drop)
}
