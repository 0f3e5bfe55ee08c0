//! A converter of the suite's batches, which does what a test tells it at each of its calls; and everything
//! that a view holds.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};

use sealstone::engine::{Budget, Store};
use sealstone::manifest::{ClaimRow, Reading, ResourceKey};
use sealstone::staging::{
    ConvertOptions, Converted, Converter, GroupView, Input, Merger, Origin, OutputReader,
    OutputView, OutputWriter, PlanOptions, Stage, StageView,
};
use sealstone::{Error, ErrorKind, Result};

/// Where a converter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    Begin,
    /// It has taken so many batches of this output.
    Batch(usize),
    Written,
    Count,
    Schema,
    Union,
}

/// What it is to do there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Do {
    GoOn,
    /// Take no more batches.
    Stop,
    /// Write nothing of the last batch, and count it.
    Lose,
    /// Write the last batch twice.
    Double,
    /// Say that there are no rows.
    Nothing,
}

type Hook<'h> = Box<dyn Fn(At) -> Result<Do> + Send + Sync + 'h>;

/// Writes each batch as a line of words, and counts words.
pub struct Words<'h>(pub Hook<'h>);

impl Words<'_> {
    pub fn plain() -> Self {
        Self(Box::new(|_| Ok(Do::GoOn)))
    }
}

pub fn words<'h>(hook: impl Fn(At) -> Result<Do> + Send + Sync + 'h) -> Words<'h> {
    Words(Box::new(hook))
}

/// A refusal that only a test makes.
pub fn refusal() -> Error {
    Error::new(ErrorKind::Input, "convert", "words", "the test says so")
}

fn count(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

impl Converter for Words<'_> {
    fn form(&self) -> &str {
        "words"
    }

    fn convert(
        &self,
        _: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        let hook = &self.0;
        let mut rows = 0;
        let mut is_nothing = hook(At::Begin)? == Do::Nothing;
        let mut taken = 0;
        for batch in input.by_ref() {
            let batch = batch?;
            taken += 1;
            rows += batch.rows();
            let told = hook(At::Batch(taken))?;
            let times = match told {
                Do::Lose => 0,
                Do::Double => 2,
                _ => 1,
            };
            for _ in 0..times {
                out.put(batch.bytes())?;
                out.put(b"\n")?;
            }
            is_nothing |= told == Do::Nothing;
            if told == Do::Stop {
                break;
            }
        }
        match hook(At::Written)? {
            Do::Nothing => Ok(0),
            _ if is_nothing => Ok(0),
            _ => Ok(rows),
        }
    }

    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        (self.0)(At::Count)?;
        let mut text = String::new();
        output.read_to_string(&mut text).map_err(|e| Error::io("read", "output", e))?;
        Ok(count(&text))
    }

    /// The words that are in it, sorted; with [`Do::Nothing`] none.
    fn schema(&self, output: &mut OutputReader) -> Result<Vec<u8>> {
        if (self.0)(At::Schema)? == Do::GoOn {
            return Ok(Vec::new());
        }
        let mut words = BTreeSet::new();
        for line in output.lines() {
            let line = line.map_err(|e| Error::io("read", "output", e))?;
            words.extend(line.split_whitespace().map(str::to_owned));
        }
        Ok(words.into_iter().collect::<Vec<_>>().join(" ").into_bytes())
    }

    /// Their union; a word and its capitals do not go together.
    fn merge_schema(&self, stage: &[u8], output: &[u8]) -> Result<Vec<u8>> {
        (self.0)(At::Union)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (one, other) = (text(stage), text(output));
        let mut words: BTreeSet<&str> = one.split_whitespace().collect();
        for word in other.split_whitespace() {
            if words.iter().any(|has| *has != word && has.eq_ignore_ascii_case(word)) {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "merge",
                    word,
                    "it is there, otherwise",
                ));
            }
            words.insert(word);
        }
        Ok(words.into_iter().collect::<Vec<_>>().join(" ").into_bytes())
    }
}

impl Merger for Words<'_> {
    fn form(&self) -> &str {
        "words"
    }

    fn merge(
        &self,
        inputs: &[(OutputView, OutputReader)],
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        let mut rows = 0;
        for (at, (view, reader)) in inputs.iter().enumerate() {
            rows += view.rows;
            if (self.0)(At::Batch(at + 1))? == Do::Lose {
                continue;
            }
            std::io::copy(&mut reader.clone(), out).map_err(|e| Error::io("merge", "output", e))?;
        }
        Ok(rows)
    }

    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        Converter::count_rows(self, output)
    }
}

/// So many words.
pub fn long(word: &str, count: usize) -> String {
    vec![word; count].join(" ")
}

/// Plans everything and converts it.
pub fn convert(stage: &Stage, converter: &dyn Converter) -> Vec<Converted> {
    let plan = stage.plan(&PlanOptions::default()).unwrap();
    plan.convert(converter, &ConvertOptions::default()).unwrap()
}

/// Plans everything and converts it, and nothing fails.
pub fn convert_well(stage: &Stage) {
    convert(stage, &Words::plain()).into_iter().for_each(|done| drop(done.made.unwrap()));
}

/// Every batch that a view holds, by its text; what does not read is counted.
pub fn held(view: &StageView) -> (Vec<String>, usize) {
    let (mut texts, mut unread) = (Vec::new(), 0);
    for batch in view.batches() {
        let Ok(batch) = batch.inspect_err(|e| println!("{e:?}")) else {
            unread += 1;
            continue;
        };
        let text = String::from_utf8(batch.bytes).unwrap();
        assert_eq!(count(&text), batch.rows, "{:?}", batch.origin);
        match batch.origin {
            Origin::Output(_) => texts.extend(text.lines().map(str::to_owned)),
            _ => texts.push(text),
        }
    }
    texts.sort();
    (texts, unread)
}

/// The same, of a view whose rows need not be right.
pub fn held_loosely(view: &StageView) -> Vec<String> {
    let batches = view.batches().filter_map(Result::ok);
    let texts = batches.flat_map(|batch| {
        let text = String::from_utf8(batch.bytes).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}

/// Everything that a stage holds, each batch by its text: the view's count agrees, and everything reads.
pub fn all(stage: &Stage) -> Vec<String> {
    let view = stage.view().unwrap();
    let (texts, unread) = held(&view);
    assert_eq!(unread, 0);
    assert_eq!(texts.iter().map(|text| count(text)).sum::<u64>(), view.rows());
    texts
}

/// The texts of the outputs alone.
pub fn published(stage: &Stage) -> Vec<String> {
    let mut texts = Vec::new();
    for output in stage.outputs().unwrap() {
        let mut text = Vec::new();
        assert_eq!(stage.copy_output(output.id, &mut text).unwrap(), output.len);
        assert_eq!(sealstone::digest::Digest::of(&text), output.digest);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(count(&text), output.rows);
        texts.extend(text.lines().map(str::to_owned));
    }
    texts.sort();
    texts
}

/// The claims that stand on groups and outputs.
pub fn claims(store: &Store) -> Vec<String> {
    let rows = store.snapshot().unwrap().list::<ClaimRow>(.., usize::MAX).unwrap();
    let is_ours = |key: &ResourceKey| {
        let text = key.to_string();
        text.contains("/group/") || text.contains("/output/") || text.contains("/quarantine/")
    };
    rows.into_iter().map(|(key, _)| key).filter(is_ours).map(|key| key.to_string()).collect()
}

/// Nothing is left over: no claim, no byte that no row accounts for, and reclaim takes no row.
pub fn is_tidy(store: &Store, stage: &Stage) {
    assert_eq!(claims(store), Vec::<String>::new());
    let before = all(stage);
    store.reclaim(Budget::default()).unwrap();
    let accounts = store.accounts().unwrap();
    assert!(
        accounts.are_closed() && accounts.orphan == 0 && accounts.condemned == 0,
        "{accounts:?}"
    );
    assert_eq!(all(stage), before, "reclaim took rows");
}
