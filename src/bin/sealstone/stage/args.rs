//! The command line of `sealstone stage`, as clap sees it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sealstone::staging::{KeyPart, KeyType};

use super::keys::{KeySpec, Source};
use super::minutes::minute;
use super::part::part_of;
use crate::args::{LayoutName, at_least_one, size};

#[derive(Debug, Subcommand)]
pub enum StageCommand {
    /// Take the lines of a file or of standard input under keys; the stage is created where there is none
    Append(AppendArgs),
    /// List stages, or the groups, parts, outputs and producers of one
    Ls(StageLsArgs),
    /// Print the rows of a stage, wherever they are by now
    Cat(StageCatArgs),
    /// Seal what is staged, and detach the groups that are ready to be converted
    Flush(FlushArgs),
    /// Make outputs of the groups that are detached: Parquet, or JSON lines by zstd
    Convert(ConvertArgs),
    /// Hand the outputs of a stage to a directory, each once
    Publish(PublishArgs),
    /// What could not be read or converted, with its bytes: list it, put a group there that fails each
    /// time, try it again, take its bytes out
    Quarantine {
        #[command(subcommand)]
        command: QuarantineCommand,
    },
    /// Remove a stage with everything in it; `gc` gives its bytes back
    Rm(StageRmArgs),
}

#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List what is there, and why
    Ls(StageArgs),
    /// Put a detached group there, part by part, so that it stands in no conversion's way; nothing of it
    /// is lost, and `retry` gives it back
    Add(QuarantineAddArgs),
    /// Give parts back, to be converted again; what is refused again, or does not read, comes here again
    Retry(RetryArgs),
    /// Write the bytes of one thing to a new file
    Export(QuarantineExportArgs),
}

#[derive(Debug, Args)]
pub struct StageArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// The stage
    pub stage: String,
}

#[derive(Debug, Args)]
pub struct StageLsArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// A stage, to list what is in it
    pub stage: Option<String>,
}

#[derive(Debug, Args)]
pub struct StageCatArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// Only rows of this key: `host=a/minute=2026-12-01T09:40`
    #[arg(long)]
    pub key: Option<String>,
}

#[derive(Debug, Args)]
pub struct FlushArgs {
    /// The store
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// Detach all groups
    #[arg(long)]
    pub all: bool,
    /// Detach the groups whose key has an earlier minute than this: 2026-12-01T09:40
    #[arg(long, value_name = "MINUTE", value_parser = minute_text, conflicts_with = "all",
        allow_hyphen_values = true)]
    pub before: Option<i64>,
    /// Which part of the key is that minute [default: the only one]
    #[arg(long, value_name = "NAME", requires = "before")]
    pub part: Option<String>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say which groups would be detached, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("form").required(true).args(["parquet", "jsonl"])))]
pub struct ConvertArgs {
    /// The store
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// Write Parquet, of JSON lines and Arrow batches; needs a build with feature `parquet`
    #[arg(long)]
    pub parquet: bool,
    /// Write JSON lines, through zstd
    #[arg(long)]
    pub jsonl: bool,
    /// Write at most so many outputs at once
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = at_least_one)]
    pub threads: usize,
    /// Only groups of this key: `host=a/minute=2026-12-01T09:40`; repeatable
    #[arg(long = "key", value_name = "KEY")]
    pub keys: Vec<String>,
    /// Convert at most so many groups [default: all that are detached]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one)]
    pub groups: Option<usize>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say which groups would be converted, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The store
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// The directory; made where there is none
    pub directory: PathBuf,
    /// What the names of files end with [default: the form of each output]
    #[arg(long, value_name = "TEXT")]
    pub ending: Option<String>,
    /// The permission bits of the files, in octal
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode)]
    pub mode: u32,
    /// Only go on with what was begun, and begin nothing
    #[arg(long, conflicts_with = "roll_back")]
    pub resume: bool,
    /// Give the hand-off of this number up, and take away what is there of it; repeatable
    #[arg(long, value_name = "HAND-OFF")]
    pub roll_back: Vec<u64>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would be handed off, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct QuarantineAddArgs {
    /// The store
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// Which group, by number: `stage ls` tells it
    pub group: u64,
    /// Why, for whoever looks at it later
    #[arg(long, value_name = "TEXT")]
    pub why: String,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would be put there, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The store
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// Which, by number; without any, all
    pub ids: Vec<u64>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would be given back, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct QuarantineExportArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// Which, by number
    pub id: u64,
    /// A new file; batches that lie apart come beside it, named FILE.DIGEST
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Do everything but write the file
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct StageRmArgs {
    /// The store
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// Also with rows that are not in any output yet
    #[arg(long)]
    pub force: bool,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would go, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LineFormat {
    /// Each line is a JSON value
    Jsonl,
    /// A line is any text
    Lines,
}

#[derive(Debug, Args)]
pub struct AppendArgs {
    /// The store
    pub store: PathBuf,
    /// The stage
    pub stage: String,
    /// The file; `-` for standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Take parts of the key from these fields of each JSON line: host, time.at:minute. Types: text,
    /// integer, minute, digest, bytes [default: the stage's, or text]
    #[arg(long = "key", value_name = "FIELD[:TYPE]", value_delimiter = ',', value_parser = field)]
    pub fields: Vec<KeySpec>,
    /// A part of the key that is the same for all lines; repeatable
    #[arg(long = "constant", value_name = "NAME[:TYPE]=VALUE", value_parser = constant)]
    pub constants: Vec<KeySpec>,
    /// Take parts of the key from each line of text: `{host} {} [{time:minute}]`; `{}` is passed over
    #[arg(long, value_name = "PATTERN", conflicts_with = "fields")]
    pub pattern: Option<String>,
    /// What lines are [default: jsonl with --key, or for a file called so without --pattern; else lines].
    /// Only jsonl can be converted by `stage convert`
    #[arg(long, value_enum)]
    pub format: Option<LineFormat>,
    /// Take so many lines at a time: those of one key are a batch
    #[arg(long, value_name = "ROWS", default_value_t = 10_000, value_parser = at_least_one)]
    pub rows: usize,
    /// From standard input, take what is there after so long at the latest: 500ms, 2s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = linger)]
    pub linger: u64,
    /// Go on where the producer of this name was, so that each line is taken once: give the same input,
    /// from its beginning, as often as you like. Another input, as a log that was rotated, needs another
    /// name, and is refused
    #[arg(long, value_name = "NAME")]
    pub producer: Option<String>,
    /// With --producer, take a last line that has no end, too: nothing will come to it any more
    #[arg(long, requires = "producer")]
    pub complete: bool,
    /// Pass over lines that have no key, instead of stopping at the first
    #[arg(long)]
    pub skip: bool,
    /// The longest line
    #[arg(long, value_name = "SIZE", default_value = "15MiB", value_parser = row_size)]
    pub row_size_max: u64,
    /// How a store that is created lies on disk
    #[arg(long, value_enum, default_value_t = LayoutName::Directory)]
    pub layout: LayoutName,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Read all lines and find their keys, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `name:type`, of which the type may be left out.
pub fn typed(text: &str) -> Result<(String, Option<KeyType>), String> {
    let Some((name, ty)) = text.rsplit_once(':') else { return Ok((text.to_owned(), None)) };
    let types = [KeyType::Text, KeyType::Integer, KeyType::Minute, KeyType::Digest, KeyType::Bytes];
    let found = types.into_iter().find(|one| one.name() == ty);
    let found = found.ok_or_else(|| {
        format!("{ty:?} is no type of a key; give text, integer, minute, digest or bytes")
    })?;
    Ok((name.to_owned(), Some(found)))
}

fn field(text: &str) -> Result<KeySpec, String> {
    let (name, ty) = typed(text)?;
    let path = name.split('.').map(str::to_owned).collect();
    Ok(KeySpec { name, ty, source: Source::Field(path) })
}

fn constant(text: &str) -> Result<KeySpec, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("give NAME=VALUE".to_owned());
    };
    let (name, ty) = typed(name)?;
    if let Some(ty) = ty {
        let _: KeyPart = part_of(ty, value)?;
    }
    Ok(KeySpec { name, ty, source: Source::Constant(value.to_owned()) })
}

/// So much a line may have: what a batch of it alone may take.
const ROW_BYTES_MAX: u64 = 15 << 20;

fn row_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if bytes > ROW_BYTES_MAX {
        Err("at most 15MiB: a batch takes no more".to_owned())
    } else {
        Ok(bytes)
    }
}

fn minute_text(text: &str) -> Result<i64, String> {
    // A bare number would be a count of seconds here and of minutes in a key.
    let is_bare =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b"-.".contains(&b));
    let is_date = text.split('-').count() > 2;
    if is_bare && !is_date {
        return Err(
            "a number may mean minutes or seconds; give a time such as 2026-12-01T09:40".to_owned()
        );
    }
    minute(text).ok_or_else(|| "give a minute such as 2026-12-01T09:40".to_owned())
}

/// `500ms`, in nanoseconds.
fn linger(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let units = [("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000u64)];
    let unit = units.iter().find(|(name, _)| *name == unit.trim());
    let nanos = number.parse::<u64>().ok().zip(unit).and_then(|(n, (_, by))| n.checked_mul(*by));
    nanos.ok_or_else(|| "give a time such as 500ms, 2s or 1m".to_owned())
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    let mode = mode.ok_or_else(|| "give permission bits in octal, such as 644".to_owned())?;
    match mode & 0o400 {
        0 => Err("files that their owner cannot read could not be read back; add 400".to_owned()),
        _ => Ok(mode),
    }
}
