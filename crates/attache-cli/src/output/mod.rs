//! What is printed of a run, by format.

mod lines;
mod style;
mod text;

use std::time::Duration;

pub(crate) use style::Screen;
use text::TextPrinter;

use crate::cli::Format;
use crate::event::{Event, Line, Result};
use crate::pen::Ink;
use crate::visible::visible;

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

    /// What is printed of an event. `gap` goes before text that begins a new message.
    pub(crate) fn event(&mut self, line: &Line, gap: &str) -> Vec<Ink> {
        match self {
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

    /// What is printed while nothing comes.
    pub(crate) fn idle(&mut self, idle: Duration) -> Vec<Ink> {
        match self {
            Printer::Text(printer) => printer.idle(idle),
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
