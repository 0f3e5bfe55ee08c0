//! The command line of objects, as clap sees it.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sealstone::objects::{Compress, Digest, Expected, Name, Pieces, Publish, PutOptions};

use crate::args::{LayoutName, StoreArgs, records, size};

#[derive(Debug, Subcommand)]
pub enum ObjectsCommand {
    /// Store files by content, and publish them under names, or lease them to be published later
    ///
    /// Everything is durable when it returns: with --name readers see all names, or none yet, whenever it is cut
    /// off. A put that was stopped goes on when it is called again: what was stored is not stored twice.
    Put(PutArgs),
    /// Write an object out: to standard output, or to a file that is named here
    ///
    /// Every byte passed its checksum before it is written, and a whole object its digest before --output is
    /// there, durable: a damaged one leaves no file. What a name says never chooses a path.
    Get(GetArgs),
    /// List namespaces, or the names in one; `names rm` lets go of one
    Names(NamesArgs),
    /// Preparations: what was put and is not published yet
    Lease {
        #[command(subcommand)]
        command: LeaseCommand,
    },
    /// Snapshots of names: what they name stays, whatever happens to the names
    Snapshot {
        #[command(subcommand)]
        command: SnapshotCommand,
    },
    /// Give bytes back: unlink what nothing refers to, rewrite files that are partly dead
    ///
    /// Nothing goes that a name, a snapshot, a preparation or anything else refers to, and no file before the rows
    /// that named it are durably gone. It works on a full disk.
    Gc(GcArgs),
    /// Read sealed files from the medium and compare every object with its digest, a budget at a time
    ///
    /// What it finds it tells, and changes nothing: putting the same content again mends it. How far it came is
    /// durable when it returns. The exit code is 4 when something does not read.
    Scrub(ScrubArgs),
    /// Tell what keeps an object, a name or a sealed file, or which receipts tell that it went
    Why(WhyArgs),
    /// Tell what takes the bytes: live, dead, condemned, shared
    Du(StoreArgs),
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("keeps").required(true).multiple(true).args(["name", "lease"])))]
pub struct PutArgs {
    /// The store; it is created where there is none
    pub store: PathBuf,
    /// A file, a directory (with --recursive), or `-` for standard input; it is read, and otherwise left alone
    pub source: PathBuf,
    /// Publish it under this name; of a directory, each file under NS/its path, or NS/NAME/its path
    #[arg(long, value_name = "NS/NAME")]
    pub name: Option<String>,
    /// Lease it in the preparation of this name, which stays: without --name nothing is published
    #[arg(long, value_name = "PREPARATION")]
    pub lease: Option<String>,
    /// Take all files below a directory. Links, devices and names that are not UTF-8 are skipped, and told
    #[arg(short, long)]
    pub recursive: bool,
    /// What has to stand under each name: any, nothing, or a digest
    #[arg(long, value_name = "WHAT", default_value = "any", value_parser = expected, requires = "name")]
    pub expect: Expected,
    /// Compress where a sample says that it pays, or never
    #[arg(long, value_enum, default_value_t = CompressName::Auto)]
    pub compress: CompressName,
    /// Cut into pieces that files share: auto (above 1 MiB), never, or lengths MIN,MEAN,MAX
    #[arg(long, default_value = "auto", value_parser = pieces)]
    pub pieces: Pieces,
    /// How a store that is created lies on disk
    #[arg(long, value_enum, default_value_t = LayoutName::Directory)]
    pub layout: LayoutName,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Read everything, say what is stored already, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

impl PutArgs {
    /// How it is put.
    pub fn options(&self) -> PutOptions {
        let compress = match self.compress {
            CompressName::Auto => Compress::Auto,
            CompressName::Never => Compress::Never,
        };
        PutOptions { pieces: self.pieces, compress }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompressName {
    Auto,
    Never,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// A digest, or a name: NS/NAME
    pub object: String,
    /// A new file; durable when this returns
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace that file, in one step, if it is there
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Only these bytes, counted from 0
    #[arg(long, value_name = "FROM..TO", value_parser = records)]
    pub range: Option<Range<u64>>,
    /// What the name stood for in this snapshot
    #[arg(long, value_name = "SNAPSHOT")]
    pub snapshot: Option<String>,
    /// With --output: do everything but write the file
    #[arg(short = 'n', long, requires = "output")]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct NamesArgs {
    #[command(subcommand)]
    pub command: Option<NamesCommand>,
    /// The store; it may be in use (one called `rm`: ./rm)
    #[arg(required = true)]
    pub store: Option<PathBuf>,
    /// The namespace, to list its names [default: all namespaces]
    pub namespace: Option<String>,
    /// Only names that begin so
    #[arg(default_value = "")]
    pub prefix: String,
}

#[derive(Debug, Subcommand)]
pub enum NamesCommand {
    /// Let go of a name, if it stands for this digest: durable when it returns. The exit code is 1, and nothing
    /// is changed, if something else stands there, or nothing
    Rm(NamesRmArgs),
}

#[derive(Debug, Args)]
pub struct NamesRmArgs {
    /// The store
    pub store: PathBuf,
    /// The name: NS/NAME
    #[arg(value_parser = name)]
    pub name: Name,
    /// What it has to stand for
    #[arg(value_parser = digest)]
    pub digest: Digest,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say whether it would go, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub enum LeaseCommand {
    /// List preparations, what they keep, and who has them open
    Ls(StoreArgs),
    /// Give a preparation up: what nothing else refers to is retired. Durable when it returns; `gc` gives the
    /// bytes back
    Abandon(AbandonArgs),
    /// Let names stand for what a preparation keeps, all or none. Durable when it returns; a preparation that
    /// keeps nothing more goes
    Publish(PublishArgs),
}

#[derive(Debug, Args)]
pub struct AbandonArgs {
    /// The store
    pub store: PathBuf,
    /// The preparation
    pub preparation: String,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would go, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The store
    pub store: PathBuf,
    /// The preparation
    pub preparation: String,
    /// Names, each with the digest it is to stand for
    #[arg(required = true, value_name = "NS/NAME=DIGEST", value_parser = named)]
    pub names: Vec<(Name, Digest)>,
    /// What has to stand under each name: any, nothing, or a digest
    #[arg(long, value_name = "WHAT", default_value = "any", value_parser = expected)]
    pub expect: Expected,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what stands under the names, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

impl PublishArgs {
    /// What is to be changed.
    pub fn changes(&self) -> Vec<Publish> {
        let names = self.names.iter();
        names.map(|(name, digest)| Publish::new(name.clone(), self.expect, *digest)).collect()
    }
}

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Keep what names stand for now. Durable, and committed, when it returns; one that was stopped goes on
    Create(SnapshotCreateArgs),
    /// List snapshots
    Ls(StoreArgs),
    /// List the names of a snapshot, and what they stood for; `get --snapshot` reads them
    Cat(SnapshotArgs),
    /// Retire a snapshot. Durable when it returns; `gc` gives back what nothing else refers to
    Rm(SnapshotRmArgs),
}

#[derive(Debug, Args)]
pub struct SnapshotCreateArgs {
    /// The store
    pub store: PathBuf,
    /// The snapshot's name
    pub snapshot: String,
    /// Namespaces, and names (NS/NAME), to keep [default: all namespaces]
    #[arg(value_name = "NS|NS/NAME")]
    pub what: Vec<String>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would be kept, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// The snapshot
    pub snapshot: String,
}

#[derive(Debug, Args)]
pub struct SnapshotRmArgs {
    /// The store
    pub store: PathBuf,
    /// The snapshot
    pub snapshot: String,
    /// Also one that is open, because its 'snapshot create' was stopped
    #[arg(long)]
    pub open: bool,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would go, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// What `retire` takes beside recordings: all of it goes in one transaction, or nothing of it.
#[derive(Debug, Args)]
pub struct ThingsArgs {
    /// Retire a name, whatever it stands for; repeatable
    #[arg(long = "name", value_name = "NS/NAME", value_parser = name)]
    pub names: Vec<Name>,
    /// Retire a snapshot of names; repeatable
    #[arg(long = "snapshot", value_name = "SNAPSHOT")]
    pub snapshots: Vec<String>,
    /// Retire a preparation, with what only it keeps; repeatable
    #[arg(long = "preparation", value_name = "PREPARATION")]
    pub preparations: Vec<String>,
    /// Take at most so many rows of pieces away in one transaction: nobody finds the things from the first on,
    /// and others write in between. After a crash, or an error, `gc` goes on
    #[arg(long, value_name = "ROWS", requires = "things", value_parser = at_least_one)]
    pub rows_max: Option<u64>,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    /// The store
    pub store: PathBuf,
    /// Copy at most so many bytes out of partly dead files, and do at most one round [default: until nothing is
    /// left to do]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub budget: Option<u64>,
    /// Rewrite files of which so many percent are dead [default: the store's limit]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub dead_percent: Option<u8>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would be given back, but give nothing back
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct ScrubArgs {
    /// The store
    pub store: PathBuf,
    /// Read about so many bytes, from where the last call ended [default: to the end of the pass]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bytes: Option<u64>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
}

#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// A digest, a name (NS/NAME), or a sealed file: its number, or its path as errors print it
    pub subject: String,
}

fn name(text: &str) -> Result<Name, String> {
    text.parse().map_err(|e: sealstone::Error| e.cause().to_owned())
}

fn digest(text: &str) -> Result<Digest, String> {
    text.parse().map_err(|_| "give a digest: 64 hex digits".to_owned())
}

fn named(text: &str) -> Result<(Name, Digest), String> {
    // A name may hold the sign, a digest never.
    let Some((given, value)) = text.rsplit_once('=') else {
        return Err("give NS/NAME=DIGEST".to_owned());
    };
    Ok((name(given)?, digest(value)?))
}

fn expected(text: &str) -> Result<Expected, String> {
    match text {
        "any" => Ok(Expected::Any),
        "nothing" => Ok(Expected::Nothing),
        _ => digest(text)
            .map(Expected::Digest)
            .map_err(|_| "give any, nothing, or a digest: 64 hex digits".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<u64, String> {
    crate::args::at_least_one(text).map(|number| number as u64)
}

fn pieces(text: &str) -> Result<Pieces, String> {
    match text {
        "auto" => return Ok(Pieces::Auto),
        "never" => return Ok(Pieces::Never),
        _ => {}
    }
    let refuse = || "give auto, never, or three lengths such as 16KiB,64KiB,256KiB".to_owned();
    let mut lengths = Vec::new();
    for part in text.split(',') {
        lengths.push(u32::try_from(size(part)?).map_err(|_| refuse())?);
    }
    match lengths[..] {
        [min, avg, max] => Ok(Pieces::Of { min, avg, max }),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are names, digests, expectations and pieces read as they are written in the manual, and nothing else?
    #[test]
    fn words_are_read_as_the_manual_writes_them() {
        let digest = Digest::of(b"x");
        let (found, of) = named(&format!("a/b=c={digest}")).unwrap();
        assert_eq!((found.to_string(), of), ("a/b=c".to_owned(), digest));
        assert!(
            named("a/b").is_err()
                && named("a/b=7").is_err()
                && named(&format!("a={digest}")).is_err()
        );
        assert_eq!(expected("nothing"), Ok(Expected::Nothing));
        assert_eq!(expected(&digest.to_string()), Ok(Expected::Digest(digest)));
        assert!(expected("none").is_err());
        let lengths = Pieces::Of { min: 1024, avg: 4096, max: 65536 };
        assert_eq!(pieces("1KiB,4KiB,64KiB"), Ok(lengths));
        assert!(
            pieces("1KiB,4KiB").is_err() && pieces("some").is_err() && pieces("1,2,9GiB").is_err()
        );
    }
}
