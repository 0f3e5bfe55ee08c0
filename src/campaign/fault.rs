//! Faults: a history is played once for each operation of the disk and each way in which that can
//! fail. The call returns an error or succeeds; nothing acknowledged is lost either way.

use std::collections::{BTreeMap, BTreeSet};

use super::content::Content;
use super::finding::{Finding, Rule};
use super::history::History;
use super::model::{Model, Survivors};
use super::play::{Broken, Run, options, play, play_broken, root};
use super::trace::check_trace;
use crate::engine::{Outcome, Store};
use crate::error::{Error, ErrorKind};
use crate::vfs::sim::{FaultKind, Profile, Rng, SyncFailure};

/// What a sweep counted.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Faults that struck.
    pub struck: u64,
    /// Those of them that an operation returned as an error.
    pub told: u64,
    /// Those of them after which the store halted.
    pub halted: u64,
    /// By kind.
    pub kinds: BTreeMap<String, u64>,
}

impl Faults {
    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Self) {
        self.struck += other.struck;
        self.told += other.told;
        self.halted += other.halted;
        for (kind, count) in &other.kinds {
            *self.kinds.entry(kind.clone()).or_default() += count;
        }
    }

    /// One line for each kind.
    pub fn table(&self) -> String {
        let head = format!(
            "faults {}: returned as an error {}, halted the store {}\n",
            self.struck, self.told, self.halted
        );
        let line = |(kind, count): (&String, &u64)| format!("  {kind:28} {count:6}\n");
        head + &self.kinds.iter().map(line).collect::<String>()
    }
}

/// The kinds that are swept. Reads that lie are left to the suites of the rooms that read.
const KINDS: [FaultKind; 10] = [
    FaultKind::Eio,
    FaultKind::Enospc,
    FaultKind::ShortWrite,
    FaultKind::ShortRead,
    FaultKind::Eintr,
    FaultKind::Emfile,
    FaultKind::SyncFails(SyncFailure::NothingKept),
    FaultKind::SyncFails(SyncFailure::RandomPart),
    FaultKind::SyncFails(SyncFailure::CacheReverted),
    FaultKind::SyncFails(SyncFailure::NeverAgain),
];

/// Lets every kind strike every operation of `history` behind its prefix, once, `stride` apart.
///
/// # Errors
/// The first rule that did not hold, with the place of the fault in words.
pub fn fault_sweep(history: &History, stride: u64, faults: &mut Faults) -> Result<(), Finding> {
    let sound = play(history);
    if let Some(finding) = sound.findings.first() {
        return Err(finding.clone());
    }
    for kind in KINDS {
        let mut struck = BTreeSet::new();
        let mut after = 0;
        loop {
            let broken = play_broken(history, after, kind);
            let Some(fired) = broken.run.world.fired().into_iter().next() else { break };
            after += stride;
            if !struck.insert(fired.operation) {
                continue;
            }
            faults.struck += 1;
            *faults.kinds.entry(format!("{kind:?}")).or_default() += 1;
            let at = format!("{kind:?} at {:?} of {}", fired.what, fired.path.display());
            judge(&sound, broken, faults).map_err(|finding| {
                let seen = format!("{} ({history}, {at}, after {})", finding.seen, after - stride);
                Finding { seen, ..finding }
            })?;
        }
    }
    Ok(())
}

/// The states that may be there: as they were before the step that failed, or after it.
fn allowed<'r>(sound: &'r Run, broken: &'r Run) -> Vec<&'r Model> {
    let step = broken.states.len();
    let before = broken.states.last().map(|state| &**state);
    before.into_iter().chain(sound.states.get(step).map(|state| &**state)).collect()
}

fn judge(sound: &Run, broken: Broken, faults: &mut Faults) -> Result<(), Finding> {
    let Broken { run, store, error } = broken;
    if let Some(finding) = run.findings.first() {
        return Err(finding.clone());
    }
    if let Some(finding) = check_trace(&run.log) {
        return Err(finding);
    }
    let mut models: Vec<Model> = match error.is_some() {
        true => allowed(sound, &run).into_iter().cloned().collect(),
        false => run.states.last().map(|state| Model::clone(state)).into_iter().collect(),
    };
    run.world.clear_faults();
    faults.told += u64::from(error.is_some());
    let mut attempt = None;
    if let Some(store) = &store {
        attempt = store.health().attempt;
        if said_of_halt(store, error.as_ref())? {
            faults.halted += 1;
        } else if error.is_some() && store.barrier().is_ok() {
            // It works on: what it had accepted is durable now.
            models.iter_mut().for_each(Model::settle_all);
        }
    }
    for image in images(&run) {
        let content = match options(&run.history, &image.disk()).open(root()) {
            Ok(opened) => read(&opened)?,
            Err(e) if models.iter().any(|m| !m.exists) && e.kind() == ErrorKind::NoStore => {
                continue;
            }
            Err(e) => return Err(Finding::error(Rule::Opens, "open after a fault", &e)),
        };
        explain(&models, &content)?;
    }
    drop(store);
    let counts = run.world.counts();
    if counts.open_handles != 0 || counts.locks_held != 0 {
        let seen = format!("{} handles, {} locks", counts.open_handles, counts.locks_held);
        return Err(Finding::new(Rule::Baseline, seen));
    }
    reopened(&run, &models, attempt)
}

/// Whether it halted; if so the next call says it, and if the error was of a sync or commit it did.
fn said_of_halt(store: &Store, error: Option<&Error>) -> Result<bool, Finding> {
    let is_halted = store.health().halted.is_some();
    if is_halted {
        match store.create_stream("of a halted store") {
            Err(e) if e.kind() == ErrorKind::Halted => {}
            other => {
                return Err(Finding::new(Rule::Halts, format!("a halted store said {other:?}")));
            }
        }
    } else if let Some(e) = error.filter(|e| e.kind() == ErrorKind::OutcomeUnknown) {
        return Err(Finding::error(Rule::Halts, "it did not halt after", e));
    }
    Ok(is_halted)
}

fn read(store: &Store) -> Result<Content, Finding> {
    Content::read(store).map_err(|e| Finding::error(Rule::Digests, "read", &e))
}

fn explain(models: &[Model], content: &Content) -> Result<(), Finding> {
    let mut why = String::new();
    for model in models {
        match model.explains(content, Survivors::OfPower) {
            Ok(_) => return Ok(()),
            Err(no) => why = if why.is_empty() { no } else { format!("{why}; or: {no}") },
        }
    }
    Err(Finding::new(Rule::State, why))
}

/// The power fails as well: nothing or all that is on its way survives, or some of it.
fn images(run: &Run) -> Vec<crate::vfs::sim::Image> {
    let log = run.world.events();
    let mut cursor = log.cursor(Profile::PosixHarshest);
    cursor.advance_to(log.len());
    cursor.images(&mut Rng::new(run.history.seed), 3)
}

fn is_for_good(run: &Run) -> bool {
    let kind = FaultKind::SyncFails(SyncFailure::NeverAgain);
    run.world.fired().iter().any(|fired| fired.kind == kind)
}

/// The process ended, the disk works again: another one opens the store.
fn reopened(
    run: &Run,
    models: &[Model],
    attempt: Option<crate::engine::Attempt>,
) -> Result<(), Finding> {
    let store = match options(&run.history, &run.world.process(77)).open(root()) {
        Ok(store) => store,
        Err(e) if models.iter().any(|m| !m.exists) && e.kind() == ErrorKind::NoStore => {
            return Ok(());
        }
        // A file whose pages never persist again stays so until the machine restarts.
        Err(e) if e.kind() == ErrorKind::Io && is_for_good(run) => return Ok(()),
        Err(e) => return Err(Finding::error(Rule::Opens, "open after a fault", &e)),
    };
    explain(models, &read(&store)?)?;
    if let Some(attempt) = attempt {
        let outcome = store.outcome_of(attempt);
        let told = outcome.map_err(|e| Finding::error(Rule::Outcome, "ask for it", &e))?;
        if told == Outcome::Forgotten {
            return Err(Finding::new(Rule::Outcome, "the owner's row is gone"));
        }
    }
    Ok(())
}
