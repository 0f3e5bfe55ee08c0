//! What the face is, and what is told of objects and names.

mod door;

pub use door::Objects;
