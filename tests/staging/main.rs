//! Staging: is each acknowledged row in exactly one place, whatever happens?
#![cfg(feature = "sim")]

mod handing_off;
