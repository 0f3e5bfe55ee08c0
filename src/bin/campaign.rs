//! The crash campaign: `campaign --slice ci`, `--minutes 10 --seed 7`, `--mutants`,
//! `--replay "<line of a failure>"`. A failure is one line that `--replay` takes; exit code 1.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use sealstone::campaign::{
    Budget, Case, Depth, Faults, Finding, History, Limited, Mutant, OF_SHARED, SharedCase, Tally,
    catch, crash_loops, crash_loops_in, cut_history, cut_packing, fault_sweep, hunt_shared,
    is_caught, packings, pairs, play, protections_in_use, random, replay, replay_shared,
    salvage_all, same_again, shared_slice, singles, tamper_all, whole_trace,
};
use sealstone::clock::monotonic_nanos;

/// What the command line asks for.
#[derive(Debug, Clone)]
struct Arguments {
    slice: String,
    seed: u64,
    threads: usize,
    minutes: u64,
    replay: Option<String>,
    mutants: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments {
        slice: "ci".to_owned(),
        seed: 1,
        threads: 2,
        minutes: 0,
        replay: None,
        mutants: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word.as_str() {
            "--slice" => found.slice = value()?,
            "--seed" => found.seed = number(value()?)?,
            "--threads" => found.threads = number(value()?)?.clamp(1, 64) as usize,
            "--minutes" => found.minutes = number(value()?)?,
            "--replay" => found.replay = Some(value()?),
            "--mutants" => found.mutants = true,
            other => return Err(format!("{other:?} is not known")),
        }
    }
    Ok(found)
}

/// For operations alone, and births.
const DEEP: Budget =
    Budget { posix: 6, ext4: 2, kill: 1, depth: Depth { one_in: 4, cuts: 3, each: 1, levels: 2 } };

/// For pairs, and what chance makes: the ordered profile allows less than the harshest one.
const BROAD: Budget =
    Budget { posix: 2, ext4: 1, kill: 1, depth: Depth { one_in: 4, cuts: 2, each: 1, levels: 2 } };

/// Images of the slice that CI runs, at least: random histories follow where the list gives fewer.
const IMAGES_MIN: u64 = 90_000;

/// Of all pairs, a slice that is not `pairs` cuts one in so many: another one with another seed.
const PAIRS_ONE_IN: u64 = 5;

/// Images from one line of progress to the next.
const TOLD_EACH: u64 = 10_000;

/// Failures after which a run ends early.
const FAILURES_MAX: usize = 20;

/// Everything a run shares between its workers.
struct Shared {
    /// Packed or unpacked, and cut while that is done.
    packings: Vec<History>,
    next_packing: AtomicUsize,
    histories: Vec<History>,
    next: AtomicUsize,
    is_over: AtomicBool,
    failures: Mutex<Vec<(Case, Finding)>>,
    tally: Mutex<Tally>,
    /// Images so far, and how many there must be.
    images: AtomicU64,
    images_min: u64,
    until_nanos: u64,
    seed: u64,
}

impl Shared {
    fn next(&self) -> Option<History> {
        if self.is_over.load(Ordering::Acquire) {
            return None;
        }
        let at = self.next.fetch_add(1, Ordering::AcqRel);
        match self.histories.get(at) {
            Some(history) => Some(history.clone()),
            None if self.is_more_wanted() => {
                Some(random(self.seed.wrapping_mul(1_000_003).wrapping_add(at as u64)))
            }
            None => None,
        }
    }

    fn is_more_wanted(&self) -> bool {
        monotonic_nanos() < self.until_nanos
            || self.images.load(Ordering::Acquire) < self.images_min
    }

    /// Counts images, and tells now and then how far it got.
    fn count(&self, images: u64) {
        let before = self.images.fetch_add(images, Ordering::AcqRel);
        if before / TOLD_EACH != (before + images) / TOLD_EACH {
            let histories = self.next.load(Ordering::Acquire);
            eprintln!("{} images, history {histories}", before + images);
        }
    }

    fn failed(&self, case: Case, finding: Finding) {
        println!("FAILED {finding}\n  --replay \"{case}\"");
        if let Ok(mut failures) = self.failures.lock() {
            failures.push((case, finding));
            if failures.len() >= FAILURES_MAX {
                self.is_over.store(true, Ordering::Release);
            }
        }
    }

    fn work(&self) {
        let mut tally = Tally::default();
        while let Some(history) =
            self.packings.get(self.next_packing.fetch_add(1, Ordering::AcqRel))
        {
            let before = tally.images;
            if let Err(finding) = cut_packing(history, BROAD, &mut tally) {
                self.failed(Case::of(history), finding);
            }
            self.count(tally.images - before);
        }
        while let Some(history) = self.next() {
            if let Some(finding) = whole_trace(&history) {
                self.failed(Case::of(&history), finding);
                continue;
            }
            let before = tally.images;
            // What one file does differently shows in fewer images: most of its steps are commits.
            let is_deep = history.cut.len() == 1 && history.limited != Limited::File;
            let budget = if is_deep { DEEP } else { BROAD };
            if let Err((case, finding)) = cut_history(&play(&history), budget, &mut tally) {
                self.failed(case, finding);
            }
            self.count(tally.images - before);
        }
        if let Ok(mut total) = self.tally.lock() {
            total.add(&tally);
        }
    }
}

fn campaign(arguments: &Arguments) -> bool {
    let mut histories = singles(arguments.seed);
    let one_in = if arguments.slice == "pairs" { 1 } else { PAIRS_ONE_IN };
    histories.extend(pairs(arguments.seed, one_in));
    if arguments.slice == "few" {
        histories.truncate(40);
    }
    if arguments.minutes > 0 {
        histories.clear();
    }
    let shared = Shared {
        packings: if arguments.minutes > 0 { Vec::new() } else { packings(arguments.seed) },
        next_packing: AtomicUsize::new(0),
        histories,
        next: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        failures: Mutex::new(Vec::new()),
        tally: Mutex::new(Tally::default()),
        images: AtomicU64::new(0),
        images_min: if arguments.slice == "ci" && arguments.minutes == 0 { IMAGES_MIN } else { 0 },
        until_nanos: monotonic_nanos() + arguments.minutes * 60_000_000_000,
        seed: arguments.seed,
    };
    let began = monotonic_nanos();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| shared.work());
        }
    });
    let seconds = (monotonic_nanos() - began) as f64 / 1e9;
    let tally = shared.tally.lock().map(|tally| tally.clone()).unwrap_or_default();
    print!("{}", tally.table());
    println!(
        "seed {}, {seconds:.1} seconds, {:.0} images/s on {} threads",
        arguments.seed,
        tally.images as f64 / seconds,
        arguments.threads
    );
    let missing = tally.steps_missing();
    let is_whole = arguments.slice == "few" || arguments.minutes > 0 || missing.is_empty();
    if !is_whole {
        println!("FAILED nothing was cut at {missing:?}");
    }
    is_whole && shared.failures.lock().is_ok_and(|failures| failures.is_empty())
}

/// A run by the clock looks for failures, and leaves the mutants alone.
fn is_long(arguments: &Arguments) -> bool {
    arguments.minutes > 0
}

/// Histories whose every operation fails in every way.
const FAULTED: [(&str, &str); 10] = [
    ("tiny", "!nn|nn"),
    ("tiny", "!NNAB|AGBP"),
    ("tiny", "!NNABOE|FV"),
    ("tiny", "!NNABL|CRAB"),
    ("tiny", "!NNAB|1S"),
    ("tiny", "!NNAGB|cA"),
    ("tiny", "|!N"),
    ("file", "!NAB|ABP"),
    ("tiny", "!NNABO|bAb"),
    ("file", "!NAB|bAb"),
];

/// Sweeps faults over some histories.
fn faults(arguments: &Arguments) -> bool {
    let next = AtomicUsize::new(0);
    let total = Mutex::new((Faults::default(), true));
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                while let Some((limits, ops)) = FAULTED.get(next.fetch_add(1, Ordering::AcqRel)) {
                    let mut faults = Faults::default();
                    let swept = format!("{}:{limits}:{ops}", arguments.seed)
                        .parse::<History>()
                        .map_err(|e| e.to_string())
                        .and_then(|h| fault_sweep(&h, 1, &mut faults).map_err(|f| f.to_string()));
                    if let Err(why) = &swept {
                        println!("FAILED {why}\n  (a fault, seed {})", arguments.seed);
                    }
                    if let Ok(mut total) = total.lock() {
                        total.0.add(&faults);
                        total.1 &= swept.is_ok();
                    }
                }
            });
        }
    });
    let Ok((faults, went_well)) = total.into_inner() else { return false };
    print!("{}", faults.table());
    went_well
}

/// What no crash shows: tampering, and the space that crash loops take.
fn scenarios(seed: u64) -> bool {
    let tampered = match (0..8).find_map(|n| same_again(&random(seed + n))) {
        Some(finding) => Err(finding),
        None => tamper_all(seed),
    };
    let looped = crash_loops(seed, 60)
        .and_then(|bytes| Ok(bytes + crash_loops_in(Limited::File, seed, 30)?));
    match (&tampered, &looped) {
        (Ok(looks), Ok(bytes)) => {
            println!("scenarios: {looks} openings told; 60 crash loops end at {bytes} bytes");
            true
        }
        _ => {
            for finding in [tampered.err(), looped.err()].into_iter().flatten() {
                println!("FAILED {finding}\n  (a scenario of seed {seed})");
            }
            false
        }
    }
}

/// Takes the manifest of images away, and looks at what salvage brings back.
fn salvages(arguments: &Arguments) -> bool {
    match salvage_all(arguments.seed, 2, 2) {
        Ok(done) => {
            println!(
                "salvage: {} images without their manifest: {} whole, {} with what is unconfirmed \
                 or lost, {} not born yet",
                done.images, done.whole, done.listed, done.unborn
            );
            true
        }
        Err((case, finding)) => {
            println!("FAILED {finding}\n  (a salvage of \"{case}\")");
            false
        }
    }
}

/// Images after which a mutant counts as not caught.
const MUTANT_IMAGES_MAX: u64 = 20_000;

/// Switches each protection off in turn; true if every one was noticed.
fn mutants(arguments: &Arguments) -> bool {
    let next = AtomicUsize::new(0);
    let table: Mutex<Vec<Mutant>> = Mutex::new(Vec::new());
    let all = protections_in_use();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                while let Some(protection) = all.get(next.fetch_add(1, Ordering::AcqRel)) {
                    let mutant = catch(*protection, arguments.seed, MUTANT_IMAGES_MAX);
                    println!("  {}", mutant.line());
                    if let Ok(mut table) = table.lock() {
                        table.push(mutant);
                    }
                }
            });
        }
    });
    let Ok(mut table) = table.into_inner() else { return false };
    table.sort_by_key(|mutant| mutant.protection);
    println!("{:28} | {:28} | {:>7} | {:>6}", "mutant", "caught by", "images", "s");
    table.iter().for_each(|mutant| println!("{}", mutant.line()));
    for mutant in &table {
        if let Some(finding) = &mutant.caught {
            println!("  {}: {} [{}]", mutant.protection.name(), finding.seen, mutant.case);
        }
    }
    let is_shared_caught = owner_mutants(arguments);
    is_shared_caught && table.len() == all.len() && table.iter().all(is_caught)
}

/// How long the slice of two owners may take in CI, without its mutants.
const OWNERS_SECONDS: u64 = 30;

/// Two owners of one store, interleaved, killed and cut.
fn owners(arguments: &Arguments, seconds: u64) -> bool {
    let until = monotonic_nanos() + seconds * 1_000_000_000;
    let next = AtomicU64::new(0);
    let total = Mutex::new((Tally::default(), 0u64, true));
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                let (mut tally, mut inside, mut went_well) = (Tally::default(), 0, true);
                while went_well && monotonic_nanos() < until {
                    let n = next.fetch_add(1, Ordering::AcqRel);
                    let seed = arguments.seed.wrapping_mul(1_000_003).wrapping_add(n);
                    match shared_slice(seed, until, &mut tally) {
                        Ok(more) => inside += more,
                        Err((case, finding)) => {
                            println!("FAILED {finding}\n  --replay \"{case}\"");
                            went_well = false;
                        }
                    }
                }
                if let Ok(mut total) = total.lock() {
                    total.0.add(&tally);
                    total.1 += inside;
                    total.2 &= went_well;
                }
            });
        }
    });
    let Ok((tally, inside, went_well)) = total.into_inner() else { return false };
    println!("two owners: {inside} operations inside one of the other's");
    print!("{}", tally.table());
    went_well && tally.images > 0
}

/// What keeps owners apart, switched off.
fn owner_mutants(arguments: &Arguments) -> bool {
    let hunted = OF_SHARED.map(|protection| hunt_shared(protection, arguments.seed, 60));
    for mutant in &hunted {
        println!("{}", mutant.line());
        if let Some(finding) = &mutant.caught {
            println!("  {} [{}]", finding.seen, mutant.case);
        }
    }
    hunted.iter().all(is_caught)
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("campaign: {why}");
            return ExitCode::from(2);
        }
    };
    if let Some(line) = &arguments.replay {
        if let Ok(case) = line.parse::<SharedCase>() {
            return match replay_shared(&case) {
                Ok(()) => {
                    println!("passed: {case}");
                    ExitCode::SUCCESS
                }
                Err(finding) => {
                    println!("FAILED {finding}\n  --replay \"{case}\"");
                    ExitCode::FAILURE
                }
            };
        }
        return match line.parse::<Case>() {
            Err(e) => {
                eprintln!("campaign: {e}");
                ExitCode::from(2)
            }
            Ok(case) => match replay(&case) {
                Ok(()) => {
                    println!("passed: {case}");
                    ExitCode::SUCCESS
                }
                Err(finding) => {
                    println!("FAILED {finding}\n  --replay \"{case}\"");
                    ExitCode::FAILURE
                }
            },
        };
    }
    let went_well = match (arguments.mutants, arguments.slice.as_str()) {
        (true, _) => mutants(&arguments),
        (false, "faults") => faults(&arguments),
        (false, "shared") => {
            owners(&arguments, arguments.minutes.max(1) * 60) & owner_mutants(&arguments)
        }
        (false, "few") => scenarios(arguments.seed) & salvages(&arguments) & campaign(&arguments),
        (false, _) => {
            let looked = scenarios(arguments.seed) & salvages(&arguments);
            let crashed = looked
                & campaign(&arguments)
                & (is_long(&arguments) || owners(&arguments, OWNERS_SECONDS));
            crashed & (is_long(&arguments) || faults(&arguments) & mutants(&arguments))
        }
    };
    if went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
