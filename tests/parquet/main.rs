//! Could a row be lost, doubled or changed on its way from a batch to Parquet, or could no one else read
//! what comes out?

mod cli;
#[path = "../commands/mod.rs"]
mod commands;
mod forms;
mod support;
mod weather;
