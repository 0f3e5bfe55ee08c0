//! How long a store with many rows takes to open after its writer was killed, against what a full
//! repair of the same manifest takes in the same run.
//!
//! `cargo run --release --example reopen` with 1,000,000 rows; `-- 50000` for a smaller run. With a
//! million rows and more it fails when reopening takes more than 2 % of a full repair.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redb::{Database, TableDefinition};
use sealstone::Store;
use sealstone::digest::Digest;
use sealstone::engine::Append;
use sealstone::ids::{Generation, Ordinal, Sequence, StreamId};
use sealstone::manifest::{
    CheckIntegrity, ChunkRow, InlineRow, Manifest, ObjectRow, Open, Place, Reading, StreamRow,
    Table,
};
use sealstone::vfs::{Access, Disk, RealDisk, Step};

/// Rows for each chunk: object, its bytes, its digest, chunk, edge.
const ROWS_OF_A_CHUNK: u64 = 5;
/// Bytes of an object, of up to 4 KiB that live in the manifest.
const INLINE_BYTES: usize = 512;
const CHUNKS_OF_A_STREAM: u64 = 1000;
/// Of so many tries the fastest counts: other processes take the disk meanwhile.
const TRIES: usize = 3;
/// Unsealed records in the journal.
const UNSEALED: u64 = 1000;
const SHARE_MAX: f64 = 0.02;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [build, path, rows] if build == "--build" => build_and_wait(Path::new(path), rows.parse()?),
        [] => measure(1_000_000),
        [rows] => measure(rows.parse()?),
        _ => Err("give a number of rows, or nothing".into()),
    }
}

/// The writer that is killed: fills the store, says so, and waits.
fn build_and_wait(path: &Path, rows: u64) -> Outcome<()> {
    let store = Store::create(path)?;
    let mut left = rows / ROWS_OF_A_CHUNK;
    let mut streams = Vec::new();
    while left > 0 {
        let chunks = left.min(CHUNKS_OF_A_STREAM);
        streams.push(fill_stream(&store, chunks)?);
        left -= chunks;
    }
    for n in 0..UNSEALED {
        let stream = streams[n as usize % streams.len()];
        store.append(vec![Append { stream, payload: n.to_le_bytes().to_vec() }])?;
    }
    store.barrier()?;
    println!("ready");
    std::io::stdout().flush()?;
    loop {
        std::thread::park();
        std::hint::black_box(&store);
    }
}

fn fill_stream(store: &Store, chunks: u64) -> sealstone::Result<StreamId> {
    let committed = store.transact(Step::PublishCommit, |w| {
        let stream = w.next_stream_id()?;
        for ordinal in 0..chunks {
            let object = w.next_object_id()?;
            let mut bytes = [stream.0.to_le_bytes(), ordinal.to_le_bytes()].concat();
            bytes.resize(INLINE_BYTES, 7);
            let (digest, len) = (Digest::of(&bytes), bytes.len() as u64);
            let row = ObjectRow { digest, len, stored_len: len, codec: 0, place: Place::Inline };
            w.put(&object, &row)?;
            w.put(&object, &InlineRow { bytes })?;
            let chunk = ChunkRow {
                object,
                generation: Generation(0),
                first: Sequence(ordinal),
                records: 1,
                records_written: 1,
                iterations: None,
                times: None,
                raw_len: len,
                payloads: Vec::new(),
            };
            w.put(&(stream, Ordinal(ordinal)), &chunk)?;
        }
        let row = StreamRow {
            name: format!("s{stream}"),
            sealed_upto: Sequence(chunks),
            next_ordinal: Ordinal(chunks),
            ..StreamRow::default()
        };
        w.put(&stream, &row)?;
        Ok(stream)
    })?;
    Ok(committed.value)
}

fn measure(rows: u64) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let killed = folder.path().join("killed.stone");
    kill_one(&killed, rows)?;
    let manifest_bytes = fs::metadata(killed.join("manifest.redb"))?.len();
    println!("manifest   {rows} rows, {manifest_bytes} bytes; its writer was killed");

    let (store_took, found) = fastest(&killed, &reopen)?;
    if found != UNSEALED {
        return Err(format!("{found} unsealed records found, not {UNSEALED}").into());
    }
    println!("store      {store_took:?} until it is ready, {found} unsealed records recovered");
    let open = |check| move |path: &Path| open_manifest(path, check);
    let (reopened, ()) = fastest(&killed, &open(CheckIntegrity::Never))?;
    println!("manifest   {reopened:?} to reopen it");
    let (checked, ()) = fastest(&killed, &open(CheckIntegrity::Always))?;
    let check = checked.saturating_sub(reopened);
    println!("check      {check:?} for the integrity check; by default up to 64 MiB of manifest");
    let (repaired, ()) = fastest(&killed, &full_repair)?;
    println!("repair     {repaired:?} for a full repair of the same rows by redb");
    let share = reopened.as_secs_f64() / repaired.as_secs_f64();
    println!("reopening the manifest takes {:.2} % of a full repair", share * 100.0);
    if rows >= 1_000_000 && share > SHARE_MAX {
        return Err(format!("that is more than {:.0} %", SHARE_MAX * 100.0).into());
    }
    Ok(())
}

/// Measures on copies of what the killed writer left. What it reads comes from the medium.
fn fastest<T>(
    killed: &Path,
    measured: &dyn Fn(&Path) -> Outcome<(Duration, T)>,
) -> Outcome<(Duration, T)> {
    let mut best = None;
    for _ in 0..TRIES {
        let folder = tempfile::tempdir()?;
        let store = copy(killed, &folder.path().join("copied.stone"))?;
        let one = measured(&store)?;
        if best.as_ref().is_none_or(|(took, _)| one.0 < *took) {
            best = Some(one);
        }
    }
    best.ok_or_else(|| "nothing was measured".into())
}

/// Takes a file out of the page cache.
fn make_cold(path: &Path) -> Outcome<()> {
    let file = RealDisk::new().open(path, Access::ReadWrite)?;
    file.sync_all()?;
    Ok(file.evict()?)
}

/// Another process fills a store, and is killed.
fn kill_one(path: &Path, rows: u64) -> Outcome<()> {
    let mut writer = Command::new(std::env::current_exe()?)
        .arg("--build")
        .arg(path)
        .arg(rows.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    if let Some(stdout) = writer.stdout.take() {
        BufReader::new(stdout).read_line(&mut said)?;
    }
    writer.kill()?;
    writer.wait()?;
    if said.trim() != "ready" {
        return Err("the writer failed before it was killed".into());
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Outcome<PathBuf> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    Ok(to.to_owned())
}

fn reopen(path: &Path) -> Outcome<(Duration, u64)> {
    make_cold(&path.join("manifest.redb"))?;
    let started = Instant::now();
    let store = Store::options().check_integrity(CheckIntegrity::Never).open(path)?;
    let took = started.elapsed();
    let chunks = store.snapshot()?.count(Table::Chunks)?;
    if chunks == 0 {
        return Err("the rows are gone".into());
    }
    Ok((took, store.recovery().records))
}

fn open_manifest(path: &Path, check: CheckIntegrity) -> Outcome<(Duration, ())> {
    let disk: Arc<dyn Disk> = RealDisk::new();
    let how = Open { check_integrity: check, ..Open::default() };
    make_cold(&path.join("manifest.redb"))?;
    let started = Instant::now();
    let manifest = Manifest::open(&disk, path, &how)?;
    let took = started.elapsed();
    manifest.close()?;
    Ok((took, ()))
}

/// What redb does without the state that each commit of ours leaves: it walks every page.
fn full_repair(store: &Path) -> Outcome<(Duration, ())> {
    let manifest = store.join("manifest.redb");
    let db = Database::open(&manifest)?;
    let txn = db.begin_write()?;
    txn.open_table(TableDefinition::<u64, u64>::new("probe"))?.insert(1, 1)?;
    txn.commit()?;
    let unclean = store.join("unclean.redb");
    fs::copy(&manifest, &unclean)?;
    drop(db);
    make_cold(&unclean)?;
    let steps = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&steps);
    let started = Instant::now();
    let repaired = Database::builder()
        .set_repair_callback(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        })
        .open(&unclean)?;
    let took = started.elapsed();
    drop(repaired);
    if steps.load(Ordering::Relaxed) == 0 {
        return Err("redb had nothing to repair".into());
    }
    Ok((took, ()))
}
