//! The replacement of a recording before it is complete: its name, and what a killed process left of it.

use crate::engine::Store;
use crate::error::Result;
use crate::manifest::RecordingStatus;
use crate::recording::describing::NAME_BYTES_MAX;
use crate::recording::keeping::{Expected, REPLACES, remove};

/// What the replacement of `name` is called until it is complete.
pub(super) fn name_of_replacement(name: &str) -> String {
    let mut text = format!("replacement of {name}");
    while text.len() > NAME_BYTES_MAX {
        text.pop();
    }
    text
}

/// Removes what a killed process left of a replacement of `name`.
pub(super) fn remove_left_over(store: &Store, name: &str) -> Result<()> {
    let replacement = name_of_replacement(name);
    let Ok(left) = store.recording(&replacement) else { return Ok(()) };
    let is_one = left.status() == &RecordingStatus::Running
        && left.metadata().iter().any(|(key, text)| key == REPLACES && text == name);
    if is_one {
        let expected = Expected { id: left.id(), seen: None };
        remove(store, &replacement, Some(&expected), "its import was killed")?;
    }
    Ok(())
}
