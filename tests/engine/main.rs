//! The engine as a whole: what a store does from birth to its last byte, on the simulated disk and
//! on the real one.
#![cfg(feature = "sim")]

mod backup;
mod checkpoint;
mod compact;
mod no_space;
