//! Blocks of Markdown as lines.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::table::Table;
use super::{OPTIONS, code, code_bar};
use crate::highlight::{self, Highlight};
use crate::theme::Theme;
use crate::wrap::{Break, Prefix, clean, spans_width, wrap};

/// How deep quotes and lists are shown as such.
const MAX_DEPTH: usize = 8;

/// Blocks of Markdown as lines. A number is that of the first item, if this goes on with a list that has begun before.
pub(crate) fn render(text: &str, number: Option<u64>, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut renderer = Renderer { number, ..Renderer::new(width.max(1), theme) };
    let parser = Parser::new_ext(text, OPTIONS);
    let mut definitions: Vec<_> =
        parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone()).collect();
    definitions.sort_by_key(|range| range.start);
    for event in parser {
        renderer.handle(event);
    }
    renderer.flush();
    // Definitions of links produce nothing, and their links may be in another part: so they are shown.
    for range in definitions {
        let definition = text.get(range).unwrap_or_default();
        renderer.spans.push(Span::styled(clean(definition).replace('\n', " "), theme.dim));
        renderer.flush();
    }
    renderer.lines
}

/// A quote, or an item of a list.
struct Level {
    /// What stands before its first line, until that is written.
    first: Option<Vec<Span<'static>>>,
    next: Vec<Span<'static>>,
}

struct Renderer<'a> {
    theme: &'a Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    /// The text of the block that is being read.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    levels: Vec<Level>,
    /// The next number of each list that is open; `None` for one without numbers.
    lists: Vec<Option<u64>>,
    /// The number that the first list begins with, instead of its own.
    number: Option<u64>,
    /// Whether an empty line stands before the next block.
    gap: bool,
    /// The address of the link that is open, and where its text begins.
    links: Vec<(String, usize)>,
    code: Option<(String, String)>,
    table: Option<Table>,
}

impl<'a> Renderer<'a> {
    fn new(width: usize, theme: &'a Theme) -> Self {
        Renderer {
            theme,
            width,
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![theme.text],
            levels: Vec::new(),
            lists: Vec::new(),
            number: None,
            gap: false,
            links: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, change: impl FnOnce(Style) -> Style) {
        self.styles.push(change(self.style()));
    }

    fn push_text(&mut self, text: &str, style: Style) {
        let text = clean(text);
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.spans.push(Span::raw(" "));
            }
            if !line.is_empty() {
                self.spans.push(Span::styled(line.to_owned(), style));
            }
        }
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push_text(&text, self.style()),
            },
            Event::Code(text) => {
                let style = self.style().patch(self.theme.code);
                // Without colours the marks tell that it is code.
                let mark = if self.theme.depth == crate::theme::ColorDepth::None { "`" } else { "" };
                self.push_text(&format!("{mark}{text}{mark}"), style);
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::InlineHtml(text) => {
                self.push_text(&text, self.style());
            }
            Event::Html(text) => {
                for line in text.trim_end_matches('\n').split('\n') {
                    self.push_text(line, self.style());
                    self.flush();
                }
            }
            Event::FootnoteReference(name) => self.push_text(&format!("[^{name}]"), self.style()),
            // Models end a line where they want it to end, whatever Markdown makes of it.
            Event::SoftBreak | Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin();
                let length = self.width.saturating_sub(self.depth_width()).min(60);
                self.spans.push(Span::styled(self.theme.sign("─", "-").repeat(length.max(1)), self.theme.border));
                self.flush();
                self.gap = true;
            }
            Event::TaskListMarker(is_done) => {
                let (mark, style) = if is_done { ("[x] ", self.theme.success) } else { ("[ ] ", self.theme.text) };
                self.spans.push(Span::styled(mark, style));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(),
            Tag::Heading { level, .. } => {
                self.begin();
                let style = self.theme.accent;
                self.push_style(|_| style);
                self.spans.push(Span::styled(format!("{} ", "#".repeat(level as usize)), self.theme.dim));
            }
            Tag::BlockQuote(_) => {
                self.begin();
                let bar = vec![Span::styled(self.theme.sign("▌ ", "> "), self.theme.border)];
                self.levels.push(Level { first: None, next: bar });
            }
            Tag::CodeBlock(kind) => {
                self.begin();
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(number) => {
                // A list within an item follows its text directly.
                self.flush();
                if self.lists.is_empty() {
                    self.begin();
                }
                self.lists.push(self.number.take().filter(|_| number.is_some()).or(number));
            }
            Tag::Item => {
                self.flush();
                if self.gap {
                    self.begin();
                }
                let style = self.theme.accent;
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => self.theme.sign("• ", "- ").to_owned(),
                };
                let blank = vec![Span::raw(" ".repeat(mark.chars().count()))];
                self.levels.push(Level { first: Some(vec![Span::styled(mark, style)]), next: blank });
            }
            Tag::Emphasis => self.push_style(|style| style.add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(|style| style.add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => {
                self.push_style(|style| style.add_modifier(Modifier::CROSSED_OUT));
                self.push_mark("~~");
            }
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.push_style(|style| style.add_modifier(Modifier::UNDERLINED));
            }
            Tag::Image { dest_url, .. } => {
                self.push_text("[image: ", self.style());
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.push_style(|style| style);
            }
            Tag::Table(alignments) => {
                self.begin();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::FootnoteDefinition(name) => {
                self.begin();
                self.push_text(&format!("[^{name}]: "), self.theme.dim);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.levels.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.code_block(&language, &code);
                }
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                // An item without text still has its mark.
                if self.levels.last().is_some_and(|level| level.first.is_some()) && self.spans.is_empty() {
                    self.spans.push(Span::raw(""));
                }
                self.flush();
                self.levels.pop();
            }
            TagEnd::Strikethrough => {
                self.push_mark("~~");
                self.styles.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong => {
                self.styles.pop();
            }
            TagEnd::Link => {
                self.styles.pop();
                self.end_link("");
            }
            TagEnd::Image => {
                self.styles.pop();
                self.end_link("]");
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let room = self.width.saturating_sub(self.depth_width()).max(1);
                    for line in table.lines(room, self.theme) {
                        let mut spans = self.prefix_of_line();
                        spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
                        self.lines.push(Line::from(spans));
                    }
                }
                self.gap = true;
            }
            _ => {}
        }
    }

    /// What is crossed out is marked where a terminal may not show it.
    fn push_mark(&mut self, mark: &'static str) {
        if self.theme.depth == crate::theme::ColorDepth::None {
            self.spans.push(Span::raw(mark));
        }
    }

    /// The address is always seen, unless the text is the same.
    fn end_link(&mut self, close: &'static str) {
        let Some((address, start)) = self.links.pop() else { return };
        let shown: String = self.spans.iter().skip(start).map(|span| &*span.content).collect();
        if !close.is_empty() {
            self.spans.push(Span::styled(close, self.style()));
        }
        let address = clean(&address).replace('\n', " ");
        if shown != address && address.strip_prefix("mailto:") != Some(&shown) && !address.is_empty() {
            self.spans.push(Span::styled(format!(" ({address})"), self.theme.dim));
        }
    }

    /// A block begins.
    fn begin(&mut self) {
        self.flush();
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            let mut spans: Vec<Span<'static>> = self
                .levels
                .iter()
                .take(MAX_DEPTH)
                .filter(|level| level.first.is_none())
                .flat_map(|level| level.next.clone())
                .collect();
            while spans.last().is_some_and(|span| span.content.trim().is_empty()) {
                spans.pop();
            }
            self.lines.push(Line::from(crate::wrap::cut_spans(&spans, self.width)));
        }
    }

    fn depth_width(&self) -> usize {
        let width: usize = self.levels.iter().take(MAX_DEPTH).map(|level| spans_width(&level.next)).sum();
        width.min(self.width / 2)
    }

    fn prefix(&mut self) -> Prefix {
        let mut prefix = Prefix::default();
        for level in self.levels.iter_mut().take(MAX_DEPTH) {
            prefix.first.extend(level.first.take().unwrap_or_else(|| level.next.clone()));
            prefix.next.extend(level.next.iter().cloned());
        }
        prefix
    }

    fn prefix_of_line(&mut self) -> Vec<Span<'static>> {
        crate::wrap::cut_spans(&self.prefix().first, self.width / 2)
    }

    /// Writes the text that was read so far.
    fn flush(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.is_empty() || self.table.is_some() {
            return;
        }
        let prefix = self.prefix();
        self.lines.extend(wrap(&spans, self.width, Break::Words, &prefix));
    }

    fn code_block(&mut self, language: &str, text: &str) {
        let is_short = text.len() <= highlight::MAX_BYTES && text.lines().count() <= highlight::MAX_LINES;
        let mut highlight = Highlight::start(language, self.theme).filter(|_| is_short);
        let prefix = self.prefix();
        let mut before = prefix.next.clone();
        before.push(code_bar(self.theme));
        let mut lines = code(text, self.width, self.theme, before, &mut highlight);
        // The mark of an item stands before its first line.
        if let Some(line) = lines.first_mut().filter(|_| !prefix.first.is_empty()) {
            line.spans.splice(0..prefix.next.len().min(line.spans.len()), prefix.first);
        }
        self.lines.extend(lines);
    }
}
