//! What the face is, and what is told of objects and names.

mod door;
mod name;
mod named;

pub use door::Objects;
pub use name::{NAME_BYTES_MAX, NAMESPACE_BYTES_MAX, Name};
pub use named::NameView;
