//! Tickets as futures, without any runtime: do they end as a wait would, with nobody waiting; do
//! they leave nothing behind; does a store that stops wake all of them?
#![cfg(feature = "sim")]

mod block_on;
mod errors;
mod many;
mod wakers;
