//! Sums of whole numbers.

/// The sum of two numbers.
pub fn add(left: i64, right: i64) -> i64 {
    left + right
}

/// The sum of all numbers.
pub fn total(numbers: &[i64]) -> i64 {
    numbers.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(2, 3), 5);
    }
}
