//! `sealstone put STORE FILE|DIR|- [--name NS/NAME] [--lease PREPARATION]`.

use std::collections::BTreeSet;
use std::io::Read;

use sealstone::clock::monotonic_nanos;
use sealstone::digest::Hasher;
use sealstone::objects::{
    Digest, Objects, PREPARATION_NAME_BYTES_MAX, Preparation, PrepareOptions, Publish, Published,
    Stored,
};
use sealstone::{Error, ErrorKind, Layout, Result, Store};
use serde_json::{Value, json};

use super::args::PutArgs;
use super::lease::end_if_empty;
use super::sources::{Source, Sources};
use crate::args::LayoutName;
use crate::failure::LOST;
use crate::input::Input;
use crate::open::writing;
use crate::output::{End, Output};
use crate::words::{counted, shown, size};

pub fn run(args: &PutArgs, output: &mut Output) -> std::result::Result<u8, End> {
    let started = monotonic_nanos();
    // Before the store: what cannot be put creates none.
    let sources = Sources::of(args)?;
    for (path, why) in &sources.skipped {
        output.warn(&format!("{} is skipped: {why}", path.display()));
    }
    let mut told = Told::default();
    if args.dry_run {
        would(args, &sources, &mut told, output)?;
    } else {
        store(args, &sources, &mut told, output)?;
    }
    told.end(args, &sources, started, output)?;
    Ok(if sources.skipped.is_empty() { 0 } else { LOST })
}

/// The preparation's name: the one that was asked for, or one that the same command finds again.
fn preparation_of(args: &PutArgs) -> String {
    if let Some(lease) = &args.lease {
        return lease.clone();
    }
    let name = format!("put {}", args.name.as_deref().unwrap_or_default());
    match name.len() <= PREPARATION_NAME_BYTES_MAX {
        true => name,
        false => format!("put {}", Digest::of(name.as_bytes())),
    }
}

fn store(
    args: &PutArgs,
    sources: &Sources,
    told: &mut Told,
    output: &mut Output,
) -> std::result::Result<(), End> {
    let layout = match args.layout {
        LayoutName::Directory => Layout::Directory,
        LayoutName::SingleFile => Layout::SingleFile,
    };
    let store = writing(output, args.shared).layout(layout).open_or_create(&args.store)?;
    let objects = store.objects();
    let name = preparation_of(args);
    let purpose = format!("put {}", args.source.display());
    let prep = objects.prepare_with(&name, &PrepareOptions { purpose, deadline: None })?;
    let done = put_all(args, sources, &prep, told, output);
    if args.lease.is_none() {
        let kept = end_if_empty(&objects, prep, "published");
        if done.is_err() && matches!(kept, Ok(false)) {
            output.warn(&format!(
                "what was stored so far is kept by preparation {name:?}: put again to go on, or give it \
                 up by `lease abandon`"
            ));
        }
        if done.is_ok() {
            kept?;
        }
    }
    done?;
    drop(objects);
    store.close()?;
    Ok(())
}

fn put_all(
    args: &PutArgs,
    sources: &Sources,
    prep: &Preparation,
    told: &mut Told,
    output: &mut Output,
) -> std::result::Result<(), End> {
    let length = (sources.bytes > 0).then_some(sources.bytes);
    let bar = output.progress("put", length, true);
    let mut changes = Vec::new();
    for source in &sources.files {
        let options = args.options();
        let stored = read(source, told.bytes, &bar, |input| prep.put_reader(input, &options))?;
        if let Some(name) = &source.name {
            changes.push(Publish::new(name.clone(), args.expect, stored.digest));
        }
        told.file(source, &stored, output)?;
    }
    bar.finish_and_clear();
    match changes.is_empty() {
        true => prep.flush()?,
        false => told.published = Some(prep.publish(&changes)?),
    }
    Ok(())
}

/// Has `take` read a file from its beginning to its end, and not while somebody writes it.
fn read<T>(
    source: &Source,
    bytes_before: u64,
    bar: &indicatif::ProgressBar,
    take: impl FnOnce(&mut Following<'_>) -> Result<T>,
) -> Result<T> {
    let mut input = Input::open("put", &source.path)?;
    let len = input.length();
    let mut following = Following { input: &mut input, bar, at: bytes_before };
    let taken = take(&mut following)?;
    let is_whole = len.is_none_or(|len| input.bytes() == len) && input.length() == len;
    match is_whole {
        true => Ok(taken),
        false => {
            let cause = "its length changed while it was read; put it when nobody writes it";
            Err(Error::new(ErrorKind::Conflict, "put", source.path.display(), cause))
        }
    }
}

/// An input, with the bar of all of them.
struct Following<'a> {
    input: &'a mut Input,
    bar: &'a indicatif::ProgressBar,
    at: u64,
}

impl Read for Following<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = (&mut *self.input).read(into)?;
        self.at = self.at.saturating_add(read as u64);
        self.bar.set_position(self.at);
        Ok(read)
    }
}

/// Reads everything, and says what is stored already.
fn would(
    args: &PutArgs,
    sources: &Sources,
    told: &mut Told,
    output: &mut Output,
) -> std::result::Result<(), End> {
    let store = match output.opening().open_read_only(&args.store) {
        Ok(store) => Some(store),
        Err(e) if e.kind() == ErrorKind::NoStore => None,
        Err(e) => return Err(e.into()),
    };
    let objects = store.as_ref().map(Store::objects);
    let bar = output.progress("put", (sources.bytes > 0).then_some(sources.bytes), true);
    let mut seen = BTreeSet::new();
    for source in &sources.files {
        let mut stored = read(source, told.bytes, &bar, |input| look(input, objects.as_ref()))?;
        if !seen.insert(stored.digest) {
            (stored.is_new, stored.new_bytes) = (false, 0);
        }
        told.file(source, &stored, output)?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// What content would be, as far as it can be told without cutting it.
fn look(input: &mut impl Read, objects: Option<&Objects>) -> Result<Stored> {
    let (mut hasher, mut len, mut buffer) = (Hasher::default(), 0u64, vec![0; 64 << 10]);
    loop {
        let read = input.read(&mut buffer).map_err(|e| Error::io("put", "input", e))?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
        len += bytes.len() as u64;
    }
    let digest = hasher.finish();
    let is_new = match objects {
        Some(objects) => !objects.contains(&digest)?,
        None => true,
    };
    Ok(Stored { digest, len, pieces: 0, new_bytes: if is_new { len } else { 0 }, is_new })
}

/// What came of it.
#[derive(Debug, Default)]
struct Told {
    bytes: u64,
    new_bytes: u64,
    published: Option<Published>,
}

impl Told {
    fn file(
        &mut self,
        source: &Source,
        stored: &Stored,
        output: &mut Output,
    ) -> std::result::Result<(), End> {
        self.bytes = self.bytes.saturating_add(stored.len);
        self.new_bytes = self.new_bytes.saturating_add(stored.new_bytes);
        let (digest, path) = (stored.digest.to_string(), source.path.to_string_lossy());
        let name = source.name.as_ref().map(ToString::to_string);
        if output.is_json {
            return output.message(
                "put",
                json!({
                    "file": path, "name": name, "digest": digest, "bytes": stored.len,
                    "pieces": stored.pieces, "bytes_new": stored.new_bytes, "is_new": stored.is_new,
                }),
            );
        }
        output.line(&format!(
            "{digest}\t{}\t{}",
            size(stored.len),
            shown(name.as_deref().unwrap_or(&path))
        ))
    }

    fn end(
        &self,
        args: &PutArgs,
        sources: &Sources,
        started: u64,
        output: &mut Output,
    ) -> std::result::Result<(), End> {
        let took = ((monotonic_nanos() - started) / 1_000_000) as f64 / 1000.0;
        let files = sources.files.len() as u64;
        let published = self.published.as_ref();
        if output.is_json {
            let freed = published.map_or(0, |published| published.bytes);
            return output.message(
                "summary",
                json!({
                    "command": "put", "dry_run": args.dry_run, "files": files, "bytes": self.bytes,
                    "bytes_new": self.new_bytes, "skipped": sources.skipped.len(),
                    "preparation": args.lease, "names": published.map_or(0, |one| one.names.len()),
                    "commit": published.map_or(Value::Null, |one| json!(one.commit.0)),
                    "replaced": published.map_or(0, |one| one.replaced), "bytes_retired": freed,
                    "seconds": took,
                }),
            );
        }
        let verb = if args.dry_run { "would be stored" } else { "stored" };
        let is = match (published, &args.lease) {
            (Some(one), _) => format!(
                "{} published, of which {} stood for something else",
                counted(one.names.len() as u64, "name"),
                one.replaced,
            ),
            (None, Some(lease)) if !args.dry_run => {
                format!("leased in preparation {}", shown(lease))
            }
            (None, _) => "nothing written".to_owned(),
        };
        output.remark(&format!(
            "{} with {} {verb}, {} of it new: {is}, {took:.2} s",
            counted(files, "file"),
            size(self.bytes),
            size(self.new_bytes),
        ))
    }
}
