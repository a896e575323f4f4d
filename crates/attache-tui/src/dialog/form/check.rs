//! Whether a value is as its field asks for.

use attache_proto::model::form::{StringFormat, StringProperty};
use regex::RegexBuilder;

/// The most bytes of a compiled pattern, and of one as it is written: what is read of it takes a thousand times as much.
const PATTERN_SIZE: usize = 1024 * 1024;
const LONGEST_PATTERN: usize = 4096;

pub(super) fn text(text: &str, property: &StringProperty) -> Result<(), String> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    match (property.min_length, property.max_length) {
        (Some(least), _) if length < least => return Err(format!("at least {least} characters, not {length}")),
        (_, Some(most)) if length > most => return Err(format!("at most {most} characters, not {length}")),
        _ => {}
    }
    if let Some(pattern) = property.pattern.as_ref().filter(|pattern| pattern.len() <= LONGEST_PATTERN) {
        // It is the agent's, and matched in linear time. One that cannot be read that way, or is too large, is for the
        // agent to check.
        let regex = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE).build();
        if let Ok(regex) = regex
            && !regex.is_match(text)
        {
            return Err(format!("this has to match {}", crate::text::shown(pattern)));
        }
    }
    let (is_right, example) = match &property.format {
        Some(StringFormat::Email) => (is_email(text), "an address such as name@example.com"),
        Some(StringFormat::Uri) => (url::Url::parse(text).is_ok(), "an address such as https://example.com"),
        Some(StringFormat::Date) => (is_date(text), "a date such as 2026-01-31"),
        Some(StringFormat::DateTime) => (is_date_time(text), "a date and time such as 2026-01-31T12:00:00Z"),
        _ => (true, ""),
    };
    if is_right { Ok(()) } else { Err(format!("this has to be {example}")) }
}

pub(super) fn number(text: &str, minimum: Option<f64>, maximum: Option<f64>) -> Result<f64, String> {
    let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or("this has to be a number")?;
    match (minimum, maximum) {
        (Some(least), _) if number < least => Err(format!("at least {least}")),
        (_, Some(most)) if number > most => Err(format!("at most {most}")),
        _ => Ok(number),
    }
}

pub(super) fn integer(text: &str, minimum: Option<i64>, maximum: Option<i64>) -> Result<i64, String> {
    let number: i64 = text.parse().map_err(|_| "this has to be a whole number")?;
    match (minimum, maximum) {
        (Some(least), _) if number < least => Err(format!("at least {least}")),
        (_, Some(most)) if number > most => Err(format!("at most {most}")),
        _ => Ok(number),
    }
}

fn is_email(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c == '@');
    text.split_once('@').is_some_and(|(name, host)| is_part(name) && is_part(host))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date and a time as RFC 3339 has them: with an offset, and a fraction if need be.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let is_clock = |text: &str, parts: usize| {
        let limits = [23, 59, 60];
        let numbers: Vec<&str> = text.split(':').collect();
        numbers.len() == parts
            && numbers.iter().zip(limits).all(|(number, most)| digits(number, 2).is_some_and(|number| number <= most))
    };
    let (clock, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, None),
        None => match time.rfind(['+', '-']) {
            Some(at) => (&time[..at], Some(&time[at + 1..])),
            None => return false,
        },
    };
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let is_fraction = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date)
        && is_clock(clock, 3)
        && fraction.is_none_or(is_fraction)
        && offset.is_none_or(|offset| is_clock(offset, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_checked() {
        for (format, right, wrong) in [
            (StringFormat::Email, "me@example.com", &["me", "@x", "a@b@c", "a b@c"][..]),
            (StringFormat::Uri, "mailto:me@example.com", &["example.com", "", "http://"]),
            (StringFormat::Date, "2024-02-29", &["2023-02-29", "2026-13-01", "2026-1-1", "2026-04-31", "+026-01-01"]),
            (
                StringFormat::DateTime,
                "2026-01-31T23:59:60.5+02:00",
                &[
                    "2026-01-31",
                    "2026-01-31T24:00:00Z",
                    "2026-01-31T12:00:00",
                    "2026-01-31T12:00Z",
                    "2026-01-31T12:00:00.Z",
                ],
            ),
        ] {
            let property = StringProperty::new().format(format);
            assert_eq!(text(right, &property), Ok(()), "{right}");
            for wrong in wrong {
                assert!(text(wrong, &property).is_err(), "{wrong}");
            }
        }
    }

    #[test]
    fn patterns_and_lengths_are_checked() {
        let property = |pattern: &str| StringProperty::new().pattern(pattern.to_owned());
        assert!(text("abc", &property("^[a-z]+$")).is_ok());
        assert!(text("ABC", &property("^[a-z]+$")).is_err());
        for pattern in ["(", "^(?!abc)", r"^(?=(a))(?:\1{0,0}){2000000000}$"] {
            assert!(text("abc", &property(pattern)).is_ok(), "what cannot be read is for the agent to check");
        }
        // Takes for ever where nothing limits it.
        assert!(text(&format!("{}!", "a".repeat(64)), &property("^(a+)+$")).is_err());
        let length = StringProperty::new().min_length(2u32).max_length(3u32);
        assert_eq!(["é", "éé", "éééé"].map(|value| text(value, &length).is_ok()), [false, true, false]);
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!(number("1.5", Some(1.0), Some(2.0)), Ok(1.5));
        assert_eq!(integer("-3", Some(-3), None), Ok(-3));
        for wrong in ["", "x", "NaN", "inf", "1e999"] {
            assert!(number(wrong, None, None).is_err(), "{wrong}");
        }
        assert!(number("0.5", Some(1.0), None).is_err() && number("3", None, Some(2.0)).is_err());
        assert!(integer("1.5", None, None).is_err() && integer("9", None, Some(8)).is_err());
    }
}
