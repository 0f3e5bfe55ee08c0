//! Locks of the simulated world. A byte-range lock belongs to a handle, as an OFD lock does: it
//! replaces what the same handle held there, unlocking a part splits it, and it ends with the
//! handle. Directory locks are a namespace of their own, as `flock` is.

use std::collections::BTreeMap;
use std::io;

use super::tree::Inode;
use super::world::HandleId;
use crate::vfs::disk::{LockRange, Sharing, signed_range};

/// Bytes from `start` up to `end`, exclusive; `u64::MAX` stands for no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u64,
    end: u64,
}

impl Span {
    pub(super) fn of(range: LockRange) -> io::Result<Self> {
        let (start, len) = signed_range(range)?;
        let (start, len) = (start.unsigned_abs(), len.unsigned_abs());
        Ok(Self { start, end: if len == 0 { u64::MAX } else { start + len } })
    }

    fn meets(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

#[derive(Debug, Clone, Copy)]
struct Lock {
    handle: HandleId,
    span: Span,
    sharing: Sharing,
}

/// Every lock of a world.
#[derive(Debug, Default)]
pub(super) struct Locks {
    ranges: BTreeMap<Inode, Vec<Lock>>,
    directories: BTreeMap<Inode, Vec<(HandleId, Sharing)>>,
}

impl Locks {
    /// Whether another handle's lock stands in the way.
    pub(super) fn conflict(
        &self,
        inode: Inode,
        handle: HandleId,
        span: Span,
        sharing: Sharing,
    ) -> bool {
        self.ranges.get(&inode).into_iter().flatten().any(|held| {
            held.handle != handle
                && held.span.meets(span)
                && (sharing == Sharing::Exclusive || held.sharing == Sharing::Exclusive)
        })
    }

    /// Gives `handle` the span; what it held there before is replaced.
    pub(super) fn take(&mut self, inode: Inode, handle: HandleId, span: Span, sharing: Sharing) {
        self.release(inode, handle, span);
        self.ranges.entry(inode).or_default().push(Lock { handle, span, sharing });
    }

    /// Releases exactly the span; a lock that reaches beyond it keeps its other parts.
    pub(super) fn release(&mut self, inode: Inode, handle: HandleId, span: Span) {
        let Some(held) = self.ranges.get_mut(&inode) else { return };
        let mut kept = Vec::with_capacity(held.len() + 1);
        for lock in held.drain(..) {
            if lock.handle != handle || !lock.span.meets(span) {
                kept.push(lock);
                continue;
            }
            let before = Span { start: lock.span.start, end: span.start };
            let behind = Span { start: span.end, end: lock.span.end };
            for span in [before, behind] {
                if span.start < span.end {
                    kept.push(Lock { span, ..lock });
                }
            }
        }
        *held = kept;
        if held.is_empty() {
            self.ranges.remove(&inode);
        }
    }

    /// Locks a directory unless another handle's lock stands in the way.
    pub(super) fn take_directory(
        &mut self,
        inode: Inode,
        handle: HandleId,
        sharing: Sharing,
    ) -> bool {
        let held = self.directories.entry(inode).or_default();
        let free =
            held.iter().all(|(_, other)| *other == Sharing::Shared && sharing == Sharing::Shared);
        if free {
            held.push((handle, sharing));
        }
        free
    }

    /// Releases everything that `handle` holds.
    pub(super) fn end(&mut self, handle: HandleId) {
        self.ranges.retain(|_, held| {
            held.retain(|lock| lock.handle != handle);
            !held.is_empty()
        });
        self.directories.retain(|_, held| {
            held.retain(|(holder, _)| *holder != handle);
            !held.is_empty()
        });
    }

    /// How many are held.
    pub(super) fn len(&self) -> u64 {
        let ranges: usize = self.ranges.values().map(Vec::len).sum();
        let directories: usize = self.directories.values().map(Vec::len).sum();
        (ranges + directories) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    /// Does unlocking the middle leave both ends locked and nothing else?
    #[test]
    fn unlocking_a_part_splits() {
        let mut locks = Locks::default();
        locks.take(1, 7, span(10, 100), Sharing::Exclusive);
        locks.release(1, 7, span(40, 50));
        let blocked = |from, to| locks.conflict(1, 8, span(from, to), Sharing::Shared);
        assert!(blocked(10, 11) && blocked(39, 40) && blocked(50, 51) && blocked(99, 100));
        assert!(!blocked(0, 10) && !blocked(40, 50) && !blocked(100, u64::MAX));
        assert_eq!(locks.len(), 2);
    }

    /// Does a handle convert its own lock, and is it refused while another shares the bytes?
    #[test]
    fn a_handle_converts_its_own_lock_only() {
        let mut locks = Locks::default();
        locks.take(1, 7, span(0, 10), Sharing::Shared);
        assert!(!locks.conflict(1, 7, span(0, 10), Sharing::Exclusive));
        locks.take(1, 8, span(5, 6), Sharing::Shared);
        assert!(locks.conflict(1, 7, span(0, 10), Sharing::Exclusive));
        locks.end(8);
        locks.take(1, 7, span(0, 10), Sharing::Exclusive);
        assert!(locks.conflict(1, 8, span(9, 20), Sharing::Shared));
        assert_eq!(locks.len(), 1);
    }
}
