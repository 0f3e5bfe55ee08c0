//! What can still be had of an extent that does not read whole: for whoever sets it aside.

use std::path::Path;
use std::sync::Arc;

use super::reader::Reader;
use crate::error::{Error, ErrorKind, Result};
use crate::format::sealed::{Blocks, Framing};
use crate::vfs::{Access, Disk};

impl Reader {
    /// The stored bytes of the extent at `offset` of the file at `path`, from the first on, as many as
    /// the file still has, be it cut short, damaged or gone. P6: their checksums are not looked at:
    /// whoever calls this uses only what passes a checksum inside the content.
    ///
    /// With `even_refused` what the disk refuses is bytes that are not there: zeros, where others stand
    /// behind them.
    ///
    /// # Errors
    /// `Io` for what the disk refuses.
    pub(crate) fn remains(
        disk: &Arc<dyn Disk>,
        path: &Path,
        offset: u64,
        stored_len: u64,
        even_refused: bool,
    ) -> Result<Vec<u8>> {
        let refused = |e| Error::io("open", path.display(), e);
        let file = match disk.open(path, Access::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound || even_refused => {
                return Ok(Vec::new());
            }
            Err(e) => return Err(refused(e)),
        };
        let len = file.len().map_err(refused)?;
        let framing = Framing { block_bytes: 1, seed: 0 };
        let mut reader = Self { file, path: path.to_owned(), len, framing };
        reader.framing = match reader.read_framing() {
            Ok(framing) => framing,
            Err(e) if e.kind() == ErrorKind::Damage || even_refused => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        match Blocks::new(offset, stored_len, reader.framing.block_bytes) {
            Some(blocks) => reader.remaining(&blocks, even_refused),
            None => Ok(Vec::new()),
        }
    }

    fn remaining(&self, blocks: &Blocks, even_refused: bool) -> Result<Vec<u8>> {
        let mut remains = Vec::new();
        for block in 0..blocks.count() {
            let (at, held) = (blocks.at(block), blocks.holds(block));
            // P9: no more than the file has.
            let there = self.len.saturating_sub(at).min(held.end - held.start);
            if there == 0 {
                break;
            }
            let mut found = vec![0; there as usize];
            match self.fill(&mut found, at) {
                Err(e) if e.kind() != ErrorKind::Damage && !even_refused => return Err(e),
                _ => remains.append(&mut found),
            }
        }
        Ok(remains)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::format::label::Label;
    use crate::ids::{CommitSeq, OwnerId, StoreId, UniqueId};
    use crate::sealed::{Builder, Extent};
    use crate::vfs::RealDisk;
    use std::fs;

    /// Of a file that was cut, in which a byte changed, or that is gone: is everything given that is there?
    #[test]
    fn stg14_what_is_left_of_a_file_is_given() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
        let (owner, unique) = (OwnerId::from_parts(1, [1; 10]), UniqueId::from_parts(1, [2; 10]));
        let bytes: Vec<u8> = (0..250u32).map(|n| n as u8).collect();
        let mut builder = Builder::create(&disk, dir.path(), owner, unique, 100).unwrap();
        let extent = Extent { digest: Digest::of(&bytes), len: 250, codec: 0, about: b"" };
        let at = builder.add(&extent, &bytes).unwrap().offset;
        let label = Label {
            store: StoreId::from_parts(1, [3; 10]),
            referrers: Vec::new(),
            inputs: Vec::new(),
            commit: CommitSeq(1),
        };
        let path = builder.finish(&label).unwrap().tmp;
        let whole = fs::read(&path).unwrap();
        let left = |file: &[u8]| {
            fs::write(&path, file).unwrap();
            Reader::remains(&disk, &path, at, 250, false).unwrap()
        };
        assert_eq!(left(&whole), bytes);
        // The second block misses its last byte; then its checksum alone is missing.
        assert_eq!(left(&whole[..at as usize + 104 + 99]), bytes[..199]);
        assert_eq!(left(&whole[..at as usize + 104 + 101]), bytes[..200]);
        let mut changed = whole.clone();
        changed[at as usize + 104 + 5] ^= 1;
        assert_eq!((left(&changed).len(), left(&changed)[105]), (250, bytes[105] ^ 1));
        assert_eq!(left(b""), b"");
        fs::remove_file(&path).unwrap();
        assert_eq!(Reader::remains(&disk, &path, at, 250, false).unwrap(), b"");
    }
}
