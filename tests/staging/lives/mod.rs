//! lives: a stage through several processes, killed among them, and what is there at the end.
//!
//! ```text
//!   source ── rows that know where they belong ──▶ ingest (a child: producers, flusher, converter)
//!     │                                                        │ lives, killed [whole]
//!   tally ◀── every row read back, from the view and from the outputs ◀──┘
//!     ▲
//!   truncating: writers that do what others did, which the tally must see
//! ```

pub mod ingest;
pub mod marks;
pub mod source;
pub mod tally;
mod truncating;
mod whole;
