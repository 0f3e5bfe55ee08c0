//! The time axis of a recording: what its iterations and its physical time are called, and their
//! units. It is said once, with the recording.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What iterations and physical time are called. Units may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeAxis {
    iteration: Label,
    time: Option<Label>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Label {
    name: String,
    unit: String,
}

impl Default for TimeAxis {
    fn default() -> Self {
        Self::named("iteration", "")
    }
}

impl TimeAxis {
    /// Iterations are called `name`, and count `unit`, which may be empty.
    pub fn named(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { iteration: Label { name: name.into(), unit: unit.into() }, time: None }
    }

    /// Records also have a physical time, whether their schema is timed or not, called so, in `unit`, which may be empty.
    #[must_use]
    pub fn time(mut self, name: impl Into<String>, unit: impl Into<String>) -> Self {
        self.time = Some(Label { name: name.into(), unit: unit.into() });
        self
    }

    /// What iterations are called.
    pub fn iteration_name(&self) -> &str {
        &self.iteration.name
    }

    /// What they count; empty where nothing is said.
    pub fn iteration_unit(&self) -> &str {
        &self.iteration.unit
    }

    /// What physical time is called, where records have one.
    pub fn time_name(&self) -> Option<&str> {
        self.time.as_ref().map(|label| label.name.as_str())
    }

    /// The unit of physical time, where one is given.
    pub fn time_unit(&self) -> Option<&str> {
        self.time.as_ref().map(|label| label.unit.as_str()).filter(|unit| !unit.is_empty())
    }

    pub(in crate::recording) fn check(&self, place: &str) -> Result<()> {
        let refuse = |cause: String| Err(Error::invalid("record", place, cause));
        if self.iteration.name.trim().is_empty() {
            return refuse("the name of its iterations is blank".into());
        }
        if let Some(Label { name, unit }) = &self.time
            && name.trim().is_empty()
        {
            return refuse(match unit.trim() {
                "" => "the name of its physical time is blank".into(),
                unit => format!("the unit {unit:?} is of a physical time without a name"),
            });
        }
        let units = [Some(&self.iteration), self.time.as_ref()].into_iter().flatten();
        for Label { name, unit } in units {
            if !unit.is_empty() && unit.trim().is_empty() {
                return refuse(format!("the unit of {name:?} is blank"));
            }
        }
        Ok(())
    }
}
