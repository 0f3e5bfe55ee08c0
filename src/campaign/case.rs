//! A case: a history, and the crashes that follow each other. One line of text, for ever.

use std::fmt;
use std::str::FromStr;

use super::check::{Checked, check_image};
use super::finding::Finding;
use super::history::History;
use super::nested::inner_judge;
use super::play::play;
use super::slice::judge_of;
use crate::error::{Error, Result};
use crate::vfs::sim::Outcomes;

/// `history crash crash ..`: each crash cuts the recovery of the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What was played.
    pub history: History,
    /// What was cut, and what survived.
    pub crashes: Vec<Outcomes>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.history)?;
        self.crashes.iter().try_for_each(|crash| write!(f, " {crash}"))
    }
}

impl FromStr for Case {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.split_whitespace();
        let history = words.next().unwrap_or_default().parse()?;
        let crashes = words.map(str::parse).collect::<Result<_>>()?;
        Ok(Self { history, crashes })
    }
}

impl Case {
    /// A history without a crash.
    pub fn of(history: &History) -> Self {
        Self { history: history.clone(), crashes: Vec::new() }
    }

    /// The same with one more crash inside.
    pub fn inside(&self, crash: Outcomes) -> Self {
        let mut crashes = self.crashes.clone();
        crashes.push(crash);
        Self { history: self.history.clone(), crashes }
    }
}

/// Plays a case again.
///
/// # Errors
/// The rule that does not hold.
pub fn replay(case: &Case) -> std::result::Result<(), Finding> {
    let run = play(&case.history);
    if let Some(finding) = run.findings.first() {
        return Err(finding.clone());
    }
    let mut checked: Option<Checked> = None;
    let mut judge = None;
    for crash in &case.crashes {
        let log = checked.as_ref().map_or(&run.log, |checked| &checked.log);
        let last = log.notes(crash.cut).last();
        let now = match &judge {
            None => judge_of(&run, last, crash.profile),
            Some(outer) => inner_judge(outer, last, crash.profile),
        };
        checked = Some(check_image(&now, &log.image(crash))?);
        judge = Some(now);
    }
    Ok(())
}
