//! Minutes as people write them, in UTC, counted since 1970.

/// `2026-12-01T09:40`. Years before 1 and after 9999 are written as the count of minutes.
pub(super) fn text_of(minute: i64) -> String {
    let days = minute.div_euclid(24 * 60);
    let of_day = minute.rem_euclid(24 * 60);
    match date_of(days) {
        Some((year, month, day)) => {
            let (hour, minute) = (of_day / 60, of_day % 60);
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}")
        }
        None => minute.to_string(),
    }
}

/// The minute of a text that [`text_of`] writes, or of a count of minutes.
pub(super) fn minute_of(text: &str) -> Option<i64> {
    if let Ok(minute) = text.parse::<i64>() {
        return Some(minute);
    }
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute) = (digits(hour)?, digits(minute)?);
    let is_day = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day);
    if !is_day || hour > 23 || minute > 59 {
        return None;
    }
    Some(
        (days_before_year(year) + days_before_month(year, month) + day - 1) * 1440
            + hour * 60
            + minute,
    )
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

fn days_before_month(year: i64, month: i64) -> i64 {
    (1..month).map(|month| days_in(year, month)).sum()
}

/// Days from 1970-01-01 to the first of a year.
fn days_before_year(year: i64) -> i64 {
    let of_years = |year: i64| 365 * year + year / 4 - year / 100 + year / 400;
    of_years(year - 1) - of_years(1969)
}

fn date_of(days: i64) -> Option<(i64, i64, i64)> {
    if days < days_before_year(1) || days >= days_before_year(10_000) {
        return None;
    }
    // Not behind the year, and few before it.
    let mut year = (1970 + days.div_euclid(if days < 0 { 365 } else { 366 })).max(1);
    while days_before_year(year + 1) <= days {
        year += 1;
    }
    let mut left = days - days_before_year(year);
    let mut month = 1;
    while left >= days_in(year, month) {
        left -= days_in(year, month);
        month += 1;
    }
    Some((year, month, left + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are minutes those of the calendar, forth and back, and is what is no minute refused?
    #[test]
    fn minutes_are_those_of_the_calendar() {
        for (text, minute) in [
            ("1970-01-01T00:00", 0),
            ("1969-12-31T23:59", -1),
            ("2000-02-29T00:00", 15_863_040),
            ("2026-12-01T12:30", 29_935_470),
            ("0001-01-01T00:00", days_before_year(1) * 1440),
            ("9999-12-31T23:59", days_before_year(10_000) * 1440 - 1),
        ] {
            assert_eq!((minute_of(text), text_of(minute)), (Some(minute), text.to_owned()));
        }
        for day in -800_000..3_000_000i64 {
            let minute = day * 1440 + day.rem_euclid(1440);
            if day % 97 == 0 {
                assert_eq!(minute_of(&text_of(minute)), Some(minute), "{day}");
            }
        }
        for text in ["", "2026", "2026-02-29T00:00", "2026-12-01T24:00", "2026-12-01", "x"] {
            assert!(minute_of(text).is_none() || text == "2026", "{text}");
        }
        for minute in [i64::MIN, i64::MAX] {
            assert_eq!(minute_of(&text_of(minute)), Some(minute));
        }
    }
}
