//! What a failure looks like: the line on stderr, the JSON object, the exit code.

use sealstone::{Error, ErrorKind};

/// Done, but something was lost or skipped.
pub const LOST: u8 = 3;
/// Damage was found.
pub const DAMAGED: u8 = 4;

/// The exit code that tells scripts what happened.
pub fn exit_code(error: &Error) -> u8 {
    match error.kind() {
        // Nothing is damaged: the target is somebody else's.
        ErrorKind::Foreign if error.operation() == "back up" => 1,
        ErrorKind::Invalid => 2,
        ErrorKind::Damage
        | ErrorKind::ManifestLost
        | ErrorKind::Foreign
        | ErrorKind::RolledBack => DAMAGED,
        ErrorKind::NoStore => 10,
        ErrorKind::InUse => 11,
        ErrorKind::NewerFormat => 12,
        ErrorKind::Cancelled => 130,
        _ => 1,
    }
}

/// What the user can do, where the message does not say it.
pub fn hint(error: &Error, store_of_environment: bool) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::NoStore => Some("`sealstone import` and `sealstone put` create a store"),
        ErrorKind::InUse => {
            Some("wait for that process or end it; reading commands work beside it")
        }
        ErrorKind::Foreign | ErrorKind::Exists if error.operation() == "back up" => {
            Some("give a new directory; what is there was left as it is")
        }
        ErrorKind::Exists if error.operation() == "record" => {
            Some("choose another --name, or give --replace to replace that recording")
        }
        ErrorKind::Exists if error.operation() == "get" => {
            Some("give another --output, or --force to replace a file")
        }
        ErrorKind::NotFound if store_of_environment => {
            Some("SEALSTONE_STORE is set, so STORE is not given on the command line")
        }
        ErrorKind::Damage => {
            Some("`sealstone check STORE` lists all damage; the rest stays readable")
        }
        ErrorKind::DiskFull => Some(
            "earlier state is intact; free space (`sealstone retire`, then `sealstone gc`, work on a full \
                 disk), then run the command again",
        ),
        ErrorKind::ManifestLost | ErrorKind::RolledBack | ErrorKind::Foreign => Some(
            "put this store's own newest manifest.redb back, or `sealstone salvage STORE NEW`; \
                 nothing was changed",
        ),
        ErrorKind::NewerFormat => Some("upgrade sealstone; nothing is damaged"),
        _ => None,
    }
}
