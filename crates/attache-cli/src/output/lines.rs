//! Pieces of what a person reads of a run: lines, the end of an output, a change in short.

use super::style::{Paint, Screen};
use crate::event::Change;
use crate::visible::visible;

/// How many lines of a change or of a command's output are shown.
const SHOWN_LINES: usize = 12;

/// How many characters of a line are shown, except in questions.
const LONGEST_LINE: usize = 200;

/// Text of others in one line, harmless.
pub(super) fn one_line(text: &str) -> String {
    cut(&visible(text.trim()).replace(['\n', '\t'], " "))
}

/// A line that is not longer than anybody reads.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.trim_end().to_owned(),
    }
}

pub(super) fn last_lines(text: &str, screen: Screen) -> String {
    let text = visible(text.trim_end());
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(SHOWN_LINES);
    let mut shown = String::new();
    if left_out > 0 {
        shown += &format!("    {}\n", screen.paint(Paint::Dim, &format!("… {left_out} lines before")));
    }
    for line in &lines[left_out..] {
        shown += &format!("    {}\n", screen.paint(Paint::Dim, &cut(line)));
    }
    shown
}

pub(super) fn show_change(change: &Change, screen: Screen) -> String {
    let is_changed = |line: &&str| {
        (line.starts_with('+') && !line.starts_with("+++ ")) || (line.starts_with('-') && !line.starts_with("--- "))
    };
    let lines: Vec<&str> = change.patch.iter().flat_map(|patch| patch.lines()).filter(is_changed).collect();
    let added = lines.iter().filter(|line| line.starts_with('+')).count();
    let paths = one_line(&change.paths.join(" -> "));
    let mut text = format!("  {paths} {}\n", screen.paint(Paint::Dim, &format!("+{added} -{}", lines.len() - added)));
    for line in lines.iter().take(SHOWN_LINES) {
        let colour = if line.starts_with('+') { Paint::Green } else { Paint::Red };
        text += &format!("    {}\n", screen.paint(colour, &cut(&visible(line))));
    }
    if lines.len() > SHOWN_LINES {
        text += &format!("    {}\n", screen.paint(Paint::Dim, &format!("… {} more", lines.len() - SHOWN_LINES)));
    }
    text
}
