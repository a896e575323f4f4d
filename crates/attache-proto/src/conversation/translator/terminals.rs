//! Terminals of the agent, for dialects that cannot show them: their output becomes text.

use std::collections::VecDeque;

use super::{Emit, UpdateTranslator, is_memorable};
use crate::base64;
use crate::model::Patch;
use crate::model::terminal::{ExitStatus, TerminalId, TerminalOutputChunk, TerminalUpdate};

/// The output that is remembered of one terminal: its end.
pub(super) const REMEMBERED_OUTPUT: usize = 64 * 1024;

/// The terminals that are remembered; then those that have ended go first.
const REMEMBERED_TERMINALS: usize = 64;

/// The bytes that are remembered of a command: its beginning.
const REMEMBERED_COMMAND: usize = 4096;

/// The agent's terminals, oldest first.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    known: VecDeque<(TerminalId, Terminal)>,
    /// Whether it was noted that output cannot be shown as it comes.
    noted: bool,
}

#[derive(Debug, Default)]
struct Terminal {
    command: Option<String>,
    output: Vec<u8>,
    /// Whether the start of the output is gone.
    is_cut: bool,
    exit: Option<ExitStatus>,
}

impl Terminals {
    pub(super) fn knows(&self, id: &TerminalId) -> bool {
        self.find(id).is_some()
    }

    pub(super) fn is_running(&self, id: &TerminalId) -> bool {
        self.find(id).is_some_and(|terminal| terminal.exit.is_none())
    }

    /// The command, its output and its end, as Markdown.
    pub(super) fn text(&self, id: &TerminalId) -> String {
        self.find(id).map(Terminal::text).unwrap_or_default()
    }

    fn find(&self, id: &TerminalId) -> Option<&Terminal> {
        self.known.iter().find(|(known, _)| known == id).map(|(_, terminal)| terminal)
    }

    /// The terminal with this id, which may be new. `None` if it cannot be remembered.
    fn entry(&mut self, id: &TerminalId) -> Option<&mut Terminal> {
        if !is_memorable(id.as_str()) {
            return None;
        }
        let at = match self.known.iter().position(|(known, _)| known == id) {
            Some(at) => at,
            None => {
                if self.known.len() == REMEMBERED_TERMINALS {
                    let ended = self.known.iter().position(|(_, terminal)| terminal.exit.is_some());
                    self.known.remove(ended.unwrap_or(0));
                }
                self.known.push_back((id.clone(), Terminal::default()));
                self.known.len() - 1
            }
        };
        Some(&mut self.known[at].1)
    }
}

impl Terminal {
    fn push(&mut self, base64: &str) {
        // What is no base64 is no output.
        self.output.extend(base64::decode(base64).unwrap_or_default());
        // Cutting at twice the size moves every byte once at most.
        if self.output.len() > 2 * REMEMBERED_OUTPUT {
            self.output.drain(..self.output.len() - REMEMBERED_OUTPUT);
            self.is_cut = true;
        }
    }

    fn text(&self) -> String {
        let start = self.output.len().saturating_sub(REMEMBERED_OUTPUT);
        let output = printable(&String::from_utf8_lossy(&self.output[start..]));
        let mut lines = String::new();
        if let Some(command) = &self.command {
            lines.push_str(&format!("$ {command}\n"));
        }
        if self.is_cut || start > 0 {
            lines.push_str("…\n");
        }
        lines.push_str(output.trim_end());
        // The fence is longer than any in the output, so that the output cannot end it.
        let longest = lines.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let mut text = format!("{fence}console\n{}\n{fence}", lines.trim_end());
        match &self.exit {
            Some(ExitStatus { signal: Some(signal), .. }) => text.push_str(&format!("\nended by {signal}")),
            Some(ExitStatus { exit_code: Some(code), .. }) if *code != 0 => {
                text.push_str(&format!("\nexit code {code}"))
            }
            _ => {}
        }
        text
    }
}

impl UpdateTranslator {
    pub(super) fn say_terminal(&mut self, update: &TerminalUpdate, emit: Emit<'_>) {
        let Some(terminal) = self.terminals.entry(&update.terminal_id) else { return self.lose("terminal_update") };
        let was_running = terminal.exit.is_none();
        update.command.map(|command| beginning(command)).apply(&mut terminal.command);
        update.exit_status.clone().apply(&mut terminal.exit);
        match &update.output {
            Patch::Keep => {}
            Patch::Clear => {
                terminal.output.clear();
                terminal.is_cut = false;
            }
            Patch::Set(output) => {
                terminal.output.clear();
                terminal.is_cut = false;
                terminal.push(&output.data);
            }
        }
        if was_running && terminal.exit.is_some() {
            self.send_showing(&update.terminal_id, emit);
        }
    }

    pub(super) fn say_terminal_output(&mut self, chunk: &TerminalOutputChunk) {
        let Some(terminal) = self.terminals.entry(&chunk.terminal_id) else {
            return self.lose("terminal_output_chunk");
        };
        terminal.push(&chunk.data);
        if !std::mem::replace(&mut self.terminals.noted, true) {
            self.lose("terminal_output_chunk");
        }
    }
}

fn beginning(command: &str) -> String {
    let end = (0..=REMEMBERED_COMMAND.min(command.len())).rev().find(|at| command.is_char_boundary(*at)).unwrap_or(0);
    if end < command.len() { format!("{}…", &command[..end]) } else { command.to_owned() }
}

/// Output without the codes that only a terminal understands.
fn printable(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    let mut rest = output.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '\u{1b}' => match rest.next() {
                // A control sequence ends with a letter or one of a few signs.
                Some('[') => while rest.next().is_some_and(|char| !('\u{40}'..='\u{7e}').contains(&char)) {},
                // A command to the terminal ends with a bell or an escape and a backslash.
                Some(']') => {
                    while let Some(char) = rest.next() {
                        if char == '\u{7}' || (char == '\u{1b}' && rest.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => text.push('\n'),
            '\n' | '\t' => text.push(char),
            char if char.is_control() => {}
            char => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_shown_without_codes() {
        assert_eq!(printable("\u{1b}[1;31mred\u{1b}[0m\r\n\u{1b}]0;title\u{7}ok\u{8}"), "red\nok");
        assert_eq!(printable("50%\r100%"), "50%\n100%");
    }

    #[test]
    fn only_the_end_of_long_output_is_kept() {
        let mut terminal = Terminal::default();
        for _ in 0..100_000 {
            terminal.push("YWFhYmJi");
        }
        assert!(terminal.output.len() <= 2 * REMEMBERED_OUTPUT);
        assert!(terminal.text().starts_with("```console\n…\n"));
    }
}
