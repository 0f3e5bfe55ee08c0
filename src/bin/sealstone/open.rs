//! Opening the store of a command, and its JSON.

use std::path::Path;

use sealstone::engine::WriteAccess;
use sealstone::{Options, Result, Store};
use serde_json::{Map, Value};

use crate::output::Output;

/// How a command that writes opens its store: alone, or beside others.
pub fn writing(output: &Output, shared: bool) -> Options {
    let access = if shared { WriteAccess::Shared } else { WriteAccess::Single };
    output.opening().access(access)
}

/// For a command that writes, unless it only says what it would write.
pub fn open(output: &Output, path: &Path, shared: bool, dry_run: bool) -> Result<Store> {
    match dry_run {
        true => output.opening().open_read_only(path),
        false => writing(output, shared).open(path),
    }
}

/// An object of these fields.
pub fn object(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
