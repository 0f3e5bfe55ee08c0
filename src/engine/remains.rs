//! What is left of an object that does not read whole: for a face that sets it aside.

use super::store::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::ObjectId;
use crate::manifest::{FileRow, ObjectRow, Place, Reading};
use crate::sealed::Reader;

impl Store {
    /// Whatever of an object still can be had, from its first byte on. P6: where it does not read whole
    /// nothing of it was verified: whoever calls this uses only what passes a checksum inside it. With
    /// `even_refused` bytes that the disk refuses are bytes that are not there, and no error.
    ///
    /// # Errors
    /// `NotFound`; `NewerFormat`; `Io`.
    pub(crate) fn remains(&self, object: ObjectId, even_refused: bool) -> Result<Vec<u8>> {
        match self.fetch(object) {
            Ok(bytes) => return Ok(bytes),
            Err(e) if e.kind() == ErrorKind::Damage => {}
            Err(e) if e.kind() == ErrorKind::Io && even_refused => {}
            Err(e) => return Err(e),
        }
        let core = self.core();
        let snapshot = core.snapshot()?;
        let Some(row) = snapshot.get::<ObjectRow>(&object)? else {
            let cause = "no such object; it may have been retired";
            return Err(Error::new(
                ErrorKind::NotFound,
                "fetch",
                format!("object {object}"),
                cause,
            ));
        };
        let Place::Extent { file, offset } = row.place else { return Ok(Vec::new()) };
        let Some(file) = snapshot.get::<FileRow>(&file)? else { return Ok(Vec::new()) };
        let folders = core.manifest.meta().sealed_folders;
        let path = layout::sealed(&core.root, &file.digest, file.unique, folders);
        Reader::remains(&core.disk, &path, offset, row.stored_len, even_refused)
    }
}
