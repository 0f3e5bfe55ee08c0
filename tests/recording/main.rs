//! What users of recordings rely on: each line of the behaviours is a test named after it.

mod decoders;
mod start;
mod support;
