//! Where content is cut: a function of the bytes near the cut alone, so that an edit moves few cuts. Equal
//! content is cut alike, however it is read.

use fastcdc::v2020::{Normalization, cut, select_masks};

use super::options::Lengths;

/// Cuts content into pieces of some lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutter {
    lengths: Lengths,
    masks: (u64, u64),
}

impl Cutter {
    pub(super) fn new(lengths: Lengths) -> Self {
        Self { lengths, masks: select_masks(lengths.avg, Normalization::Level1) }
    }

    /// How long a window must be for several pieces to be cut from it.
    pub(super) fn window_bytes(&self) -> usize {
        (2 * self.lengths.max).max(2 << 20)
    }

    /// The length of the piece with which `window` begins. Unknown while more content could move its end.
    pub(super) fn piece(&self, window: &[u8], is_end: bool) -> Option<usize> {
        let Lengths { min, avg, max } = self.lengths;
        if window.is_empty() || (window.len() < max && !is_end) {
            return None;
        }
        let (small, large) = self.masks;
        let (_, len) = cut(window, min, avg, max, small, large, small << 1, large << 1);
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::storing::options::Pieces;

    fn cuts(cutter: &Cutter, content: &[u8], window: usize) -> Vec<usize> {
        let (mut cuts, mut at) = (Vec::new(), 0);
        while at < content.len() {
            let upto = content.len().min(at + window);
            at += cutter.piece(&content[at..upto], upto == content.len()).unwrap();
            cuts.push(at);
        }
        cuts
    }

    /// Is the same content cut alike, whatever part of it is seen at a time?
    #[test]
    fn cuts_do_not_depend_on_the_window() {
        let cutter = Cutter::new(Pieces::Auto.lengths().unwrap().unwrap());
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        let content: Vec<u8> = (0..1_000_001).map(|_| next()).collect();
        let all = cuts(&cutter, &content, content.len());
        for window in [128 << 10, (128 << 10) + 1, 300_001] {
            assert_eq!(cuts(&cutter, &content, window), all);
        }
        assert!(cutter.piece(&content[..(128 << 10) - 1], false).is_none());
        assert!((15..60).contains(&all.len()), "{all:?}");
    }
}
