//! staged: a batch of a stage as its record in a stream, and many of them as the content of a part.
//!
//! ```text
//!   record   head (form, rows, time, key, producer) | the batch's bytes
//!   part     header | frame | frame | ..            each frame holds a record, or names its object
//!              ╰─[scan]─▶ whole
//!                     ├──▶ torn at a frame: those before it are whole, nothing whole is behind it
//!                     ╰──▶ damaged: bytes in its middle do not read, or do not say what they should
//! ```
//!
//! - A source position is in the record of its rows: neither is ever there without the other.
//! - A frame's checksums begin with those of its part's header: no frame of another part, and none that
//!   lies inside a batch, is taken for one of this part.
//! - What a header states is checked against the bytes that are there before anything is allocated.

mod form;
mod part;
mod record;
mod scan;

pub use form::Form;
pub use part::{
    PART_BYTES_MAX, PART_FRAME_BYTES, PART_FRAME_LAYOUT, PART_HEADER_BYTES, PART_HEADER_LAYOUT,
    PartBuilder, PartHeader,
};
pub use record::{
    BATCH_HEAD_BYTES, BATCH_HEAD_BYTES_MAX, BATCH_KEY_BYTES_MAX, BATCH_LAYOUT, BatchHead,
    POSITION_BYTES_MAX, PRODUCER_BYTES_MAX, ProducerMark, decode_batch, decode_head, encode_batch,
    fingerprint,
};
pub use scan::{Content, PartEnd, PartFrame, PartScan, scan_part};
