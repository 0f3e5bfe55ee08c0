//! The command line tool, on the public interface only.
//!
//! No signal is caught: an interrupt ends the process at once, which the shell reports as 130, and
//! what the store promised stands; the next opening recovers.
#![forbid(unsafe_code)]

mod args;
mod backup;
mod cat;
mod check;
mod compact;
mod diff;
mod events;
mod export;
mod failure;
mod follow;
mod fork;
mod import;
mod info;
mod input;
mod ls;
mod objects;
mod open;
mod output;
mod pack;
mod release;
mod retire;
mod salvage;
mod shell;
mod stage;
mod words;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use output::{End, Output};

fn main() -> ExitCode {
    let (arguments, store_of_environment) =
        args::with_store_of_environment(std::env::args_os().collect());
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(refused) => {
            // Help and version go to stdout with 0, usage errors to stderr with 2.
            let code = u8::try_from(refused.exit_code()).unwrap_or(2);
            let _ = refused.print();
            return ExitCode::from(code);
        }
    };
    let mut output = Output::new(&cli.global);
    let times = cli.global.time_format;
    let ended = match &cli.command {
        Command::Import(args) => import::run(args, &mut output),
        Command::Export(args) => export::run(args, &mut output),
        Command::Info(args) => info::run(args, times, &mut output),
        Command::Ls(args) => ls::run(args, times, &mut output),
        Command::Cat(args) => cat::run(args, &mut output),
        Command::Follow(args) => follow::run(args, times, &mut output),
        Command::Events(args) => events::run(args, times, &mut output),
        Command::Retire(args) => retire::run(args, &mut output),
        Command::Check(args) => check::run(args, &mut output),
        Command::Backup(args) => backup::run(args, &mut output),
        Command::Compact(args) => compact::run(args, &mut output),
        Command::Pack(args) => pack::run(args, true, &mut output),
        Command::Unpack(args) => pack::run(args, false, &mut output),
        Command::Salvage(args) => salvage::run(args, &mut output),
        Command::Release(args) => release::run(args, &mut output),
        Command::Diff(args) => diff::run(args, &mut output),
        Command::Fork(args) => fork::fork(args, &mut output),
        Command::Plan(args) => fork::plan(args, &mut output),
        Command::Stage { command } => stage::run(command, times, &mut output),
        Command::Objects(command) => objects::run(command, times, &mut output),
        Command::Claims(args) => stage::claims(args, times, &mut output),
        Command::Completions { shell } => shell::completions(*shell, &mut output),
        Command::Man => shell::manual(&mut output),
    };
    match ended.and_then(|code| output.finish().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(End::PipeClosed) => ExitCode::SUCCESS,
        Err(End::Failed(error)) => output.fail(&error, store_of_environment),
    }
}
