//! What a screen can show: colours as decoration, and whether there is a screen at all.

use std::io::IsTerminal;

/// Where stdout and stderr go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Stdout is a terminal.
    pub(crate) out: bool,
    /// Stderr is a terminal.
    pub(crate) err: bool,
    /// It understands more than text.
    pub(crate) moves: bool,
    /// Colours are wanted on stderr.
    pub(crate) colour: bool,
}

impl Screen {
    pub(crate) fn here() -> Self {
        let err = std::io::stderr().is_terminal();
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Screen { out: std::io::stdout().is_terminal(), err, moves: err && !dumb, colour: err && !unwanted && !dumb }
    }

    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Dim => "2",
            Paint::Red => "31",
            Paint::Green => "32",
            Paint::Yellow => "33",
            Paint::Bold => "1",
        };
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A decoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Dim,
    Red,
    Green,
    Yellow,
    Bold,
}
