//! Staging: is each acknowledged row in exactly one place, whatever happens; and does what comes late stay out
//! of what is detached?
#![cfg(feature = "sim")]

mod blocked;
mod flush;
mod handing_off;
mod power;
mod producers;
mod removing;
mod shared;
mod support;
mod taking_in;

#[path = "../recording/gate.rs"]
#[allow(dead_code)]
mod gate;
