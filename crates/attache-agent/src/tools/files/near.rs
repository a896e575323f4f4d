//! What is most like a text: for hints when something is not found.

use std::collections::HashMap;

/// How much of a text is compared. The rest hardly ever decides.
const COMPARED: usize = 200;

/// What others are compared with: its pairs of neighbouring characters.
pub(super) struct Near {
    pairs: HashMap<(char, char), usize>,
    count: usize,
}

impl Near {
    pub(super) fn new(text: &str) -> Self {
        let mut pairs = HashMap::new();
        for pair in pairs_of(text) {
            *pairs.entry(pair).or_default() += 1;
        }
        Near { count: pairs.values().sum(), pairs }
    }

    /// How like it another text is, from 0 to 1.
    pub(super) fn likeness(&self, text: &str) -> f64 {
        let mut used: HashMap<(char, char), usize> = HashMap::new();
        let (mut count, mut shared) = (0, 0);
        for pair in pairs_of(text) {
            count += 1;
            let Some(there) = self.pairs.get(&pair) else { continue };
            let used = used.entry(pair).or_default();
            if *used < *there {
                *used += 1;
                shared += 1;
            }
        }
        if self.count + count == 0 { 0.0 } else { 2.0 * shared as f64 / (self.count + count) as f64 }
    }
}

/// Blanks at the ends and capitals make no difference.
fn pairs_of(text: &str) -> impl Iterator<Item = (char, char)> {
    let chars = || text.trim().chars().take(COMPARED).flat_map(char::to_lowercase);
    // An end of its own, so that a text of one character has a pair.
    std::iter::once('\0').chain(chars()).zip(chars().chain(['\0']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_nearer_than_what_is_not() {
        let near = Near::new("main.rs");
        let order = ["main.rs", "Main.rs", "mian.rs", "main.py", "lib.rs", "zebra"].map(|name| near.likeness(name));
        assert!(order.is_sorted_by(|one, two| one >= two), "{order:?}");
        assert_eq!((order[0], order[1]), (1.0, 1.0));
        assert_eq!(Near::new("").likeness("abc"), 0.0);
        assert_eq!(Near::new("a").likeness("a"), 1.0);
    }
}
