//! What an outside user can write: every public name, each handle on another thread, and each face
//! in use. It is compiled and not run.

pub mod names;
pub mod threads;
pub mod uses;
