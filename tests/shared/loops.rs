//! Three writers side by side, one of them killed again and again while the others go on.
//!
//! Each has two streams of its own, which its successor goes on with, and now and then tries one of
//! the others': refused while their writer lives, its own once that is dead, and let go of again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sealstone::ErrorKind;
use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Append, Budget, Options, Store, StreamView, WriteAccess};
use sealstone::ids::StreamId;
use sealstone::manifest::{Reading, StreamRow};
use sealstone::vfs::RealDisk;

use crate::child::{Orders, Running, seed};
use crate::support::{limits, publish, texts};

const WRITERS: u64 = 3;
const STREAMS: u64 = 2 * WRITERS;
const KILLS: u64 = 200;
/// The longest that any writer may stand still while others are killed.
const STILL_MAX: Duration = Duration::from_secs(10);

fn options(access: WriteAccess) -> Options {
    let mut limits = limits();
    limits.journal_file_bytes = 16 << 10;
    limits.journal_budget_bytes = 48 << 10;
    limits.sealed_file_bytes = 16 << 10;
    limits.background = true;
    limits.linger_millis = 4;
    limits.head_commits = 8;
    limits.owners_max = 40;
    Store::options().limits(limits).disk(RealDisk::new()).access(access).wait_millis(20_000)
}

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Record `sequence` of `stream`.
fn record(stream: StreamId, sequence: u64) -> String {
    let long = sequence.wrapping_mul(0x9e37_79b9) % 97;
    // Some are sealed first.
    let len = if long == 0 { 1500 } else { long as usize };
    format!("{stream} {sequence} {}", "x".repeat(len))
}

fn verify(store: &Store, stream: StreamId) -> u64 {
    let found = texts(store, stream);
    for (text, sequence) in found.iter().zip(0..) {
        assert_eq!(*text, record(stream, sequence), "stream {stream}");
    }
    found.len() as u64
}

fn streams(store: &Store) -> Vec<StreamId> {
    let rows = store.snapshot().unwrap().list::<StreamRow>(.., usize::MAX).unwrap();
    rows.into_iter().map(|(stream, _)| stream).collect()
}

/// One writer: what it tells stands in its log, a line for each thing.
struct Writer {
    store: Store,
    log: File,
    /// How many records each stream that we hold has, and how many of them are acknowledged.
    held: BTreeMap<StreamId, u64>,
    since: Instant,
}

/// What a writer does until it is killed.
pub fn write(root: &Path, out: &Path, seed: u64) {
    let log = OpenOptions::new().append(true).create(true).open(out.join("log")).unwrap();
    let since = Instant::now();
    let store = options(WriteAccess::Shared).open(root).unwrap();
    let mut writer = Writer { store, log, held: BTreeMap::new(), since };
    writer.line("o");
    let all = streams(&writer.store);
    let (slot, mut rng) = ((seed % WRITERS) as usize, Rng(seed));
    loop {
        let others = rng.below(12) == 0;
        let at =
            if others { rng.below(STREAMS) as usize } else { 2 * slot + rng.below(2) as usize };
        let is_mine = at / 2 == slot;
        match writer.group(all[at], 1 + rng.below(6)) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::Conflict => {
                writer.line("r");
                continue;
            }
            Err(e) => panic!("{e:?}"),
        }
        // Unsynced for a moment.
        std::thread::sleep(Duration::from_micros(rng.below(3000)));
        if rng.below(3) > 0 || !is_mine {
            writer.acknowledge();
        }
        if rng.below(8) == 0 {
            publish(&writer.store, all[at]).unwrap();
            writer.acknowledge();
        }
        if !is_mine || rng.below(40) == 0 {
            writer.store.release_stream(all[at]).unwrap();
            writer.held.remove(&all[at]);
            writer.line("l");
        }
        if rng.below(60) == 0 {
            writer.store.reclaim(Budget::default()).unwrap();
            writer.line("c");
        }
    }
}

impl Writer {
    /// Tells something, and that nothing stood still meanwhile.
    fn line(&mut self, text: &str) {
        let took = self.since.elapsed();
        assert!(took < STILL_MAX, "nothing came for {took:?} before {text:?}");
        self.log.write_all(format!("{text}\n").as_bytes()).unwrap();
        self.since = Instant::now();
    }

    fn group(&mut self, stream: StreamId, count: u64) -> sealstone::Result<()> {
        if !self.held.contains_key(&stream) {
            self.store.claim_stream(stream)?;
            // Exactly at the tail: whatever was told by those before us is there.
            let rows = self.store.view(stream)?.record_count();
            self.held.insert(stream, rows);
        }
        let Some(next) = self.held.get_mut(&stream) else { return Ok(()) };
        let group = (*next..*next + count)
            .map(|sequence| Append { stream, payload: record(stream, sequence).into_bytes() });
        let accepted = self.store.append(group.collect())?;
        assert_eq!(accepted.sequences[0].0, *next, "P2: it goes on elsewhere than at its tail");
        *next += count;
        self.line("u");
        Ok(())
    }

    fn acknowledge(&mut self) {
        let held: Vec<(StreamId, u64)> = self.held.iter().map(|(s, n)| (*s, *n)).collect();
        self.store.barrier().unwrap();
        let told: Vec<String> = held.iter().map(|(s, n)| format!("{s}:{n}")).collect();
        let waits = self.store.stats().unwrap().waits;
        self.line(&format!("k {} w {} {}", told.join(" "), waits.count, waits.longest_nanos));
    }
}

/// A place for a writer, whoever sits in it now.
struct Slot {
    out: PathBuf,
    running: Option<Running>,
    read: usize,
    last: String,
    grew: Instant,
}

struct Bench {
    root: PathBuf,
    slots: Vec<Slot>,
    acknowledged: BTreeMap<StreamId, u64>,
    told: u64,
    refused: u64,
    let_go: u64,
    waits: u64,
    longest_wait: u64,
    longest_still: Duration,
}

impl Bench {
    /// Takes in what the writers told since; fails where one stands still.
    fn listen(&mut self) {
        for slot in &mut self.slots {
            let text = std::fs::read_to_string(slot.out.join("log")).unwrap_or_default();
            for line in text[slot.read..].lines() {
                slot.last = line.to_owned();
                self.let_go += u64::from(line == "l");
                self.refused += u64::from(line == "r");
                let Some(rest) = line.strip_prefix("k ") else { continue };
                let (acks, waits) = rest.split_once("w ").unwrap();
                for ack in acks.split_whitespace() {
                    let (stream, n) = ack.split_once(':').unwrap();
                    let kept =
                        self.acknowledged.entry(StreamId(stream.parse().unwrap())).or_default();
                    *kept = (*kept).max(n.parse().unwrap());
                    self.told += 1;
                }
                let (count, longest) = waits.split_once(' ').unwrap();
                self.waits += u64::from(count != "0");
                self.longest_wait = self.longest_wait.max(longest.parse().unwrap());
            }
            if text.len() > slot.read {
                self.longest_still = self.longest_still.max(slot.grew.elapsed());
                (slot.read, slot.grew) = (text.len(), Instant::now());
            }
            let still = slot.grew.elapsed();
            let said = slot.running.as_ref().map(Running::said);
            assert!(still < STILL_MAX, "a writer stands still since {still:?}: {said:?}");
        }
    }

    fn start(&mut self, at: u64, rng: &mut Rng) {
        let slot = &mut self.slots[at as usize];
        let seed = rng.below(1 << 40) * WRITERS + at;
        slot.running = Some(Orders::new("writer", &self.root, &slot.out, seed).start());
        slot.grew = Instant::now();
    }

    /// Nothing that was acknowledged is missing, and everything that is there is right.
    fn verify(&self, store: &Store) {
        for (stream, at_least) in &self.acknowledged {
            let found = verify(store, *stream);
            assert!(found >= *at_least, "stream {stream}: {found} of {at_least} acknowledged");
        }
    }
}

/// Do two writers go on while a third is killed 200 times, with nothing acknowledged missing, no
/// writer standing still, and each stream going on exactly at its tail? (G1, G5, G9, P2)
#[test]
fn g1_writers_go_on_while_one_is_killed() {
    let began = Instant::now();
    let mut rng = Rng(seed("three writers"));
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let store = options(WriteAccess::Shared).open_or_create(&root).unwrap();
    for n in 0..STREAMS {
        store.create_stream(&format!("s{n}")).unwrap();
    }
    store.close().unwrap();
    let slots = (0..WRITERS).map(|n| {
        let out = dir.path().join(format!("out{n}"));
        std::fs::create_dir(&out).unwrap();
        Slot { out, running: None, read: 0, last: String::new(), grew: Instant::now() }
    });
    let mut bench = Bench {
        root: root.clone(),
        slots: slots.collect(),
        acknowledged: BTreeMap::new(),
        told: 0,
        refused: 0,
        let_go: 0,
        waits: 0,
        longest_wait: 0,
        longest_still: Duration::ZERO,
    };
    (0..WRITERS).for_each(|at| bench.start(at, &mut rng));
    let mut both_unsynced = 0;
    for kill in 0..KILLS {
        let until = Instant::now() + Duration::from_micros(20_000 + rng.below(120_000));
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
            bench.listen();
        }
        bench.listen();
        both_unsynced += u64::from(bench.slots.iter().filter(|slot| slot.last == "u").count() >= 2);
        let victim = rng.below(WRITERS);
        bench.slots[victim as usize].running.take().unwrap().kill();
        bench.listen();
        if kill % 10 == 0 {
            let reader = options(WriteAccess::Single).open_read_only(&root).unwrap();
            bench.verify(&reader);
        }
        bench.start(victim, &mut rng);
    }
    for slot in &mut bench.slots {
        slot.running.take().unwrap().kill();
    }
    bench.listen();
    let report =
        check(&root, &CheckOptions::default(), &mut |_| std::ops::ControlFlow::Continue(()));
    let report = report.unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
    let last = options(WriteAccess::Shared).open(&root).unwrap();
    let all = streams(&last);
    for stream in &all {
        last.claim_stream(*stream).unwrap();
        let view: StreamView = last.view(*stream).unwrap();
        if !view.tail.is_empty() {
            publish(&last, *stream).unwrap();
        }
    }
    last.reclaim(Budget::default()).unwrap();
    bench.verify(&last);
    let accounts = last.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.orphan == 0, "P10, G8: {accounts:?}");
    last.close().unwrap();
    let alone = options(WriteAccess::Single).open(&root).unwrap();
    bench.verify(&alone);
    println!(
        "{KILLS} kills in {:.1} s: {} acknowledgements, {} refused claims, {} streams let go, two \
         or more with unsynced appends at {both_unsynced} kills, longest stillness {:?}, longest \
         wait for another's transaction {:?}",
        began.elapsed().as_secs_f64(),
        bench.told,
        bench.refused,
        bench.let_go,
        bench.longest_still,
        Duration::from_nanos(bench.longest_wait),
    );
    assert!(both_unsynced > KILLS / 20, "{both_unsynced}");
    assert!(bench.told > 500 && bench.refused > 0 && bench.let_go > 0 && bench.waits > 0);
}
