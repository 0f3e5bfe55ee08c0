//! Whole reads and writes over a [`File`], whose own may be short or interrupted.

use std::io;

use super::disk::File;

/// Fills `into` from `offset`, or fails: `UnexpectedEof` when the file ends before.
pub fn read_exact_at(file: &dyn File, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !into.is_empty() {
        match file.read_at(into, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                let n = n.min(into.len());
                into = &mut into[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes all of `from` at `offset`, in slices of at most 512 KiB, or fails.
pub fn write_all_at(file: &dyn File, mut from: &[u8], mut offset: u64) -> io::Result<()> {
    // Larger buffered writes cost 4-8 times the CPU.
    const SLICE_BYTES_MAX: usize = 512 << 10;
    while !from.is_empty() {
        match file.write_at(&from[..from.len().min(SLICE_BYTES_MAX)], offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                let n = n.min(from.len());
                from = &from[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Reads a whole file of at most `bytes_max`; a longer one is `InvalidData`.
pub fn read_whole(file: &dyn File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let len = file.len()?;
    if len > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too long"));
    }
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes)
}
