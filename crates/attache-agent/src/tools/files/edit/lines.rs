//! A text as lines, and sequences found in sequences.

use std::collections::HashMap;

/// A line of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Where it begins.
    pub(super) start: usize,
    /// What is in it, without its end.
    pub(super) text: &'a str,
    /// Where the next one begins.
    pub(super) end: usize,
}

pub(super) fn lines(content: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    content
        .split_inclusive('\n')
        .map(|whole| {
            let text = whole.strip_suffix('\n').unwrap_or(whole);
            let line = Line { start, text: text.strip_suffix('\r').unwrap_or(text), end: start + whole.len() };
            start = line.end;
            line
        })
        .collect()
}

/// Where `needle` is in `hay`, also where it overlaps itself, but no more than `most` times. Takes time in proportion to
/// both, whatever they are: these texts come from models and files.
pub(super) fn find_all(hay: &[&str], needle: &[&str], most: usize) -> Vec<usize> {
    let mut numbers = HashMap::new();
    let needle: Vec<usize> = needle
        .iter()
        .map(|word| {
            let next = numbers.len();
            *numbers.entry(*word).or_insert(next)
        })
        .collect();
    if needle.is_empty() || needle.len() > hay.len() {
        return Vec::new();
    }
    let borders = borders(&needle);
    let mut found = Vec::new();
    let mut matched = 0;
    for (index, word) in hay.iter().enumerate() {
        let number = numbers.get(word).copied();
        while matched > 0 && (matched == needle.len() || Some(needle[matched]) != number) {
            matched = borders[matched - 1];
        }
        if Some(needle[matched]) == number {
            matched += 1;
        }
        if matched == needle.len() {
            found.push(index + 1 - matched);
            if found.len() == most {
                break;
            }
        }
    }
    found
}

/// For each beginning, how long the longest beginning is that it also ends with (Knuth, Morris and Pratt).
fn borders(needle: &[usize]) -> Vec<usize> {
    let mut borders = vec![0; needle.len()];
    let mut length = 0;
    for index in 1..needle.len() {
        while length > 0 && needle[length] != needle[index] {
            length = borders[length - 1];
        }
        if needle[length] == needle[index] {
            length += 1;
        }
        borders[index] = length;
    }
    borders
}

#[cfg(test)]
mod tests {
    use attache_testkit::Dice;

    use super::*;

    #[test]
    fn sequences_are_found_where_a_plain_search_finds_them() {
        for seed in 0..500 {
            let mut dice = Dice::new(seed);
            let mut words =
                |most: usize| -> Vec<&str> { (0..dice.below(most)).map(|_| dice.pick(&["a", "b"])).collect() };
            let (hay, needle) = (words(30), words(5));
            let plain: Vec<usize> = match needle.len() {
                0 => Vec::new(),
                length => (0..hay.len()).filter(|at| hay.get(*at..*at + length) == Some(needle.as_slice())).collect(),
            };
            assert_eq!(find_all(&hay, &needle, 100), plain, "seed {seed}");
            assert_eq!(find_all(&hay, &needle, 2), plain[..plain.len().min(2)], "seed {seed}");
        }
    }
}
