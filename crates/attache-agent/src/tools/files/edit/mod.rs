//! Replacing a piece of a text that a model has copied, more or less exactly.
//!
//! Models get white space wrong. So what is not there exactly is looked for again, each time less strictly, and the model
//! is told. However it is found, it has to be in one place only.

mod indent;
mod ladder;
mod lines;
mod patch;

use std::borrow::Cow;

use super::near::Near;
use crate::workspace::{TEXT_LIMIT, has_wide_ends, shortened, widen};
use ladder::{Rung, Spot};

pub(super) use patch::replacements;

/// How many places are told where there are too many.
const MOST_TOLD: usize = 10;

/// How many lines are looked at for a hint.
const MOST_COMPARED: usize = 100_000;

/// How many lines a hint shows.
const MOST_SHOWN: usize = 8;

/// How long a file is that is shown as a whole where an edit of it failed, in bytes.
const SHORT_FILE: usize = 2_000;

/// What is to be put in the place of what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Replacement {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) replace_all: bool,
}

/// A text after a replacement, and what the model is told of it.
#[derive(Debug, PartialEq)]
pub(super) struct Edited {
    pub(super) content: String,
    pub(super) note: String,
}

/// Makes all replacements, one after the other, or none of them. The error is a sentence for the model.
pub(super) fn edit_all(content: &str, replacements: &[Replacement]) -> Result<Edited, String> {
    let mut edited = Edited { content: content.to_owned(), note: String::new() };
    let mut notes = Vec::new();
    for (number, replacement) in replacements.iter().enumerate() {
        let Replacement { old, new, replace_all } = replacement;
        match edit(&edited.content, old, new, *replace_all) {
            Ok(next) => {
                edited.content = next.content;
                notes.push(next.note);
            }
            Err(error) if replacements.len() == 1 => return Err(error),
            Err(error) => {
                return Err(format!(
                    "edit {} of {} cannot be made, so none was: {error}",
                    number + 1,
                    replacements.len()
                ));
            }
        }
    }
    edited.note = notes.join("; ");
    Ok(edited)
}

/// Replaces `old` in `content`. The error is a sentence for the model.
pub(super) fn edit(content: &str, old: &str, new: &str, replace_all: bool) -> Result<Edited, String> {
    if old.is_empty() {
        return Err("`old_text` is empty\nhint: use write_file to write a whole file".into());
    }
    if old == new {
        return Err("`old_text` and `new_text` are the same, so nothing would change\n\
                    hint: `new_text` is what the lines should become"
            .into());
    }
    if replace_all {
        return replace_everywhere(content, old, new);
    }
    for rung in Rung::ALL {
        let spots = rung.find(content, old, new);
        match spots.as_slice() {
            [] => {}
            [spot] => return edit_one(content, spot, rung),
            _ => return Err(ambiguous(content, &spots, rung)),
        }
    }
    // Models copy the numbers that lines were shown with.
    match (without_numbers(old), without_numbers(new)) {
        (Some(bare_old), bare_new) => edit(content, &bare_old, bare_new.as_deref().unwrap_or(new), false)
            .map_err(|_| not_found(content, old, false)),
        _ => Err(not_found(content, old, false)),
    }
}

/// A text without the numbers that all of its lines begin with. `None` if not all do.
fn without_numbers(text: &str) -> Option<String> {
    let bare = |line: &str| {
        let rest = line.trim_start_matches([' ']).trim_start_matches(|c: char| c.is_ascii_digit());
        let has_number = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        has_number.then(|| rest.strip_prefix('\t').or_else(|| rest.strip_prefix(": ")).map(str::to_owned))?
    };
    let lines: Option<Vec<String>> = text.split_inclusive('\n').map(bare).collect();
    lines.filter(|lines| !lines.is_empty()).map(|lines| lines.concat())
}

fn edit_one(content: &str, spot: &Spot<'_>, rung: Rung) -> Result<Edited, String> {
    let (before, after) = (&content[..spot.range.start], &content[spot.range.end..]);
    let result = format!("{before}{}{after}", fitting(content, &spot.new));
    if result == content {
        return Err("the file has the new text already: nothing would change".into());
    }
    let first = line_at(content, spot.range.start);
    let last = first + content[spot.range.clone()].trim_end_matches('\n').matches('\n').count();
    let places = if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
    let note = match rung.difference() {
        None => format!("replaced {places}"),
        Some(difference) => format!("replaced {places}. The old text is not there exactly: {difference}"),
    };
    Ok(Edited { content: result, note })
}

/// Replaces every place. Only the line ends may differ, which a reader never sees, and only where all of them are alike.
fn replace_everywhere(content: &str, old: &str, new: &str) -> Result<Edited, String> {
    let narrow = |text: &str| text.replace("\r\n", "\n");
    let is_narrowed = !content.contains(old) && has_wide_ends(content) && widen(content) == content;
    let (text, wanted, new) = if is_narrowed {
        (narrow(content), narrow(old), narrow(new))
    } else {
        (content.to_owned(), old.to_owned(), fitting(content, new).into_owned())
    };
    let count = text.matches(&wanted).count();
    if count == 0 {
        return Err(not_found(content, old, true));
    }
    if text.len().saturating_add(count.saturating_mul(new.len())) > TEXT_LIMIT * 2 {
        return Err("the file would become too large".into());
    }
    let places = if count == 1 { "place" } else { "places" };
    let lines = lines_of(&text, text.match_indices(&wanted).map(|(at, _)| at));
    let replaced = text.replace(&wanted, &new);
    let result = if is_narrowed { widen(&replaced) } else { replaced };
    if result == content {
        return Err("the file has the new text already: nothing would change".into());
    }
    Ok(Edited { content: result, note: format!("replaced {count} {places}, at {lines}") })
}

/// A new text with the line ends of the file. Who writes `\r` means it.
fn fitting<'a>(content: &str, new: &'a str) -> Cow<'a, str> {
    if has_wide_ends(content) && !new.contains("\r\n") { widen(new).into() } else { new.into() }
}

fn ambiguous(content: &str, spots: &[Spot<'_>], rung: Rung) -> String {
    let lines = lines_of(content, spots.iter().map(|spot| spot.range.start));
    match rung.difference() {
        None => format!(
            "the old text is there more than once, at {lines}\n\
             hint: give more of the lines around it, or set `replace_all`"
        ),
        Some(difference) => format!(
            "the old text is not there exactly ({difference}), but in more than one place, at {lines}\n\
             hint: copy it exactly, with more of the lines around it"
        ),
    }
}

fn lines_of(content: &str, places: impl Iterator<Item = usize>) -> String {
    let mut numbers: Vec<String> =
        places.take(MOST_TOLD + 1).map(|offset| line_at(content, offset).to_string()).collect();
    let more = if numbers.len() > MOST_TOLD { " and more" } else { "" };
    numbers.truncate(MOST_TOLD);
    format!("lines {}{more}", numbers.join(", "))
}

fn line_at(content: &str, offset: usize) -> usize {
    1 + content.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
}

/// Says so, with the lines that are most like what was looked for.
fn not_found(content: &str, old: &str, replace_all: bool) -> String {
    let exactly = if replace_all { " exactly, as `replace_all` needs it" } else { "" };
    let missing = format!("the old text is not there{exactly}");
    if !content.is_empty() && content.len() <= SHORT_FILE {
        return format!("{missing}. This is the file:\n{content}\nhint: copy the old text from it as it is");
    }
    let hint = "hint: copy the text from the file as it is";
    let Some((offset, wanted)) = old.lines().enumerate().max_by_key(|(_, line)| line.trim().len()) else {
        return format!("{missing}\n{hint}");
    };
    let near = Near::new(wanted);
    let best = content
        .lines()
        .take(MOST_COMPARED)
        .enumerate()
        .map(|(index, line)| (near.likeness(line), index))
        .filter(|(likeness, _)| *likeness > 0.5)
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    let Some((_, index)) = best else { return format!("{missing}\n{hint}") };
    let count = old.lines().count().min(MOST_SHOWN);
    // The line that is shown for sure is the one that was found.
    let first = index - offset.min(index).min(count - 1);
    let shown: Vec<String> = content
        .lines()
        .enumerate()
        .skip(first)
        .take(count)
        .map(|(index, line)| format!("{}: {}", index + 1, shortened(line, 200)))
        .collect();
    format!("{missing}. These lines are the most like it:\n{}\n{hint}", shown.join("\n"))
}

#[cfg(test)]
mod tests;
