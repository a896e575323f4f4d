//! How probes are run: how long they wait, and how they say what they want.

use std::time::Duration;

use super::task::Style;

/// How probes are run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// How prompts say what is to be done.
    pub style: Style,
    /// How long an answer may take that needs no model. What takes longer is taken not to come.
    pub patience: Duration,
    /// How long the answer to the first `initialize` may take, which is after the start.
    pub startup: Duration,
    /// How long a turn may take.
    pub turn: Duration,
    /// How long a probe may take.
    pub probe: Duration,
    /// The method by which to authenticate before sessions are opened.
    pub authenticate: Option<String>,
    /// The probes to run, by name; all if there are none.
    pub only: Vec<String>,
    /// How many bytes of an agent are read in a probe.
    pub most_read: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            style: Style::default(),
            patience: Duration::from_millis(1500),
            startup: Duration::from_secs(10),
            turn: Duration::from_secs(10),
            probe: Duration::from_secs(20),
            authenticate: None,
            only: Vec::new(),
            most_read: 256 << 20,
        }
    }
}

impl Options {
    /// The usual options, for prompts in this style.
    pub fn new(style: Style) -> Self {
        Options { style, ..Options::default() }
    }

    /// Changes something.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
