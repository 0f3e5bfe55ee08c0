//! Staging: is each acknowledged row in exactly one place, whatever happens; and does what comes late stay out
//! of what is detached?
#![cfg(feature = "sim")]

mod blocked;
mod cli;
mod converting;
mod flush;
mod generations;
mod handing_off;
mod outputs;
mod power;
mod producers;
mod quarantine;
mod reading;
mod removing;
mod shared;
mod support;
mod taking_in;
mod words;

#[path = "../recording/gate.rs"]
#[allow(dead_code)]
mod gate;
