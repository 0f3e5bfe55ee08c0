//! How an event's outcome shows on the medium: bytes, lengths, names.

use std::sync::Arc;

use super::content::Content;
use super::event::{Event, Place};
use super::medium::{Durables, Pending};
use super::outcome::Outcome;
use super::rng::mix;
use super::tree::{Body, Inode};

/// Bytes that a drive writes whole or not at all, beyond small writes.
const SECTOR: u64 = 512;

/// Lets a pending event come to `outcome`.
pub(super) fn settle(nodes: &mut Durables, pending: &Pending, outcome: Outcome) {
    if pending.is_name() {
        settle_name(nodes, pending, outcome);
    } else {
        settle_content(nodes, pending, outcome);
    }
}

pub(super) fn settle_content(nodes: &mut Durables, pending: &Pending, outcome: Outcome) {
    let (Event::Write { inode, .. } | Event::SetLen { inode, .. }) = &pending.event else { return };
    if outcome == Outcome::Lost {
        return;
    }
    let Some(node) = nodes.get_mut(inode) else { return };
    let Body::File(content) = Arc::make_mut(&mut node.body) else { return };
    match &pending.event {
        Event::Write { offset, bytes, .. } => settle_write(content, bytes, *offset, outcome),
        Event::SetLen { len, .. } if outcome != Outcome::Zeroed => content.set_len(*len),
        _ => {}
    }
}

pub(super) fn settle_name(nodes: &mut Durables, pending: &Pending, outcome: Outcome) {
    if matches!(outcome, Outcome::Lost | Outcome::Zeroed | Outcome::Cut(_)) {
        return;
    }
    match &pending.event {
        Event::Create { at, inode } | Event::Mkdir { at, inode } | Event::Link { at, inode } => {
            set_name(nodes, at, Some(*inode));
        }
        Event::Unlink { at, .. } => set_name(nodes, at, None),
        Event::Rename { from, to, inode, .. } => {
            if !pending.half {
                set_name(nodes, to, Some(*inode));
            }
            let both = matches!(outcome, Outcome::Torn(_)) && pending.is_rename_across();
            if !both {
                set_name(nodes, from, None);
            }
        }
        _ => {}
    }
}

fn set_name(nodes: &mut Durables, at: &Place, inode: Option<Inode>) {
    let Some(node) = nodes.get_mut(&at.directory) else { return };
    let Body::Directory(names) = Arc::make_mut(&mut node.body) else { return };
    match inode {
        Some(inode) => names.insert(Arc::clone(&at.name), inode),
        None => names.remove(&at.name),
    };
}

/// Lets a write come to `outcome` on `content`.
fn settle_write(content: &mut Content, bytes: &[u8], offset: u64, outcome: Outcome) {
    match outcome {
        Outcome::Lost => {}
        Outcome::Full => content.write(bytes, offset),
        Outcome::Torn(pick) => tear(content, bytes, offset, pick),
        Outcome::Zeroed => {
            let end = offset + bytes.len() as u64;
            content.set_len(content.len().max(end));
        }
        Outcome::Cut(at) => {
            let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            content.write(&bytes[..at], offset);
        }
    }
}

/// Whether unit `unit` of `units` survives: by turns a first part, a last part, or any subset, but
/// never all and never none.
fn survives(pick: u32, unit: u64, units: u64) -> bool {
    if units < 2 {
        return pick & 1 == 0;
    }
    let chance = mix(u64::from(pick));
    let border = 1 + chance % (units - 1);
    match pick % 4 {
        0 => unit < border,
        1 => unit >= border,
        _ if unit == border => true,
        _ if unit == border - 1 => false,
        _ => mix(chance ^ unit) & 1 == 0,
    }
}

fn tear(content: &mut Content, bytes: &[u8], offset: u64, pick: u32) {
    // A kill may cut a write down to nothing, and the power fail behind it.
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len() as u64;
    let unit = if bytes.len() as u64 <= SECTOR { 1 } else { SECTOR };
    let first = offset / unit;
    let units = (end - 1) / unit + 1 - first;
    // The length is metadata, and may be there without the bytes.
    if mix(u64::from(pick)) >> 63 == 1 {
        content.set_len(content.len().max(end));
    }
    for at in (0..units).filter(|at| survives(pick, *at, units)) {
        let from = ((first + at) * unit).max(offset);
        let upto = ((first + at + 1) * unit).min(end);
        let index = |place: u64| usize::try_from(place - offset).unwrap_or(bytes.len());
        content.write(&bytes[index(from)..index(upto)], from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a tear of a write that a kill had cut down to nothing leave everything alone?
    #[test]
    fn a_write_of_nothing_is_not_torn() {
        let mut content = Content::default();
        (0..64).for_each(|pick| tear(&mut content, &[], 0, pick));
        assert_eq!(content.len(), 0);
    }

    /// Does a tear leave each byte old or new, both somewhere, and every byte outside alone?
    #[test]
    fn a_tear_mixes_old_and_new_and_touches_nothing_else() {
        for pick in 0..200 {
            for (offset, len) in [(3usize, 2usize), (100, 400), (700, 5000), (0, 512), (512, 513)] {
                let mut content = Content::default();
                content.write(&[1; 8000], 0);
                tear(&mut content, &vec![2; len], offset as u64, pick);
                let mut bytes = vec![0; 8000];
                assert_eq!(content.read(&mut bytes, 0), 8000);
                let (written, outside): (Vec<_>, Vec<_>) = bytes
                    .iter()
                    .enumerate()
                    .partition(|(at, _)| (offset..offset + len).contains(at));
                assert!(outside.iter().all(|(_, byte)| **byte == 1), "pick {pick}");
                for value in [1, 2] {
                    assert!(written.iter().any(|(_, byte)| **byte == value), "pick {pick}, {len}");
                }
                if len > 512 {
                    let mut sectors = bytes.chunks(512).skip(offset.div_ceil(512));
                    assert!(sectors.all(|s| s.iter().all(|byte| *byte == s[0])
                        || s.len() < 512
                        || {
                            let end = offset + len;
                            // The sector in which the write ends is new only up to there.
                            s[..end % 512].iter().all(|byte| *byte == s[0])
                        }));
                }
            }
        }
    }
}
