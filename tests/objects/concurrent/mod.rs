//! concurrent: put, retire, reclaim and compaction at the same time.
//!
//! ```text
//!   turns         a disk on which one thread stands still at a chosen step while another one goes on
//!   acts          what each thread does, what must be so behind it, and that nothing is left over
//!   interleavings two at a time, stopped at every step of each
//!   crowd         many threads at once, by seed
//! ```
//!
//! No name refers to bytes that are missing; once all is retired nothing is left.

#[cfg(feature = "sim")]
mod acts;
mod crowd;
#[cfg(feature = "sim")]
mod interleavings;
#[cfg(feature = "sim")]
mod turns;
