//! describing: what a batch is, and the key that it is put under.
//!
//! ```text
//!   KeyShape ──[check]──▶ Key ──[to_bytes]──▶ bytes in the order of the keys
//!   Batch: form, rows, bytes        Produced: whose batch it is, and where its source stood
//! ```
//!
//! - Bytes of keys compare as the keys do, part by part: rows of a stage lie in the order of its keys.
//! - A key says of each part what it is: it reads back without its shape.

mod batch;
#[cfg(feature = "interop")]
mod batch_forms;
mod group;
mod key;
mod lengths;
mod minute;
mod produced;
mod shape;
mod spelled;

pub use batch::Batch;
pub use group::GroupView;
pub use key::{KEY_BYTES_MAX, Key, KeyPart};
pub(in crate::staging) use lengths::{Said, shortened};
pub use produced::Produced;
pub use shape::{KEY_FIELDS_MAX, KeyShape, KeyType};
