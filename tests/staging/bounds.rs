//! Bounds: what a stage takes, keeps in memory and publishes at once, whatever its callers do.

use sealstone::staging::Ready;

use crate::support::{LAYOUTS, NAME, on, put, root, shape, sim};

/// Is a tail of more keys than one transaction takes sealed by several, with each batch there once, and is
/// every key of it detached?
#[test]
fn stg5_many_keys_are_sealed_by_several_transactions() {
    const KEYS: i64 = 4500;
    let disk = sim(71);
    let store = on(&disk, LAYOUTS[1]).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    for minute in 0..KEYS {
        put(&stage, "a", minute, "x");
    }
    stage.barrier().unwrap();
    let before = store.stats().unwrap().commit.0;
    let flushed = stage.flush(&Ready::All).unwrap();
    let (all, commits) = (KEYS as u64, store.stats().unwrap().commit.0 - before);
    assert_eq!((flushed.rows, flushed.batches, flushed.parts), (all, all, all));
    assert_eq!(flushed.detached.len(), KEYS as usize);
    assert!((2..=4).contains(&commits), "{commits} commits");
    let groups = stage.groups().unwrap();
    assert!(groups.len() == KEYS as usize && groups.iter().all(|g| g.is_detached && g.rows == 1));
    assert_eq!(store.accounts().unwrap().orphan, 0);
}
