//! Long content that is not cut: it goes into a sealed file of its own while it is read.

use super::options::{Compress, PutOptions, Stored};
use super::preparation::Preparation;
use super::refer::{check_lease, keep};
use super::source::Source;
use crate::engine::Content;
use crate::error::Result;
use crate::manifest::{Key, Table};
use crate::vfs::Step;

impl Preparation {
    /// Stores the first `filled` bytes of `window`, and what follows, as one object. Memory: the window, and
    /// a slice.
    pub(super) fn put_alone(
        &self,
        window: &mut [u8],
        filled: usize,
        from: &mut dyn Source,
        options: &PutOptions,
    ) -> Result<Stored> {
        let mut len = 0u64;
        let referrer = (Table::Leases.number(), self.lease().to_bytes(), Vec::new());
        let compress = options.compress == Compress::Auto;
        let content = Content::new(Vec::new(), Some(referrer));
        let content = Content { in_file: true, compress, ..content };
        let mut own = Vec::new();
        let window = if window.is_empty() {
            own.resize(1 << 20, 0);
            &mut own[..]
        } else {
            window
        };
        let mut set = self.store.seal_written(content, |push, _| {
            let mut filled = filled;
            loop {
                push(window.get(..filled).unwrap_or_default())?;
                len += filled as u64;
                filled = from.fill(window)?;
                if filled == 0 {
                    return Ok(());
                }
            }
        })?;
        let digest = set.digests().first().copied().unwrap_or(crate::digest::Digest([0; 32]));
        let is_new = !self.is_known(&digest)?;
        let lease = self.lease();
        self.store.publish_again(&mut set, Step::PutCommit, |w, objects| {
            check_lease(w, lease, self.name())?;
            objects.iter().try_for_each(|object| keep(w, lease, *object))
        })?;
        let new_bytes = if is_new { len } else { 0 };
        Ok(Stored { digest, len, pieces: 0, new_bytes, is_new })
    }
}
