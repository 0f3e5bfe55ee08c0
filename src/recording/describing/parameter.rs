//! Parameters: typed values that a recording was made with, and their order in the index.
//!
//! - All numbers are of one order, exact to the last bit: `1` equals `1.0`, and 2^53 + 1 is
//!   greater than 2^53.
//! - `false` and `true` come before all numbers, numbers before all text; NaN is after the numbers.
//! - Bytes in the index never begin with other such bytes. Of a long text they hold the beginning.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::name::NAME_BYTES_MAX;
use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::RecordingId;
use crate::manifest::{ParameterKey, ParameterRow, Reading, Write};

/// The longest value of a text parameter, in bytes.
pub const PARAMETER_BYTES_MAX: usize = 64 << 10;
/// How much of a text the index holds.
const ORDER_TEXT_BYTES: usize = 256;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Parameter {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    I64(i64),
    /// A floating-point number.
    F64(f64),
    /// Text.
    String(String),
}

macro_rules! parameter_from {
    ($($ty:ty => $variant:ident $(as $to:ty)?;)*) => {$(
        impl From<$ty> for Parameter {
            fn from(value: $ty) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

parameter_from! {
    bool => Bool;
    i8 => I64;
    i16 => I64;
    i32 => I64;
    i64 => I64;
    u8 => I64;
    u16 => I64;
    u32 => I64;
    f32 => F64;
    f64 => F64;
    &str => String;
    String => String;
}

impl TryFrom<u64> for Parameter {
    type Error = Error;

    /// A whole number; above [`i64::MAX`] as a double, where that is the same number.
    ///
    /// # Errors
    /// `Invalid` for one that neither holds.
    fn try_from(value: u64) -> Result<Self> {
        if let Ok(value) = i64::try_from(value) {
            return Ok(Self::I64(value));
        }
        let double = value as f64;
        if double as u128 == u128::from(value) {
            return Ok(Self::F64(double));
        }
        let cause = format!("{value}, which neither an i64 nor a double holds: give it as text");
        Err(Error::invalid("record", "parameter", cause))
    }
}

impl TryFrom<usize> for Parameter {
    type Error = Error;

    /// As of a `u64`.
    fn try_from(value: usize) -> Result<Self> {
        Self::try_from(value as u64)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::F64(value) => write!(f, "{value:?}"),
            Self::String(value) => value.fmt(f),
        }
    }
}

impl Parameter {
    /// The name of its type in messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::I64(_) => "i64",
            Self::F64(_) => "f64",
            Self::String(_) => "string",
        }
    }

    /// How it compares with another one of its kind: truth values, numbers of both types, text.
    /// `None` between kinds, and for NaN.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::String(_) | Self::Bool(_), _) | (_, Self::String(_) | Self::Bool(_)) => None,
            (a, b) if a.is_nan() || b.is_nan() => None,
            (a, b) => Some(a.order().cmp(&b.order())),
        }
    }

    fn is_nan(&self) -> bool {
        matches!(self, Self::F64(value) if value.is_nan())
    }

    /// The bytes by which it stands in the index.
    pub(in crate::recording) fn order(&self) -> Vec<u8> {
        match self {
            Self::Bool(value) => vec![KIND_BOOL, u8::from(*value)],
            Self::I64(value) => {
                let (below, rest) = below(*value);
                number(below, rest)
            }
            Self::F64(value) => number(*value, 0),
            Self::String(text) => {
                let mut bytes = vec![KIND_STRING];
                for byte in text.bytes().take(ORDER_TEXT_BYTES) {
                    bytes.push(byte);
                    if byte == 0 {
                        bytes.push(0xff);
                    }
                }
                bytes.extend_from_slice(&[0, 0]);
                bytes
            }
        }
    }
}

pub(in crate::recording) const KIND_BOOL: u8 = 1;
pub(in crate::recording) const KIND_NUMBER: u8 = 2;
pub(in crate::recording) const KIND_STRING: u8 = 3;

/// The greatest double that is not above `value`, and what is missing: exact for every `i64`.
fn below(value: i64) -> (f64, u16) {
    let mut double = value as f64;
    if double as i128 > i128::from(value) {
        double = double.next_down();
    }
    let rest = i128::from(value) - double as i128;
    (double, u16::try_from(rest).unwrap_or(u16::MAX))
}

fn number(double: f64, rest: u16) -> Vec<u8> {
    // -0 is 0, and every NaN the same one, above all numbers.
    let bits = match double {
        double if double.is_nan() => f64::NAN.to_bits() & !(1 << 63),
        double => (double + 0.0).to_bits(),
    };
    let sortable = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    let mut bytes = vec![KIND_NUMBER];
    bytes.extend_from_slice(&sortable.to_be_bytes());
    bytes.extend_from_slice(&rest.to_be_bytes());
    bytes
}

/// Whether these can be the parameters of a recording.
///
/// # Errors
/// `Invalid`, naming the parameter: a blank or overlong name; `LimitExceeded` for a text above
/// [`PARAMETER_BYTES_MAX`].
pub(super) fn check_parameters(parameters: &[(String, Parameter)]) -> Result<()> {
    for (name, value) in parameters {
        if name.trim().is_empty() || name.len() > NAME_BYTES_MAX {
            let cause = format!("its name is blank, or has more than {NAME_BYTES_MAX} bytes");
            return Err(Error::invalid("record", format!("parameter {name:?}"), cause));
        }
        if matches!(value, Parameter::String(text) if text.len() > PARAMETER_BYTES_MAX) {
            let cause = format!("it has more than {PARAMETER_BYTES_MAX} bytes");
            let place = format!("parameter {name:?}");
            return Err(Error::new(ErrorKind::LimitExceeded, "record", place, cause));
        }
    }
    Ok(())
}

/// Writes the parameters of `recording` into the index; the last of a name counts.
///
/// # Errors
/// As [`check_parameters`]; as [`Write::put`].
pub(in crate::recording) fn index_parameters(
    w: &mut Write<'_>,
    recording: RecordingId,
    parameters: &[(String, Parameter)],
) -> Result<()> {
    check_parameters(parameters)?;
    for (name, parameter) in parameters {
        let value = codec::encode("parameter", parameter)?;
        let row = ParameterRow { value, order: parameter.order() };
        w.put(&ParameterKey { recording, name: name.clone() }, &row)?;
    }
    Ok(())
}

/// Gives the parameters of `from` to `to` as well.
///
/// # Errors
/// As [`Write::put`].
pub(in crate::recording) fn copy_parameters(
    w: &mut Write<'_>,
    from: RecordingId,
    to: RecordingId,
) -> Result<()> {
    let first = ParameterKey { recording: from, name: String::new() };
    let behind = match from.0.checked_add(1) {
        Some(next) => {
            Bound::Excluded(ParameterKey { recording: RecordingId(next), name: String::new() })
        }
        None => Bound::Unbounded,
    };
    for (key, row) in w.list::<ParameterRow>((Bound::Included(first), behind), usize::MAX)? {
        w.put(&ParameterKey { recording: to, ..key }, &row)?;
    }
    Ok(())
}

/// Takes the parameters of `recording` out of the index.
///
/// # Errors
/// As [`Write::remove`].
pub(in crate::recording) fn remove_parameters(
    w: &mut Write<'_>,
    recording: RecordingId,
) -> Result<()> {
    let from = ParameterKey { recording, name: String::new() };
    loop {
        let found = w.list::<ParameterRow>(from.clone().., 64)?;
        let own: Vec<_> = found.into_iter().filter(|(key, _)| key.recording == recording).collect();
        if own.is_empty() {
            return Ok(());
        }
        for (key, _) in own {
            w.remove::<ParameterRow>(&key)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::Given;
    use super::*;

    /// Do bytes in the index sort as numbers do, whole and floating mixed?
    #[test]
    fn rec8_numbers_are_of_one_exact_order() {
        let big = 1i64 << 53;
        let sorted = [
            Parameter::F64(f64::NEG_INFINITY),
            Parameter::F64(-1e300),
            Parameter::I64(i64::MIN),
            Parameter::I64(i64::MIN + 1),
            Parameter::I64(-big - 1),
            Parameter::F64(-(big as f64)),
            Parameter::I64(-1),
            Parameter::F64(-f64::from_bits(1)),
            Parameter::I64(0),
            Parameter::F64(f64::from_bits(1)),
            Parameter::F64(0.5),
            Parameter::I64(1),
            Parameter::I64(big),
            Parameter::I64(big + 1),
            Parameter::F64((big + 2) as f64),
            Parameter::I64(i64::MAX - 1),
            Parameter::I64(i64::MAX),
            Parameter::F64(2f64.powi(63)),
            Parameter::F64(f64::INFINITY),
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(one.order().cmp(&other.order()), at.cmp(&other_at), "{one} {other}");
                assert_eq!(one.compare(other), Some(at.cmp(&other_at)), "{one} {other}");
            }
        }
        assert_eq!(Parameter::F64(-0.0).order(), Parameter::I64(0).order());
        assert_eq!(Parameter::F64(1.0).order(), Parameter::I64(1).order());
        let nan = Parameter::F64(f64::from_bits(f64::NAN.to_bits() | 1 << 63));
        assert!(nan.order() > Parameter::F64(f64::INFINITY).order());
        assert_eq!(nan.compare(&nan), None);
    }

    /// Do bytes of text sort as text, and never begin with those of another?
    #[test]
    fn rec8_texts_sort_and_none_begins_with_another() {
        let mut texts = ["", "a", "a\0", "a\0b", "ab", "b", "é", "zz"].map(str::to_owned).to_vec();
        texts.sort();
        let order = |text: &String| Parameter::String(text.clone()).order();
        for pair in texts.windows(2) {
            let (one, other) = (order(&pair[0]), order(&pair[1]));
            assert!(one < other && !other.starts_with(&one), "{pair:?}");
        }
        let long = Parameter::String("x".repeat(10_000)).order();
        assert!(long.len() < 600 && long > order(&"x".to_owned()));
        let all = ["no", "zz"].map(|text| Parameter::from(text).order());
        assert!(all.iter().all(|text| *text > Parameter::F64(f64::NAN).order()));
        assert!(Parameter::Bool(true).order() < Parameter::F64(f64::NEG_INFINITY).order());
    }

    /// Does the later value of a name take the earlier one's place?
    #[test]
    fn rec8_a_later_value_replaces_an_entry_of_that_name() {
        let mut given = Given::default();
        given.one("task_index".to_owned(), Parameter::I64(1));
        given.task(&std::collections::BTreeMap::from([("dt", 0.5), ("task_index", 7.0)]));
        let all = given.resolve("run").unwrap();
        let expected = [("dt", Parameter::F64(0.5)), ("task_index", Parameter::F64(7.0))];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value)));
        assert!(check_parameters(&all).is_ok());
        assert!(check_parameters(&[(" ".to_owned(), Parameter::Bool(true))]).is_err());
        let long = Parameter::String("x".repeat(PARAMETER_BYTES_MAX + 1));
        let refused = check_parameters(&[("long".to_owned(), long)]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
    }
}
