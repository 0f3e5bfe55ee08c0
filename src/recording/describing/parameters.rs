//! Parameters as a draft is given them: one by one, or as the task that a recording is the run of.

use serde::Serialize;

use super::flatten::flatten;
use super::parameter::{Parameter, check_parameters};
use crate::error::{Error, Result};

/// The name of the parameter that a task's own entry replaces.
const TASK_INDEX: &str = "task_index";

/// Parameters as they are given, one by one or as a task.
#[derive(Debug, Clone, Default)]
pub(in crate::recording) struct Given {
    entries: Vec<(String, Parameter)>,
    task: Vec<(String, Parameter)>,
    failure: Option<Error>,
}

impl Given {
    pub fn one(&mut self, key: String, value: Parameter) {
        self.entries.push((key, value));
    }

    /// One whose value is none.
    pub fn refused(&mut self, key: &str, cause: &impl std::fmt::Display) {
        let e = Error::invalid("record", "parameter", format!("the parameter {key:?}: {cause}"));
        self.failure.get_or_insert(e);
    }

    pub fn task(&mut self, task: &impl Serialize) {
        match flatten(task) {
            Ok(found) => self.task.extend(found),
            Err(e) => drop(self.failure.get_or_insert(e)),
        }
    }

    /// Whether a task says its own index, which replaces any other entry of that name.
    pub fn replaces(&self, key: &str) -> bool {
        key == TASK_INDEX && self.task.iter().any(|(key, _)| key == TASK_INDEX)
    }

    /// All of them, in the order of their names.
    pub fn resolve(&self, place: &str) -> Result<Vec<(String, Parameter)>> {
        if let Some(e) = &self.failure {
            return Err(e.clone().told_of("record", place));
        }
        let single = self.entries.iter().filter(|(key, _)| !self.replaces(key));
        let mut all: Vec<_> = single.chain(&self.task).cloned().collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (at, (key, _)) in all.iter().enumerate() {
            if all.get(at + 1).is_some_and(|(next, _)| next == key) {
                let cause = format!("the parameter {key:?} is given twice");
                return Err(Error::invalid("record", place, cause));
            }
        }
        check_parameters(&all)?;
        Ok(all)
    }
}
