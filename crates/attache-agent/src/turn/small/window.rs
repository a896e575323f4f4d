//! The part of a long file that a task is about.

use std::collections::HashMap;
use std::ops::Range;

use crate::workspace::blocking;

/// How many lines such a part has.
const LINES: usize = 30;

/// How many bytes of text are looked at.
const MOST_BYTES: usize = 4 << 20;

/// The words of a text by which something can be found: names, numbers, and words that are not too short.
pub(super) fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words = words.filter(|word| word.len() > 2 || word.starts_with(|c: char| c.is_ascii_digit()));
    let mut all: Vec<String> = words.map(stem).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A word without what grammar adds to it, so that `removes` and `remove` are one.
fn stem(word: &str) -> String {
    let mut word = word.to_lowercase();
    for ending in ["ing", "ies", "ed", "es", "s", "e", "y"] {
        if word.is_ascii() && word.len() > ending.len() + 3 && word.ends_with(ending) {
            word.truncate(word.len() - ending.len());
            break;
        }
    }
    word
}

/// How many words of a task are looked for.
const MOST_WORDS: usize = 200;

/// How much each of some texts has to do with these words. A word that is in few of them says more.
pub(super) fn weigh<'a>(texts: impl IntoIterator<Item = &'a str>, wanted: &[String]) -> Vec<f64> {
    let places: HashMap<&str, usize> =
        wanted.iter().take(MOST_WORDS).enumerate().map(|(at, word)| (word.as_str(), at)).collect();
    let mut counts = vec![0_u32; wanted.len()];
    let found = texts.into_iter().map(|text| {
        let there: Vec<usize> = words(text).iter().filter_map(|word| places.get(word.as_str()).copied()).collect();
        for word in &there {
            counts[*word] += 1;
        }
        there
    });
    let found: Vec<Vec<usize>> = found.collect();
    let worth = |word: &usize| ((1 + found.len()) as f64 / f64::from(counts[*word])).ln();
    found.iter().map(|words| words.iter().map(worth).sum()).collect()
}

/// [`part`] without keeping the runtime waiting.
pub(super) async fn part_off_thread(text: &str, task: &str) -> Option<Range<usize>> {
    let (text, task) = (text.to_owned(), task.to_owned());
    blocking(move || part(&text, &task)).await.ok().flatten()
}

/// The lines of a text, counted from 0, that have the most to do with a task. `None` if none has anything.
fn part(text: &str, task: &str) -> Option<Range<usize>> {
    if text.len() > MOST_BYTES {
        return None;
    }
    let weights = weigh(text.lines(), &words(task));
    let best = |one: &usize, two: &usize| weights[*one].total_cmp(&weights[*two]).then(two.cmp(one));
    let line = (0..weights.len()).max_by(best).filter(|line| weights[*line] > 0.0)?;
    let start = line.saturating_sub(LINES / 2);
    Some(start..(start + LINES).min(weights.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_around_the_line_with_the_rarest_words() {
        let mut lines: Vec<String> =
            (1000..2000).map(|number| format!("    {number}: \"pump {} is open\",", number % 7)).collect();
        lines[600] = "    def removes_entry(self):".into();
        let text = lines.join("\n");
        for (task, line) in [("message 1742 should say \"pump 17 is frozen\"", 742), ("What removes_entry does", 600)] {
            let part = part(&text, task).expect("something fits");
            assert!(part.contains(&line) && part.len() == 30, "{task}: {part:?}");
        }
        assert_eq!(part(&text, "nothing of that"), None);
        assert_eq!(part("", "a word"), None);
        assert_eq!(part("one word", "a word"), Some(0..1));
    }

    #[test]
    fn grammar_makes_no_other_word() {
        assert_eq!(words("removes entries, removing Entry; a 5 caches"), ["5", "cach", "entr", "remov"]);
        assert_eq!(words("über Straße"), ["straße", "über"]);
    }
}
