//! Times, money and numbers as people read them.

use std::time::Duration;

use crate::text::shown;

/// A time as people read it: `4 s`, `2 min 5 s`, `1 h 3 min`.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// An amount of money: cents are enough, but for what is less.
pub fn cost(amount: f64, currency: &str) -> String {
    let mut amount = if amount.abs() < 0.1 { format!("{amount:.4}") } else { format!("{amount:.2}") };
    while amount.ends_with("00") && amount.len() > amount.find('.').map_or(0, |point| point + 3) {
        amount.truncate(amount.len() - 2);
    }
    match currency {
        "USD" => format!("${amount}"),
        other => format!("{amount} {}", shown(other)),
    }
}

/// A number as people read it: `950`, `12.3k`, `1.2M`.
pub fn thousands(number: u64) -> String {
    let tenths = |unit: u64, sign: &str| {
        let tenths = number / (unit / 10);
        match tenths % 10 {
            0 => format!("{}{sign}", tenths / 10),
            rest => format!("{}.{rest}{sign}", tenths / 10),
        }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        1_000_000..1_000_000_000 => tenths(1_000_000, "M"),
        _ => tenths(1_000_000_000, "G"),
    }
}

pub(super) fn number(number: usize) -> String {
    thousands(u64::try_from(number).unwrap_or(u64::MAX))
}
