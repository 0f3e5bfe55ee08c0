//! Does a check find what is wrong, say where and what it means, and change nothing itself?
#![cfg(feature = "sim")]

mod files;
mod rows;
mod support;
mod whole;
