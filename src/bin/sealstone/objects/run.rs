//! Which command it is.

use super::args::{LeaseCommand, NamesCommand, ObjectsCommand, SnapshotCommand};
use super::{du, gc, get, lease, names, put, scrub, snapshot, why};
use crate::args::TimeFormat;
use crate::output::{End, Output};

pub fn run(command: &ObjectsCommand, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    match command {
        ObjectsCommand::Put(args) => put::run(args, output),
        ObjectsCommand::Get(args) => get::run(args, output),
        ObjectsCommand::Names(args) => match &args.command {
            Some(NamesCommand::Rm(args)) => names::remove(args, output),
            None => names::list(args, output),
        },
        ObjectsCommand::Lease { command } => match command {
            LeaseCommand::Ls(args) => lease::list(args, times, output),
            LeaseCommand::Abandon(args) => lease::abandon(args, output),
            LeaseCommand::Publish(args) => lease::publish(args, output),
        },
        ObjectsCommand::Snapshot { command } => match command {
            SnapshotCommand::Create(args) => snapshot::create(args, output),
            SnapshotCommand::Ls(args) => snapshot::list(args, times, output),
            SnapshotCommand::Cat(args) => snapshot::cat(args, output),
            SnapshotCommand::Rm(args) => snapshot::remove(args, output),
        },
        ObjectsCommand::Gc(args) => gc::run(args, output),
        ObjectsCommand::Scrub(args) => scrub::run(args, output),
        ObjectsCommand::Why(args) => why::run(args, times, output),
        ObjectsCommand::Du(args) => du::run(args, output),
    }
}
