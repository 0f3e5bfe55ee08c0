//! Several processes that write into one store: who may write what, what a dead one leaves, and what
//! a suspended one keeps. The tests start their own binary again as a child.
//!
//! `SEALSTONE_SEED` replays a run as far as real processes can be replayed.
#![cfg(feature = "sim")]

mod access;
mod campaign;
mod child;
#[path = "../children/mod.rs"]
mod children;
mod loops;
mod recordings;
mod support;
mod two;
