//! What could go wrong with a sealed file: content that depends on more than its extents, damage that
//! passes, reads that touch too much, names that come too early.

mod build;
#[cfg(feature = "sim")]
mod crash;
mod damage;
#[cfg(feature = "sim")]
mod faults;
mod fork;
mod random;
#[cfg(feature = "sim")]
mod ranges;
mod support;
