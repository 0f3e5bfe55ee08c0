//! What keeps an object, in words.

use sealstone::engine::{Keeper, ObjectKept};
use serde_json::{Value, json};

/// A key of names as people write it.
fn name_of(key: &str) -> String {
    key.replacen('\0', "/", 1)
}

/// The kind of a keeper, and which one it is.
pub fn parts(keeper: &Keeper) -> (&'static str, String) {
    match keeper {
        Keeper::Name(key) => ("name", name_of(&key.name)),
        Keeper::Snapshot { snapshot, name } => {
            ("snapshot", format!("{snapshot}: {}", name_of(&name.name)))
        }
        Keeper::Preparation(name) => ("preparation", name.clone()),
        Keeper::Lease { lease, holder, purpose } => {
            ("lease", format!("{lease} of {holder}: {purpose}"))
        }
        Keeper::Handoff { handoff, target } => ("hand-off", format!("{handoff} to {target}")),
        Keeper::Recipe(digest) => ("recipe", digest.to_string()),
        Keeper::Row { table, key } => ("row", format!("{table} {key}")),
        Keeper::Claim { resource, owner } => ("claim", format!("{resource} of {owner}")),
        Keeper::Reader => ("reader", "of this process".to_owned()),
        Keeper::Retiring(commit) => {
            ("nothing", format!("retired by commit {commit}, and not taken apart yet"))
        }
        _ => ("another", String::new()),
    }
}

/// For people: `name models/best`.
pub fn text(keeper: &Keeper) -> String {
    let (kind, which) = parts(keeper);
    format!("{kind} {which}")
}

/// For programs.
pub fn fields(keeper: &Keeper) -> Value {
    let (kind, which) = parts(keeper);
    json!({ "kind": kind, "which": which })
}

/// An object with what keeps it, for programs.
pub fn object_fields(object: &ObjectKept) -> Value {
    json!({
        "object": object.object.0, "digest": object.digest.to_string(),
        "keepers": object.keepers.iter().map(fields).collect::<Vec<_>>(),
        "is_more": object.is_more,
    })
}
