//! Objects: are files stored by content, leased, published, read, retired and given back as they should be?

mod damage;
mod made;
mod moving;
#[cfg(feature = "sim")]
mod names;
mod reading;
mod storing;
mod support;

/// Is a store opened, and its objects with it?
#[test]
fn a_store_has_objects() {
    let (_folder, store) = support::store();
    let _ = store.objects();
    store.close().unwrap();
}
