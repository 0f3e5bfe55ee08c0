//! Numbers and times in words.

use std::borrow::Cow;

use super::args::TimeFormat;

/// `26,115`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A name as it is safe to print: what moves the cursor or ends the line is escaped.
pub fn shown(text: &str) -> Cow<'_, str> {
    // Directions of text, and separators of lines that are no control characters.
    let is_odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_odd(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// `1 row`, `2 rows`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// What is told behind what went; nothing where only a plan was made.
pub fn gc_gives_back(bytes: Option<u64>) -> String {
    bytes.map_or(String::new(), |bytes| format!("; gc gives back {}", size(bytes)))
}

/// `2.2 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A wall-clock time, from nanoseconds since 1970, in UTC.
pub fn time(nanos: Option<i64>, format: TimeFormat) -> String {
    let Some(nanos) = nanos else { return "unknown".to_owned() };
    let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    if format == TimeFormat::Unix {
        return format!("{seconds}.{rest:09}");
    }
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month, day of a day counted from 1970-01-01 (proleptic Gregorian calendar). Years are
/// counted from March, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let from_0000_03_01 = days + 719_468;
    let era = from_0000_03_01.div_euclid(146_097);
    let day_of_era = from_0000_03_01.rem_euclid(146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are dates right at the edges of months, leap years and 1970?
    #[test]
    fn dates_are_right_at_the_edges() {
        let iso = |seconds: i64| time(Some(seconds * 1_000_000_000), TimeFormat::Iso);
        assert_eq!(iso(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso(-1), "1969-12-31T23:59:59Z");
        assert_eq!(iso(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(iso(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(time(Some(-1), TimeFormat::Unix), "-1.999999999");
    }

    /// Can a name move the cursor, or look like two lines?
    #[test]
    fn names_are_printed_harmlessly() {
        assert_eq!(shown("gé 1"), "gé 1");
        assert_eq!(shown("a\n\x1b[2Jb\u{202e}"), "a\\n\\u{1b}[2Jb\\u{202e}");
    }

    /// Are numbers grouped, and sizes in the unit that fits?
    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(26_115), "26,115");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(2_294_215), "2.2 MiB");
    }
}
