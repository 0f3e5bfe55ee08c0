//! Does opening any file, whatever is in it, allocate no more than a small multiple of its length?
//!
//! An allocator that counts is the only exact way to see that, and an allocator is unsafe code: it
//! stands here, in a test, and nowhere in the crate.
#![cfg(feature = "sim")]
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sealstone::engine::{Append, Store};
use sealstone::format::layout;
use sealstone::journal::{Expect as JournalExpect, read_header, scan};
use sealstone::manifest::{CheckIntegrity, Manifest, Open, read_head};
use sealstone::sealed::{Expect, Reader};
use sealstone::vfs::sim::Rng;
use sealstone::vfs::{Disk, RealDisk};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Calls of the allocator by this thread.
    static CALLS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn grew(bytes: usize) {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it came; only numbers are kept.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: as for this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: as for this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for this function.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that `work` held at once beyond what was held before.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed) - before
}

/// What opening a file of n bytes may hold at once: `times * n + fixed`.
struct Bound {
    kind: &'static str,
    times: usize,
    fixed: usize,
}

const BOUNDS: &[Bound] = &[
    Bound { kind: "HEAD", times: 0, fixed: 4 << 10 },
    Bound { kind: "journal", times: 2, fixed: 192 << 10 },
    Bound { kind: "sealed", times: 2, fixed: 320 << 10 },
    Bound { kind: "manifest", times: 3, fixed: 256 << 10 },
    Bound { kind: "one file", times: 4, fixed: 1 << 20 },
];

/// Cases of each file, and of each long one.
const CASES: (u64, u64) = (150, 25);

struct Bench {
    disk: Arc<dyn Disk>,
    dir: tempfile::TempDir,
}

/// A file as a store wrote it: its kind, its name, its bytes.
type Source = (&'static str, String, Vec<u8>);

/// The files of the store at `root`, the longest of each kind.
fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    for (kind, folder) in [("journal", "journal"), ("sealed", "sealed/00"), ("sealed", "sealed/01")]
    {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        let paths = entries.map(|entry| entry.unwrap().path());
        let longest = paths.max_by_key(|path| std::fs::metadata(path).unwrap().len());
        found.extend(longest.map(|path| (kind, path)));
    }
    found.push(("manifest", root.join("manifest.redb")));
    found.push(("HEAD", root.join("HEAD")));
    let read = |(kind, path): (_, PathBuf)| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (kind, name, std::fs::read(path).unwrap())
    };
    found.into_iter().map(read).collect()
}

/// Files so long that their length decides, not what any opening takes.
fn long_sources() -> Vec<Source> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let mut limits = sealstone::Limits::default();
    (limits.sealed_folders, limits.ballast_bytes, limits.background) = (2, 0, false);
    let store = Store::options().limits(limits).create(&root).unwrap();
    let stream = store.create_stream("s").unwrap();
    let mut rng = Rng::new(1);
    let mut noise = |len: usize| {
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        bytes
    };
    for _ in 0..12 {
        let group = (0..5).map(|_| Append { stream, payload: noise(250_000) });
        store.append(group.collect()).unwrap();
    }
    store.barrier().unwrap();
    let lease = store.lease("keeper", "test", None, &[]).unwrap();
    store.put_objects(lease, (0..500).map(|_| noise(3000)).collect()).unwrap();
    store.put_objects(lease, vec![noise(6_000_000), noise(2_000_000)]).unwrap();
    // The files as they stand while their writer lives.
    sources(&root)
}

/// Stores that are one file: a short one, and one so long that its length decides.
fn single_files() -> Vec<Source> {
    let mut found = Vec::new();
    for (records, objects) in [(20, 2), (60, 40)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.stone");
        let mut limits = one_file_limits();
        limits.ballast_bytes = 0;
        let options = Store::options().limits(limits).layout(sealstone::Layout::SingleFile);
        let store = options.create(&path).unwrap();
        let stream = store.create_stream("s").unwrap();
        let mut rng = Rng::new(records);
        let mut noise = |len: usize| {
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            bytes
        };
        for _ in 0..records {
            store.append(vec![Append { stream, payload: noise(records as usize * 400) }]).unwrap();
        }
        store.barrier().unwrap();
        let lease = store.lease("keeper", "test", None, &[]).unwrap();
        store.put_objects(lease, (0..objects).map(|n| noise(100 + n * 2500)).collect()).unwrap();
        // As it stands while its writer lives.
        found.push(("one file", "run.stone".to_owned(), std::fs::read(&path).unwrap()));
    }
    found
}

fn one_file_limits() -> sealstone::Limits {
    let mut limits = sealstone::Limits::default();
    (limits.background, limits.manifest_cache_bytes) = (false, 1 << 20);
    limits
}

/// A file made hostile: cut, grown, with bits flipped, with fields that promise the most, or noise.
fn hostile(whole: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let at = |rng: &mut Rng, len: usize| (rng.next_u64() % len.max(1) as u64) as usize;
    for _ in 0..1 + rng.next_u64() % 3 {
        let place = at(rng, bytes.len());
        match rng.next_u64() % 7 {
            0 => bytes.truncate(place),
            1 => bytes.extend(vec![rng.next_u64() as u8; at(rng, 100_000)]),
            2 | 3 if !bytes.is_empty() => bytes[place] ^= 1 << (rng.next_u64() % 8),
            4 => bytes.iter_mut().skip(place & !3).take(4).for_each(|byte| *byte = 0xff),
            5 => bytes.iter_mut().skip(place & !7).take(8).for_each(|byte| *byte = 0x7f),
            _ => {
                let (from, len) = (at(rng, bytes.len()), at(rng, 5000));
                let piece: Vec<u8> = bytes.iter().skip(from).take(len).copied().collect();
                bytes.splice(place.min(bytes.len()).., piece);
            }
        }
    }
    if rng.one_in(20) {
        rng.fill(&mut bytes);
    }
    bytes
}

impl Bench {
    /// Opens a hostile file as the store does. Whatever comes of it, it must come.
    fn open(&self, kind: &str, path: &Path) {
        match kind {
            "HEAD" => drop(read_head(&self.disk, self.dir.path())),
            "journal" => {
                let name = path.file_name().unwrap().to_str().unwrap();
                let (owner, n) = layout::parse_journal(name).unwrap();
                let Ok(header) = read_header(&*self.disk, path) else { return };
                let (store, salt) = (header.store, Some(header.salt));
                let expect = JournalExpect { store, owner, n, salt, end: None };
                drop(scan(&*self.disk, path, &expect, &mut |_, _| Ok(())));
            }
            "sealed" => {
                let name = path.file_name().unwrap().to_str().unwrap();
                let (digest, _) = layout::parse_sealed(name).unwrap();
                let expect = Expect { digest: Some(digest), ..Expect::default() };
                for expect in [expect, Expect::default()] {
                    let Ok(reader) = Reader::open(&self.disk, path, &expect) else { continue };
                    let _ = (reader.label(), reader.verify(&digest));
                    let _ = reader.read(64, u64::MAX >> 1);
                    for one in reader.footer().map(|f| f.extents).unwrap_or_default() {
                        let _ = reader.read(one.extent.offset, one.extent.stored_len);
                    }
                }
            }
            "one file" => {
                let whole = || {
                    let options = Store::options().limits(one_file_limits());
                    options.check_integrity(CheckIntegrity::Always)
                };
                drop(whole().open_read_only(path));
                drop(whole().open(path));
            }
            _ => {
                let check_integrity = CheckIntegrity::Always;
                let how = Open { cache_bytes: 1 << 20, check_integrity, ..Open::default() };
                drop(Manifest::open_read_only(&self.disk, self.dir.path(), &how));
                drop(Manifest::open(&self.disk, self.dir.path(), &how));
            }
        }
    }
}

/// P9, G22: nothing in a file makes its reader allocate what the file's own length does not justify.
#[test]
fn g22_opening_a_hostile_file_allocates_a_small_multiple_of_it() {
    let seed = std::env::var("SEALSTONE_SEED").map_or(7, |text| text.parse().unwrap());
    println!("SEALSTONE_SEED={seed}");
    let mut rng = Rng::new(seed);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/first-unclean");
    for (kind, name, whole) in
        sources(&golden).into_iter().chain(long_sources()).chain(single_files())
    {
        let bound = BOUNDS.iter().find(|bound| bound.kind == kind).unwrap();
        let bench = Bench { disk: RealDisk::new(), dir: tempfile::tempdir().unwrap() };
        let path = bench.dir.path().join(name);
        let (mut most, mut share) = (0, 0.0f64);
        let cases = if whole.len() < 1 << 20 { CASES.0 } else { CASES.1 };
        for case in 0..cases {
            let bytes = if case == 0 { whole.clone() } else { hostile(&whole, &mut rng) };
            let n = bytes.len();
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, bytes).unwrap();
            let peak = peak_of(|| bench.open(kind, &path));
            let allowed = bound.times * n + bound.fixed;
            assert!(peak <= allowed, "{kind}, case {case}: {peak} bytes for {n}");
            most = most.max(peak);
            share = share.max(peak.saturating_sub(bound.fixed) as f64 / n.max(1) as f64);
        }
        println!(
            "{kind:<9} of {} KiB, bound {} times its length and {} KiB: {cases} hostile ones took \
             {} KiB at most, {share:.2} times beyond the fixed part",
            whole.len() >> 10,
            bound.times,
            bound.fixed >> 10,
            most >> 10,
        );
    }
}

/// How often `work` asked for memory, on this thread.
fn calls_of(work: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    work();
    CALLS.get() - before
}

/// Does an observation that no stream is due for ask for memory, and one that is for little?
#[test]
fn rec10_a_stream_that_is_not_due_allocates_nothing() {
    use sealstone::recording::{Every, Field, FieldType, Schema};
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("run.stone")).unwrap();
    let fields = ["x", "y", "z"].map(|name| Field::new(name, FieldType::F64));
    let schema = Schema::new(fields.to_vec()).unwrap();
    let new = store.record("run", &schema).stream_every("s", ["x", "y", "z"], Every::iterations(2));
    let run = new.stream_every("never", ["x"], Every::when(|_, _| false)).start().unwrap();
    let observe = |iteration| {
        run.observe_with(iteration, None, |name, to| to.put(name.len() as f64)).unwrap();
    };
    (0..100).for_each(observe);
    run.barrier().unwrap();
    let mut due = 0;
    for iteration in 100..200 {
        let calls = calls_of(|| observe(iteration));
        if iteration % 2 == 0 {
            due += calls;
        } else {
            assert_eq!(calls, 0, "iteration {iteration}");
        }
    }
    println!("{:.2} allocations for a record", due as f64 / 50.0);
    assert!(due <= 6 * 50, "{due} allocations for 50 records");
}

/// Does an observation of a large value hold it as often as journal and group need it, and no more for
/// each stream that leaves it alone?
#[test]
fn rec16_a_large_value_is_not_copied_before_it_is_encoded() {
    use sealstone::recording::{Every, Field, FieldType, Schema, Value};
    const LEN: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let mut limits = sealstone::Limits::default();
    (limits.background, limits.payload_inline_bytes_max) = (false, 4 << 20);
    let store = Store::options().limits(limits).create(dir.path().join("run.stone")).unwrap();
    let schema = Schema::new(vec![Field::new("x", FieldType::Bytes)]).unwrap();
    let new = store.record("run", &schema).stream_every("s", ["x"], Every::iterations(2));
    let run = (0..8).fold(new, |new, n| {
        new.stream_every(&format!("never {n}"), ["x"], Every::when(|_, _| false))
    });
    let run = run.start().unwrap();
    let value = vec![7u8; LEN];
    let observe = |iteration| {
        run.observe_with(iteration, None, |_, to| to.put(Value::Bytes(&value))).unwrap();
    };
    observe(0);
    run.barrier().unwrap();
    assert!(peak_of(|| observe(1)) < LEN / 8, "nothing is due");
    let peak = peak_of(|| observe(2));
    println!("{:.2} times the value at most", peak as f64 / LEN as f64);
    // Seven: the group and the frame in the queue as they grow, and the tail's own. One copy more is
    // one too many.
    assert!(peak < 7 * LEN + LEN / 2, "{peak}");
}

/// Does walking over a long stream hold a few chunks of it, whatever its length, while the whole
/// series is there when it is asked for?
#[test]
fn rec45_iterators_hold_a_few_chunks_of_a_long_stream() {
    use sealstone::recording::{Decoders, Field, FieldType, Schema, Value};
    const RECORDS: i64 = 300_000;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("run.stone")).unwrap();
    let fields = ["x", "y"].map(|name| Field::new(name, FieldType::F64)).to_vec();
    let schema = Schema::new(fields).unwrap();
    let new = store.record("run", &schema).chunk_bytes(64 << 10).stream("s", ["x", "y"]);
    let mut bulk = new.start_bulk().unwrap();
    let mut rng = Rng::new(3);
    for n in 0..RECORDS {
        let x = f64::from_bits(rng.next_u64() >> 2);
        bulk.push(0, n, &[Value::F64(x), Value::F64(-x)]).unwrap();
    }
    bulk.complete(&[]).unwrap();
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    // What the manifest's cache takes is not counted.
    let count = stream.iteration().to_column().unwrap().len();
    assert_eq!(count, RECORDS as usize);
    let few = 2 << 20;
    let columns = peak_of(|| {
        let columns = stream.field("x").unwrap().columns().unwrap();
        assert_eq!(columns.map(|column| column.unwrap().len()).sum::<usize>(), count);
    });
    let records = peak_of(|| {
        let mut records = stream.records(vec![0, 1], 0..stream.record_count(), 256 << 10);
        let mut walked = 0;
        while records.advance().unwrap() {
            walked += 1;
        }
        assert_eq!(walked, count);
    });
    let decoders = Decoders::new()
        .field("x", |state: &mut (f64, f64), x: f64| state.0 = x)
        .and_then(|d| d.field("y", |state: &mut (f64, f64), y: f64| state.1 = y))
        .unwrap();
    let states = peak_of(|| {
        let states = stream.states(&decoders, Default::default).unwrap();
        assert!(states.map(|decoded| decoded.unwrap().state).all(|(x, y)| x == -y));
    });
    let whole =
        peak_of(|| assert_eq!(stream.field("x").unwrap().to_vec::<f64>().unwrap().len(), count));
    println!("columns {columns}, records {records}, states {states}, whole {whole}");
    assert!(columns < few && records < few && states < few, "{columns} {records} {states}");
    assert!(whole >= 8 * count, "the measure measures");
}

/// Does a follower that comes late hold a bounded part of what waits in journals?
#[test]
fn rec50_a_late_follower_holds_a_bounded_part_of_the_journals() {
    use sealstone::format::column::row_payload;
    use sealstone::recording::{Field, FieldType, Followed, Schema, Value};
    const RECORDS: i64 = 12_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let mut limits = sealstone::Limits::default();
    limits.background = false;
    limits.manifest_cache_bytes = 1 << 20;
    let options = Store::options().limits(limits);
    let store = options.clone().create(&path).unwrap();
    let schema = Schema::new(vec![Field::new("x", FieldType::Bytes)]).unwrap();
    drop(store.record("run", &schema).stream("s", ["x"]).start().unwrap());
    let stream = store.recording("run").unwrap().stream("s").unwrap().id();
    let content = vec![7; 4 << 10];
    for n in 0..RECORDS {
        let payload = row_payload::encode(&schema, n, None, &[Value::Bytes(&content)]);
        store.append(vec![Append { stream, payload }]).unwrap();
    }
    store.barrier().unwrap();
    let beside = options.open_read_only(&path).unwrap();
    let mut records = 0;
    let peak = peak_of(|| {
        let mut follow = beside.follow("run").unwrap();
        while let Some(told) = follow.poll().unwrap() {
            records += i64::from(matches!(told, Followed::Appended { .. }));
        }
    });
    println!("{peak} bytes at once of {} in journals", RECORDS << 12);
    assert_eq!(records, RECORDS);
    // 16 MiB that wait, 2 MiB read ahead, and what one look takes.
    assert!((8 << 20..24 << 20).contains(&peak), "{peak}");
}

/// P9: does a record, or a value of a serde type, allocate more than its bytes justify?
#[test]
fn g22_hostile_records_and_values_allocate_a_small_multiple_of_them() {
    use sealstone::codec;
    use sealstone::format::column::row_payload;
    use sealstone::recording::{Array, Field, FieldType, Schema, Value};
    type Nested = Vec<Vec<(u64, String)>>;
    let fields = vec![
        Field::new("grid", FieldType::F32).ragged(3),
        Field::new("bits", FieldType::Bool).ragged(1).nullable(),
        Field::opaque::<Nested>("value").unwrap(),
    ];
    let schema = Schema::new(fields).unwrap();
    let value: Nested = (0..20).map(|n| vec![(n, "text".repeat(n as usize)); 5]).collect();
    let value = codec::encode_value("value", &value).unwrap();
    let (grid, bits) = (vec![0.5f32; 6 * 40], vec![true; 500]);
    let row = [
        Value::from(Array::new(&[2, 3, 40], &grid)),
        Value::from(Array::from(&bits[..])),
        Value::Opaque(&value),
    ];
    let record = row_payload::encode(&schema, 1, None, &row);
    let mut rng = Rng::new(9);
    let (mut of_records, mut of_values) = (0, 0);
    for _ in 0..2000 {
        let bytes = hostile(&record, &mut rng);
        // Values borrow their bytes: what is held is their places.
        let peak = peak_of(|| {
            let mut values = Vec::new();
            let _ = row_payload::decode(&schema, &bytes, &mut values);
        });
        assert!(peak <= 8 << 10, "{peak} bytes for a record of {}", bytes.len());
        of_records = of_records.max(peak);
        let bytes = hostile(&value, &mut rng);
        let peak = peak_of(|| drop(codec::decode_value::<Nested>("value", &bytes)));
        // serde takes up to 1 MiB for a list ahead, for each level of lists.
        let allowed = 24 * bytes.len() + (3 << 20);
        assert!(peak <= allowed, "{peak} bytes for a value of {}", bytes.len());
        of_values = of_values.max(peak);
    }
    println!("records took {of_records} bytes at most, values {of_values}");
}

/// Does getting and streaming an object hold a window of it at a time, however long it is, also where
/// it consists of many pieces? (OBJ2)
#[test]
fn obj2_a_stream_holds_a_window_of_its_object() {
    use sealstone::objects::READ_AHEAD_BYTES;
    let folder = tempfile::tempdir().unwrap();
    let mut limits = sealstone::Limits::default();
    limits.background = false;
    let store = Store::options().limits(limits).create(folder.path().join("run.stone")).unwrap();
    let noise = |seed| {
        let mut bytes = vec![0; 12 << 20];
        Rng::new(seed).fill(&mut bytes);
        bytes
    };
    let bytes = noise(5);
    let lease = store.lease("test", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![bytes.clone()]).unwrap();
    let whole = sealstone::digest::Digest::of(&bytes);
    let prep = store.objects().prepare("p").unwrap();
    let pieces = sealstone::objects::PutOptions {
        pieces: sealstone::objects::Pieces::Of { min: 4 << 10, avg: 16 << 10, max: 64 << 10 },
        ..Default::default()
    };
    let other = noise(6);
    let in_pieces = prep.put_with(&other, &pieces).unwrap();
    prep.flush().unwrap();
    drop((bytes, other));
    for digest in [whole, in_pieces] {
        let mut read = 0;
        let peak = peak_of(|| {
            let object = store.objects().get(&digest).unwrap();
            read = object.write_to(&mut std::io::sink()).unwrap();
            read += std::io::copy(&mut object.reader(), &mut std::io::sink()).unwrap();
            object.verify().unwrap();
        });
        assert_eq!(read, 24 << 20);
        println!("{} KiB at once", peak >> 10);
        assert!(peak as u64 <= 4 * READ_AHEAD_BYTES, "{} KiB at once", peak >> 10);
    }
}
