//! Values under names: does a model agree, whatever is done, cut off, or done at once; is a value
//! ever read as another type; do readers elsewhere see the same?
#![cfg(feature = "sim")]

mod beside;
mod model;
mod power;
mod refusals;
mod support;
mod threads;
mod types;
