//! column: records of typed fields. Row-wise in the journal, column by column in a chunk.
//!
//! ```text
//!   value, number, array, axes   what one cell may be         schema    what one record may be
//!   values, data, parts          a column in memory
//!   row_payload       a record as the journal keeps it     row_encoder   the same, value by value
//!   chunk             builder: records in, bytes out          chunk_reader   only the blocks needed
//!   block, block_decode   some records of one column, one codec     coding   which codecs there are
//!   plain, transform, compress, numeric   what codecs are given and do
//! ```
//!
//! - Equal records give equal bytes: no clock, no id, one pinned zstd level.
//! - Every bit of a float comes back, and a missing value stays missing.
//! - Nothing is decoded before its checksum fits, and no length is believed before it is checked.

mod array;
mod axes;
mod block;
mod block_decode;
mod chunk;
mod chunk_reader;
mod coding;
#[cfg(test)]
mod codings;
mod compress;
mod data;
#[cfg(test)]
mod hostile;
mod number;
mod numeric;
mod parts;
mod plain;
mod row_dropped;
mod row_encoder;
pub mod row_payload;
mod schema;
mod transform;
mod value;
mod values;

pub use array::{Array, Elements};
pub use axes::{Axis, RANK_MAX, Shape};
pub use block::{BLOCK_RAW_BYTES, BLOCK_RECORDS_MAX, CHUNK_RAW_BYTES_MAX, VALUE_BYTES_MAX};
pub use chunk::{
    BLOCK_ROW_LAYOUT, END_MAGIC, FOOTER_LAYOUT, HEADER_LAYOUT, HEADER_LEN, MAGIC, TRAILER_LAYOUT,
    TRAILER_LEN, VERSION,
};
pub use chunk::{ChunkBuilder, EncodedChunk};
pub use chunk_reader::{BlockInfo, Chunk, ColumnId, ReadRange};
pub use coding::BlockCodec;
pub use data::Data;
pub use number::Number;
pub use parts::{Blob, Flags};
pub(crate) use row_dropped::{behind_dropped, split_dropped};
pub(crate) use row_encoder::{RowEncoder, push_alone};
pub(crate) use schema::cells_len;
pub use schema::{FIELD_NAME_BYTES_MAX, FIELDS_MAX, Field, OpaqueType, Schema};
pub use value::{FieldType, Value};
pub use values::Column;
