//! The command line, as clap sees it.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use sealstone::recording::{Field, ResumeFrom};

use super::objects::{ObjectsCommand, ThingsArgs};
use super::stage::StageCommand;

/// Where the store is, unless it is given.
pub const STORE_VARIABLE: &str = "SEALSTONE_STORE";

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 failed; 2 usage; 3 done, but something was lost or skipped; 4 damage found; \
10 no store; 11 store in use; 12 format not supported; 130 interrupted. A closed pipe is silent.

With SEALSTONE_STORE set, STORE is taken from it and not given on the command line.";

/// Keeps state that must still be there after the power fails.
#[derive(Debug, Parser)]
#[command(name = "sealstone", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// Print JSON: one object, or for long commands one object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Print results and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Colour messages
    #[arg(long, global = true, value_enum, default_value_t = When::Auto)]
    pub color: When,
    /// Show progress; `auto` shows it on a terminal
    #[arg(long, global = true, value_enum, default_value_t = When::Auto)]
    pub progress: When,
    /// Open a store whose directory other users may enter
    #[arg(long, global = true)]
    pub allow_shared_root: bool,
    /// How times are printed
    #[arg(long, global = true, value_enum, default_value_t = TimeFormat::Iso)]
    pub time_format: TimeFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeFormat {
    /// 2013-01-01T06:00:00Z
    Iso,
    /// Seconds since 1970, with nine decimals
    Unix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LayoutName {
    /// A directory of files: for volume
    Directory,
    /// One file: to embed, copy and mail
    SingleFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    Csv,
    Jsonl,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Import a CSV or JSON-lines file as a recording; the store is created where there is none
    Import(ImportArgs),
    /// Export a recording as CSV or JSON lines, rows in their first order
    Export(ExportArgs),
    /// Show what a store is, holds and takes
    Info(StoreArgs),
    /// List recordings, or the streams and fields of one
    Ls(LsArgs),
    /// Print records of a recording
    Cat(CatArgs),
    /// Print what comes to a recording as it comes, until it ends; its writer may run beside
    Follow(FollowArgs),
    /// List the events and notes of a recording
    Events(EventsArgs),
    /// Retire recordings, by name or by rules, or names, snapshots and preparations of objects, together.
    /// Durable when it returns; `gc` gives the bytes back
    Retire(RetireArgs),
    /// Compare everything that is stored with what the rows say, changing nothing
    Check(CheckArgs),
    /// Make a directory a verified copy of a store, or bring the earlier backup there up to now
    Backup(BackupArgs),
    /// Make the manifest as small as its rows; nobody may have the store open
    Compact(CompactArgs),
    /// Make a store directory into a store that is one file
    Pack(PackArgs),
    /// Make a store that is one file into a store directory
    Unpack(PackArgs),
    /// Make a new store from what is left of one, without its manifest; the old one is not changed
    Salvage(SalvageArgs),
    /// Let `gc` work in a salvaged store: what did not come back is not looked for any more
    Release(ReleaseArgs),
    /// Tell where two recordings begin to differ; the exit code is 1 if they do
    Diff(DiffArgs),
    /// Begin a recording as another one was at a checkpoint, sharing its chunks
    Fork(ForkArgs),
    /// Show what resuming a recording would cut, changing nothing
    Plan(PlanArgs),
    /// Take batches of rows under keys, convert them, hand the outputs on
    Stage {
        #[command(subcommand)]
        command: StageCommand,
    },
    #[command(flatten)]
    Objects(ObjectsCommand),
    /// List who works on what: streams, recordings, groups, outputs
    Claims(StoreArgs),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The store's directory
    pub store: PathBuf,
}

#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// The store that `salvage` made
    pub store: PathBuf,
}

#[derive(Debug, Args)]
pub struct SalvageArgs {
    /// The store's directory; its manifest is not read
    pub store: PathBuf,
    /// Where the new store is made; nothing may be there
    pub new: PathBuf,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The store's directory
    pub store: PathBuf,
    /// Look at rows, lengths and labels only, not at the content of sealed files
    #[arg(long)]
    pub fast: bool,
}

#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The store's directory; it may be in use
    pub store: PathBuf,
    /// A new or empty directory, or an earlier backup of this store
    pub to: PathBuf,
    /// Look at length and label only of files that the earlier backup has, not at their content
    #[arg(long)]
    pub fast: bool,
    /// Say what would be copied, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct CompactArgs {
    /// The store's directory
    pub store: PathBuf,
    /// Say how large it is and would be about, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct PackArgs {
    /// The store, which is only read and stays as it is
    pub from: PathBuf,
    /// The store to make, where nothing stands yet
    pub to: PathBuf,
    /// Say what would be copied, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// The store's directory
    pub store: PathBuf,
    /// A recording, to list its streams
    pub recording: Option<String>,
    /// Only recordings that this is true of: `dt < 0.01 and solver = 'rk4'`; parameters, and
    /// name, status, created
    #[arg(long = "where", value_name = "FILTER", conflicts_with = "recording")]
    pub filter: Option<String>,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The store
    pub store: PathBuf,
    /// A recording
    pub recording: String,
    /// The one to compare it with
    pub other: String,
    /// The other one lies in this store
    #[arg(long, value_name = "STORE")]
    pub other_store: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ForkArgs {
    /// The store
    pub store: PathBuf,
    /// The recording to begin as
    pub recording: String,
    /// The name of the new one
    pub new: String,
    /// Where: `latest` checkpoint, `end`, or the number of a checkpoint
    #[arg(long, default_value = "latest", value_parser = super::fork::parse_from)]
    pub from: ResumeFrom,
    /// Show where it would begin, and write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The store
    pub store: PathBuf,
    /// The recording
    pub recording: String,
    /// From where: `latest` checkpoint, `end`, or the number of a checkpoint
    #[arg(long, default_value = "latest", value_parser = super::fork::parse_from)]
    pub from: ResumeFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LevelName {
    /// As soon as it survives the death of its writer
    Written,
    /// Once it survives a power cut
    Durable,
    /// Once it lies in a chunk
    Sealed,
}

#[derive(Debug, Args)]
pub struct FollowArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// The recording
    pub recording: String,
    /// How safe a record has to be before it is printed
    #[arg(long, value_enum, default_value_t = LevelName::Written)]
    pub level: LevelName,
    /// Print what is there by now, and wait for nothing
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// The store; it may be in use
    pub store: PathBuf,
    /// The recording
    pub recording: String,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("things").multiple(true).args(["names", "snapshots", "preparations"])
    .conflicts_with_all(["keep_newest", "older_than", "bytes_above"])))]
#[command(override_usage = "sealstone retire [OPTIONS] <STORE> <RECORDINGS>...
       sealstone retire [OPTIONS] <STORE> --keep-newest|--older-than|--bytes-above <RULE>
       sealstone retire [OPTIONS] <STORE> --name|--snapshot|--preparation <WHAT>...")]
pub struct RetireArgs {
    /// The store
    pub store: PathBuf,
    /// Recordings to retire; without any, a rule says which
    #[arg(required_unless_present_any = ["keep_newest", "older_than", "bytes_above", "things"],
        conflicts_with_all = ["keep_newest", "older_than", "bytes_above", "things"])]
    pub recordings: Vec<String>,
    #[command(flatten)]
    pub things: ThingsArgs,
    /// Retire all but the newest so many
    #[arg(long, value_name = "COUNT")]
    pub keep_newest: Option<usize>,
    /// Retire those that were started longer ago, by the wall clock: 90d, 12h, 30m, 10s
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<u64>,
    /// Retire the oldest until what is left takes at most so much
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bytes_above: Option<u64>,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Say what would go and why, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The store
    pub store: PathBuf,
    /// The file to import; `-` for standard input
    pub file: PathBuf,
    /// The recording's name [default: the file's, without its ending]
    #[arg(long)]
    pub name: Option<String>,
    /// The file's format [default: by its ending]
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// Give a column its type: bool, i64, f64, string, bytes (as hex), json
    #[arg(long = "type", value_name = "COLUMN=TYPE", value_parser = column_type)]
    pub types: Vec<Field>,
    /// A text that stands for a missing value in CSV; repeatable [default: NA and the empty text]
    #[arg(long = "na", value_name = "TEXT")]
    pub missing: Vec<String>,
    /// Infer types from so many first rows
    #[arg(long, value_name = "ROWS", default_value_t = 10_000, value_parser = at_least_one)]
    pub infer_rows: usize,
    /// One stream for each value of this column
    #[arg(long, value_name = "COLUMN")]
    pub stream_by: Option<String>,
    /// Take iterations from this column [default: the row number, from 0]
    #[arg(long, value_name = "COLUMN")]
    pub iteration: Option<String>,
    /// What separates the values of a CSV row: one ASCII character, or `tab`
    #[arg(long, default_value = ",", value_parser = delimiter)]
    pub delimiter: u8,
    /// The longest row
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size)]
    pub row_size_max: u64,
    /// Seal a chunk after so many bytes of records
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub chunk_size: u64,
    /// How a store that is created lies on disk
    #[arg(long, value_enum, default_value_t = LayoutName::Directory)]
    pub layout: LayoutName,
    /// Write beside other processes that do so with this flag as well
    #[arg(long)]
    pub shared: bool,
    /// Replace a recording of this name, if there is one, once the whole file is read
    #[arg(long)]
    pub replace: bool,
    /// Read the whole file and check it, but write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The store's directory
    pub store: PathBuf,
    /// The recording
    pub recording: String,
    /// The format [default: by the ending of --output, or csv]
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// A new file to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only this stream; repeatable
    #[arg(long = "stream", value_name = "STREAM")]
    pub streams: Vec<String>,
    /// Only these fields, in this order
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// With --output: do everything but write the file
    #[arg(short = 'n', long, requires = "output")]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct CatArgs {
    /// The store's directory
    pub store: PathBuf,
    /// The recording
    pub recording: String,
    /// The stream [default: all of them, by iteration]
    #[arg(long)]
    pub stream: Option<String>,
    /// Only these fields, in this order
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// Only these records of the stream, counted from 0
    #[arg(long, value_name = "FROM..TO", value_parser = records, requires = "stream")]
    pub records: Option<Range<u64>>,
    /// Only records of these iterations
    #[arg(long, value_name = "FROM..TO", value_parser = iterations, allow_hyphen_values = true)]
    pub iterations: Option<Iterations>,
}

/// The command line with the store of the environment put where it belongs: before the first
/// argument behind the command. Returns also whether it was.
pub fn with_store_of_environment(mut given: Vec<OsString>) -> (Vec<OsString>, bool) {
    let Some(store) = std::env::var_os(STORE_VARIABLE).filter(|store| !store.is_empty()) else {
        return (given, false);
    };
    let takes_store = [
        "import", "export", "info", "ls", "cat", "check", "compact", "backup", "follow", "events",
        "retire", "release", "diff", "fork", "plan", "stage", "claims", "put", "get", "names",
        "lease", "snapshot", "gc", "scrub", "why", "du",
    ];
    let next = |from: usize, words: &[&str]| {
        let mut rest = given.iter().enumerate().skip(from);
        rest.find(|(_, word)| words.iter().any(|one| *word == one)).map(|(at, _)| at)
    };
    let Some(at) = next(1, &takes_store) else { return (given, false) };
    // Behind `stage` it follows the command there; behind `quarantine` the one below. Flags may stand
    // between.
    let below = |at: usize, word: &str, words: &[&str]| match given.get(at) {
        Some(given) if given == word => next(at + 1, words).unwrap_or(at),
        _ => at,
    };
    let of_stage = ["append", "ls", "cat", "flush", "convert", "publish", "quarantine", "rm"];
    let at = below(at, "stage", &of_stage);
    let at = below(at, "quarantine", &["ls", "retry", "export"]);
    let at = below(at, "lease", &["ls", "abandon", "publish"]);
    let at = below(at, "snapshot", &["create", "ls", "cat", "rm"]);
    // Behind `names` a word `rm` is the command only where it comes first: namespaces may be called so.
    let is_rm = |word: &&OsString| word.to_str() == Some("rm");
    let is_flag = |word: &&OsString| *word != "--" && word.to_string_lossy().starts_with('-');
    let first = given.iter().skip(at + 1).find(|word| !is_flag(word));
    let at = if first.filter(is_rm).is_some() { below(at, "names", &["rm"]) } else { at };
    given.insert((at + 1).min(given.len()), store);
    (given, true)
}

/// The definition, for completions and the manual page.
pub fn definition() -> clap::Command {
    Cli::command()
}

fn column_type(text: &str) -> Result<Field, String> {
    let Some((column, ty)) = text.rsplit_once('=') else {
        return Err("give COLUMN=TYPE".to_owned());
    };
    Field::of_kind(column, ty).map_err(|e| e.cause().to_owned())
}

pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a number from 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "tab" || text == "\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("give one ASCII character, or `tab`".to_owned()),
    }
}

/// `64MiB`, `1GB`, `4096`.
pub fn size(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1),
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let bytes = number.parse::<u64>().ok().zip(unit).and_then(|(n, (_, by))| n.checked_mul(*by));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "give a size such as 64MiB".to_owned())
}

/// `90d`, in seconds.
fn age(text: &str) -> Result<u64, String> {
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = units.iter().find(|(name, _)| *name == unit.trim());
    let seconds = number.parse::<u64>().ok().zip(unit).and_then(|(n, (_, by))| n.checked_mul(*by));
    seconds.ok_or_else(|| "give an age such as 90d, 12h, 30m or 10s".to_owned())
}

pub fn records(text: &str) -> Result<Range<u64>, String> {
    range(text, 0, u64::MAX)
}

/// Iterations from one on, up to another, which is not included, or to the last there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations {
    pub from: i64,
    pub to: Option<i64>,
}

impl Iterations {
    /// Whether `iteration` is one of them.
    pub fn contains(self, iteration: i64) -> bool {
        iteration >= self.from && self.to.is_none_or(|to| iteration < to)
    }
}

fn iterations(text: &str) -> Result<Iterations, String> {
    let range = range(text, i64::MIN, i64::MAX)?;
    let to = (!text.trim_end().ends_with("..")).then_some(range.end);
    Ok(Iterations { from: range.start, to })
}

fn range<T: std::str::FromStr + PartialOrd>(
    text: &str,
    least: T,
    most: T,
) -> Result<Range<T>, String> {
    let refuse = || "give FROM..TO, of which TO is not included; either may be left out".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(refuse)?;
    let end = |text: &str, otherwise: T| match text.trim() {
        "" => Ok(otherwise),
        number => number.parse::<T>().map_err(|_| refuse()),
    };
    let range = end(from, least)?..end(to, most)?;
    if range.start <= range.end { Ok(range) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the definition itself sound?
    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    /// Are sizes and ranges read as they are written in the manual?
    #[test]
    fn sizes_and_ranges_are_read() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("1 GB"), Ok(1_000_000_000));
        for wrong in ["", "MiB", "64mib", "0", "-1", "99999999999GiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(records("3..7"), Ok(3..7));
        assert_eq!(records(".."), Ok(0..u64::MAX));
        assert_eq!(iterations("-5..5"), Ok(Iterations { from: -5, to: Some(5) }));
        let open = iterations("5.. ").unwrap();
        assert!(open.contains(i64::MAX) && open.contains(5) && !open.contains(4));
        assert!(records("7..3").is_err() && records("3").is_err() && records("a..").is_err());
    }
}
