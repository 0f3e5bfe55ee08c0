//! A file put whole into a manifest that is being made.

use std::path::Path;

use super::names::{Body, body_of};
use crate::error::{Error, Result};
use crate::manifest::draft::{Draft, row_value};
use crate::manifest::key::Key;
use crate::manifest::row::Row;
use crate::manifest::rows::{BodyRow, FrameRow, PageRow};

impl Draft {
    /// Puts a file in, `len` bytes that `read` gives piece by piece, in order: it is called with the
    /// offset and what to fill. `name` is the path that the file has below a store directory.
    ///
    /// # Errors
    /// `Invalid` for a name that no file of a store has; what `read` returns; as [`Draft::put`].
    pub fn put_file(
        &mut self,
        name: &Path,
        len: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let named = name.to_str().and_then(|name| Some((name.to_owned(), body_of(name)?)));
        let Some((name, body)) = named else {
            return Err(Error::invalid("pack", name.display(), "no file of a store has this name"));
        };
        put(self, &name, &BodyRow { len })?;
        for page in 0..body.pages(len) {
            let at = page.saturating_mul(body.page_bytes());
            let mut bytes = vec![0; body.page_bytes().min(len - at) as usize];
            read(at, &mut bytes)?;
            match body {
                Body::Frames(owner, n) => put(self, &(owner, n, at), &FrameRow { bytes })?,
                Body::Pages(unique) => put(self, &(unique, page), &PageRow { bytes })?,
            }
        }
        Ok(())
    }
}

fn put<R: Row>(draft: &mut Draft, key: &R::Key, row: &R) -> Result<()> {
    draft.put(R::TABLE, &key.to_bytes(), row_value(key, row)?)
}
