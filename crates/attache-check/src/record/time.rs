//! Times of a trace: RFC 3339 in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads a time as [`attache::trace::rfc3339`] writes it; the fraction may have any number of digits.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?.parse::<u64>().ok()?, time.next()?.parse::<u64>().ok()?);
    let second: f64 = time.next()?.parse().ok().filter(|second| (0.0..61.0).contains(second))?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let whole = (days(year, month, day) * 24 + hour.min(23)) * 3600 + minute.min(59) * 60;
    let millis = (second * 1000.0).round();
    Some(UNIX_EPOCH + Duration::from_secs(whole) + Duration::from_secs_f64(millis / 1000.0))
}

/// Days from 1 January 1970. Years are taken to begin in March, so that the leap day is their last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let before_era = 719_468;
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - before_era
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for millis in [0_u64, 951_782_400_000, 1_763_424_000_125, 4_102_444_799_999] {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            let text = attache::trace::rfc3339(time);
            assert_eq!(parse(&text), Some(time), "{text}");
        }
        for wrong in ["", "2026-11-18", "2026-13-18T00:00:00Z", "2026-11-18T00:00:xxZ", "2026-11-18T00:00:00"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
