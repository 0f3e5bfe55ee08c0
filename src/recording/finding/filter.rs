//! Filters: the language in which a catalogue is asked, as a tree.
//!
//! ```text
//!   any   := all { "or" all }
//!   all   := one { "and" one }
//!   one   := "not" one | "(" any ")" | what test value | what "like" text
//!   what  := name | status | created | a parameter, bare (dt, mesh.n) or in double quotes
//!   test  := = | == | != | <> | < | <= | > | >=
//!   value := number | 'text' | true | false
//! ```
//!
//! - Words of the language are of either case; `''` in a text is one quote, `""` in a name too.
//! - `like` knows `%` for any characters and `_` for one; a backslash takes their meaning away.
//! - `created` is compared with nanoseconds since 1970, or with a text: `'2026-12-01'`, or
//!   `'2026-12-01T12:30:00'`, in UTC.
//! - What a recording does not have fits no test, not even `!=`; `not` turns that round. Values of
//!   different kinds (text and a number) are different, and neither is less.

use std::cmp::Ordering;

use super::filter_words::{Token, Word, words};
use super::spoken_time::nanos_of;
use crate::error::{Error, Result};
use crate::recording::describing::Parameter;

/// Parentheses and `not` inside each other.
const DEPTH_MAX: usize = 64;

/// What a term asks about.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    Name,
    Status,
    Created,
    Parameter(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    Compare(Subject, Test, Parameter),
    Like(Subject, String),
}

/// Where a filter is wrong.
fn wrong(text: &str, at: usize, cause: impl std::fmt::Display) -> Error {
    Error::invalid("select", format!("filter {text:?} at character {}", at + 1), cause)
}

impl Test {
    fn holds(self, found: Option<Ordering>) -> bool {
        match (self, found) {
            (Self::Unequal, None) => true,
            (_, None) => false,
            (Self::Equal, Some(order)) => order.is_eq(),
            (Self::Unequal, Some(order)) => order.is_ne(),
            (Self::Less, Some(order)) => order.is_lt(),
            (Self::LessOrEqual, Some(order)) => order.is_le(),
            (Self::Greater, Some(order)) => order.is_gt(),
            (Self::GreaterOrEqual, Some(order)) => order.is_ge(),
        }
    }
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// `Invalid`, with the character at which it is wrong.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let words = words(text).map_err(|(at, cause)| wrong(text, at, cause))?;
        let mut parser = Parser { text, words, next: 0 };
        let filter = parser.any(0)?;
        match parser.peek() {
            Word::End => Ok(filter),
            other => Err(parser.refuse(format!("{other} was not expected here"))),
        }
    }

    /// Whether it holds of what `of` tells.
    pub(super) fn holds(
        &self,
        of: &mut dyn FnMut(&Subject) -> Result<Option<Parameter>>,
    ) -> Result<bool> {
        match self {
            Self::All(filters) => {
                for filter in filters {
                    if !filter.holds(of)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(filters) => {
                for filter in filters {
                    if filter.holds(of)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(filter) => Ok(!filter.holds(of)?),
            Self::Compare(subject, test, value) => {
                Ok(of(subject)?.is_some_and(|found| test.holds(found.compare(value))))
            }
            Self::Like(subject, pattern) => Ok(match of(subject)? {
                Some(Parameter::String(text)) => is_like(&text, pattern),
                _ => false,
            }),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    /// The last one is the end.
    words: Vec<Token>,
    next: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Word {
        self.words.get(self.next).map_or(&Word::End, |token| &token.word)
    }

    fn take(&mut self) -> Word {
        let word = self.peek().clone();
        self.next = (self.next + 1).min(self.words.len().saturating_sub(1));
        word
    }

    fn takes(&mut self, word: &Word) -> bool {
        let is_it = self.peek() == word;
        if is_it {
            self.take();
        }
        is_it
    }

    fn refuse(&self, cause: impl std::fmt::Display) -> Error {
        let at = self.words.get(self.next).map_or(0, |token| token.at);
        wrong(self.text, at, cause)
    }

    fn any(&mut self, depth: usize) -> Result<Filter> {
        let mut filters = vec![self.all(depth)?];
        while self.takes(&Word::Or) {
            filters.push(self.all(depth)?);
        }
        Ok(one_or(filters, Filter::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Filter> {
        let mut filters = vec![self.one(depth)?];
        while self.takes(&Word::And) {
            filters.push(self.one(depth)?);
        }
        Ok(one_or(filters, Filter::All))
    }

    fn one(&mut self, depth: usize) -> Result<Filter> {
        if depth > DEPTH_MAX {
            return Err(self.refuse(format!("more than {DEPTH_MAX} levels inside each other")));
        }
        if self.takes(&Word::Not) {
            return Ok(Filter::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes(&Word::Open) {
            let inner = self.any(depth + 1)?;
            if !self.takes(&Word::Close) {
                return Err(self.refuse(format!("{} where \")\" was expected", self.peek())));
            }
            return Ok(inner);
        }
        let subject = match self.peek() {
            Word::Bare(name) => match name.to_ascii_lowercase().as_str() {
                "name" => Subject::Name,
                "status" => Subject::Status,
                "created" => Subject::Created,
                _ => Subject::Parameter(name.clone()),
            },
            Word::Quoted(name) => Subject::Parameter(name.clone()),
            other => return Err(self.refuse(format!("{other} where a name was expected"))),
        };
        self.take();
        self.term(subject)
    }

    fn term(&mut self, subject: Subject) -> Result<Filter> {
        if self.takes(&Word::Like) {
            let Word::Value(Parameter::String(pattern)) = self.peek().clone() else {
                return Err(self.refuse(format!("{} where a text was expected", self.peek())));
            };
            self.take();
            return Ok(Filter::Like(subject, pattern));
        }
        let Word::Test(test) = *self.peek() else {
            let cause = format!("{} where a comparison or \"like\" was expected", self.peek());
            return Err(self.refuse(cause));
        };
        self.take();
        let Word::Value(mut value) = self.peek().clone() else {
            return Err(self.refuse(format!("{} where a value was expected", self.peek())));
        };
        if let (Subject::Created, Parameter::String(text)) = (&subject, &value) {
            let nanos = nanos_of(text);
            value = Parameter::I64(nanos.ok_or_else(|| {
                self.refuse(
                    "neither a day, as '2026-12-01', nor a second, as '2026-12-01T12:30:00'",
                )
            })?);
        }
        if let (Subject::Status, Parameter::String(text)) = (&subject, &value)
            && !STATUS_NAMES.contains(&text.as_str())
        {
            return Err(self.refuse(format!("a status is one of {}", STATUS_NAMES.join(", "))));
        }
        self.take();
        Ok(Filter::Compare(subject, test, value))
    }
}

/// How the status of a recording is called.
pub(super) const STATUS_NAMES: [&str; 3] = ["running", "complete", "failed"];

fn one_or(mut filters: Vec<Filter>, many: fn(Vec<Filter>) -> Filter) -> Filter {
    match filters.len() {
        1 => filters.remove(0),
        _ => many(filters),
    }
}

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Piece {
    Many,
    One,
    Just(char),
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '%' => Piece::Many,
            '_' => Piece::One,
            '\\' => Piece::Just(chars.next().unwrap_or('\\')),
            c => Piece::Just(c),
        });
    }
    pieces
}

/// The text that whatever is like `pattern` begins with.
pub(super) fn beginning(pattern: &str) -> String {
    let just = |piece: &Piece| match piece {
        Piece::Just(c) => Some(*c),
        _ => None,
    };
    pieces(pattern).iter().map_while(just).collect()
}

/// Whether `text` is like `pattern`: in time of the product of their lengths at most.
fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, _) = (text.chars().collect(), pieces(pattern));
    let (mut at, mut of) = (0, 0);
    // Where the last "any characters" stands, and up to where of the text it reaches.
    let mut many: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(of) {
            Some(Piece::Many) => {
                many = Some((of, at));
                of += 1;
            }
            Some(piece) if *piece == Piece::One || *piece == Piece::Just(text[at]) => {
                (at, of) = (at + 1, of + 1);
            }
            _ => match &mut many {
                Some((after, upto)) => {
                    *upto += 1;
                    (at, of) = (*upto, *after + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|piece| *piece == Piece::Many)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let mut of = |subject: &Subject| {
            Ok(match subject {
                Subject::Name => Some(Parameter::from("rk4/007")),
                Subject::Status => Some(Parameter::from("failed")),
                Subject::Created => Some(Parameter::I64(1_000_000_000 * 86_400)),
                Subject::Parameter(name) => match name.as_str() {
                    "dt" => Some(Parameter::F64(0.01)),
                    "n" => Some(Parameter::I64(3)),
                    "it's \"me" => Some(Parameter::Bool(true)),
                    "nan" => Some(Parameter::F64(f64::NAN)),
                    _ => None,
                },
            })
        };
        Filter::parse(text).unwrap().holds(&mut of).unwrap()
    }

    /// Does each piece of the language mean what its page says?
    #[test]
    fn rec8_filters_mean_what_their_page_says() {
        for yes in [
            "dt = 0.01",
            "dt <= 1e-2 and dt >= 0.01",
            "n = 3.0 AND N != 3 or n < 4",
            "not (dt > 1 or dt < 0)",
            "name like 'rk4/%'",
            "name like '%7' and name like 'rk_/___' and name like '%'",
            "name like 'rk4%007%' and not name like 'rk\\%%'",
            "status = 'failed' and status != 'running'",
            "created = '1970-01-02' and created < '1970-01-02T00:00:01' and created > 5",
            "\"it's \"\"me\" = true",
            "n != 'three' and not n = 'three' and not n < 'three'",
            "not absent = 1 and not absent != 1",
            "n > -4 and n<>+4 and n == 3",
            "nan != 1 and not (nan < 1 or nan > 1)",
        ] {
            assert!(holds(yes), "{yes}");
        }
        assert!(!holds("n = 1 or n = 2 and n = 3"), "and binds before or");
    }

    /// Is a wrong filter refused at the right character?
    #[test]
    fn rec8_a_wrong_filter_is_refused_at_its_place() {
        for (text, at) in [
            ("", 1),
            ("dt", 3),
            ("dt <", 5),
            ("dt < 'open", 6),
            ("dt < 1 or", 10),
            ("dt < 1)", 7),
            ("(dt < 1", 8),
            ("dt < 1 n = 2", 8),
            ("é = 1 and ! 2", 11),
            ("dt ~ 3", 4),
            ("dt < 1.2.3", 6),
            ("1 < dt", 1),
            ("name like 3", 11),
            ("status = 'done'", 10),
            ("created > 'yesterday'", 11),
            ("created > '2026-13-01'", 11),
            ("\"open = 1", 1),
        ] {
            let refused = Filter::parse(text).unwrap_err();
            assert!(refused.place().ends_with(&format!("at character {at}")), "{refused}");
        }
        let deep = format!("{}dt = 1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(Filter::parse(&deep).unwrap_err().cause().contains("64 levels"));
        assert!(Filter::parse(&format!("{}dt = 1", "not ".repeat(100_000))).is_err());
    }

    /// Does a hostile pattern end, and what do patterns begin with?
    #[test]
    fn rec8_patterns_end_and_begin() {
        assert!(!is_like(&"a".repeat(2000), &"%a".repeat(300).replace("%a", "%a%b")));
        assert_eq!(beginning("rk4/%x"), "rk4/");
        assert_eq!(beginning("50\\%_"), "50%");
        assert!(is_like("", "") && is_like("", "%%") && !is_like("", "_"));
    }
}
