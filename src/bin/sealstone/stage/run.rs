//! Which command it is.

use super::args::{QuarantineCommand, StageCommand};
use super::{append, cat, convert, flush, list, publish, quarantine, remove};
use crate::args::TimeFormat;
use crate::output::{End, Output};

pub fn run(command: &StageCommand, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    match command {
        StageCommand::Append(args) => append::run(args, output),
        StageCommand::Ls(args) => list::run(args, times, output),
        StageCommand::Cat(args) => cat::run(args, output),
        StageCommand::Flush(args) => flush::run(args, output),
        StageCommand::Convert(args) => convert::run(args, output),
        StageCommand::Publish(args) => publish::run(args, output),
        StageCommand::Quarantine { command } => match command {
            QuarantineCommand::Ls(args) => quarantine::list(args, times, output),
            QuarantineCommand::Add(args) => quarantine::add(args, output),
            QuarantineCommand::Retry(args) => quarantine::retry(args, output),
            QuarantineCommand::Export(args) => quarantine::export(args, output),
        },
        StageCommand::Rm(args) => remove::run(args, output),
    }
}
