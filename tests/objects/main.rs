//! Objects: are files stored by content, leased, published, read, retired and given back as they should be?

#[cfg(feature = "sim")]
mod beside;
mod child;
#[path = "../children/mod.rs"]
mod children;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
#[path = "../commands/mod.rs"]
mod commands;
mod concurrent;
mod damage;
mod in_use;
#[cfg(feature = "sim")]
mod keeping;
mod labels;
mod lifecycle;
mod made;
mod moving;
#[cfg(feature = "sim")]
mod names;
mod readers;
mod reading;
mod recovering;
#[cfg(feature = "sim")]
mod refusing_disk;
#[cfg(feature = "sim")]
mod small;
mod storing;
#[cfg(feature = "sim")]
mod storing_cuts;
mod support;
#[cfg(feature = "sim")]
mod under_hands;

/// Is a store opened, and its objects with it?
#[test]
fn a_store_has_objects() {
    let (_folder, store) = support::store();
    let _ = store.objects();
    store.close().unwrap();
}
