//! What a prompt of the benchmark asks of an agent. The same words for all agents, in all languages.

/// A prompt, understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// `w3 N SIZE`: so many chunks of so many bytes; with `w3p` each is flushed before the next.
    Chunks { count: usize, size: usize, is_flushed: bool },
    /// `w3b N SIZE`: so many updates of a tool call, each with one text.
    ToolUpdates { count: usize, size: usize },
    /// `w6b M ROUNDS`: reads of files, so many at once.
    Reads { outstanding: usize, rounds: usize },
    /// `size`: answer with the length of the embedded resource.
    Size,
}

impl Script {
    /// Reads a prompt.
    pub fn parse(text: &str) -> Option<Script> {
        let mut words = text.split_whitespace();
        let word = words.next()?;
        if word == "size" {
            return Some(Script::Size);
        }
        let first = words.next()?.parse().ok()?;
        let second = words.next()?.parse().ok()?;
        match word {
            "w3" => Some(Script::Chunks { count: first, size: second, is_flushed: false }),
            "w3p" => Some(Script::Chunks { count: first, size: second, is_flushed: true }),
            "w3b" => Some(Script::ToolUpdates { count: first, size: second }),
            "w6b" => Some(Script::Reads { outstanding: first, rounds: second }),
            _ => None,
        }
    }
}

/// The text that is sent: the letter x, with a space after every nine, so that it looks like words.
pub fn text(size: usize) -> String {
    (0..size).map(|at| if at % 10 == 9 { ' ' } else { 'x' }).collect()
}

/// The file that agents read.
pub const PATH: &str = "/bench/file.txt";

/// The tool call that agents update.
pub const TOOL: &str = "Work";
