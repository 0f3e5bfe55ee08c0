//! Inference: the narrowest type that every value of a sample has.

use super::number::{parse_bool, parse_f64, parse_i64};
use crate::format::column::FieldType;

/// What a column may still be.
#[derive(Debug, Clone, Copy)]
pub struct Guess {
    seen: bool,
    bool: bool,
    i64: bool,
    f64: bool,
    string: bool,
    /// The type that holds anything.
    widest: FieldType,
}

impl Guess {
    /// Of a CSV column, where everything is text.
    pub fn of_text() -> Self {
        Self::new(FieldType::String)
    }

    /// Of a JSON column, where text differs from what it spells.
    pub fn of_json() -> Self {
        Self::new(FieldType::Json)
    }

    fn new(widest: FieldType) -> Self {
        Self { seen: false, bool: true, i64: true, f64: true, string: true, widest }
    }

    /// Takes in a value of CSV.
    pub fn see_text(&mut self, text: &str) {
        self.seen = true;
        self.bool &= parse_bool(text).is_some();
        self.i64 = self.i64 && parse_i64(text).is_some();
        self.f64 = self.f64 && parse_f64(text).is_some();
    }

    /// Takes in the text of a JSON value that is not null.
    pub fn see_json(&mut self, raw: &str) {
        self.seen = true;
        self.string &= raw.starts_with('"');
        self.bool &= parse_bool(raw).is_some();
        self.i64 = self.i64 && parse_i64(raw).is_some();
        self.f64 = self.f64 && parse_f64(raw).is_some();
    }

    /// The narrowest type of all that was seen; the widest when nothing was.
    pub fn narrowest(&self) -> FieldType {
        match self {
            Self { seen: false, .. } => self.widest,
            Self { bool: true, .. } => FieldType::Bool,
            Self { i64: true, .. } => FieldType::I64,
            Self { f64: true, .. } => FieldType::F64,
            Self { string: true, .. } => FieldType::String,
            _ => self.widest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the narrowest type taken, and no wider value squeezed into it?
    #[test]
    fn the_narrowest_type_that_holds_all_is_taken() {
        let text = |values: &[&str]| {
            let mut guess = Guess::of_text();
            values.iter().for_each(|v| guess.see_text(v));
            guess.narrowest()
        };
        assert_eq!(text(&["1", "-5"]), FieldType::I64);
        assert_eq!(text(&["1", "2.5", "1e3"]), FieldType::F64);
        assert_eq!(text(&["true", "false"]), FieldType::Bool);
        assert_eq!(text(&["true", "1"]), FieldType::String);
        assert_eq!(text(&["1", "007"]), FieldType::String);
        assert_eq!(text(&[]), FieldType::String);
        let json = |values: &[&str]| {
            let mut guess = Guess::of_json();
            values.iter().for_each(|v| guess.see_json(v));
            guess.narrowest()
        };
        assert_eq!(json(&["\"1\"", "\"2\""]), FieldType::String);
        assert_eq!(json(&["\"1\"", "2"]), FieldType::Json);
        assert_eq!(json(&["[1]"]), FieldType::Json);
        assert_eq!(json(&["1.0", "2"]), FieldType::F64);
    }
}
