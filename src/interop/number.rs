//! Text to numbers and back, such that what is printed is the value that was read.
//!
//! A text is a number only where no information is lost by taking it for one: `007` and `+49` stay
//! text, as does an integer that a double cannot hold. A decimal is read as the nearest double.

use std::fmt::{self, Write};
use std::str::FromStr;

use crate::format::column::{FieldType, Value};

/// `true` or `false`, as JSON spells them.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// A number, or a `bool`, of type `ty`.
pub fn parse_number(ty: FieldType, text: &str) -> Option<Value<'static>> {
    match ty {
        FieldType::Bool => parse_bool(text).map(Value::Bool),
        FieldType::I8 => parse_integer(text).map(Value::I8),
        FieldType::I16 => parse_integer(text).map(Value::I16),
        FieldType::I32 => parse_integer(text).map(Value::I32),
        FieldType::I64 => parse_integer(text).map(Value::I64),
        FieldType::U8 => parse_integer(text).map(Value::U8),
        FieldType::U16 => parse_integer(text).map(Value::U16),
        FieldType::U32 => parse_integer(text).map(Value::U32),
        FieldType::U64 => parse_integer(text).map(Value::U64),
        FieldType::F32 => parse_float(text, F32_DIGITS).map(Value::F32),
        FieldType::F64 => parse_f64(text).map(Value::F64),
        _ => None,
    }
}

/// An `i64`, as [`parse_integer`] reads it.
pub fn parse_i64(text: &str) -> Option<i64> {
    parse_integer(text)
}

/// An integer in the spelling that we print: no sign but `-`, no leading zeros.
fn parse_integer<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    if canonical { text.parse().ok() } else { None }
}

/// Integers of so many digits are exact in a float of that width.
const F32_DIGITS: usize = 7;
const F64_DIGITS: usize = 15;

/// A double, as [`parse_float`] reads it.
pub fn parse_f64(text: &str) -> Option<f64> {
    parse_float(text, F64_DIGITS)
}

/// A float: decimal, perhaps with an exponent, or `NaN`, `inf`, `Infinity` in any case.
fn parse_float<T>(text: &str, digits_exact: usize) -> Option<T>
where
    T: FromStr + fmt::Display + Copy + Into<f64>,
{
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (integer_digits, integer_like) = match unsigned.as_bytes() {
        [b'0'..=b'9', ..] => {
            let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 1 && unsigned.starts_with('0') {
                return None;
            }
            (digits, digits == unsigned.len())
        }
        [b'.', ..] => (0, false),
        _ => return parse_special(text, unsigned),
    };
    let value: T = text.parse().ok()?;
    if integer_like && integer_digits > digits_exact && format!("{value}") != text {
        return None;
    }
    let wide: f64 = value.into();
    let out_of_range = wide.is_infinite() || wide == 0.0 && has_nonzero_digit(unsigned);
    (!out_of_range).then_some(value)
}

fn parse_special<T: FromStr>(text: &str, unsigned: &str) -> Option<T> {
    let known = ["nan", "inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    if known { text.parse().ok() } else { None }
}

fn has_nonzero_digit(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or("");
    mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Prints a float in the fewest digits that read back as the same.
pub fn write_float<T: fmt::Display + fmt::LowerExp + Copy + Into<f64>>(
    value: T,
    into: &mut String,
) {
    let wide: f64 = value.into();
    let plain = wide == 0.0 || !wide.is_finite() || (1e-5..1e16).contains(&wide.abs());
    let written = if plain { write!(into, "{value}") } else { write!(into, "{value:e}") };
    // Writing to a String cannot fail.
    debug_assert!(written.is_ok());
}

/// Prints anything else.
pub fn write_display(value: impl fmt::Display, into: &mut String) {
    let written = write!(into, "{value}");
    debug_assert!(written.is_ok());
}

/// Prints bytes as hex digits.
pub fn write_hex(bytes: &[u8], into: &mut String) {
    bytes.iter().for_each(|byte| write_display(format_args!("{byte:02x}"), into));
}

/// Appends the bytes that hex digits spell. Returns whether all of the text was hex.
pub fn parse_hex(text: &str, into: &mut Vec<u8>) -> bool {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for [high, low] in pairs {
        match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => into.push((high << 4 | low) as u8),
            _ => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a text that would print otherwise stay text?
    #[test]
    fn what_would_lose_something_is_no_number() {
        for text in ["007", "+1", "", "-", "1_0", " 1", "0x1", "1.5", "9223372036854775808", "-0"] {
            assert_eq!(parse_i64(text), None, "{text}");
        }
        for text in ["007.5", "+1.5", "", ".", "-.", "e5", "1e999", "1e-999", "0x1p3", "1.5 ", "NA"]
        {
            assert_eq!(parse_f64(text), None, "{text}");
        }
        assert_eq!(parse_f64("9007199254740993"), None, "2^53 + 1 has no double");
        assert_eq!(parse_f64("12345678901234567890"), None);
    }

    /// Does every number that is taken print as one that reads the same?
    #[test]
    fn printing_reads_back_the_same() {
        for text in [
            "0",
            "-0",
            "1012",
            "12.658579999999999",
            "1e5",
            "0.1",
            ".5",
            "5.",
            "-1.5e-300",
            "1e22",
            "inf",
            "-Infinity",
            "NaN",
            "1e-7",
            "123456789012345680",
            "9007199254740992",
            "0e5",
        ] {
            let value = parse_f64(text).unwrap_or_else(|| panic!("{text}"));
            let mut printed = String::new();
            write_float(value, &mut printed);
            let again = parse_f64(&printed).unwrap_or_else(|| panic!("{printed}"));
            assert!(again.to_bits() == value.to_bits() || value.is_nan(), "{text} {printed}");
        }
        assert_eq!(parse_i64("-9223372036854775808"), Some(i64::MIN));
    }

    /// Do bytes survive their hex form?
    #[test]
    fn hex_reads_back() {
        let mut text = String::new();
        write_hex(&[0, 255, 16], &mut text);
        let mut bytes = Vec::new();
        assert!(parse_hex(&text, &mut bytes));
        assert_eq!(bytes, [0, 255, 16]);
        assert!(!parse_hex("0", &mut bytes) && !parse_hex("0g", &mut bytes));
    }
}
