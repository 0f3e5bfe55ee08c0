//! Days and seconds as people write them, in UTC, as nanoseconds since 1970.

/// Nanoseconds of `2026-12-01`, or of `2026-12-01T12:30:00` with a space or a T, with or without a
/// Z at the end.
pub(super) fn nanos_of(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, second) = match text.split_once(['T', ' ']) {
        Some((day, second)) => (day, Some(second)),
        None => (text, None),
    };
    let mut parts = day.splitn(3, '-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let mut seconds = days_before(year, month, day)? * 86_400;
    if let Some(text) = second {
        let mut parts = text.splitn(3, ':').map(digits);
        let (hour, minute) = (parts.next()??, parts.next()??);
        let second = parts.next().unwrap_or(Some(0))?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        seconds += hour * 3600 + minute * 60 + second;
    }
    seconds.checked_mul(1_000_000_000)
}

fn digits(text: &str) -> Option<i64> {
    let are_digits = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    are_digits.then(|| text.parse().ok()).flatten()
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a day of the years 1 to 9999.
fn days_before(year: i64, month: i64, day: i64) -> Option<i64> {
    if year < 1 {
        return None;
    }
    let of_years = |year: i64| 365 * year + year / 4 - year / 100 + year / 400;
    let of_months: i64 = (1..month).map(|month| days_in(year, month)).sum();
    Some(of_years(year - 1) - of_years(1969) + of_months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are days and seconds the ones that every calendar shows, and is what is no day refused?
    #[test]
    fn days_and_seconds_are_those_of_the_calendar() {
        let second = 1_000_000_000;
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("1970-01-02T00:00:01Z", 86_401),
            ("1969-12-31 23:59", -60),
            ("2000-02-29", 951_782_400),
            ("2026-12-01T12:30:00", 1_796_128_200),
        ] {
            assert_eq!(nanos_of(text), Some(seconds * second), "{text}");
        }
        for text in ["", "2026", "2026-02-29", "2026-1-32", "2026-12-01T24:00", "+026-12-01", "x"] {
            assert_eq!(nanos_of(text), None, "{text}");
        }
        assert_eq!(nanos_of("9999-01-01"), None, "beyond what an i64 counts");
    }
}
