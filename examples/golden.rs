//! Writes the golden stores: one that was closed, one as a kill leaves it, and what each holds as
//! text. They are written once for each format and kept for ever; a release that cannot read them
//! breaks its promise.
//!
//! `cargo run --features sim --example golden -- tests/golden first`
//!
//! The disk is simulated: names, clocks and contents are the same each time, and so are all bytes but
//! for the order of the manifest's pages.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::engine::{Append, ChunkBuild, Store, Thing};
use sealstone::ids::StreamId;
use sealstone::journal::Level;
use sealstone::manifest::{ClaimKind, ResourceKey};
use sealstone::recording::{Field, FieldType, Recorder, Schema, Value};
use sealstone::vfs::sim::{Rng, SimDisk};
use sealstone::vfs::{Access, Disk, EntryKind, read_whole};
use sealstone::{Limits, Options};

#[path = "../tests/golden/describe.rs"]
mod describe;

type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, name] = &args[..] else { return Err("give a folder and a name".into()) };
    let folder = Path::new(folder);
    clean(&folder.join(name))?;
    unclean(&folder.join(format!("{name}-unclean")))
}

fn root() -> PathBuf {
    PathBuf::from("/run.stone")
}

fn options(disk: &SimDisk) -> Options {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 0;
    limits.journal_prewrite_bytes = 2 << 10;
    limits.object_inline_bytes_max = 64;
    limits.payload_inline_bytes_max = 1000;
    limits.background = false;
    Store::options().limits(limits).disk(Arc::new(disk.clone()))
}

fn clean(to: &Path) -> Done {
    let disk = SimDisk::new(1);
    let store = options(&disk).create(root())?;
    fill(&store)?.complete()?;
    opaque(&store)?;
    store.close()?;
    keep(&disk, to)
}

fn unclean(to: &Path) -> Done {
    let disk = SimDisk::new(2);
    let writer = disk.process(77);
    let store = options(&writer).create(root())?;
    let running = fill(&store)?;
    let stream = opaque(&store)?;
    store.barrier()?;
    let claim = store.claim(&ResourceKey::from("work of the dead"), ClaimKind::Maintenance)?;
    let before = journal_end(&disk)?;
    let torn = store.append(vec![Append { stream, payload: vec![0xaa; 600] }])?;
    store.wait(&torn.ticket, Level::Written)?;
    let (journal, end) = journal_end(&disk)?;
    writer.kill();
    std::mem::forget((claim, running, store));
    // Of the last write only a first part arrived; nobody was told that it did.
    let file = disk.open(&journal, Access::ReadWrite)?;
    let half = before.1 + (end - before.1) / 2;
    file.write_at(&vec![0; (end - half) as usize], half)?;
    drop(file);
    keep(&disk, to)
}

/// The journal that is written, and the byte behind its last that is not zero.
fn journal_end(disk: &SimDisk) -> Result<(PathBuf, u64), Box<dyn Error>> {
    let folder = root().join("journal");
    let entry = disk.list(&folder)?.pop().ok_or("there is no journal")?;
    let path = folder.join(entry.name);
    let bytes = read_whole(&*disk.open(&path, Access::Read)?, u64::MAX)?;
    let last = bytes.iter().rposition(|byte| *byte != 0).ok_or("the journal is empty")?;
    Ok((path, last as u64 + 1))
}

/// A recording of each type of field, one complete and one that still runs.
fn fill(store: &Store) -> Result<Recorder, Box<dyn Error>> {
    let mut maybe = Field::new("count", FieldType::I64);
    maybe.nullable = true;
    let fields = vec![
        Field::new("x", FieldType::F64),
        maybe,
        Field::new("name", FieldType::String),
        Field::new("raw", FieldType::Bytes),
        Field::new("on", FieldType::Bool),
    ];
    let schema = Schema::new(fields)?;
    let names = ["x", "count", "name", "raw", "on"];
    let start = |name: &str| {
        store.record(name, &schema).stream("all", names).metadata("made by", "the first").start()
    };
    let observe = |run: &Recorder, records: i64| {
        for k in 0..records {
            let x = if k == 7 { f64::NAN } else { k as f64 / 3.0 };
            let count = if k % 5 == 0 { Value::Missing } else { Value::I64(k * k) };
            let (name, raw) = (format!("row {k}"), vec![k as u8; k as usize % 7]);
            let values = [
                Value::F64(x),
                count,
                Value::String(&name),
                Value::Bytes(&raw),
                Value::Bool(k > 9),
            ];
            run.append(0, k * 10, &values)?;
        }
        run.barrier()
    };
    let complete = start("complete")?;
    observe(&complete, 40)?;
    complete.complete()?;
    let running = start("running")?;
    observe(&running, 25)?;
    Ok(running)
}

/// Streams, checkpoints and objects as the engine knows them: chunks, a rewind, an unsealed tail,
/// leases, a condemned file.
fn opaque(store: &Store) -> Result<StreamId, Box<dyn Error>> {
    let mut rng = Rng::new(3);
    let mut noise = |len: usize| {
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        bytes
    };
    let stream = store.create_stream("opaque")?;
    for len in 0..20 {
        store.append(vec![Append { stream, payload: noise(len * 7) }])?;
    }
    store.checkpoint(9, &[stream], &noise(300))?;
    let view = store.view(stream)?;
    for (first, count) in [(0, 8), (8, 9)] {
        let mut content = Vec::new();
        for (_, payload) in &view.tail[first..first + count] {
            content.extend(store.payload_bytes(payload)?);
        }
        store.publish_chunks(vec![ChunkBuild {
            stream,
            first: sealstone::ids::Sequence(first as u64),
            records: count as u64,
            raw_len: content.len() as u64,
            content,
            about: b"opaque".to_vec(),
            iterations: None,
            times: None,
            payloads: Vec::new(),
        }])?;
    }
    store.append(vec![Append { stream, payload: noise(50) }])?;
    store.rewind(&store.latest_checkpoint(9)?.cursors)?;
    store.checkpoint(9, &[stream], &noise(70 << 10))?;
    for len in [30, 3000, 5] {
        store.append(vec![Append { stream, payload: noise(len) }])?;
    }
    store.barrier()?;
    let keep = store.lease("keeper", "golden", None, &[])?;
    store.put_objects(keep, vec![noise(20), noise(2000), noise(3000)])?;
    let go = store.lease("leaver", "golden", None, &[])?;
    store.put_objects(go, vec![noise(2500)])?;
    store.retire(&[Thing::Lease(go)], "golden")?;
    Ok(stream)
}

/// Copies what is on the simulated disk, and writes down what it holds.
fn keep(disk: &SimDisk, to: &Path) -> Done {
    let store = options(&disk.process(99)).open_read_only(root())?;
    fs::write(to.with_extension("txt"), describe::describe(&store)?)?;
    drop(store);
    let _ = fs::remove_dir_all(to);
    let mut folders = vec![(root(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to)?;
        for entry in disk.list(&from)? {
            let (path, target) = (from.join(&entry.name), to.join(&entry.name));
            if entry.kind == EntryKind::Directory {
                folders.push((path, target));
            } else {
                fs::write(target, read_whole(&*disk.open(&path, Access::Read)?, u64::MAX)?)?;
            }
        }
    }
    Ok(())
}
