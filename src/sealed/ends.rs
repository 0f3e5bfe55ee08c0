//! The two ends of a sealed file: header in front; footer, trailer and label behind. What the file
//! says of itself, and whether it is the one that a row means.

use super::reader::{RUN_BYTES, Reader};
use crate::digest::{Digest, Hasher};
use crate::error::{Error, ErrorKind, Result};
use crate::format::footer::{CODEC_NONE, ExtentAt, Footer};
use crate::format::label::{LABEL_BODY_BYTES_MAX, LABEL_END_BYTES, Label, LabelEnd};
use crate::format::sealed::{Framing, HEADER_BYTES};
use crate::format::trailer::{TRAILER_BYTES, Trailer};
use crate::ids::StoreId;

impl Reader {
    /// What the file says is inside.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat`; `Io`.
    pub fn footer(&self) -> Result<Footer> {
        let trailer = self.trailer()?;
        if trailer.framing != self.framing {
            let cause = "header and trailer do not belong together";
            return Err(Error::damage("read", self.at(trailer.content_len), cause));
        }
        let end = trailer.content_len - TRAILER_BYTES as u64;
        let bytes = self.bytes(trailer.footer_offset..end)?;
        Footer::from_bytes(&bytes, &trailer).map_err(|e| self.placed(trailer.footer_offset, e))
    }

    /// Who referred to the file at its birth.
    ///
    /// # Errors
    /// `Damage`, which does not concern the content; `NewerFormat`; `Io`.
    pub fn label(&self) -> Result<Label> {
        let end = self.label_end()?;
        let body_end = end.content_len + u64::from(end.body_len);
        let body = self.bytes(end.content_len..body_end)?;
        Label::from_bytes(&end, &body).map_err(|e| self.placed(end.content_len, e))
    }

    /// Reads the whole content: every block against its checksum, every extent that is stored as it is
    /// against its digest, and what names them against `digest`. The place is told.
    ///
    /// An extent behind a codec has the digest of other bytes than the stored ones: whoever decodes
    /// it compares.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat`; `Io`.
    pub fn verify(&self, digest: &Digest) -> Result<()> {
        self.header()?;
        let footer = self.footer()?;
        for described in &footer.extents {
            self.verify_extent(&described.extent)?;
        }
        let trailer = self.trailer()?;
        let mut hasher = Hasher::default();
        hasher.update(&self.bytes(0..HEADER_BYTES as u64)?);
        hasher.update(&self.bytes(trailer.footer_offset..trailer.content_len)?);
        let found = hasher.finish();
        if found == *digest {
            return Ok(());
        }
        let cause =
            format!("the content is whole but another: its digest is {found}, not {digest}");
        Err(Error::damage("verify", self.path.display(), cause))
    }

    fn verify_extent(&self, extent: &ExtentAt) -> Result<()> {
        let mut hasher = Hasher::default();
        let is_plain = extent.codec == CODEC_NONE;
        self.read_through(extent.offset, extent.stored_len, &mut |piece| {
            if is_plain {
                hasher.update(piece);
            }
        })?;
        let found = hasher.finish();
        if is_plain && (found != extent.digest || extent.len != extent.stored_len) {
            let named = extent.digest;
            let cause = format!("the extent is whole but another: it is {found}, not {named}");
            return Err(Error::damage("verify", self.at(extent.offset), cause));
        }
        Ok(())
    }

    fn header(&self) -> Result<Framing> {
        let mut bytes = [0; HEADER_BYTES];
        self.fill(&mut bytes, 0)?;
        Framing::from_header(&bytes).map_err(|e| self.placed(0, e))
    }

    /// The framing by the header, or by the trailer that repeats it.
    pub(super) fn read_framing(&self) -> Result<Framing> {
        match self.header() {
            Err(e) if e.kind() == ErrorKind::Damage => {
                // P6: a damaged header takes no block with it.
                self.trailer().map(|trailer| trailer.framing).map_err(|_| e)
            }
            header => header,
        }
    }

    /// Is this the file that its row means, and not one that took its place?
    pub(super) fn identify(&self, digest: &Digest, store: Option<StoreId>) -> Result<()> {
        let end = match self.label_end() {
            Ok(end) => end,
            Err(e) if e.kind() == ErrorKind::Damage => return self.verify(digest),
            Err(e) => return Err(e),
        };
        if end.digest == *digest {
            return Ok(());
        }
        let cause = format!("by its label it holds {}, not {digest}", end.digest);
        match store {
            Some(store) if store != end.store => {
                let cause = format!("{cause}, and was sealed by store {}", end.store);
                Err(Error::new(ErrorKind::Foreign, "open", self.path.display(), cause))
            }
            _ => Err(Error::damage("open", self.path.display(), cause)),
        }
    }

    fn label_end(&self) -> Result<LabelEnd> {
        let at = self.len.saturating_sub(LABEL_END_BYTES as u64);
        let mut bytes = [0; LABEL_END_BYTES];
        self.fill(&mut bytes, at)?;
        LabelEnd::from_bytes(&bytes, self.len).map_err(|e| self.placed(at, e))
    }

    /// The trailer, where the label says it is; with a damaged label, where it is found.
    fn trailer(&self) -> Result<Trailer> {
        match self.label_end() {
            Ok(end) => self.trailer_before(end.content_len),
            Err(e) if e.kind() == ErrorKind::Damage => self.find_trailer(e),
            Err(e) => Err(e),
        }
    }

    fn trailer_before(&self, end: u64) -> Result<Trailer> {
        let at = end.saturating_sub(TRAILER_BYTES as u64);
        let mut bytes = [0; TRAILER_BYTES];
        self.fill(&mut bytes, at)?;
        Trailer::from_bytes(&bytes, end).map_err(|e| self.placed(at, e))
    }

    /// Looks for the trailer from the end back, as far as a label may be long.
    fn find_trailer(&self, why: Error) -> Result<Trailer> {
        let label_max = (LABEL_BODY_BYTES_MAX + LABEL_END_BYTES + TRAILER_BYTES) as u64;
        let lowest = self.len.saturating_sub(label_max);
        let mut end = self.len;
        loop {
            let from = end.saturating_sub(RUN_BYTES).max(lowest);
            let window = self.bytes(from..end)?;
            if let Some(trailer) = Trailer::find(&window, from) {
                return Ok(trailer);
            }
            if from == lowest {
                return Err(why);
            }
            end = from + TRAILER_BYTES as u64 - 1;
        }
    }
}
