//! What users of recordings rely on: each line of the behaviours is a test named after it.

mod decoders;
#[cfg(feature = "sim")]
mod follow;
#[cfg(feature = "sim")]
mod followed_run;
#[cfg(feature = "sim")]
mod retention;
mod start;
mod support;
