//! The engine as a whole: what a store does from birth to its last byte, on the simulated disk and
//! on the real one.
#![cfg(feature = "sim")]

mod backup;
mod backup_file;
mod backup_shared;
mod checkpoint;
mod compact;
mod fork;
mod no_space;
mod one_file;
mod pack;
mod power;
mod road;
mod sealer;
mod single;
mod small;
mod support;
mod threads;
