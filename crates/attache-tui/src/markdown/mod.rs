//! Markdown as lines.

mod render;
mod split;
mod table;

use pulldown_cmark::Options;
use ratatui::text::{Line, Span};

use crate::highlight::Highlight;
use crate::theme::Theme;
use crate::wrap::{Break, Prefix, clean, wrap};

pub(crate) use render::render;
pub(crate) use split::{Part, PartKind, Splitter};

/// What is understood beyond the core of Markdown.
const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// A whole text as lines.
pub fn lines(text: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut stream = Stream::new(width, theme.clone());
    let mut lines = stream.push(text);
    lines.extend(stream.finish());
    lines
}

/// Markdown that comes in chunks, as lines for the normal scrollback of a terminal: a block at a time, code a line at a
/// time.
pub struct Stream {
    width: usize,
    theme: Theme,
    text: String,
    splitter: Splitter,
    highlight: Option<Highlight>,
    code_bytes: usize,
}

impl Stream {
    /// A text of which nothing is there yet.
    pub fn new(width: usize, theme: Theme) -> Self {
        Stream { width, theme, text: String::new(), splitter: Splitter::by_line(), highlight: None, code_bytes: 0 }
    }

    /// Takes the next chunk, and returns the lines of what is finished with it.
    pub fn push(&mut self, chunk: &str) -> Vec<Line<'static>> {
        self.text.push_str(chunk);
        let parts = self.splitter.advance(&self.text);
        let lines = parts.iter().flat_map(|part| self.lay_out(part)).collect();
        let finished = self.splitter.open_from();
        self.text.drain(..finished);
        self.splitter.forget(finished);
        lines
    }

    /// The lines of what is left, when nothing more comes. Chunks after that begin a new text.
    pub fn finish(&mut self) -> Vec<Line<'static>> {
        let part = self.splitter.open(&self.text);
        let lines = part.map(|part| self.lay_out(&part)).unwrap_or_default();
        self.text.clear();
        self.splitter = Splitter::by_line();
        lines
    }

    /// The lines of what is there so far, when nothing came for a while: what comes then begins anew. Code is left as it
    /// is, because its lines are there already and more of it is still code.
    pub fn pause(&mut self) -> Vec<Line<'static>> {
        match self.splitter.open(&self.text) {
            Some(Part { kind: PartKind::Code { .. }, .. }) | None => Vec::new(),
            Some(_) => self.finish(),
        }
    }

    fn lay_out(&mut self, part: &Part) -> Vec<Line<'static>> {
        let text = self.text[part.range.clone()].to_owned();
        if let PartKind::Code { language, index: 0 } = &part.kind {
            self.highlight = Highlight::start(language, &self.theme);
            self.code_bytes = 0;
        }
        self.code_bytes += text.len();
        if self.code_bytes > crate::highlight::MAX_BYTES {
            self.highlight = None;
        }
        let mut lines = Vec::new();
        if part.gap {
            lines.push(Line::default());
        }
        lines.extend(lay_out(part, &text, self.width, &self.theme, &mut self.highlight));
        lines
    }
}

/// A part as lines. For code, the highlighting goes on where the part before ended.
pub(crate) fn lay_out(
    part: &Part,
    text: &str,
    width: usize,
    theme: &Theme,
    highlight: &mut Option<Highlight>,
) -> Vec<Line<'static>> {
    match &part.kind {
        PartKind::Plain => plain(text, width, theme),
        PartKind::Markdown { number } => render(text, *number, width, theme),
        PartKind::Code { .. } => code(text, width, theme, vec![code_bar(theme)], highlight),
    }
}

/// Text as it is.
pub(crate) fn plain(text: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let text = clean(text.strip_suffix('\n').unwrap_or(text));
    let lines = text.split('\n');
    lines
        .flat_map(|line| wrap(&[Span::styled(line.to_owned(), theme.text)], width, Break::Words, &Prefix::default()))
        .collect()
}

/// What stands before lines of code.
pub(crate) fn code_bar(theme: &Theme) -> Span<'static> {
    Span::styled(theme.sign("│ ", "| "), theme.border)
}

/// Lines of code behind what stands before them.
pub(crate) fn code(
    text: &str,
    width: usize,
    theme: &Theme,
    before: Vec<Span<'static>>,
    highlight: &mut Option<Highlight>,
) -> Vec<Line<'static>> {
    let prefix = Prefix::same(before);
    let text = clean(text.strip_suffix('\n').unwrap_or(text));
    let lines = text.split('\n').flat_map(|line| {
        let spans = match highlight {
            Some(highlight) => highlight.line(line, theme),
            None => vec![Span::raw(line.to_owned())],
        };
        wrap(&spans, width, Break::Anywhere, &prefix)
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
