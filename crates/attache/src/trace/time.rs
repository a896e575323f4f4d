//! Times as people and programs write them.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time in UTC, to the millisecond, as RFC 3339 has it.
pub fn rfc3339(time: SystemTime) -> String {
    // A clock before 1970 is a clock that was never set.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    let second = since.as_secs() % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// The date of a day, counted from 1 January 1970.
///
/// Years are taken to begin in March, so that the leap day is their last, and come in eras of 400, which all have the
/// same number of days.
fn civil(day: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    let day = day + 719_468; // From 1 March of the year 0.
    let (era, day) = (day / ERA, day % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // From March.
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_794_735_000_125, "2026-11-15T09:30:00.125Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (253_402_300_799_000, "9999-12-31T23:59:59.000Z"),
        ];
        for (milliseconds, expected) in rows {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(milliseconds)), expected);
        }
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }
}
