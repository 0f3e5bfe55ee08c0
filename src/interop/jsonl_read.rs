//! JSON lines to typed rows, in bounded memory. Numbers are read as the text that they are.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::cells::Cells;
use super::guess::Guess;
use super::options::ReadOptions;
use super::plan::{self, Missing, Plan, RowPlace};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{FIELDS_MAX, FieldType, Shape, Value};

const BUFFER_BYTES: usize = 64 << 10;

/// Reads one JSON object from each line. Blank lines are no rows.
#[derive(Debug)]
pub struct JsonlReader<R> {
    options: ReadOptions,
    input: BufReader<R>,
    plans: Vec<Plan>,
    columns: HashMap<String, usize>,
    /// Lines that were read to infer types and not given out yet.
    sample: VecDeque<(Vec<u8>, u64)>,
    text: Vec<u8>,
    line: u64,
    row: u64,
}

impl<R: Read> JsonlReader<R> {
    /// Reads the rows that columns and types are inferred from.
    ///
    /// # Errors
    /// `Invalid` for options that do not fit the columns; `Input` for a line that is no object, is
    /// too long, or repeats a key; `Io`.
    pub fn open(input: R, options: ReadOptions) -> Result<Self> {
        options.check()?;
        let mut this = Self {
            options,
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            plans: Vec::new(),
            columns: HashMap::new(),
            sample: VecDeque::new(),
            text: Vec::new(),
            line: 0,
            row: 0,
        };
        this.read_sample()?;
        Ok(this)
    }

    /// The columns, as far as they are known: spellings of missing values may still be met.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Reads the next row into `cells`, or `None` at the end.
    ///
    /// # Errors
    /// `Input`, naming line, row and column; `Io`.
    pub fn next_row(&mut self, cells: &mut Cells) -> Result<Option<RowPlace>> {
        let line = match self.sample.pop_front() {
            Some((text, line)) => {
                self.text = text;
                line
            }
            None => match self.read_line()? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        let at = RowPlace { row: self.row, line };
        self.row += 1;
        cells.clear();
        let (values, _) = parse(&self.options, at, &self.text, &self.columns, Keys::AllKnown)?;
        for (plan, value) in self.plans.iter_mut().zip(values) {
            match value.map(RawValue::get) {
                None => plan.met(&Missing::Absent),
                Some("null") => plan.met(&Missing::Null),
                Some(raw) => {
                    let taken = match plan.shape.is_scalar() {
                        true => push(cells, plan.ty, raw),
                        false => cells.parse(plan.ty, &plan.shape, raw),
                    };
                    if !taken {
                        return Err(plan::conflict(&self.options, at, plan, raw));
                    }
                    continue;
                }
            }
            cells.push(Value::Missing);
        }
        Ok(Some(at))
    }

    fn read_sample(&mut self) -> Result<()> {
        let mut guesses: Vec<Guess> = Vec::new();
        let mut bytes = 0;
        while self.sample.len() < self.options.infer_rows && bytes < self.options.infer_bytes {
            let Some(line) = self.read_line()? else { break };
            bytes += self.text.len() + 64;
            let at = RowPlace { row: self.sample.len() as u64, line };
            let (values, unknown) =
                parse(&self.options, at, &self.text, &self.columns, Keys::MoreMayCome)?;
            for (guess, value) in guesses.iter_mut().zip(values) {
                see(guess, value);
            }
            for (key, value) in unknown {
                let mut guess = Guess::of_json();
                see(&mut guess, Some(value));
                guesses.push(guess);
                self.columns.insert(key.clone(), self.columns.len());
                self.plans.push(plan_of(&self.options, key));
            }
            self.sample.push_back((std::mem::take(&mut self.text), line));
        }
        // A column that comes only later can be declared by giving its type.
        for column in self.options.types.iter().map(|field| &field.name) {
            if !self.columns.contains_key(column) {
                self.columns.insert(column.clone(), self.plans.len());
                self.plans.push(plan_of(&self.options, column.clone()));
            }
        }
        for (plan, guess) in self.plans.iter_mut().zip(guesses) {
            if !plan.given {
                plan.ty = guess.narrowest();
            }
        }
        if self.plans.is_empty() {
            let place = &self.options.source;
            return Err(Error::new(ErrorKind::Input, "import", place, "it has no column"));
        }
        plan::schema(&self.plans).map(drop)
    }

    /// Reads the next line that is not blank, and returns its number.
    fn read_line(&mut self) -> Result<Option<u64>> {
        let most = self.options.record_bytes_max;
        loop {
            self.text.clear();
            let mut within = (&mut self.input).take((most as u64).saturating_add(1));
            let read = within.read_until(b'\n', &mut self.text);
            let read = read.map_err(|e| Error::io("import", &self.options.source, e))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.line == 1 && self.text.starts_with(b"\xef\xbb\xbf") {
                self.text.drain(..3);
            }
            if read > most {
                let at = RowPlace { row: self.row + self.sample.len() as u64, line: self.line };
                let cause = format!("it is longer than {most} bytes");
                return Err(plan::wrong(&self.options, at, cause));
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(Some(self.line));
            }
        }
    }
}

fn plan_of(options: &ReadOptions, name: String) -> Plan {
    let given = options.given(&name);
    Plan::new(name, given, FieldType::Json)
}

fn see(guess: &mut Guess, value: Option<&RawValue>) {
    if let Some(raw) = value.map(RawValue::get).filter(|raw| *raw != "null") {
        guess.see_json(raw);
    }
}

/// Adds a JSON value as one of type `ty`. Returns whether it is one.
fn push(cells: &mut Cells, ty: FieldType, raw: &str) -> bool {
    if ty == FieldType::Json {
        cells.push(Value::Json(raw));
        return true;
    }
    if !raw.starts_with('"') {
        let scalar = !raw.starts_with(['{', '[']);
        return scalar
            && !matches!(ty, FieldType::String | FieldType::Bytes)
            && cells.parse(ty, &Shape::default(), raw);
    }
    // NaN and infinities have no JSON number and are exported as strings.
    let inner = raw.get(1..raw.len() - 1).filter(|inner| !inner.contains('\\'));
    let text = match inner {
        Some(inner) => Cow::Borrowed(inner),
        None => match serde_json::from_str::<String>(raw) {
            Ok(text) => Cow::Owned(text),
            Err(_) => return false,
        },
    };
    match ty {
        FieldType::String | FieldType::Bytes => cells.parse(ty, &Shape::default(), &text),
        FieldType::F32 | FieldType::F64 => {
            text.parse::<f64>().is_ok_and(|v| !v.is_finite())
                && cells.parse(ty, &Shape::default(), &text)
        }
        _ => false,
    }
}

type Parsed<'a> = (Vec<Option<&'a RawValue>>, Vec<(String, &'a RawValue)>);

/// The values of known columns, and the keys and values that belong to none.
fn parse<'a>(
    options: &ReadOptions,
    at: RowPlace,
    text: &'a [u8],
    columns: &HashMap<String, usize>,
    keys: Keys,
) -> Result<Parsed<'a>> {
    let unknown_max = match keys {
        Keys::AllKnown => 0,
        Keys::MoreMayCome => FIELDS_MAX.saturating_sub(columns.len()),
    };
    let mut refused = None;
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let visitor = RowVisitor { columns, unknown_max, refused: &mut refused };
    let parsed = deserializer.deserialize_map(visitor);
    let parsed = parsed.and_then(|parsed| deserializer.end().map(|()| parsed));
    parsed.map_err(|e| match refused {
        Some(key) => refuse_key(options, at, &key, keys),
        None => plan::wrong(options, at, format!("it is not a JSON object: {e}")),
    })
}

fn refuse_key(options: &ReadOptions, at: RowPlace, key: &str, keys: Keys) -> Error {
    let cause = match keys {
        Keys::AllKnown => format!(
            "none of the first {} rows has this key; to accept it: --type {}=string",
            options.infer_rows,
            plan::word(&plan::shortened(key))
        ),
        Keys::MoreMayCome => format!("{FIELDS_MAX} columns are the most"),
    };
    plan::wrong_at(options, at, &plan::shortened(key), cause)
}

/// Whether a row may have keys that no row before it had.
#[derive(Debug, Clone, Copy)]
enum Keys {
    MoreMayCome,
    AllKnown,
}

struct RowVisitor<'c> {
    columns: &'c HashMap<String, usize>,
    unknown_max: usize,
    /// The key that was one too many: nothing behind it is read.
    refused: &'c mut Option<String>,
}

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = Parsed<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed<'de>, A::Error> {
        let mut values = vec![None; self.columns.len()];
        let mut unknown: Vec<(String, &'de RawValue)> = Vec::new();
        while let Some(key) = map.next_key_seed(KeySeed { columns: self.columns })? {
            if let Err(key) = &key
                && unknown.len() == self.unknown_max
                && unknown.iter().all(|(known, _)| known != key)
            {
                *self.refused = Some(key.clone());
                return Err(A::Error::custom("a key too many"));
            }
            let value: &'de RawValue = map.next_value()?;
            match key {
                Ok(column) => match values.get_mut(column) {
                    Some(slot @ None) => *slot = Some(value),
                    _ => return Err(A::Error::custom("a key is repeated")),
                },
                Err(key) => {
                    if unknown.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format!("key {key:?} is repeated")));
                    }
                    unknown.push((key, value));
                }
            }
        }
        Ok((values, unknown))
    }
}

/// A key as the number of its column, or as itself.
struct KeySeed<'c> {
    columns: &'c HashMap<String, usize>,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = std::result::Result<usize, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = std::result::Result<usize, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.columns.get(key).copied().ok_or_else(|| key.to_owned()))
    }
}
