//! What recordings and streams can be called.

use crate::error::{Error, Result};

/// The longest name of a recording or stream, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// Whether a recording can be called so.
pub(in crate::recording) fn check_recording_name(name: &str) -> Result<()> {
    check_name("recording", name)?;
    if name.contains(char::is_control) {
        let cause = "its name has a control character";
        return Err(Error::invalid("record", format!("recording {name:?}"), cause));
    }
    Ok(())
}

/// Whether a stream can be called so. Streams are named by values of others' files, so that any
/// character is kept; whoever prints a name sees to it.
pub(in crate::recording) fn check_name(what: &str, name: &str) -> Result<()> {
    let place = format!("{what} {name:?}");
    if name.trim().is_empty() {
        return Err(Error::invalid("record", place, "its name is blank"));
    }
    if name.len() > NAME_BYTES_MAX {
        let cause = format!("its name has more than {NAME_BYTES_MAX} bytes");
        return Err(Error::invalid("record", what, cause));
    }
    Ok(())
}
