//! Staging: is each acknowledged row in exactly one place, whatever happens; and does what comes late stay out
//! of what is detached?
//!
//! `SEALSTONE_SEED` replays a run as far as real processes can be replayed.
#![cfg(feature = "sim")]

mod backlog;
mod blocked;
mod bounds;
mod child;
#[path = "../children/mod.rs"]
mod children;
mod claimed;
mod cli;
#[cfg(feature = "cli")]
#[path = "../commands/mod.rs"]
mod commands;
mod converting;
mod counting;
mod flush;
mod generations;
mod handing_off;
mod json_lines;
mod lengths;
mod lives;
mod matrix;
mod outputs;
mod power;
mod producers;
mod quarantine;
mod reading;
mod removing;
mod rows;
mod salvaged;
mod salvaged_pieces;
mod set_aside;
mod shared;
mod support;
mod taking_in;
mod unread;
mod unreleased;
mod words;

#[path = "../recording/gate.rs"]
#[allow(dead_code)]
mod gate;
