//! What users of recordings rely on: each line of the behaviours is a test named after it.

#[cfg(feature = "sim")]
mod abandoned;
#[cfg(feature = "sim")]
mod aside;
#[cfg(feature = "sim")]
mod atomic;
mod bits;
mod catalogue;
#[cfg(feature = "sim")]
mod checkpoint;
#[cfg(feature = "sim")]
mod chunks;
mod decoders;
mod diff;
#[cfg(feature = "sim")]
mod ends;
#[cfg(feature = "sim")]
mod events;
#[cfg(feature = "sim")]
mod follow;
#[cfg(feature = "sim")]
mod follow_rows;
#[cfg(feature = "sim")]
mod followed;
#[cfg(feature = "sim")]
mod followed_run;
#[cfg(feature = "sim")]
mod fork;
#[cfg(feature = "sim")]
mod gate;
#[cfg(feature = "sim")]
mod histories;
mod hostile;
#[cfg(feature = "sim")]
mod killed;
#[cfg(feature = "sim")]
mod left_out;
mod lenient;
mod made;
#[cfg(feature = "sim")]
mod moving;
mod observe;
#[cfg(feature = "sim")]
mod overflow;
#[cfg(feature = "sim")]
mod queue;
mod read;
#[cfg(feature = "sim")]
mod resume;
#[cfg(feature = "sim")]
mod resuming;
#[cfg(feature = "sim")]
mod retention;
#[cfg(feature = "sim")]
mod rig;
mod sampling;
#[cfg(feature = "sim")]
mod settings;
mod start;
mod support;
#[cfg(feature = "sim")]
mod waited;
