//! The crash campaign, small: what a developer runs. The whole slice is the binary `campaign`.
#![cfg(feature = "sim")]

mod fixtures;
mod images;
mod mutants;
mod packing;
mod salvage;
mod scenarios;
