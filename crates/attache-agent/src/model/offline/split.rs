//! Cutting a prompt into steps: lines, `;`, fenced blocks, and the lines after `create PATH:`.

use super::verb::Verb;
use super::words::{after_words, split_bare};

/// More steps than this are not done at once. A turn is short, and every answer of it goes through all of them.
pub(super) const MOST: usize = 100;

/// One step of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// What it says, in one line.
    pub(super) line: &'a str,
    /// The lines that belong to it.
    pub(super) block: Option<&'a str>,
}

/// Why a prompt has no steps.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Uncut {
    /// A fenced block that begins and does not end.
    Unclosed,
    /// More steps than [`MOST`].
    TooMany,
}

/// The steps of a prompt, in order.
pub(super) fn steps(prompt: &str) -> Result<Vec<Step<'_>>, Uncut> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut rest = prompt;
    while let Some((line, after)) = next_line(rest) {
        rest = after;
        let bare = line.trim();
        if bare.is_empty() {
            continue;
        }
        if let Some(fence) = fence(bare) {
            let (block, after) = until_fence(rest, fence).ok_or(Uncut::Unclosed)?;
            rest = after;
            match steps.last_mut() {
                Some(step) if step.block.is_none() => step.block = Some(block),
                _ => steps.push(Step { line: "", block: Some(block) }),
            }
        } else {
            cut_line(bare, &mut steps)?;
            if takes_lines(steps.last()) && next_text(rest).is_some_and(|next| fence_of(next).is_none()) {
                if let Some(step) = steps.last_mut() {
                    step.block = Some(rest);
                }
                break;
            }
        }
        if steps.len() > MOST {
            return Err(Uncut::TooMany);
        }
    }
    Ok(steps)
}

/// A step without what people put before it: the bullet of a list, a `please`.
pub(super) fn bare_step(line: &str) -> &str {
    let mut line = line.trim();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if let Some(rest) = line[digits..].strip_prefix(['.', ')']).filter(|rest| digits > 0 && rest.starts_with(' ')) {
        line = rest;
    }
    let polite = ["please", "please,", "now", "then", "and", "-", "*", "•", "can you", "could you", "would you"];
    after_words(line, &polite)
}

/// Cuts a line at every `;` behind which something new begins.
fn cut_line<'a>(line: &'a str, steps: &mut Vec<Step<'a>>) -> Result<(), Uncut> {
    // The whole line is for the shell, which has its own meaning for `;`.
    if bare_step(line).starts_with('$') {
        steps.push(Step { line, block: None });
        return Ok(());
    }
    // Where the step begins, and what with.
    let mut begun: Option<(usize, Option<Verb>)> = None;
    let mut end = 0;
    for (at, piece) in split_bare(line, |character| character == ';') {
        let verb = Verb::of(piece);
        match begun {
            Some((_, Some(Verb::Run))) if Verb::is_for_the_shell(piece) => {}
            Some((_, Some(before))) if verb.is_none() && before.takes_text() => {}
            _ => {
                if let Some((begin, _)) = begun {
                    push(&line[begin..end], steps)?;
                }
                begun = Some((at, verb));
            }
        }
        end = at + piece.len();
    }
    push(&line[begun.map_or(0, |(begin, _)| begin)..end], steps)
}

fn push<'a>(line: &'a str, steps: &mut Vec<Step<'a>>) -> Result<(), Uncut> {
    if !line.trim().is_empty() {
        steps.push(Step { line: line.trim(), block: None });
    }
    if steps.len() > MOST { Err(Uncut::TooMany) } else { Ok(()) }
}

/// Whether the lines that follow belong to this step: `create PATH:`.
fn takes_lines(step: Option<&Step<'_>>) -> bool {
    step.is_some_and(|step| step.line.ends_with(':') && Verb::of(step.line).is_some_and(Verb::takes_lines))
}

fn next_line(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() { None } else { Some(text.split_once('\n').unwrap_or((text, ""))) }
}

/// The first line that says something.
fn next_text(text: &str) -> Option<&str> {
    text.lines().find(|line| !line.trim().is_empty())
}

fn fence_of(line: &str) -> Option<usize> {
    fence(line.trim())
}

/// How many backticks a fence has, if the line begins with one.
fn fence(line: &str) -> Option<usize> {
    let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
    // A line that has backticks again is a word in a long quotation, not a fence.
    (ticks >= 3 && !line[ticks..].contains('`')).then_some(ticks)
}

/// What comes before the closing fence, and after it.
fn until_fence(text: &str, ticks: usize) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if bare.len() >= ticks && bare.bytes().all(|byte| byte == b'`') {
            return Some((&text[..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(prompt: &str) -> Vec<&str> {
        steps(prompt).unwrap().iter().map(|step| step.line).collect()
    }

    #[test]
    fn lines_and_semicolons_make_steps_where_a_command_follows() {
        assert_eq!(lines("read a\n\nread b"), ["read a", "read b"]);
        assert_eq!(lines("read a; list; say x"), ["read a", "list", "say x"]);
        assert_eq!(lines("run sleep 1; echo done; read a"), ["run sleep 1; echo done", "read a"]);
        assert_eq!(lines("$ cd x; ls"), ["$ cd x; ls"]);
        assert_eq!(lines("run cd x; ls; list; ls"), ["run cd x; ls", "list", "ls"]);
        assert_eq!(lines("say 'a; read b'; list"), ["say 'a; read b'", "list"]);
        assert_eq!(lines("read a; frobnicate"), ["read a", "frobnicate"]);
        assert_eq!(lines(" ; ;; "), Vec::<&str>::new());
    }

    #[test]
    fn blocks_belong_to_the_step_before_them() {
        let prompt = "create a.txt with\n```text\none\n  two\n```\nread a.txt";
        let want =
            [Step { line: "create a.txt with", block: Some("one\n  two\n") }, Step { line: "read a.txt", block: None }];
        assert_eq!(steps(prompt).unwrap(), want);
        assert_eq!(
            steps("create a:\none\n\ntwo\n").unwrap(),
            [Step { line: "create a:", block: Some("one\n\ntwo\n") }]
        );
        assert_eq!(steps("create a:\n\n```\none\n```").unwrap(), [Step { line: "create a:", block: Some("one\n") }]);
        assert_eq!(steps("create a:\n````\n```\n````").unwrap(), [Step { line: "create a:", block: Some("```\n") }]);
        assert_eq!(steps("create a\n```\none"), Err(Uncut::Unclosed));
    }

    #[test]
    fn no_prompt_has_more_steps_than_are_done() {
        assert_eq!(steps(&"list\n".repeat(MOST)).map(|steps| steps.len()), Ok(MOST));
        assert_eq!(steps(&"list\n".repeat(MOST + 1)), Err(Uncut::TooMany));
        assert_eq!(steps(&"list;".repeat(MOST + 1)), Err(Uncut::TooMany));
    }

    #[test]
    fn what_is_put_before_a_step_is_taken_off() {
        for line in ["read a", "- read a", "1. read a", "Please read a", "and then please, read a", "Could you read a"]
        {
            assert_eq!(bare_step(line), "read a", "{line}");
        }
    }
}
