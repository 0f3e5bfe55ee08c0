//! The minute that a time in a line falls into.

/// The minute since 1970, in UTC, of a time as logs write it: `2026-12-01T09:40:12.5Z`, with an offset or
/// without (UTC); `01/Dec/2026:09:40:12 +0000`; a count of seconds, milliseconds, microseconds or
/// nanoseconds since 1970, told apart by its size.
pub fn minute(text: &str) -> Option<i64> {
    let text = text.trim();
    count(text).or_else(|| iso(text)).or_else(|| common(text))
}

fn count(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: i64 = whole.parse().ok()?;
    let to_seconds = match number.unsigned_abs() {
        0..100_000_000_000 => 1,
        100_000_000_000..100_000_000_000_000 => 1_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000_000,
        _ => 1_000_000_000,
    };
    Some(number.div_euclid(to_seconds).div_euclid(60))
}

fn iso(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(10)?;
    let mut fields = date.split('-');
    let (year, month, day) =
        (digits(fields.next()?)?, digits(fields.next()?)?, digits(fields.next()?)?);
    let time = time.strip_prefix(['T', 't', ' '])?;
    let end = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at_checked(end)?;
    minute_of(year, month, day, clock, zone)
}

fn common(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, time) = text.split_once(':')?;
    let mut fields = date.split('/');
    let (day, month, year) = (digits(fields.next()?)?, fields.next()?, digits(fields.next()?)?);
    let month = MONTHS.iter().position(|one| one.eq_ignore_ascii_case(month))?;
    let (clock, zone) = time.split_once(' ').unwrap_or((time, ""));
    minute_of(year, i64::try_from(month).ok()? + 1, day, clock, zone)
}

/// Of a day, a clock (`09:40` or with seconds) and an offset (`Z`, `+01:00`, `+0100`, or none).
fn minute_of(year: i64, month: i64, day: i64, clock: &str, zone: &str) -> Option<i64> {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let (hour, rest) = clock.split_once(':')?;
    let (minute, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hour, minute) = (digits(hour)?, digits(minute)?);
    let whole = seconds.split_once(['.', ',']).map_or(seconds, |(whole, _)| whole);
    // A leap second is one.
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || digits(whole)? > 60 {
        return None;
    }
    // Years counted from March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * 1440 + hour * 60 + minute - offset(zone)?)
}

/// Minutes ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.split_at_checked(1) {
        None | Some(("Z" | "z", "")) => return Some(0),
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        Some(_) => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 2 => (rest, "0"),
        None => rest.split_at_checked(2)?,
    };
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

fn digits(text: &str) -> Option<i64> {
    let are = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if are { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is each way of writing a time read as the minute it falls into, and nothing else as one?
    #[test]
    fn times_are_read_as_logs_write_them() {
        let nine_forty = Some(29_935_300);
        for text in [
            "2026-12-01T09:40",
            "2026-12-01T09:40:59.999Z",
            "2026-12-01 10:40:00+01:00",
            "2026-12-01T01:10:00,5-0830",
            "01/Dec/2026:09:40:12 +0000",
            "1796118000",
            "1796118059.9",
            "1796118000000",
            "1796118000000000",
            "1796118000000000000",
        ] {
            assert_eq!(minute(text), nine_forty, "{text}");
        }
        assert_eq!(minute("1970-01-01T00:00"), Some(0));
        assert_eq!(minute("-1"), Some(-1));
        assert_eq!(minute("2000-02-29T00:00:60"), Some(15_863_040));
        for text in [
            "",
            "x",
            "2026-02-29T00:00",
            "2026-13-01T00:00",
            "2026-12-01",
            "2026-12-01T24:00",
            "2026-12-01T09:40+1",
            "31/Foo/2026:00:00:00",
            "1.x",
            "\u{e9}26-12-01T09:40",
        ] {
            assert_eq!(minute(text), None, "{text}");
        }
    }
}
