//! Builds one sealed file in tmp/: each byte is copied and checksummed once, and written in aligned
//! slices. Whoever adds an extent has hashed it: the file's own digest is over what names the extents.
//! Memory: one slice, the footer so far, and at the end the label.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::slices::Slices;
use crate::digest::{Digest, Hasher, checksum};
use crate::error::{Error, ErrorKind, Result};
use crate::format::footer::{ExtentAt, pad, push_entry};
use crate::format::label::Label;
use crate::format::layout;
use crate::format::sealed::{BLOCK_BYTES_MAX, Framing, HEADER_BYTES, SEED_BYTES_MAX, seed_of};
use crate::format::trailer::{TRAILER_BYTES, Trailer};
use crate::ids::{OwnerId, UniqueId};
use crate::vfs::{Access, Disk, Step};

/// What a caller says about the bytes that it stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent<'a> {
    /// Digest of the raw bytes, before any codec.
    pub digest: Digest,
    /// Length of the raw bytes.
    pub len: u64,
    /// How the raw bytes became the stored ones.
    pub codec: u8,
    /// Describes the extent in the file's footer, for salvage.
    pub about: &'a [u8],
}

/// A finished file in tmp/, synced, not placed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Where it stands.
    pub tmp: PathBuf,
    /// Makes its path unique.
    pub unique: UniqueId,
    /// Digest of its header, footer and trailer, and by the extents' digests in the footer of all its
    /// content: the label is not in it.
    pub digest: Digest,
    /// Length of the file, label included.
    pub len: u64,
    /// `len` less the stored bytes of all extents.
    pub framing: u64,
    /// Its extents, in the order in which they were added.
    pub extents: Vec<ExtentAt>,
}

/// A sealed file being built. Dropped before [`Builder::finish`], it takes its file from tmp/.
#[derive(Debug)]
pub struct Builder {
    out: Slices,
    unique: UniqueId,
    block_bytes: u32,
    /// Takes in header, footer and trailer.
    hasher: Hasher,
    /// Known once the first bytes of the first extent are.
    framing: Option<Framing>,
    /// Those bytes, until then.
    held: Vec<u8>,
    current: Option<Current>,
    footer: Vec<u8>,
    extents: Vec<ExtentAt>,
}

/// The extent that is being pushed.
#[derive(Debug)]
struct Current {
    offset: u64,
    stored_len: u64,
    in_block: u32,
    crc: u32,
}

impl Builder {
    /// Begins `tmp/<owner>-<unique>` in the store at `root`, with blocks of `block_bytes`.
    ///
    /// # Errors
    /// `Invalid` for blocks of no byte or of more than 64 MiB; `Exists` when `unique` is used
    /// already; `Io`, `DiskFull`.
    pub fn create(
        disk: &Arc<dyn Disk>,
        root: &Path,
        owner: OwnerId,
        unique: UniqueId,
        block_bytes: u64,
    ) -> Result<Self> {
        let block_bytes = u32::try_from(block_bytes)
            .ok()
            .filter(|bytes| (1..=BLOCK_BYTES_MAX).contains(bytes))
            .ok_or_else(|| Error::invalid("seal", "block_bytes", "give 1 to 64 MiB"))?;
        let path = layout::tmp(root, owner, unique);
        disk.mark(Step::SealBuild);
        let file = disk.open(&path, Access::CreateNewDirect).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let cause = "the name is taken; nothing was changed";
                Error::new(ErrorKind::Exists, "seal", path.display(), cause).with_source(e)
            }
            _ => Error::io("seal", path.display(), e),
        })?;
        Ok(Self {
            out: Slices::new(Arc::clone(disk), file, path),
            unique,
            block_bytes,
            hasher: Hasher::default(),
            framing: None,
            held: Vec::new(),
            current: None,
            footer: Vec::new(),
            extents: Vec::new(),
        })
    }

    /// Adds one extent whole.
    ///
    /// # Errors
    /// As [`Builder::push`].
    pub fn add(&mut self, extent: &Extent<'_>, stored: &[u8]) -> Result<ExtentAt> {
        self.begin()?;
        self.push(stored)?;
        self.end(extent)
    }

    /// Begins an extent whose stored bytes come in pieces.
    ///
    /// # Errors
    /// `Invalid` inside another extent.
    pub fn begin(&mut self) -> Result<()> {
        if self.current.is_some() {
            return Err(self.out.misuse("an extent begins inside another"));
        }
        let offset = if self.framing.is_some() { self.out.len() } else { HEADER_BYTES as u64 };
        let crc = self.framing.map_or(0, |framing| framing.block_checksum(offset));
        self.current = Some(Current { offset, stored_len: 0, in_block: 0, crc });
        Ok(())
    }

    /// The next stored bytes of the current extent. The file does not depend on how they are cut.
    ///
    /// # Errors
    /// `Invalid` outside an extent; `Io`, `DiskFull`, after which every call fails with the same
    /// error; `Forked`.
    pub fn push(&mut self, mut stored: &[u8]) -> Result<()> {
        if self.current.is_none() {
            return Err(self.out.misuse("bytes outside an extent"));
        }
        if self.framing.is_none() {
            // The seed comes before the first checksum, and no seed without these bytes.
            if self.held.is_empty() && stored.len() >= SEED_BYTES_MAX {
                self.start(stored)?;
            } else {
                let (head, rest) =
                    stored.split_at(stored.len().min(SEED_BYTES_MAX - self.held.len()));
                self.held.extend_from_slice(head);
                if self.held.len() < SEED_BYTES_MAX {
                    return Ok(());
                }
                self.start_with_held()?;
                stored = rest;
            }
        }
        self.put_blocks(stored)
    }

    /// Ends the current extent and says what it was.
    ///
    /// # Errors
    /// `Invalid` outside an extent; `LimitExceeded` for a description of 4 GiB; as
    /// [`Builder::push`].
    pub fn end(&mut self, extent: &Extent<'_>) -> Result<ExtentAt> {
        if self.framing.is_none() && self.current.is_some() {
            self.start_with_held()?;
        }
        let Some(current) = self.current.take() else {
            return Err(self.out.misuse("an extent ends that did not begin"));
        };
        if current.in_block > 0 {
            self.out.put(&current.crc.to_le_bytes())?;
        }
        let Extent { digest, len, codec, about } = *extent;
        let Current { offset, stored_len, .. } = current;
        let at = ExtentAt { digest, len, codec, offset, stored_len };
        push_entry(&mut self.footer, &at, about)?;
        self.extents.push(at);
        Ok(at)
    }

    /// Bytes of content so far, the footer not counted.
    pub fn content_len(&self) -> u64 {
        self.out.len() + self.held.len() as u64
    }

    /// The extents added so far.
    pub fn extents(&self) -> &[ExtentAt] {
        &self.extents
    }

    /// Writes footer, trailer and label, and syncs the file.
    ///
    /// # Durability
    /// The bytes are durable; a name for them is not: see [`place`](super::place).
    ///
    /// # Errors
    /// `Invalid` inside an extent; `LimitExceeded` for a label above 16 MiB; `Io`, `DiskFull`, after
    /// which nothing of the file counts; `Forked`.
    pub fn finish(mut self, label: &Label) -> Result<Built> {
        if self.current.is_some() {
            return Err(self.out.misuse("the file ends inside an extent"));
        }
        let framing = match self.framing {
            Some(framing) => framing,
            None => self.start(&[])?,
        };
        let footer_offset = self.out.len();
        pad(&mut self.footer, footer_offset);
        let trailer = Trailer {
            footer_offset,
            content_len: footer_offset + (self.footer.len() + TRAILER_BYTES) as u64,
            extents: self.extents.len() as u64,
            framing,
            footer_crc: checksum(&self.footer),
        };
        let trailer_bytes = trailer.to_bytes();
        self.out.put(&self.footer)?;
        self.out.put(&trailer_bytes)?;
        self.hasher.update(&self.footer);
        self.hasher.update(&trailer_bytes);
        let digest = self.hasher.finish();
        self.out.put(&label.to_bytes(&digest, trailer.content_len)?)?;
        let len = self.out.sync()?;
        let stored: u64 = self.extents.iter().map(|extent| extent.stored_len).sum();
        Ok(Built {
            tmp: self.out.path().to_owned(),
            unique: self.unique,
            digest,
            len,
            framing: len - stored,
            extents: std::mem::take(&mut self.extents),
        })
    }

    /// Fixes the seed by the first stored bytes, and writes the header.
    fn start(&mut self, first_stored: &[u8]) -> Result<Framing> {
        let framing = Framing { block_bytes: self.block_bytes, seed: seed_of(first_stored) };
        let header = framing.header();
        self.out.put(&header)?;
        self.hasher.update(&header);
        self.framing = Some(framing);
        if let Some(current) = &mut self.current {
            current.crc = framing.block_checksum(current.offset);
        }
        Ok(framing)
    }

    fn start_with_held(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        self.start(&held)?;
        self.put_blocks(&held)
    }

    fn put_blocks(&mut self, mut stored: &[u8]) -> Result<()> {
        let (Some(framing), Some(current)) = (self.framing, &mut self.current) else {
            return Ok(());
        };
        while !stored.is_empty() {
            let left = (framing.block_bytes - current.in_block) as usize;
            let (piece, rest) = stored.split_at(stored.len().min(left));
            current.crc = self.out.put_checked(piece, current.crc)?;
            current.stored_len += piece.len() as u64;
            current.in_block += piece.len() as u32;
            stored = rest;
            if current.in_block == framing.block_bytes {
                self.out.put(&current.crc.to_le_bytes())?;
                current.in_block = 0;
                current.crc = framing.block_checksum(self.out.len());
            }
        }
        Ok(())
    }
}
