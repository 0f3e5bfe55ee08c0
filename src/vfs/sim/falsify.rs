//! Reads that return what is not there.

use super::fault::FaultKind;
use super::tree::{Body, Inode};
use super::world::World;

/// What a read that should return `right` returns instead; `None` where that would be the same.
pub(super) fn falsify(
    world: &mut World,
    kind: FaultKind,
    inode: Inode,
    offset: u64,
    right: &[u8],
) -> Option<Vec<u8>> {
    let mut wrong = right.to_vec();
    match kind {
        FaultKind::ShortRead if right.len() > 1 => {
            wrong.truncate(1 + world.rng.index(right.len() - 1));
        }
        FaultKind::BitFlip if !right.is_empty() => {
            let at = world.rng.index(right.len());
            wrong[at] ^= 1 << world.rng.below(8);
        }
        FaultKind::StaleRead => {
            let Body::File(before) = &*world.medium.nodes.get(&inode)?.before else { return None };
            before.read(&mut wrong, offset);
        }
        FaultKind::MisdirectedRead => misdirect(world, inode, &mut wrong),
        _ => {}
    }
    (wrong != right).then_some(wrong)
}

/// Fills `into` from a random sector of this file or, as often, of any file.
fn misdirect(world: &mut World, inode: Inode, into: &mut [u8]) {
    let files = world.tree.files();
    let other = files.get(world.rng.index(files.len())).copied().unwrap_or(inode);
    let from = if world.rng.one_in(2) { inode } else { other };
    if let Ok(content) = world.tree.content(from) {
        let sectors = content.len().div_ceil(512);
        content.read(into, world.rng.below(sectors) * 512);
    }
}
