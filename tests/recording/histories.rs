//! Random runs, killed at random and gone on with: whatever is cut, the recording ends up as the run that
//! nobody killed.
//!
//! A history is a seed. `SEALSTONE_SEED` sets the first one, `SEALSTONE_HISTORIES` how many:
//!
//! ```text
//! SEALSTONE_SEED=1 SEALSTONE_HISTORIES=10000 \
//!   cargo test --release --features cli,sim --test recording rec39_histories -- --nocapture
//! ```

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sealstone::campaign::Limited;
use sealstone::check::{CheckOptions, Severity, check};
use sealstone::recording::{
    Cell, Every, Field, FieldType, NewRecording, Observable, Opaque, Overflow, Recorder,
    RecordingStatus, ResumeFrom, Schema, StreamOptions, TimeAxis, Value,
};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::{Profile, Rng, SimDisk};
use sealstone::{ErrorKind, Layout, Options, Store, WriteAccess};

/// What a stream records.
#[derive(Debug, Clone)]
enum Rule {
    All,
    Iterations(u64),
    Time(f64),
    Change,
    Predicate(i64),
    /// Nanoseconds of the wall clock: where it picks, no other run picks.
    Wall(u64),
}

/// A stream of the plan.
#[derive(Debug, Clone)]
struct Planned {
    name: String,
    fields: Vec<String>,
    rule: Rule,
    chunk_bytes: u64,
    overflow: Overflow,
}

impl Planned {
    /// Whether it may leave out what another run of it records.
    fn is_loose(&self) -> bool {
        let leaves_out = matches!(self.overflow, Overflow::Drop | Overflow::Ring { .. });
        leaves_out || matches!(self.rule, Rule::Wall(_))
    }
}

/// Everything that a history follows from.
#[derive(Debug, Clone)]
struct Plan {
    seed: u64,
    layout: Layout,
    access: WriteAccess,
    schema: Schema,
    streams: Vec<Planned>,
    queue_bytes: u64,
    is_timed: bool,
    iterations: i64,
    checkpoint_one_in: u64,
    barrier_one_in: u64,
    forks: bool,
    kills: u64,
}

fn mix(seed: u64, with: u64) -> u64 {
    Rng::new(seed ^ with.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64()
}

impl Plan {
    fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let layout = [Layout::Directory, Layout::SingleFile][rng.index(2)];
        let is_shared = layout == Layout::Directory && rng.one_in(4);
        let access = if is_shared { WriteAccess::Shared } else { WriteAccess::Single };
        let is_timed = rng.one_in(2);
        let mut fields =
            vec![Field::new("core", FieldType::U64), Field::new("level", FieldType::I32)];
        for at in 0..1 + rng.below(8) {
            let types = [
                FieldType::Bool,
                FieldType::I8,
                FieldType::I64,
                FieldType::U16,
                FieldType::F32,
                FieldType::F64,
                FieldType::String,
                FieldType::Bytes,
                FieldType::U8,
                FieldType::I16,
                FieldType::U32,
                FieldType::Json,
                FieldType::Opaque,
            ];
            let ty = types[rng.index(types.len())];
            let name = format!("f{at}");
            let mut field = match ty {
                FieldType::Opaque => Field::opaque::<(u64, String)>(name).unwrap(),
                ty => Field::new(name, ty),
            };
            if ty == FieldType::F64 && rng.one_in(2) {
                field = match rng.one_in(3) {
                    true => field.ragged(1),
                    false => field.array([1 + rng.below(20) as u32]),
                };
            }
            fields.push(if rng.one_in(3) { field.nullable() } else { field });
        }
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        let mut schema = Schema::new(fields).unwrap();
        if is_timed {
            schema = schema.timed();
        }
        let streams = (0..1 + rng.below(4)).map(|at| {
            let mut of: Vec<String> = names.iter().filter(|_| rng.one_in(2)).cloned().collect();
            let rule = match rng.below(7) {
                0 => Rule::Iterations(1 + rng.below(7)),
                1 if is_timed => Rule::Time(0.1 + rng.below(30) as f64 / 10.0),
                2 => Rule::Change,
                3 => Rule::Predicate(2 + rng.below(5) as i64),
                4 if rng.one_in(2) => Rule::Wall(1 + rng.below(200_000)),
                _ => Rule::All,
            };
            if of.is_empty() || matches!(rule, Rule::Change) {
                of.retain(|name| name != "level");
                of.push("level".to_owned());
            }
            let overflow = match rng.below(8) {
                0 => Overflow::Fail,
                1 => Overflow::BlockFor(Duration::from_secs(3600)),
                2 => Overflow::Drop,
                3 => Overflow::Ring { records: 1 + rng.below(6), bytes: 500 + rng.below(4000) },
                _ => Overflow::Block,
            };
            let (name, chunk_bytes) = (format!("s{at}"), 40 + rng.below(1500));
            Planned { name, fields: of, rule, chunk_bytes, overflow }
        });
        let streams = streams.collect();
        let queue_bytes = [12 << 10, 32 << 10][rng.index(2)];
        Self {
            seed,
            layout,
            access,
            schema,
            streams,
            queue_bytes,
            is_timed,
            iterations: 5 + rng.below(35) as i64,
            checkpoint_one_in: 3 + rng.below(20),
            barrier_one_in: 3 + rng.below(20),
            forks: rng.one_in(4),
            kills: 1 + rng.below(4),
        }
    }

    fn options(&self, disk: &SimDisk) -> Options {
        let mut limits = Limited::Tiny.limits();
        limits.queue_bytes = self.queue_bytes;
        Store::options()
            .limits(limits)
            .layout(self.layout)
            .access(self.access)
            .disk(Arc::new(disk.clone()))
    }

    /// With `all` streams that may leave something out leave nothing out: what others of them may hold.
    fn draft(&self, store: &Store, name: &str, all: bool) -> NewRecording {
        let mut axis = TimeAxis::named("step", "");
        if self.is_timed {
            axis = axis.time("t", "s");
        }
        let mut draft = store.record(name, &self.schema).time_axis(axis);
        for stream in &self.streams {
            let is_whole = all && stream.is_loose();
            let every = match &stream.rule {
                _ if is_whole => Every::observation(),
                Rule::All => Every::observation(),
                Rule::Iterations(interval) => Every::iterations(*interval),
                Rule::Time(interval) => Every::time(*interval),
                Rule::Change => Every::change_of("level"),
                Rule::Wall(nanos) => Every::wall(Duration::from_nanos(*nanos)),
                Rule::Predicate(of) => {
                    let of = *of;
                    Every::when(move |iteration, _| iteration % of == 1)
                }
            };
            let overflow = if is_whole { Overflow::Block } else { stream.overflow };
            let options = StreamOptions::new(&stream.name, &stream.fields).every(every);
            let options = options.chunk_bytes(stream.chunk_bytes).overflow(overflow);
            draft = draft.stream_as(options);
        }
        draft
    }
}

/// A simulation: each state follows from the one before.
#[derive(Debug, Clone)]
struct State {
    plan: Arc<Plan>,
    iteration: i64,
    core: u64,
}

impl State {
    fn first(plan: &Arc<Plan>) -> Self {
        Self { plan: Arc::clone(plan), iteration: 0, core: mix(plan.seed, 1) }
    }

    fn next(&self) -> Self {
        let core = mix(self.core, self.iteration as u64);
        Self { plan: Arc::clone(&self.plan), iteration: self.iteration + 1, core }
    }

    /// What a run that lost its memory computes again.
    fn at(plan: &Arc<Plan>, iteration: i64) -> Self {
        let mut state = Self::first(plan);
        while state.iteration < iteration {
            state = state.next();
        }
        state
    }
}

impl Observable for State {
    fn iteration(&self) -> i64 {
        self.iteration
    }

    fn time(&self) -> Option<f64> {
        self.plan.is_timed.then_some(self.iteration as f64 * 0.3)
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        let drawn = mix(self.core, name.bytes().map(u64::from).sum());
        if name == "core" {
            return to.put(self.core);
        }
        if name == "level" {
            return to.put((mix(self.plan.seed, self.iteration as u64 / 4) % 3) as i32);
        }
        if to.field().nullable && drawn.is_multiple_of(5) {
            return Ok(());
        }
        let len = (drawn % 40) as usize;
        match to.field().ty {
            FieldType::Bool => to.put(drawn.is_multiple_of(2)),
            FieldType::I8 => to.put(drawn as i8),
            FieldType::I64 => to.put(drawn as i64),
            FieldType::U16 => to.put(drawn as u16),
            FieldType::F32 => to.put((drawn % 1000) as f32 / 7.0),
            FieldType::F64 if to.field().shape.is_scalar() => to.put((drawn % 1000) as f64 / 7.0),
            FieldType::F64 => {
                let of = to.field().shape.fixed_len().map_or(drawn % 12, |of| of);
                let values: Vec<f64> = (0..of).map(|at| mix(drawn, at) as f64).collect();
                to.put(&values[..])
            }
            FieldType::String => to.put(Value::String(&"é".repeat(len))),
            FieldType::U8 => to.put(drawn as u8),
            FieldType::I16 => to.put(drawn as i16),
            FieldType::U32 => to.put(drawn as u32),
            FieldType::Json => to.put(Value::Json(&format!("{{\"n\":[{drawn},null]}}"))),
            FieldType::Opaque => to.put(Value::Opaque(&Opaque::encode(&(drawn, "é".repeat(len)))?)),
            _ => {
                // Now and then larger than a journal's frame keeps inline.
                let len = if drawn.is_multiple_of(17) { 900 } else { len };
                to.put(Value::Bytes(&vec![drawn as u8; len]))
            }
        }
    }
}

/// Records of each stream: iteration, time, values in words.
type Content = Vec<(String, Vec<(i64, String)>)>;

fn content(store: &Store, name: &str) -> sealstone::Result<Content> {
    let mut all = Content::new();
    for stream in store.recording(name)?.streams()? {
        let iterations = stream.iteration().to_column()?;
        let mut texts = vec![String::new(); stream.record_count() as usize];
        let mut columns = Vec::new();
        if stream.schema().is_timed() {
            columns.push(stream.time()?.to_column()?);
        }
        for field in stream.schema().fields() {
            columns.push(stream.field(&field.name)?.to_column()?);
        }
        for (row, text) in texts.iter_mut().enumerate() {
            columns.iter().for_each(|column| *text += &format!("{:?};", column.get(row)));
        }
        let iterations = iterations.as_i64().map(<[i64]>::to_vec).unwrap_or_default();
        all.push((stream.name().to_owned(), iterations.into_iter().zip(texts).collect()));
    }
    Ok(all)
}

/// `content` up to iteration `last`.
fn upto(content: &Content, last: Option<i64>) -> Content {
    let kept = |records: &Vec<(i64, String)>| -> Vec<(i64, String)> {
        records.iter().filter(|(at, _)| last.is_some_and(|last| *at <= last)).cloned().collect()
    };
    content.iter().map(|(name, records)| (name.clone(), kept(records))).collect()
}

/// Whether `found` is what is expected: the same, of a stream that may leave something out a part of it, in
/// order.
fn agrees(plan: &Plan, found: &Content, expected: &Content) -> bool {
    let names =
        |content: &Content| content.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let of_stream = |((_, found), (_, expected)): (&(_, Vec<_>), &(_, Vec<_>)),
                     stream: &Planned| {
        let mut rest = expected.iter();
        match stream.is_loose() {
            true => found.iter().all(|record| rest.any(|one| one == record)),
            false => found == expected,
        }
    };
    let mut pairs = found.iter().zip(expected).zip(&plan.streams);
    names(found) == names(expected) && pairs.all(|(pair, stream)| of_stream(pair, stream))
}

fn last_of(content: &Content) -> Option<i64> {
    content.iter().filter_map(|(_, records)| records.last().map(|(at, _)| *at)).max()
}

fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

/// Counts what happened, so that a suite of nothing is noticed.
#[derive(Debug, Default)]
struct Counts {
    from_tail: AtomicU64,
    from_checkpoint: AtomicU64,
    /// Iterations that a run from the end did again, though a checkpoint lies behind them.
    again: AtomicU64,
    cut: AtomicU64,
    forks: AtomicU64,
    unborn: AtomicU64,
    /// Records of streams that may leave some out, and those that they left out.
    loose: AtomicU64,
    left_out: AtomicU64,
}

struct Player<'a> {
    plan: &'a Arc<Plan>,
    disk: SimDisk,
    rng: Rng,
    /// What the run that nobody killed recorded; absent while that one is played.
    expected: Option<&'a Content>,
    /// Iterations of this history that were done again, though they may be counted as left out.
    again: &'a AtomicU64,
    counts: &'a Counts,
}

type Go<T> = Result<T, String>;

fn say<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Go<T> {
    result.map_err(|e| format!("{what}: {e}"))
}

impl Player<'_> {
    /// Goes on from whatever the disk holds, to the end.
    fn play(&mut self) -> Go<()> {
        let store = say("open", self.plan.options(&self.disk).open_or_create(root()))?;
        self.record(&store, "run")?;
        if store.recording("early").is_ok() {
            self.record(&store, "early")?;
        }
        if self.plan.forks && self.expected.is_some() {
            if store.recording("fork").is_err() {
                match store.fork("run", ResumeFrom::LatestCheckpoint, "fork") {
                    Ok(_) => drop(self.counts.forks.fetch_add(1, Ordering::Relaxed)),
                    Err(e) if e.kind() == ErrorKind::NoCheckpoint => {}
                    Err(e) => return Err(format!("fork: {e}")),
                }
            }
            if store.recording("fork").is_ok() {
                self.record(&store, "fork")?;
            }
        }
        say("close", store.close())
    }

    fn record(&mut self, store: &Store, name: &str) -> Go<()> {
        let (recorder, mut state) = match store.recording(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let recorder = say("start", self.draft(store, name).start())?;
                (recorder, State::first(self.plan))
            }
            Err(e) => return Err(format!("look for it: {e}")),
            Ok(found) if *found.status() == RecordingStatus::Complete => return Ok(()),
            Ok(_) => self.resume(store, name)?,
        };
        while state.iteration < self.plan.iterations {
            self.observe(&recorder, &state)?;
            self.disturb(store, &recorder, &state, name)?;
            state = state.next();
        }
        say("complete", recorder.complete())
    }

    fn draft(&self, store: &Store, name: &str) -> NewRecording {
        self.plan.draft(store, name, self.expected.is_none())
    }

    /// Observes; what fails for want of room comes again once there is some.
    fn observe(&self, recorder: &Recorder, state: &State) -> Go<()> {
        loop {
            match recorder.observe(state) {
                Err(e) if e.kind() == ErrorKind::QueueFull => {
                    say("make room", recorder.barrier())?;
                }
                observed => return say("observe", observed).map(drop),
            }
        }
    }

    /// What must change nothing: barriers and checkpoints, wherever they come.
    fn disturb(&mut self, store: &Store, recorder: &Recorder, state: &State, name: &str) -> Go<()> {
        for (position, stream) in self.plan.streams.iter().enumerate() {
            let keeps = matches!(stream.overflow, Overflow::Ring { .. });
            if keeps && self.expected.is_some() && self.rng.one_in(4) {
                say("trigger", recorder.trigger(position))?;
            }
        }
        if self.rng.one_in(self.plan.barrier_one_in) {
            say("barrier", recorder.barrier())?;
            self.disk.note(format!("{name} {}", state.iteration));
        }
        if self.rng.one_in(self.plan.checkpoint_one_in) {
            say("checkpoint", recorder.checkpoint(state))?;
            self.disk.note(format!("{name} {}", state.iteration));
            let is_wanted = self.plan.forks && name == "run" && self.rng.one_in(3);
            if is_wanted && self.expected.is_some() && store.recording("early").is_err() {
                say("fork early", store.fork("run", ResumeFrom::LatestCheckpoint, "early"))?;
                self.counts.forks.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn resume(&mut self, store: &Store, name: &str) -> Go<(Recorder, State)> {
        let expected = self.expected.ok_or("a run that nobody kills is resumed")?;
        let found = say("read", content(store, name))?;
        let last = last_of(&found);
        if !agrees(self.plan, &found, &upto(expected, last)) {
            return Err(format!("{name}: {found:?} is no prefix of {expected:?}"));
        }
        let draft = self.draft(store, name);
        let resume = || store.resume(name).expect(&draft);
        let mut from = [ResumeFrom::Tail, ResumeFrom::LatestCheckpoint][self.rng.index(2)];
        let planned = match resume().from(from).plan() {
            Err(e) if e.kind() == ErrorKind::NoCheckpoint => {
                from = ResumeFrom::Tail;
                resume().from(from).plan()
            }
            planned => planned,
        };
        let planned = say("plan", planned)?;
        if content(store, name).ok() != Some(found) {
            return Err("the plan changed something".to_owned());
        }
        let resumed = say("resume", resume().from(from).start())?;
        self.counts.cut.fetch_add(planned.cut(), Ordering::Relaxed);
        let state = match &resumed.state {
            None => {
                self.counts.from_tail.fetch_add(1, Ordering::Relaxed);
                let at = self.done_upto(store, name, last)?;
                at.map_or_else(|| State::first(self.plan), |at| State::at(self.plan, at + 1))
            }
            Some(restored) => {
                self.counts.from_checkpoint.fetch_add(1, Ordering::Relaxed);
                let core = say("restore", restored.get::<u64>("core"))?;
                let iteration = restored.iteration();
                let state = State { plan: Arc::clone(self.plan), iteration, core };
                if restored.time() != state.time() || core != State::at(self.plan, iteration).core {
                    return Err(format!("another state at iteration {iteration}"));
                }
                let kept = say("read", content(store, name))?;
                if !agrees(self.plan, &kept, &upto(expected, Some(iteration))) {
                    return Err(format!("{name}: {kept:?} is not what was there at {iteration}"));
                }
                state.next()
            }
        };
        Ok((resumed.recorder, state))
    }

    /// Behind which iteration a run from the end goes on: the one of the last record, or of the newest
    /// checkpoint, where that lies behind it. What is done again from there was perhaps counted as left
    /// out, as the run goes back behind no record, and is counted again.
    fn done_upto(&self, store: &Store, name: &str, last: Option<i64>) -> Go<Option<i64>> {
        let draft = self.draft(store, name);
        let newest = store.resume(name).expect(&draft).from(ResumeFrom::LatestCheckpoint).plan();
        let newest = match newest {
            Ok(plan) => plan.iteration,
            Err(e) if e.kind() == ErrorKind::NoCheckpoint => None,
            Err(e) => return Err(format!("plan from the checkpoint: {e}")),
        };
        if newest <= last {
            return Ok(last);
        }
        // Nothing is drawn for it: other histories stay what they are.
        if mix(self.plan.seed, newest.unwrap_or(0) as u64).is_multiple_of(2) {
            return Ok(newest);
        }
        let again = (newest.map_or(0, |at| at + 1) - last.map_or(0, |at| at + 1)) as u64;
        self.again.fetch_add(again, Ordering::Relaxed);
        self.counts.again.fetch_add(again, Ordering::Relaxed);
        Ok(last)
    }
}

/// Plays the history of `seed`, killed and gone on with, and compares.
fn history(seed: u64, counts: &Counts) -> Go<()> {
    let plan = Arc::new(Plan::of(seed));
    let disk = SimDisk::new(seed);
    say("mkdir", disk.mkdir(Path::new("/data")))?;
    say("sync", disk.sync_dir(Path::new("/")))?;
    let world = disk.clone();
    let rng = Rng::new(seed ^ 7);
    let again = &AtomicU64::new(0);
    let mut whole = Player { plan: &plan, disk, rng, expected: None, again, counts };
    whole.play()?;
    let store = say("open", plan.options(&world).open(root()))?;
    let expected = say("read", content(&store, "run"))?;
    drop(store);

    let mut rng = Rng::new(seed ^ 0xdead);
    let mut disk = SimDisk::new(seed);
    say("mkdir", disk.mkdir(Path::new("/data")))?;
    say("sync", disk.sync_dir(Path::new("/")))?;
    disk.restart_log();
    for _ in 0..plan.kills {
        let rng_of_play = rng.fork();
        let world = disk.clone();
        let expected_content = &expected;
        let expected = Some(&expected);
        Player { plan: &plan, disk, rng: rng_of_play, expected, again, counts }.play()?;
        let log = world.events();
        let profile = Profile::ALL[rng.index(3)];
        let mut cursor = log.cursor(profile);
        // Half of them early: inside recovery and resume, once there is something to resume.
        let len = log.len() + 1;
        let bound = if rng.one_in(2) { len } else { (len / 8).max(1) };
        cursor.advance_to(rng.index(bound));
        let acknowledged =
            cursor.notes().last().map(|note| String::from_utf8_lossy(note).into_owned());
        let images = cursor.images(&mut rng, 6);
        let Some(image) = images.get(rng.index(images.len().max(1))) else {
            return Err("no crash at this event".to_owned());
        };
        disk = image.disk();
        check_acknowledged(&plan, &disk, acknowledged, expected_content, counts)?;
        disk.restart_log();
    }
    let world = disk.clone();
    let last = rng.fork();
    Player { plan: &plan, disk, rng: last, expected: Some(&expected), again, counts }.play()?;
    let store = say("open", plan.options(&world).open(root()))?;
    for found in say("list", store.recordings(10))? {
        if *found.status() != RecordingStatus::Complete {
            return Err(format!("{} is {:?}", found.name(), found.status()));
        }
        let content = say("read", content(&store, found.name()))?;
        let again = again.load(Ordering::Relaxed);
        count_loose(&plan, &found, &content, (&expected, again), counts)?;
        if !agrees(&plan, &content, &expected) {
            return Err(format!("{}: {content:?} is not {expected:?}", found.name()));
        }
    }
    if !say("account", store.accounts())?.are_closed() {
        return Err("the books do not close".to_owned());
    }
    if seed.is_multiple_of(8) {
        let disk: Option<Arc<dyn Disk>> = Some(Arc::new(world.clone()));
        let options = CheckOptions { disk, ..CheckOptions::default() };
        let report = say("check", check(root(), &options, &mut |_| ControlFlow::Continue(())))?;
        let is_bad = |finding: &&sealstone::check::Finding| finding.severity != Severity::Note;
        if let Some(finding) = report.findings.iter().find(is_bad) {
            return Err(format!("check: {finding:?}"));
        }
    }
    Ok(())
}

/// Counts what streams that may leave something out left out, and compares it with what they say: each
/// iteration is recorded or left out once, but for those that were done `again`.
fn count_loose(
    plan: &Plan,
    recording: &sealstone::recording::Recording,
    content: &Content,
    (expected, again): (&Content, u64),
    counts: &Counts,
) -> Go<()> {
    for ((planned, (name, records)), (_, all)) in plan.streams.iter().zip(content).zip(expected) {
        if !planned.is_loose() {
            continue;
        }
        counts.loose.fetch_add(records.len() as u64, Ordering::Relaxed);
        counts.left_out.fetch_add((all.len() - records.len()) as u64, Ordering::Relaxed);
        let dropped = say("count", say("open", recording.stream(name))?.dropped())?;
        let of = all.len() as u64 + again;
        if records.len() as u64 + dropped > of {
            return Err(format!("{name}: {} records, {dropped} dropped of {of}", records.len()));
        }
    }
    Ok(())
}

/// P1: what a barrier or a checkpoint acknowledged is there after the crash.
fn check_acknowledged(
    plan: &Plan,
    disk: &SimDisk,
    acknowledged: Option<String>,
    expected: &Content,
    counts: &Counts,
) -> Go<()> {
    let Some(text) = acknowledged else {
        counts.unborn.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    };
    let (name, at) = text.split_once(' ').ok_or("a note of somebody else")?;
    let at: i64 = say("note", at.parse())?;
    let store = say("look", plan.options(disk).open_read_only(root()))?;
    let found = say("look", content(&store, name))?;
    // Every stream by itself: what a stream records follows from the state alone.
    if !agrees(plan, &upto(&found, Some(at)), &upto(expected, Some(at))) {
        return Err(format!("{name}: iteration {at} was acknowledged, and {found:?} is left"));
    }
    Ok(())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Does every run that is killed at random, and gone on with, end up as the run that nobody killed?
#[test]
fn rec39_histories_of_kills_end_as_the_run_that_nobody_killed() {
    let (first, count) = (number("SEALSTONE_SEED", 1), number("SEALSTONE_HISTORIES", 30));
    let counts = Counts::default();
    let next = AtomicU64::new(0);
    let began = std::time::Instant::now();
    let failures = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count || failures.lock().unwrap().len() >= 3 {
                        return;
                    }
                    let seed = first + at;
                    if let Err(why) = history(seed, &counts) {
                        let mut why = why;
                        why.truncate(1500);
                        failures
                            .lock()
                            .unwrap()
                            .push(format!("SEALSTONE_SEED={seed} SEALSTONE_HISTORIES=1: {why}"));
                    }
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "seeds {first}..{}, {seconds:.1} s, {:.0}/s, {counts:?}",
        first + count,
        count as f64 / seconds
    );
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    if count >= 30 {
        for (what, counted) in [
            ("resumes from the tail", &counts.from_tail),
            ("resumes from a checkpoint", &counts.from_checkpoint),
            ("records cut", &counts.cut),
            ("forks", &counts.forks),
            ("records of streams that leave some out", &counts.loose),
            ("records left out", &counts.left_out),
        ] {
            assert!(counted.load(Ordering::Relaxed) > count / 20, "{what}: {counts:?}");
        }
    }
}
