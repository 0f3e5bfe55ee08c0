//! The words of a filter: names, values and signs, each with the character that it begins at.

use std::fmt;

use super::filter::Test;
use crate::recording::describing::Parameter;

/// One word of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    Bare(String),
    /// A name in double quotes.
    Quoted(String),
    Value(Parameter),
    Test(Test),
    Open,
    Close,
    And,
    Or,
    Not,
    Like,
    End,
}

/// A word and its first character, from 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) word: Word,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare(name) | Self::Quoted(name) => write!(f, "{name:?}"),
            Self::Value(Parameter::String(text)) => write!(f, "the text {text:?}"),
            Self::Value(value) => write!(f, "the value {value}"),
            Self::Test(_) => f.write_str("a comparison"),
            Self::Open => f.write_str("\"(\""),
            Self::Close => f.write_str("\")\""),
            Self::And => f.write_str("\"and\""),
            Self::Or => f.write_str("\"or\""),
            Self::Not => f.write_str("\"not\""),
            Self::Like => f.write_str("\"like\""),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Splits a filter into words; the last one is the end. An error is its character and its cause.
pub(super) fn words(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        let (word, end) = match c {
            '(' => (Word::Open, at + 1),
            ')' => (Word::Close, at + 1),
            '\'' => {
                let (text, end) = quoted(&chars, at)?;
                (Word::Value(Parameter::String(text)), end)
            }
            '"' => {
                let (name, end) = quoted(&chars, at)?;
                (Word::Quoted(name), end)
            }
            '=' | '!' | '<' | '>' => test(&chars, at)?,
            c if c.is_alphabetic() || c == '_' => {
                let end = end_of(&chars, at, |c| c.is_alphanumeric() || "_.-/:".contains(c));
                (word(chars[at..end].iter().collect()), end)
            }
            c if c.is_ascii_digit() || "+-.".contains(c) => number(&chars, at)?,
            c => return Err((at, format!("{c:?} means nothing here"))),
        };
        words.push(Token { at, word });
        at = end;
    }
    words.push(Token { at: chars.len(), word: Word::End });
    Ok(words)
}

fn end_of(chars: &[char], at: usize, belongs: impl Fn(char) -> bool) -> usize {
    at + chars[at..].iter().take_while(|c| belongs(**c)).count()
}

fn word(text: String) -> Word {
    match text.to_ascii_lowercase().as_str() {
        "and" => Word::And,
        "or" => Word::Or,
        "not" => Word::Not,
        "like" => Word::Like,
        "true" => Word::Value(Parameter::Bool(true)),
        "false" => Word::Value(Parameter::Bool(false)),
        _ => Word::Bare(text),
    }
}

/// What stands in quotes from `at` on; a quote inside is written twice.
fn quoted(chars: &[char], at: usize) -> Result<(String, usize), (usize, String)> {
    let quote = chars[at];
    let (mut text, mut next) = (String::new(), at + 1);
    loop {
        match (chars.get(next), chars.get(next + 1)) {
            (Some(c), Some(d)) if *c == quote && *d == quote => {
                text.push(quote);
                next += 2;
            }
            (Some(c), _) if *c == quote => return Ok((text, next + 1)),
            (Some(c), _) => {
                text.push(*c);
                next += 1;
            }
            (None, _) => return Err((at, format!("no {quote} ends what begins here"))),
        }
    }
}

fn test(chars: &[char], at: usize) -> Result<(Word, usize), (usize, String)> {
    let with_equal = chars.get(at + 1) == Some(&'=');
    let (test, len) = match (chars[at], with_equal) {
        ('=', _) => (Test::Equal, 1 + usize::from(with_equal)),
        ('!', true) => (Test::Unequal, 2),
        ('<', true) => (Test::LessOrEqual, 2),
        ('>', true) => (Test::GreaterOrEqual, 2),
        ('<', false) if chars.get(at + 1) == Some(&'>') => (Test::Unequal, 2),
        ('<', false) => (Test::Less, 1),
        ('>', false) => (Test::Greater, 1),
        _ => return Err((at, "\"!\" means nothing without \"=\" behind it".to_owned())),
    };
    Ok((Word::Test(test), at + len))
}

fn number(chars: &[char], at: usize) -> Result<(Word, usize), (usize, String)> {
    let mut end = at + 1;
    while let Some(&c) = chars.get(end) {
        let is_sign_of_exponent = "+-".contains(c) && "eE".contains(chars[end - 1]);
        if !c.is_ascii_alphanumeric() && c != '.' && !is_sign_of_exponent {
            break;
        }
        end += 1;
    }
    let text: String = chars[at..end].iter().collect();
    let whole = text.parse().ok().map(Parameter::I64);
    match whole.or_else(|| text.parse().ok().map(Parameter::F64)) {
        Some(value) => Ok((Word::Value(value), end)),
        None => Err((at, format!("{text:?} is no number"))),
    }
}
