//! Text to numbers and back, such that what is printed is the value that was read.
//!
//! A text is a number only where no information is lost by taking it for one: `007` and `+49` stay
//! text, as does an integer that a double cannot hold. A decimal is read as the nearest double.

use std::fmt::{self, Write};

/// `true` or `false`, as JSON spells them.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// An integer in the spelling that we print: no sign but `-`, no leading zeros.
pub fn parse_i64(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    if canonical { text.parse().ok() } else { None }
}

/// A double: decimal, perhaps with an exponent, or `NaN`, `inf`, `Infinity` in any case.
pub fn parse_f64(text: &str) -> Option<f64> {
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
    let value: f64 = text.parse().ok()?;
    if integer_like && integer_digits > 15 && format!("{value}") != text {
        return None;
    }
    let out_of_range = value.is_infinite() || value == 0.0 && has_nonzero_digit(unsigned);
    (!out_of_range).then_some(value)
}

fn parse_special(text: &str, unsigned: &str) -> Option<f64> {
    let known = ["nan", "inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    if known { text.parse().ok() } else { None }
}

fn has_nonzero_digit(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or("");
    mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Prints a double in the fewest digits that read back as the same.
pub fn write_f64(value: f64, into: &mut String) {
    let plain = value == 0.0 || !value.is_finite() || (1e-5..1e16).contains(&value.abs());
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
            write_f64(value, &mut printed);
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
