//! Reads touch no more of a file than they need, and a file costs a fixed number of syncs.

use std::sync::Arc;

use crate::support::{FOLDERS, Rng, World, extent, label};
use sealstone::sealed::{Expect, Reader, place};
use sealstone::vfs::sim::SimDisk;

const BLOCK: u64 = 100_000;

fn world() -> (SimDisk, World) {
    let sim = SimDisk::new(1);
    let world = World::born(Arc::new(sim.clone()), "/run.stone".into(), None);
    (sim, world)
}

/// Does a range read bytes of blocks that it does not need? Every pair of edges around the blocks.
#[test]
fn a_range_reads_only_the_blocks_that_hold_it() {
    let (sim, world) = world();
    let stored = Rng(1).bytes(3 * BLOCK as usize + 10);
    let built = world.build(1, BLOCK, &[b"first".to_vec(), stored.clone()]);
    let reader = world.open(&built.tmp);
    let at = built.extents[1];
    let edges: Vec<u64> = (0..=3)
        .flat_map(|n| [n * BLOCK, n * BLOCK + 1, ((n + 1) * BLOCK).min(at.stored_len) - 1])
        .chain([at.stored_len])
        .collect();
    for &start in &edges {
        for &end in edges.iter().filter(|&&end| end >= start) {
            let before = sim.counts();
            let part = reader.read_range(at.offset, at.stored_len, start..end).unwrap();
            let cost = sim.counts().since(&before);
            assert!(part == stored[start as usize..end as usize], "{start}..{end}");
            let blocks = if start == end { 0..0 } else { start / BLOCK..end.div_ceil(BLOCK) };
            let held = (blocks.end * BLOCK).min(at.stored_len) - blocks.start * BLOCK;
            let needed = held + 4 * blocks.clone().count() as u64;
            assert_eq!(cost.bytes_read, needed, "{start}..{end}");
            assert!(cost.reads <= blocks.count() as u64);
        }
    }
}

/// Does fetching one extent read the footer, the label or other extents? Opening reads the header and,
/// to know the file, the label's end; reading reads the extent.
#[test]
fn fetching_one_extent_reads_no_footer() {
    let (sim, world) = world();
    let stored: Vec<Vec<u8>> = (0..50).map(|n| Rng(n).bytes(5000)).collect();
    let built = world.build(1, BLOCK, &stored);
    let expect = Expect { len: Some(built.len), digest: Some(built.digest), store: None };
    let before = sim.counts();
    let reader = Reader::open(&world.disk, &built.tmp, &expect).unwrap();
    let opened = sim.counts();
    assert_eq!((opened.since(&before).reads, opened.since(&before).bytes_read), (2, 28 + 88));
    let at = built.extents[31];
    assert_eq!(reader.read(at.offset, at.stored_len).unwrap(), stored[31]);
    let cost = sim.counts().since(&opened);
    assert_eq!((cost.reads, cost.bytes_read), (1, 5004));
}

/// Do small blocks cost a call each?
#[test]
fn small_blocks_are_read_many_at_a_time() {
    let (sim, world) = world();
    let stored = Rng(1).bytes(1 << 20);
    let built = world.build(1, 4096, std::slice::from_ref(&stored));
    let reader = world.open(&built.tmp);
    let before = sim.counts();
    assert!(reader.read(28, 1 << 20).unwrap() == stored);
    assert!(sim.counts().since(&before).reads <= 5);
}

/// Do syncs grow with the extents of a file, or directory syncs with the files of a folder?
#[test]
fn syncs_do_not_grow_with_extents() {
    let (sim, world) = world();
    for extents in [1, 10, 1000] {
        let before = sim.counts();
        let mut builder = world.builder(extents as u8, 4096);
        for n in 0..extents {
            let stored = u64::to_le_bytes(n);
            builder.add(&extent(&stored), &stored).unwrap();
        }
        let built = builder.finish(&label()).unwrap();
        place(&world.disk, &world.root, &[built], FOLDERS).unwrap();
        let cost = sim.counts().since(&before);
        assert_eq!((cost.sync_data, cost.sync_all, cost.sync_dir), (1, 0, 1), "{extents} extents");
    }
    let built: Vec<_> = (100..150).map(|n| world.build(n, 64, &[vec![n; 9]])).collect();
    let before = sim.counts();
    place(&world.disk, &world.root, &built, FOLDERS).unwrap();
    let cost = sim.counts().since(&before);
    assert_eq!((cost.renames, cost.sync_dir), (50, u64::from(FOLDERS)));
}
