//! Does a check find what is wrong, say where and what it means, and change nothing itself?
#![cfg(feature = "sim")]

#[path = "../golden/describe.rs"]
mod describe;
mod files;
mod recipes;
mod rows;
mod salvage;
mod stages;
mod support;
mod tamper;
mod whole;
