//! stage: the commands over stages.
//!
//! ```text
//!   lines ──[keys]──▶ slab ──[append]──▶ stage ──[flush]──▶ detached groups ──▶ outputs ──[publish]──▶ files
//! ```

mod append;
mod args;
mod cat;
mod claims;
mod convert;
mod flush;
mod keys;
mod lines;
mod list;
mod minutes;
mod part;
mod pattern;
mod publish;
mod quarantine;
mod remove;
mod run;
mod slab;

pub use args::StageCommand;
pub use claims::run as claims;
pub use run::run;
