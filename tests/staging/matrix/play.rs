//! The run. Every step can be done again: after a failure the run starts over, in the same store where
//! that did not halt.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sealstone::engine::{Budget, Layout, Options, Store};
use sealstone::journal::Level;
use sealstone::staging::{
    Appended, Batch, ConvertOptions, DirectoryTarget, HandoffState, MergeOptions, OutputId,
    PlanOptions, Produced, Ready, Stage,
};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;
use sealstone::{ErrorKind, Limits, Result};

use crate::lives::source::{self, ROW_BYTES, Source};
use crate::rows::{Refusing, RowsAsTheyAre, RowsAtMost};

pub const PATH: &str = "/data/run.stone";
/// Where outputs are handed off to.
pub const TARGET: &str = "/data/out";
pub const STAGE: &str = "requests";
/// Producers at work.
pub const PRODUCERS: usize = 2;

/// What may be there, at one moment of the run.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The last batch of each producer that was begun, and that was acknowledged as durable.
    pub sent: [u64; PRODUCERS],
    pub acknowledged: [u64; PRODUCERS],
    /// Rows whose output is outside for certain.
    pub handed_off: BTreeSet<(usize, u64)>,
    /// Rows of outputs of which nobody knows whether they are retired.
    pub retiring: Vec<BTreeSet<(usize, u64)>>,
    /// Rows whose output is.
    pub retired: BTreeSet<(usize, u64)>,
}

/// One process at work on one disk.
pub struct Play {
    pub layout: Layout,
    pub source: Source,
    pub disk: SimDisk,
    /// The facts after each note in the disk's log.
    pub facts: RefCell<Vec<Facts>>,
}

/// A disk with the place where stores go.
pub fn world(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    for dir in ["/data", TARGET] {
        disk.mkdir(Path::new(dir)).unwrap();
        disk.sync_dir(Path::new(dir).parent().unwrap()).unwrap();
    }
    disk
}

pub fn options(layout: Layout, disk: &SimDisk) -> Options {
    let mut limits = Limits::default();
    limits.sealed_folders = 1;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.payload_inline_bytes_max = 600;
    limits.block_bytes = 4 << 10;
    limits.snapshot_publications = 4;
    limits.background = false;
    Store::options().limits(limits).layout(layout).disk(Arc::new(disk.clone()))
}

impl Play {
    pub fn new(layout: Layout, disk: &SimDisk, seed: u64) -> Self {
        let source = Source { seed, rows: 4, minute: 2 };
        Self { layout, source, disk: disk.clone(), facts: RefCell::new(vec![Facts::default()]) }
    }

    pub fn target(&self) -> DirectoryTarget {
        DirectoryTarget::new(TARGET).disk(Arc::new(self.disk.clone()))
    }

    pub fn open(&self) -> Result<Store> {
        options(self.layout, &self.disk).open(PATH)
    }

    pub fn now(&self) -> Facts {
        self.facts.borrow().last().cloned().unwrap()
    }

    fn note(&self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.now();
        change(&mut facts);
        let mut all = self.facts.borrow_mut();
        self.disk.note((all.len() as u32).to_le_bytes());
        all.push(facts);
    }

    /// The facts that a note in the log stands for.
    pub fn facts_of(&self, note: Option<&[u8]>) -> Facts {
        let at = note.map_or(0, |note| u32::from_le_bytes(note.try_into().unwrap()));
        self.facts.borrow()[at as usize].clone()
    }

    /// All of it, from wherever an earlier run of it ended.
    pub fn run(&self, store: &Store) -> Result<()> {
        let stage = store.stage_or_create(STAGE, &source::shape())?;
        self.append(&stage, 0, 2)?;
        self.append(&stage, 1, 3)?;
        stage.flush(&Ready::Before("minute", 1))?;
        // Late, for a key that is detached.
        self.append(&stage, 0, 3)?;
        // In pieces: what is not in an output yet stays.
        convert(&stage, 1)?;
        self.append(&stage, 1, 5)?;
        stage.flush(&Ready::All)?;
        self.fail(&stage)?;
        self.set_aside(&stage)?;
        convert(&stage, 1)?;
        self.merge(&stage)?;
        self.hand_off(&stage)?;
        self.retire(&stage)?;
        store.reclaim(Budget::default())?;
        self.append(&stage, 0, 5)?;
        Ok(())
    }

    /// Batches up to `upto` of a producer, which asks the stage where it is.
    pub fn append(&self, stage: &Stage, producer: usize, upto: u64) -> Result<()> {
        let name = source::name(producer);
        let from = stage.progress(&name)?.map_or(0, |progress| progress.sequence);
        let mut last = None;
        for sequence in from + 1..=upto {
            self.note(|facts| facts.sent[producer] = facts.sent[producer].max(sequence));
            last = Some(self.append_one(stage, producer, sequence)?.ticket);
        }
        match last {
            Some(ticket) => stage.wait(&ticket, Level::Durable)?,
            // Whoever had begun it does not know: it is there, and now for certain.
            None => stage.barrier()?,
        }
        self.note(|facts| facts.acknowledged[producer] = facts.acknowledged[producer].max(upto));
        Ok(())
    }

    /// One batch. One in three is so large that its record is sealed before the frame that names it.
    pub fn append_one(&self, stage: &Stage, producer: usize, sequence: u64) -> Result<Appended> {
        let position = vec![sequence as u8; if sequence.is_multiple_of(3) { 700 } else { 8 }];
        let produced = Produced::new(source::name(producer), sequence).at(position);
        let batch = Batch::opaque(self.source.batch(producer, sequence), self.source.rows);
        stage.append(&self.source.key(producer, sequence), batch, Some(&produced))
    }

    /// A conversion of one group that fails, and is noted.
    fn fail(&self, stage: &Stage) -> Result<()> {
        let plan = stage.plan(&PlanOptions { groups_max: 1, ..PlanOptions::default() })?;
        for converted in plan.convert(&Refusing, &ConvertOptions::default())? {
            match converted.made {
                Err(e) if e.kind() == ErrorKind::Input => {}
                made => drop(made?),
            }
        }
        Ok(())
    }

    /// A group goes to quarantine by hand, and comes back; and what an earlier run left there.
    fn set_aside(&self, stage: &Stage) -> Result<()> {
        for one in stage.quarantine()? {
            stage.retry(one.id)?;
        }
        let detached = stage.groups()?.into_iter().find(|group| group.is_detached);
        if let Some(group) = detached.and_then(|group| group.id) {
            for one in stage.set_aside(group, "by hand")? {
                stage.retry(one.id)?;
            }
        }
        Ok(())
    }

    /// Outputs of one key become one.
    fn merge(&self, stage: &Stage) -> Result<()> {
        let options = MergeOptions { threads_max: 1, ..MergeOptions::default() };
        for merged in stage.merge(&options, &RowsAsTheyAre)? {
            merged.output?;
        }
        Ok(())
    }

    /// The first output, if none is handed off. What is retired is forgotten, so that a run that starts
    /// over hands off another one.
    pub fn hand_off(&self, stage: &Stage) -> Result<()> {
        let target = self.target();
        for resumed in stage.resume_handoffs(&target)? {
            resumed.result?;
        }
        let handoffs = stage.handoffs()?;
        let done = handoffs.iter().find(|handoff| handoff.state == HandoffState::Done);
        let output = match done {
            Some(done) => done.output,
            None => {
                let outputs = stage.outputs()?;
                let Some(output) = outputs.first() else { return Ok(()) };
                stage.hand_off(output.id, &target)?;
                output.id
            }
        };
        if stage.outputs()?.iter().any(|other| other.id == output) {
            let rows = self.rows_of(stage, output)?;
            self.note(|facts| facts.handed_off.extend(rows));
        }
        Ok(())
    }

    fn rows_of(&self, stage: &Stage, output: OutputId) -> Result<BTreeSet<(usize, u64)>> {
        let mut bytes = Vec::new();
        stage.copy_output(output, &mut bytes)?;
        Ok(bytes.chunks(ROW_BYTES).map(|row| self.source.read(row).unwrap()).collect())
    }

    /// Outputs that are outside.
    fn retire(&self, stage: &Stage) -> Result<()> {
        let handoffs = stage.handoffs()?;
        let outputs = stage.outputs()?;
        for handoff in handoffs.iter().filter(|handoff| handoff.state == HandoffState::Done) {
            if !outputs.iter().any(|output| output.id == handoff.output) {
                continue;
            }
            let rows = self.rows_of(stage, handoff.output)?;
            self.note(|facts| facts.retiring.push(rows.clone()));
            stage.retire_outputs(&[handoff.output], "handed off")?;
            self.note(|facts| {
                facts.retiring.pop();
                facts.retired.extend(rows);
            });
        }
        Ok(())
    }
}

/// Passes until nothing is ready, each of at most so many batches of a group. The first failure of a group
/// is the failure of the pass.
pub fn convert(stage: &Stage, batches_max: usize) -> Result<()> {
    let options = ConvertOptions { threads_max: 1, ..ConvertOptions::default() };
    loop {
        let plan = stage.plan(&PlanOptions::default())?;
        if plan.is_empty() {
            return Ok(());
        }
        for converted in plan.convert(&RowsAtMost(batches_max), &options)? {
            converted.made?;
        }
    }
}
