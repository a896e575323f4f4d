//! What is printed of a run, by format.

mod lines;
mod style;
mod text;

use std::time::Duration;

use lines::one_line;
pub(crate) use style::{Paint, Screen};
use text::TextPrinter;

use crate::cli::Format;
use crate::event::{Event, Line, Result};
use crate::pen::Ink;
use crate::visible::visible;

/// What is waited for while nothing comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The agent, which is being started.
    Agent,
    /// The agent, which logs in.
    Login,
    /// The session, which is being opened.
    Session,
    /// The agent, which has not taken the prompt yet.
    Prompt,
    /// The model.
    Model,
    /// A command that runs for the agent.
    Command(String),
    /// A tool call of the agent, by its title.
    Call(String),
}

/// How much of a command or a title is named while it is waited for.
const NAMED: usize = 40;

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |text: &str| {
            let line = one_line(text);
            match line.char_indices().nth(NAMED) {
                Some((end, _)) => format!("{}…", &line[..end]),
                None => line,
            }
        };
        match self {
            Waiting::Agent => f.write_str("starting agent"),
            Waiting::Login => f.write_str("logging in"),
            Waiting::Session => f.write_str("opening session"),
            Waiting::Prompt => f.write_str("sending prompt"),
            Waiting::Model => f.write_str("model is thinking"),
            Waiting::Command(command) => write!(f, "running `{}`", short(command)),
            Waiting::Call(title) => write!(f, "{} …", short(title)),
        }
    }
}

/// Turns events into what is printed. It prints nothing itself.
pub(crate) enum Printer {
    Text(Box<TextPrinter>),
    Json,
    Stream,
    /// The messages themselves are printed where they pass.
    Acp,
    /// To a terminal, or as data.
    Quiet {
        is_terminal: bool,
    },
}

impl Printer {
    pub(crate) fn new(format: Format, screen: Screen) -> Self {
        match format {
            Format::Text => Printer::Text(Box::new(TextPrinter::new(screen))),
            Format::Json => Printer::Json,
            Format::StreamJson => Printer::Stream,
            Format::Acp => Printer::Acp,
            Format::Quiet => Printer::Quiet { is_terminal: screen.out },
        }
    }

    /// A turn of the same agent was printed before: who it is need not be said to a person again.
    pub(crate) fn tell_agent_no_more(&mut self) {
        if let Printer::Text(printer) = self {
            printer.is_agent_told = true;
        }
    }

    /// What is printed of an event. `gap` goes before text that begins a new message.
    pub(crate) fn event(&mut self, line: &Line, gap: &str) -> Vec<Ink> {
        match self {
            // What was said before is no part of the answer.
            Printer::Text(_) | Printer::Json | Printer::Acp | Printer::Quiet { .. } if line.history => Vec::new(),
            Printer::Text(printer) => printer.event(&line.event, gap),
            Printer::Stream => vec![json_line(line)],
            // A script sees the result; a person who waits for it is told what needs attention.
            Printer::Json | Printer::Acp | Printer::Quiet { .. } => match &line.event {
                Event::Notice(notice) => vec![Ink::err(format!("{}\n", visible(&notice.text)))],
                _ => Vec::new(),
            },
        }
    }

    /// What is printed at the end.
    pub(crate) fn result(&mut self, line: &Line, result: &Result) -> Vec<Ink> {
        match self {
            Printer::Text(printer) => printer.result(result),
            Printer::Json => vec![json_line(result), failure(result)],
            Printer::Stream => vec![json_line(line), failure(result)],
            Printer::Acp => vec![failure(result)],
            Printer::Quiet { is_terminal } => {
                let end = if result.text.is_empty() || result.text.ends_with('\n') { "" } else { "\n" };
                let text = if *is_terminal { visible(&result.text) } else { result.text.as_str().into() };
                vec![Ink::out(format!("{text}{end}")), failure(result)]
            }
        }
    }

    /// Whether the text of the agent is printed at the end and nowhere else.
    pub(crate) fn prints_text_at_the_end(&self) -> bool {
        matches!(self, Printer::Quiet { .. })
    }

    /// What is printed while nothing comes.
    pub(crate) fn idle(&mut self, waiting: &Waiting, idle: Duration) -> Vec<Ink> {
        match self {
            Printer::Text(printer) => printer.idle(waiting, idle),
            _ => Vec::new(),
        }
    }

    /// What takes back what was printed while nothing came, before somebody else writes to the screen.
    pub(crate) fn clear(&mut self) -> Vec<Ink> {
        match self {
            Printer::Text(printer) => printer.clear(),
            _ => Vec::new(),
        }
    }
}

fn json_line(value: &impl serde::Serialize) -> Ink {
    Ink::out(crate::visible::json(value) + "\n")
}

/// The error of a run, for a person.
fn failure(result: &Result) -> Ink {
    Ink::err(result.error.as_ref().map(error_text).unwrap_or_default())
}

fn error_text(error: &crate::event::Error) -> String {
    let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    visible(&format!("error: {}{hint}\n", error.message)).into_owned()
}
