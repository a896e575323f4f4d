//! An entry in pieces that are laid out when they are seen.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use attache_proto::model::content::ContentBlock;
use attache_proto::model::tool::ToolCallContent;
use attache_proto::view::{Entry, MessageRole, SessionView, Terminal};
use ratatui::text::Line;

use super::TurnEnd;
use super::card::{self, Context, MAX_CONTENTS, MAX_FOLDED_CONTENTS};
use crate::highlight::{self, Highlight};
use crate::image::placeholder;
use crate::markdown::{Part, PartKind, Splitter};

/// What a piece shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// What the entry is: title, status, places.
    Head,
    /// A part of a text among the content.
    Text { block: usize, part: Part },
    /// Other content.
    Attachment(usize),
    /// Content of a tool call.
    Content(usize),
    /// So much content of a tool call is left out.
    More(usize),
    /// The arguments and the result of a tool.
    Raw,
    /// How the turn ended.
    End,
}

struct Piece {
    what: What,
    /// Whether an empty line stands before it.
    gap: bool,
    /// What it was made of, where that may change unseen.
    hash: u64,
    /// The version of the entry that the hash was compared with.
    checked: u64,
    lines: Option<Rc<Vec<Line<'static>>>>,
    weight: usize,
    used: u64,
    /// Where the highlighting stands after this part of some code.
    after: Option<Box<Highlight>>,
}

/// An entry in pieces.
pub(super) struct Laid {
    pieces: Vec<Piece>,
    pub(super) is_dirty: bool,
    pub(super) is_unfolded: bool,
    pub(super) used: u64,
    version: u64,
    /// How many pieces can only change if the text before the end is replaced.
    finished: usize,
    /// The content block that is being split.
    block: usize,
    splitter: Option<Splitter>,
    /// The length of all text in the blocks before that one.
    closed_bytes: usize,
    /// What the splitter has read ahead, as a hash.
    read_ahead: u64,
}

impl Default for Laid {
    fn default() -> Self {
        Laid {
            pieces: Vec::new(),
            is_dirty: true,
            is_unfolded: false,
            used: 0,
            version: 0,
            finished: 0,
            block: 0,
            splitter: None,
            closed_bytes: 0,
            read_ahead: 0,
        }
    }
}

/// What was found when lines were asked for.
#[derive(Default)]
pub(super) struct Found {
    pub(super) lines: Option<Rc<Vec<Line<'static>>>>,
    /// The line that begins with a spinner.
    pub(super) spinner: Option<usize>,
    /// How many pieces had to be laid out.
    pub(super) layouts: u64,
    /// Whether the text is another one than that which was split.
    pub(super) is_stale: bool,
}

/// The content of an entry that is split like a text, and whether it is Markdown.
fn flow(entry: &Entry, is_unfolded: bool) -> Option<(&[ContentBlock], bool)> {
    match entry {
        Entry::Message(message) => match message.role {
            MessageRole::User => Some((&message.content, false)),
            MessageRole::Agent => Some((&message.content, true)),
            MessageRole::Thought => is_unfolded.then_some((&message.content, true)),
        },
        Entry::Compaction(compaction) => is_unfolded.then_some((&compaction.summary, true)),
        Entry::PeerMessage(message) => Some((&message.content, true)),
        _ => None,
    }
}

fn has_head(entry: &Entry) -> bool {
    match entry {
        Entry::Message(message) => message.role == MessageRole::Thought || message.content.is_empty(),
        _ => true,
    }
}

impl Laid {
    /// Whether an empty line stands before the entry.
    pub(super) fn has_gap(&self) -> bool {
        self.pieces.first().is_some_and(|piece| piece.gap)
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The bytes that this takes, about.
    pub(super) fn weight(&self) -> usize {
        // Most of a piece that is not laid out is its own record.
        self.pieces.len() * size_of::<Piece>() + self.pieces.iter().map(|piece| piece.weight).sum::<usize>()
    }

    pub(super) fn drop_lines(&mut self) {
        for piece in &mut self.pieces {
            piece.drop_lines();
        }
    }

    /// Drops the lines of what is not on the screen in this frame.
    pub(super) fn drop_unused(&mut self, frame: u64) {
        for piece in self.pieces.iter_mut().filter(|piece| piece.used != frame) {
            piece.drop_lines();
        }
    }

    /// Brings the pieces up to date. What is finished stays.
    pub(super) fn update(
        &mut self,
        view: &SessionView,
        entry: &Entry,
        place: usize,
        is_unfolded: bool,
        end: Option<&TurnEnd>,
    ) {
        if self.is_unfolded != is_unfolded {
            let (used, version) = (self.used, self.version);
            *self = Laid { is_unfolded, used, version, ..Laid::default() };
        }
        self.is_dirty = false;
        self.version += 1;
        let before = place.checked_sub(1).and_then(|place| view.entry(place));
        let are_calls = matches!((before, entry), (Some(Entry::ToolCall(_)), Entry::ToolCall(_)));
        let gap = place > 0 && !are_calls;
        match flow(entry, is_unfolded) {
            Some((content, is_markdown)) => {
                if !self.update_flow(content, is_markdown, has_head(entry), gap) {
                    // The text was replaced by a shorter one.
                    (self.finished, self.block, self.closed_bytes, self.splitter) = (0, 0, 0, None);
                    self.update_flow(content, is_markdown, has_head(entry), gap);
                }
            }
            None => {
                self.pieces.clear();
                self.finished = 0;
                self.push(What::Head, gap, 0);
                if let Entry::ToolCall(call) = entry {
                    let limit = if is_unfolded { MAX_CONTENTS } else { MAX_FOLDED_CONTENTS };
                    for index in 0..call.content.len().min(limit) {
                        self.push(What::Content(index), false, 0);
                    }
                    if call.content.len() > limit {
                        self.push(What::More(call.content.len() - limit), false, 0);
                    }
                    if is_unfolded && (call.raw_input.is_some() || call.raw_output.is_some()) {
                        self.push(What::Raw, false, 0);
                    }
                }
            }
        }
        if self.pieces.is_empty() {
            self.push(What::Head, gap, 0);
        }
        if end.is_some() {
            self.push(What::End, true, 0);
        }
    }

    /// False if what is finished is not there any more.
    fn update_flow(&mut self, content: &[ContentBlock], is_markdown: bool, has_head: bool, gap: bool) -> bool {
        let splitter = || if is_markdown { Splitter::markdown() } else { Splitter::plain() };
        self.pieces.truncate(self.finished);
        let bytes = content.iter().take(self.block).filter_map(ContentBlock::as_text).map(str::len).sum::<usize>();
        if bytes != self.closed_bytes {
            return false;
        }
        if has_head {
            // The head may change at any time, but it is always there.
            if let Some(head) = self.pieces.first_mut().filter(|piece| piece.what == What::Head) {
                head.drop_lines();
            } else {
                self.pieces.clear();
                self.finished = 0;
                self.push(What::Head, gap, 0);
                self.finished = 1;
            }
        } else if self.pieces.first().is_some_and(|piece| piece.what == What::Head) {
            self.pieces.clear();
            self.finished = 0;
        }
        while let Some(block) = content.get(self.block) {
            let is_last = self.block + 1 == content.len();
            let is_first = self.block == 0;
            let Some(text) = block.as_text() else {
                if self.splitter.is_some() {
                    return false;
                }
                let index = self.block;
                let gap = if self.pieces.is_empty() { gap } else { false };
                self.push(What::Attachment(index), gap, hash_of(&placeholder(block)));
                self.finished = self.pieces.len();
                self.block += 1;
                continue;
            };
            let mut splitting = self.splitter.take().unwrap_or_else(splitter);
            // The text may be another one. Where that cannot be seen here, it is when the piece is shown.
            let is_same = text.is_char_boundary(splitting.open_from())
                && text.get(splitting.read_ahead()).map(hash_of) == Some(self.read_ahead)
                && self.is_last_same(text);
            if splitting.open_from() > 0 && !is_same {
                return false;
            }
            let block = self.block;
            let push = |laid: &mut Laid, part: Part| {
                let is_start = part.range.start == 0;
                let gap = match laid.pieces.is_empty() {
                    true => gap,
                    false => part.gap || (is_start && !is_first),
                };
                let hash = hash_of(&text[part.source.clone()]);
                laid.push(What::Text { block, part }, gap, hash);
            };
            for part in splitting.advance(text) {
                push(self, part);
                self.finished = self.pieces.len();
            }
            if let Some(part) = splitting.open(text) {
                push(self, part);
            }
            if is_last {
                self.read_ahead = text.get(splitting.read_ahead()).map_or(0, hash_of);
                self.splitter = Some(splitting);
                break;
            }
            self.finished = self.pieces.len();
            self.closed_bytes += text.len();
            self.block += 1;
        }
        self.block < content.len() || self.block == content.len() && self.splitter.is_none()
    }

    /// Whether the last piece that is finished is still there in the text that is being split.
    fn is_last_same(&self, text: &str) -> bool {
        match self.finished.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            Some(Piece { what: What::Text { block, part }, hash, .. }) if *block == self.block => {
                text.get(part.source.clone()).map(hash_of) == Some(*hash)
            }
            _ => true,
        }
    }

    fn push(&mut self, what: What, gap: bool, hash: u64) {
        let checked = self.version;
        self.pieces.push(Piece { what, gap, hash, checked, lines: None, weight: 0, used: 0, after: None });
    }

    /// The lines of a piece. They are laid out if they are not there.
    pub(super) fn lines(
        &mut self,
        context: &Context<'_>,
        entry: &Entry,
        index: usize,
        frame: u64,
        end: Option<&TurnEnd>,
    ) -> Found {
        let version = self.version;
        let Some(piece) = self.pieces.get_mut(index) else { return Found::default() };
        piece.used = frame;
        let content = flow(entry, self.is_unfolded).map_or(&[][..], |(content, _)| content);
        // A terminal changes without its entry, and a text may be replaced by another one of the same length.
        let hash = match &piece.what {
            What::Content(index) => match entry {
                Entry::ToolCall(call) => terminal_hash(context.view, call.content.get(*index)),
                _ => 0,
            },
            _ if piece.checked == version => piece.hash,
            What::Text { block, part } => {
                let text = content.get(*block).and_then(ContentBlock::as_text).unwrap_or_default();
                text.get(part.source.clone()).map_or(0, hash_of)
            }
            What::Attachment(block) => content.get(*block).map_or(0, |block| hash_of(&placeholder(block))),
            _ => piece.hash,
        };
        if hash != piece.hash {
            if !matches!(piece.what, What::Content(_)) {
                return Found { is_stale: true, ..Found::default() };
            }
            piece.hash = hash;
            piece.drop_lines();
        }
        piece.checked = version;
        let (what, gap) = (piece.what.clone(), piece.gap);
        let spinner = (what == What::Head && card::has_spinner(entry)).then_some(usize::from(gap));
        if let Some(lines) = &piece.lines {
            return Found { lines: Some(lines.clone()), spinner, ..Found::default() };
        }

        let mut lines = Vec::new();
        let is_first = index == 0;
        if gap {
            let is_text = matches!(what, What::Text { .. } | What::Attachment(_));
            lines.push(if is_text && !is_first { card::gap(context, entry) } else { Line::default() });
        }
        match &what {
            What::Text { block, part } => {
                let text = content.get(*block).and_then(ContentBlock::as_text).unwrap_or_default();
                let mut highlight = self.highlight_before(context, text, index);
                let range = part.range.clone();
                lines.extend(card::text(context, entry, part, &text[range], is_first, &mut highlight));
                self.pieces[index].after = highlight.map(Box::new);
            }
            What::Attachment(block) => {
                lines.extend(
                    content
                        .get(*block)
                        .map(|block| card::attachment(context, entry, block, is_first))
                        .unwrap_or_default(),
                );
            }
            What::Head => lines.extend(card::head(context, entry)),
            What::Content(index) => {
                if let Entry::ToolCall(call) = entry {
                    lines.extend(
                        call.content
                            .get(*index)
                            .map(|content| card::content(context, content, call))
                            .unwrap_or_default(),
                    );
                }
            }
            What::More(count) => lines.extend(card::more(context, *count)),
            What::Raw => lines.extend(card::raw(context, entry)),
            What::End => {
                lines.extend(end.map(|end| card::end_lines(end, context.width, context.theme)).unwrap_or_default())
            }
        }
        // Every piece has a row, so that as many pieces are looked at as the screen has rows.
        if lines.len() == usize::from(gap) {
            lines.push(Line::default());
        }
        let lines = Rc::new(lines);
        let piece = &mut self.pieces[index];
        piece.weight = lines.iter().map(line_weight).sum::<usize>() + if piece.after.is_some() { 1024 } else { 0 };
        piece.lines = Some(lines.clone());
        Found { lines: Some(lines), spinner, layouts: 1, is_stale: false }
    }

    /// Where the highlighting stands before a part of some code. If the parts before were dropped, they are read again.
    fn highlight_before(&self, context: &Context<'_>, text: &str, index: usize) -> Option<Highlight> {
        let code = |index: usize| match &self.pieces.get(index)?.what {
            What::Text { part: Part { kind: PartKind::Code { language, index }, range, .. }, .. } => {
                Some((language, *index, range.clone()))
            }
            _ => None,
        };
        let (language, number, range) = code(index)?;
        let (_, _, first) = code(index.checked_sub(number)?)?;
        let before = &text[first.start.min(range.start)..range.start];
        let is_long = before.len() > highlight::MAX_BYTES || before.matches('\n').count() >= highlight::MAX_LINES;
        if is_long {
            return None;
        }
        let known = (index - number..index).rev().find(|index| self.pieces[*index].after.is_some());
        let (mut highlight, from) = match known {
            Some(known) => (*self.pieces[known].after.clone()?, code(known)?.2.end),
            None => (Highlight::start(language, context.theme)?, first.start),
        };
        for line in text[from.min(range.start)..range.start].lines() {
            highlight.line(&crate::wrap::clean(line), context.theme);
        }
        Some(highlight)
    }
}

impl Piece {
    fn drop_lines(&mut self) {
        self.lines = None;
        self.after = None;
        self.weight = 0;
    }
}

fn line_weight(line: &Line<'_>) -> usize {
    let spans = line.spans.iter().map(|span| size_of_val(span) + span.content.len());
    size_of::<Line<'_>>() + spans.sum::<usize>()
}

fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// What tells whether a terminal has changed: how much it has written, the end of that, and how it ended.
fn terminal_hash(view: &SessionView, content: Option<&ToolCallContent>) -> u64 {
    let Some(ToolCallContent::Terminal(shown)) = content else { return 0 };
    let Some(Terminal { command, output, exit_status, size, undecodable, .. }) = view.terminals.get(&shown.terminal_id)
    else {
        return 1;
    };
    let bytes = output.bytes();
    let end = &bytes[bytes.len().saturating_sub(256)..];
    let status = exit_status.as_ref().map(|status| (status.exit_code, status.signal.as_deref()));
    let size = size.as_ref().map(|size| (size.cols, size.rows));
    hash_of(&(output.omitted(), bytes.len(), end, status, command, size, undecodable)).max(2)
}
