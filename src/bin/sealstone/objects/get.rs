//! `sealstone get STORE DIGEST|NS/NAME [-o FILE]`.

use std::io::{self, Read, Write};
use std::ops::Range;

use sealstone::digest::Hasher;
use sealstone::objects::{Digest, Name, Object, Objects};
use sealstone::{Error, ErrorKind, Result};
use serde_json::json;

use super::args::GetArgs;
use crate::input::NewFile;
use crate::open::object;
use crate::output::{End, Output};
use crate::words::{shown, size};

pub fn run(args: &GetArgs, output: &mut Output) -> std::result::Result<u8, End> {
    if output.is_json && args.output.is_none() {
        let cause = "bytes are no JSON; give --output, or leave --json out";
        return Err(Error::invalid("get", "standard output", cause).into());
    }
    let store = output.opening().open_read_only(&args.store)?;
    let found = find(args, &store.objects())?;
    let range = within(args, &found)?;
    let bar = output.progress("get", Some(range.end - range.start), true);
    let Some(path) = &args.output else {
        let copied = copy(&found, range, &bar, output.stdout());
        bar.finish_and_clear();
        copied?;
        return Ok(0);
    };
    // Where it goes is what was asked for: no name of an object has a say in it.
    let copied = match (args.dry_run, args.force) {
        (true, _) => {
            NewFile::check("get", path, args.force)?;
            copy(&found, range, &bar, &mut io::sink())?
        }
        (false, force) => {
            let mut file = match force {
                true => NewFile::replace("get", path)?,
                false => NewFile::create("get", path)?,
            };
            let copied = copy(&found, range, &bar, &mut file)?;
            file.finish()?;
            copied
        }
    };
    bar.finish_and_clear();
    if output.is_json {
        output.object(object(json!({
            "command": "get", "dry_run": args.dry_run, "digest": found.digest().to_string(),
            "bytes": copied, "file": path.to_string_lossy(),
        })))?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be written" } else { "written" };
    output.remark(&format!("{} {verb} to {}", size(copied), shown(&path.to_string_lossy())))?;
    Ok(0)
}

/// What is asked for: a name has a slash, a digest never.
fn find(args: &GetArgs, objects: &Objects) -> Result<Object> {
    if !args.object.contains('/') {
        if args.snapshot.is_some() {
            let cause = "a snapshot keeps names; give NS/NAME, or the digest without --snapshot";
            return Err(Error::invalid("get", &args.object, cause));
        }
        let digest: Digest = args.object.parse().map_err(|_| {
            let cause = "it is neither a digest (64 hex digits) nor a name (NS/NAME)";
            Error::invalid("get", &args.object, cause)
        })?;
        return objects.get(&digest);
    }
    let name: Name = args.object.parse()?;
    match &args.snapshot {
        Some(snapshot) => objects.read_snapshot(snapshot)?.open(&name),
        None => objects.open(&name),
    }
}

/// The bytes that are asked for.
fn within(args: &GetArgs, found: &Object) -> Result<Range<u64>> {
    let Some(range) = &args.range else { return Ok(0..found.len()) };
    // Without an end it goes to the end.
    let end = if range.end == u64::MAX { found.len() } else { range.end };
    match range.start <= end && end <= found.len() {
        true => Ok(range.start..end),
        false => {
            let cause =
                format!("bytes {}..{end} are asked for, it has {}", range.start, found.len());
            Err(Error::new(ErrorKind::Invalid, "get", &args.object, cause))
        }
    }
}

/// Copies bytes of an object; a whole one is compared with its digest.
fn copy(
    found: &Object,
    range: Range<u64>,
    bar: &indicatif::ProgressBar,
    to: &mut impl Write,
) -> std::result::Result<u64, End> {
    let is_whole = range == (0..found.len());
    let (mut reader, mut hasher, mut at) = (found.reader(), Hasher::default(), range.start);
    io::Seek::seek(&mut reader, io::SeekFrom::Start(at)).map_err(|e| inside(found, e))?;
    let mut buffer = vec![0; 256 << 10];
    while at < range.end {
        let most = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(buffer.len());
        let into = buffer.get_mut(..most).unwrap_or_default();
        let read = reader.read(into).map_err(|e| inside(found, e))?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Err(Error::damage("get", found.digest(), "it ends before its length").into());
        };
        if is_whole {
            hasher.update(bytes);
        }
        to.write_all(bytes)?;
        at += bytes.len() as u64;
        bar.set_position(at - range.start);
    }
    let digest = hasher.finish();
    if is_whole && digest != found.digest() {
        let cause = format!("its checksums fit, and its bytes are {digest}");
        return Err(Error::damage("get", found.digest(), cause).into());
    }
    Ok(at - range.start)
}

/// The error of ours that a stream carries.
fn inside(found: &Object, error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours,
        Err(other) => Error::io("get", found.digest(), other),
    }
}
