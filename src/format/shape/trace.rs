//! What is asked when a type reads made-up values, and whether that was all of it.

mod asked;
mod made_up;

use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use asked::Asked;

/// Questions answered in all, passes included.
const QUESTIONS_MAX: usize = 1 << 18;
/// Passes over a type: each visits a variant, or closes a recursion, that none did before.
const PASSES_MAX: usize = 4096;
/// Passes in turn that see nothing new while a variant is missing.
const STALE_MAX: usize = 64;
/// Passes that begin anew because the type refused a value.
const RETRIES_MAX: usize = 20_000;
/// Values before the one that was refused of which another may be tried as well.
const BLAMED_MAX: usize = 3;
/// How deep types may lie in each other.
const DEPTH_MAX: usize = 64;
/// How often a structure may lie in itself before it counts as recursion; the second one inside
/// shows what may be empty in the first.
const SELF_MAX: usize = 2;
/// The same of an enum.
const ENUM_SELF_MAX: usize = 3;
/// How often a variant is entered that does not come to an end.
const ATTEMPTS_MAX: usize = 64;

const TOO_LARGE: &str = "is too large, or too deep, to be looked at as a whole";

/// What was asked so far.
#[derive(Debug, Default)]
pub(super) struct Trace {
    text: String,
    questions: usize,
    /// Something was done for the first time in this pass.
    is_fresh: bool,
    /// The last passes showed nothing new, and something is missing.
    stale: usize,
    enums: BTreeMap<String, Visited>,
    /// Structures and enums that we are inside of.
    inside: Vec<String>,
    /// Where we are, as positions from the outside in.
    path: Vec<usize>,
    /// Options, lists and maps that we are inside of.
    optional: Vec<Vec<usize>>,
    /// Those of them that must be left empty, for there is no end behind them.
    closed: BTreeSet<Vec<usize>>,
    /// Where another made-up value is given than the first of its kind.
    choices: BTreeMap<Vec<usize>, usize>,
    /// The last values made up in this pass: where, and how many there are to choose from.
    given: Vec<(Vec<usize>, usize)>,
    /// The last list or map that was given a length.
    list: Option<(Vec<usize>, usize)>,
    /// A variant that failed before it asked for anything: no value of it is ever read.
    unreadable: Option<(String, usize)>,
    /// This pass was ended by us.
    is_stopped: bool,
    /// The type asks for what cannot be answered.
    refused: Option<&'static str>,
}

/// The variants of an enum.
#[derive(Debug, Default, Clone)]
struct Visited {
    variants: Vec<Variant>,
    /// The first that came to an end.
    good: Option<usize>,
    turn: usize,
}

#[derive(Debug, Default, Clone)]
struct Variant {
    attempts: usize,
    /// It came to an end, or never can.
    is_done: bool,
    is_unreadable: bool,
}

/// What a pass must not leave behind when it is made anew with another value.
struct Before {
    text: usize,
    enums: BTreeMap<String, Visited>,
    closed: BTreeSet<Vec<usize>>,
}

enum Passed {
    Ended,
    Stopped,
    /// The type did not take a value, for this reason.
    Refused(String),
}

/// The trace cannot go on here; where the type itself says so, why.
#[derive(Debug)]
struct Stopped(Option<String>);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("the trace stopped"))
    }
}

impl std::error::Error for Stopped {}

impl serde::de::Error for Stopped {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self(Some(why.to_string()))
    }
}

/// Lets `T` read made-up values until all of it was asked for. Where that cannot be reached, what
/// it does instead: a part of the questions would be the same for another type.
pub(super) fn questions_of<T: DeserializeOwned>() -> Result<String, String> {
    let mut trace = Trace::default();
    let (mut passes, mut retries) = (0, 0);
    loop {
        let before = trace.before();
        let passed = trace.pass::<T>();
        if let Some(what) = trace.refused {
            return Err(what.to_owned());
        }
        match passed {
            Passed::Ended if trace.is_whole() => return Ok(trace.text),
            Passed::Ended | Passed::Stopped if trace.is_fresh => trace.stale = 0,
            Passed::Ended => trace.stale += 1,
            Passed::Stopped if trace.stale > 0 => trace.stale += 1,
            Passed::Stopped => return Err("lies in itself without an end".to_owned()),
            Passed::Refused(why) => {
                retries += 1;
                trace.begin_anew(before);
                if !trace.mark_unreadable() && (!trace.choose_anew() || retries > RETRIES_MAX) {
                    return Err(format!("holds a type that takes no made-up value (\"{why}\")"));
                }
                continue;
            }
        }
        passes += 1;
        if passes > PASSES_MAX || trace.stale > STALE_MAX {
            return Err(TOO_LARGE.to_owned());
        }
    }
}

impl Trace {
    /// Reads one made-up value.
    fn pass<T: DeserializeOwned>(&mut self) -> Passed {
        (self.is_fresh, self.is_stopped, self.unreadable) = (false, false, None);
        self.inside.clear();
        self.path.clear();
        self.optional.clear();
        self.given.clear();
        self.list = None;
        let read = T::deserialize(Asked(self)).map(|_| ());
        match read {
            Ok(()) if !self.is_stopped => {
                self.text.push_str(".\n");
                Passed::Ended
            }
            Err(Stopped(why)) if !self.is_stopped => Passed::Refused(why.unwrap_or_default()),
            _ => {
                self.text.push_str("!\n");
                Passed::Stopped
            }
        }
    }

    /// Another pass would see nothing new, and every variant was seen to its end.
    fn is_whole(&self) -> bool {
        let mut variants = self.enums.values().flat_map(|visited| &visited.variants);
        !self.is_fresh && variants.all(|variant| variant.is_done)
    }

    fn before(&self) -> Before {
        let (enums, closed) = (self.enums.clone(), self.closed.clone());
        Before { text: self.text.len(), enums, closed }
    }

    fn begin_anew(&mut self, before: Before) {
        self.text.truncate(before.text);
        (self.enums, self.closed) = (before.enums, before.closed);
    }

    /// Never enters the variant again that failed before it asked for anything.
    fn mark_unreadable(&mut self) -> bool {
        let Some((name, variant)) = self.unreadable.take() else { return false };
        let visited = self.enums.entry(name).or_default();
        visited.make_room(variant + 1);
        visited.variants[variant].is_done = true;
        visited.variants[variant].is_unreadable = true;
        true
    }

    /// Chooses other values: of the last place that was given one, then the length of the last
    /// list, then of the places before.
    fn choose_anew(&mut self) -> bool {
        let mut blamed: Vec<&(Vec<usize>, usize)> = self.given.iter().rev().collect();
        if let Some(list) = &self.list {
            blamed.insert(blamed.len().min(1), list);
        }
        for (place, of) in blamed {
            let choice = self.choices.entry(place.clone()).or_default();
            if *choice + 1 < *of {
                *choice += 1;
                return true;
            }
            *choice = 0;
        }
        false
    }

    /// Which of so many values is given here.
    fn choice(&mut self, of: usize) -> usize {
        if self.given.len() == BLAMED_MAX {
            self.given.remove(0);
        }
        self.given.push((self.path.clone(), of));
        self.chosen(of)
    }

    /// Which of so many lengths a list has here.
    fn length(&mut self, of: usize) -> usize {
        self.list = Some((self.path.clone(), of));
        self.chosen(of)
    }

    fn chosen(&self, of: usize) -> usize {
        self.choices.get(&self.path).map_or(0, |choice| *choice.min(&(of - 1)))
    }

    fn ask(&mut self, what: &str) -> Result<(), Stopped> {
        self.questions += 1;
        if self.questions > QUESTIONS_MAX || self.path.len() > DEPTH_MAX {
            return self.refuse(TOO_LARGE);
        }
        self.text.push_str(what);
        self.text.push(' ');
        Ok(())
    }

    fn stop<T>(&mut self) -> Result<T, Stopped> {
        self.is_stopped = true;
        Err(Stopped(None))
    }

    fn refuse<T>(&mut self, what: &'static str) -> Result<T, Stopped> {
        self.refused.get_or_insert(what);
        self.stop()
    }

    /// There is no end behind here: the nearest thing that may be empty is left empty next time.
    fn turn_back<T>(&mut self) -> Result<T, Stopped> {
        if let Some(place) = self.optional.last() {
            self.is_fresh |= self.closed.insert(place.clone());
        }
        self.text.push('^');
        self.stop()
    }

    /// Enters a structure or an enum, unless it lies in itself too often.
    fn enter(&mut self, name: String, at_most: usize) -> Result<(), Stopped> {
        if self.inside.iter().filter(|outer| **outer == name).count() >= at_most {
            return self.turn_back();
        }
        self.inside.push(name);
        Ok(())
    }

    /// Enters something that may be empty; false when it must be.
    fn open(&mut self) -> bool {
        if self.closed.contains(&self.path) {
            self.text.push_str("- ");
            return false;
        }
        self.optional.push(self.path.clone());
        true
    }

    /// The variant of an enum to make up: one that did not come to an end yet, else one that did.
    fn choose(&mut self, name: &str, of: usize) -> Option<usize> {
        let is_inside = self.inside.iter().any(|outer| outer == name);
        let visited = self.enums.entry(name.to_owned()).or_default();
        visited.make_room(of);
        if is_inside && visited.good.is_some() {
            return visited.good;
        }
        let open = visited.variants.iter_mut().enumerate();
        let open = open.filter(|(_, v)| !v.is_done && v.attempts < ATTEMPTS_MAX);
        if let Some((at, variant)) = open.min_by_key(|(_, variant)| variant.attempts) {
            variant.attempts += 1;
            self.is_fresh = true;
            return Some(at);
        }
        if self.stale == 0 {
            return visited.good;
        }
        // Something is missing that may lie behind any of them.
        visited.turn += 1;
        let readable = visited.variants.iter().enumerate().filter(|(_, v)| !v.is_unreadable);
        let readable: Vec<usize> = readable.map(|(at, _)| at).collect();
        readable.get(visited.turn % readable.len().max(1)).copied()
    }

    fn came_to_an_end(&mut self, name: &str, variant: usize) {
        if let Some(visited) = self.enums.get_mut(name) {
            visited.good.get_or_insert(variant);
            visited.variants.iter_mut().skip(variant).take(1).for_each(|v| v.is_done = true);
        }
    }
}

impl Visited {
    fn make_room(&mut self, of: usize) {
        if self.variants.len() < of {
            self.variants.resize(of, Variant::default());
        }
    }
}
