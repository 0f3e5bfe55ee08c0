//! What the face is, and what is told of objects and names.

mod door;
mod name;
mod named;

pub use door::Objects;
pub use name::{NAME_BYTES_MAX, NAMESPACE_BYTES_MAX, Name};
pub(in crate::objects) use name::{check_namespace, key_behind, key_of};
pub use named::NameView;
