//! Sums of whole numbers.

/// The sum of two numbers.
pub fn add(left: i64, right: i64) -> i64 {
    5
}

/// The sum of all numbers.
pub fn total(numbers: &[i64]) -> i64 {
    numbers.iter().sum()
}
