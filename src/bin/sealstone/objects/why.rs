//! `sealstone why STORE DIGEST|NS/NAME|FILE`.

use std::path::Path;

use sealstone::engine::{ObjectKept, Receipt};
use sealstone::ids::FileId;
use sealstone::objects::{Name, Subject, Why};
use sealstone::{Error, ErrorKind, Result, Store};
use serde_json::{Value, json};

use super::args::WhyArgs;
use super::{kept, names};
use crate::args::TimeFormat;
use crate::open::object;
use crate::output::{End, Output};
use crate::words::{shown, size, time};

pub fn run(args: &WhyArgs, times: TimeFormat, output: &mut Output) -> std::result::Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let subject = subject(&args.subject, &store)?;
    let why = store.why(&subject)?;
    if is_unknown(&why) {
        let cause = "no row and no receipt tells of it: it never was here, or is long gone";
        return Err(Error::new(ErrorKind::NotFound, "why", &args.subject, cause).into());
    }
    match output.is_json {
        true => output.object(object(fields(args, &why)))?,
        false => lines(&why, times, output)?,
    }
    Ok(0)
}

fn is_unknown(why: &Why) -> bool {
    why.name.is_none() && why.objects.is_empty() && why.file.is_none() && why.receipts.is_empty()
}

/// What is asked about: the name of a sealed file is a digest, a sign, and what makes it unique.
fn subject(text: &str, store: &Store) -> Result<Subject> {
    if let Ok(number) = text.parse() {
        return Ok(Subject::File(FileId(number)));
    }
    if let Ok(digest) = text.parse() {
        return Ok(Subject::Object(digest));
    }
    let last = Path::new(text).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(file) = store.sealed_file(last)? {
        return Ok(Subject::File(file));
    }
    let name: Name = text.parse().map_err(|_| {
        let cause =
            "it is no digest (64 hex digits), no name (NS/NAME), and no sealed file of the store";
        Error::invalid("why", text, cause)
    })?;
    Ok(Subject::Name(name))
}

fn fields(args: &WhyArgs, why: &Why) -> Value {
    let file = why.file.as_ref().map(|file| {
        json!({
            "file": file.file.0, "state": format!("{:?}", file.state).to_lowercase(),
            "bytes_live": file.live, "bytes_dead": file.dead, "is_read": file.is_read,
            "objects": file.objects.iter().map(kept::object_fields).collect::<Vec<_>>(),
            "is_more": file.is_more,
        })
    });
    let receipts: Vec<Value> = why.receipts.iter().map(receipt_fields).collect();
    json!({
        "command": "why", "subject": args.subject, "name": why.name.as_ref().map(names::fields),
        "objects": why.objects.iter().map(kept::object_fields).collect::<Vec<_>>(),
        "file": file, "receipts": receipts,
    })
}

fn receipt_fields(one: &Receipt) -> Value {
    json!({
        "commit": one.commit.0, "what": one.what, "why": one.why, "at_unix_nanos": one.at,
    })
}

fn lines(why: &Why, times: TimeFormat, output: &mut Output) -> std::result::Result<(), End> {
    if let Some(view) = &why.name {
        output.line(&format!(
            "name {} stands for {}, {}, since commit {}",
            shown(&view.name.to_string()),
            view.digest,
            size(view.len),
            view.commit,
        ))?;
    }
    if let Some(file) = &why.file {
        output.line(&format!(
            "file {} is {}: {} live, {} dead{}",
            file.file,
            format!("{:?}", file.state).to_lowercase(),
            size(file.live),
            size(file.dead),
            if file.is_read { "; a reader keeps it" } else { "" },
        ))?;
    }
    for object in why.file.iter().flat_map(|file| &file.objects).chain(&why.objects) {
        object_lines(object, output)?;
    }
    if why.file.as_ref().is_some_and(|file| file.is_more) {
        output.line("and more objects")?;
    }
    for one in &why.receipts {
        output.line(&format!(
            "retired by commit {}, {}: {} ({})",
            one.commit,
            time(one.at, times),
            shown(&one.what),
            shown(&one.why),
        ))?;
    }
    Ok(())
}

fn object_lines(object: &ObjectKept, output: &mut Output) -> std::result::Result<(), End> {
    output.line(&format!("object {} {}", object.object, object.digest))?;
    if object.keepers.is_empty() {
        output.line("  nothing keeps it")?;
    }
    for keeper in &object.keepers {
        output.line(&format!("  kept by {}", shown(&kept::text(keeper))))?;
    }
    if object.is_more {
        output.line("  and by others")?;
    }
    Ok(())
}
