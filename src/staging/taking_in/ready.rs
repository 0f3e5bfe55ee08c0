//! Ready: which groups a flush detaches, and which a plan takes.

use std::fmt;

use crate::error::{Error, Result};
use crate::staging::describing::{GroupView, KeyPart, KeyShape, KeyType};

/// Which groups a flush detaches, or a plan takes: what the caller's rule says of each.
#[derive(Clone, Copy)]
pub enum Ready<'a> {
    /// All of them: a forced flush.
    All,
    /// Those whose key has an earlier minute than this in the part of this name.
    Before(&'a str, i64),
    /// Those of which this is true. It is called before any group is detached, and
    /// may look at the stage; what [`Stage::flush`](super::Stage::flush) refuses it, is told there.
    Rule(&'a dyn Fn(&GroupView) -> bool),
}

impl<'a> Ready<'a> {
    /// Those of which `rule` is true.
    pub fn rule(rule: &'a dyn Fn(&GroupView) -> bool) -> Self {
        Self::Rule(rule)
    }

    /// Whether it can be asked about keys of `shape`.
    pub(in crate::staging) fn check(
        &self,
        operation: &'static str,
        shape: &KeyShape,
    ) -> Result<()> {
        let Self::Before(name, _) = self else { return Ok(()) };
        let is_one = |(field, ty): &(String, KeyType)| field == name && *ty == KeyType::Minute;
        if shape.fields().iter().any(is_one) {
            return Ok(());
        }
        let cause = format!("its keys have no minute called {name:?}");
        Err(Error::invalid(operation, "ready", cause))
    }

    /// Whether `group` is to be detached, or planned.
    pub(in crate::staging) fn says(&self, group: &GroupView) -> bool {
        match self {
            Self::All => true,
            Self::Before(name, minute) => match group.key.part(name) {
                Some(KeyPart::Minute(its)) => its < minute,
                _ => false,
            },
            Self::Rule(rule) => rule(group),
        }
    }
}

impl fmt::Debug for Ready<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Before(name, minute) => write!(f, "Before({name:?}, {minute})"),
            Self::Rule(_) => f.write_str("Rule"),
        }
    }
}
