//! The conversation, as much of it as fits.
//!
//! Only what is on the screen is laid out. The position is that of its first row, an entry with a part of it and a line, so
//! that nothing has to be known of what is above and below. Entries are laid out in pieces (`entry.rs`), so that a long
//! message costs no more than a short one.

mod card;
mod entry;
mod plan;
mod walk;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use attache_proto::model::error::ErrorObject;
use attache_proto::model::prompt::StopReason;
use attache_proto::model::terminal::TerminalId;
use attache_proto::model::tool::{Location, ToolCallContent};
use attache_proto::view::{Entry, MessageRole, SessionView};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::theme::Theme;
use card::Context;
use entry::Laid;

pub use card::text_of;
pub use plan::plan_lines;

/// Counts up while something moves, for spinners.
pub type Tick = u64;

/// How many bytes of lines are kept, about: hundreds of screens.
const CACHE_BYTES: usize = 4 << 20;

/// How many entries are kept laid out.
const CACHE_ENTRIES: usize = 1024;

/// How many turns that did not just end are remembered.
const MAX_ENDS: usize = 1024;

/// The columns left of the text, for the mark of the focus.
const GUTTER: u16 = 2;

/// The narrowest screen that has them.
const GUTTER_FROM: u16 = 20;

/// A movement through the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scroll {
    /// By so many lines; up if negative.
    Lines(i32),
    /// By so many screens; up if negative. One line stays in sight.
    Pages(i32),
    /// To the first entry.
    Top,
    /// To the end, and along with it from now on.
    Bottom,
    /// The focus to the next entry.
    NextEntry,
    /// The focus to the entry before.
    PreviousEntry,
    /// To the next message of the user.
    NextMessage,
    /// To the message of the user before.
    PreviousMessage,
}

/// Where something is: above all entries, in one of them, or below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Top,
    Entry(usize),
    Bottom,
}

/// A row of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    slot: Slot,
    piece: usize,
    line: usize,
}

/// How a turn ended, where that has to be said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TurnEnd {
    reason: Option<StopReason>,
    error: Option<ErrorObject>,
}

impl TurnEnd {
    /// How the last turn ended, if it did not just come to its end.
    fn of(view: &SessionView) -> Option<Self> {
        let is_plain = view.error.is_none() && matches!(view.stop_reason, None | Some(StopReason::EndTurn));
        let end = TurnEnd { reason: view.stop_reason.clone(), error: view.error.clone() };
        (!view.state.is_busy() && !is_plain).then_some(end)
    }
}

/// What is needed to lay something out.
#[derive(Clone, Copy)]
struct Frame<'a> {
    view: &'a SessionView,
    theme: &'a Theme,
    width: usize,
    height: usize,
}

/// The transcript of a session: what of its view is on the screen.
///
/// [`render`](Self::render) draws it; everything else says what to draw next time.
pub struct Transcript {
    laid: BTreeMap<usize, Laid>,
    /// The first row on the screen; `None` while it follows the end.
    anchor: Option<Position>,
    scrolls: VecDeque<Scroll>,
    /// What differs from whether entries are unfolded.
    folds: BTreeMap<usize, bool>,
    is_unfolded: bool,
    /// The entry that the person has chosen.
    focus: Option<usize>,
    /// The entry that keys act on if none is chosen.
    default_focus: Option<usize>,
    /// The entries on the screen, first and last.
    seen: Option<(usize, usize)>,
    /// How turns ended, by the place of their last entry.
    ends: BTreeMap<usize, TurnEnd>,
    was_busy: Option<bool>,
    /// Paths in here are shown relative to it.
    root: String,
    has_plan: bool,
    top: Rc<Vec<Line<'static>>>,
    bottom: Rc<Vec<Line<'static>>>,
    width: usize,
    theme: Option<Theme>,
    /// Counts the frames, to know what was used last.
    frame: u64,
    layouts: u64,
    is_animated: bool,
    /// Something was found to be different from what was laid out; the frame begins anew.
    is_stale: bool,
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new()
    }
}

impl Transcript {
    /// A transcript that follows the end.
    pub fn new() -> Self {
        Transcript {
            laid: BTreeMap::new(),
            anchor: None,
            scrolls: VecDeque::new(),
            folds: BTreeMap::new(),
            is_unfolded: false,
            focus: None,
            default_focus: None,
            seen: None,
            ends: BTreeMap::new(),
            was_busy: None,
            root: String::new(),
            has_plan: true,
            top: Rc::default(),
            bottom: Rc::default(),
            width: 0,
            theme: None,
            frame: 0,
            layouts: 0,
            is_animated: false,
            is_stale: false,
        }
    }

    /// Shows the paths in this directory relative to it.
    pub fn set_root(&mut self, root: &str) {
        root.trim_end_matches('/').clone_into(&mut self.root);
        for laid in self.laid.values_mut() {
            laid.drop_lines();
        }
    }

    /// Whether the plan stands at the end. Not if it has a panel of its own: see [`plan_lines`].
    pub fn set_plan_shown(&mut self, is_shown: bool) {
        self.has_plan = is_shown;
    }

    /// The entry at this place is different from when it was last drawn.
    pub fn changed(&mut self, place: usize) {
        if let Some(laid) = self.laid.get_mut(&place) {
            laid.is_dirty = true;
        }
    }

    /// Every entry may be different. Output of terminals, a new width and a new theme are seen without it.
    ///
    /// Text that is found to be the same is not laid out again.
    pub fn all_changed(&mut self) {
        for laid in self.laid.values_mut() {
            laid.is_dirty = true;
        }
    }

    /// Moves, when it is drawn next.
    pub fn scroll(&mut self, by: Scroll) {
        match (by, self.scrolls.back_mut()) {
            (Scroll::Lines(lines), Some(Scroll::Lines(waiting))) => *waiting = waiting.saturating_add(lines),
            (Scroll::Pages(pages), Some(Scroll::Pages(waiting))) => *waiting = waiting.saturating_add(pages),
            (Scroll::Top | Scroll::Bottom, _) => {
                self.scrolls.clear();
                self.scrolls.push_back(by);
            }
            _ => {
                // Nobody presses more keys between two frames.
                if self.scrolls.len() < 256 {
                    self.scrolls.push_back(by);
                }
            }
        }
    }

    /// Whether new text at the end scrolls.
    pub fn is_following(&self) -> bool {
        match self.scrolls.back() {
            Some(Scroll::Bottom) => true,
            _ => self.anchor.is_none(),
        }
    }

    /// How many entries there are below the screen.
    pub fn entries_below(&self, view: &SessionView) -> usize {
        let end = view.first_place() + view.timeline().len();
        self.seen.map_or(0, |(_, last)| end.saturating_sub(last + 1))
    }

    /// Whether something on the screen moves by itself, so that it has to be drawn again soon.
    pub fn is_animated(&self) -> bool {
        self.is_animated
    }

    /// Folds or unfolds the focused entry: thoughts, long output and diffs.
    pub fn toggle_fold(&mut self) {
        if let Some(place) = self.focused() {
            let is_unfolded = self.is_unfolded_at(place);
            self.folds.insert(place, !is_unfolded);
            self.changed(place);
        }
    }

    /// Folds all entries.
    pub fn fold_all(&mut self) {
        self.set_folds(false);
    }

    /// Unfolds all entries.
    pub fn unfold_all(&mut self) {
        self.set_folds(true);
    }

    fn set_folds(&mut self, is_unfolded: bool) {
        self.folds.clear();
        self.is_unfolded = is_unfolded;
        for laid in self.laid.values_mut() {
            laid.is_dirty = true;
        }
    }

    fn is_unfolded_at(&self, place: usize) -> bool {
        self.folds.get(&place).copied().unwrap_or(self.is_unfolded)
    }

    /// The entry that keys act on: the chosen one, else the last on the screen that can be unfolded, else the last.
    pub fn focused(&self) -> Option<usize> {
        self.focus.or(self.default_focus)
    }

    /// The text of an entry, for copying. Nothing in it acts upon a terminal.
    pub fn text_of(&self, view: &SessionView, place: usize) -> String {
        text_of(view, place)
    }

    /// The file that an entry is about, and the line.
    pub fn location_of(&self, view: &SessionView, place: usize) -> Option<Location> {
        let Entry::ToolCall(call) = view.entry(place)? else { return None };
        let first = call.locations.first().cloned();
        first.or_else(|| {
            call.content.iter().find_map(|content| match content {
                ToolCallContent::Diff(diff) => card::path_of(diff).map(Location::new),
                _ => None,
            })
        })
    }

    /// The terminal of an entry whose command still runs.
    pub fn running_terminal_of(&self, view: &SessionView, place: usize) -> Option<TerminalId> {
        let Entry::ToolCall(call) = view.entry(place)? else { return None };
        call.content.iter().rev().find_map(|content| match content {
            ToolCallContent::Terminal(shown) => {
                let terminal = view.terminals.get(&shown.terminal_id)?;
                terminal.exit_status.is_none().then(|| shown.terminal_id.clone())
            }
            _ => None,
        })
    }

    /// The terminal that keys act on: of the chosen entry, else the last one whose command still runs.
    pub fn running_terminal(&self, view: &SessionView) -> Option<TerminalId> {
        let first = view.first_place();
        let chosen = self.focus.and_then(|place| self.running_terminal_of(view, place));
        let any = || (first..first + view.timeline().len()).rev().find_map(|at| self.running_terminal_of(view, at));
        chosen.or_else(any)
    }

    /// How many pieces were laid out since the beginning: what drawing costs.
    pub fn layouts(&self) -> u64 {
        self.layouts
    }

    /// How many bytes the lines that are kept take, about.
    pub fn cached_bytes(&self) -> usize {
        self.laid.values().map(Laid::weight).sum()
    }

    /// Draws what fits.
    pub fn render(&mut self, view: &SessionView, area: Rect, buffer: &mut Buffer, theme: &Theme, now: Tick) {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return;
        }
        let gutter = if area.width >= GUTTER_FROM { GUTTER } else { 0 };
        let width = usize::from(area.width - gutter);
        let frame = Frame { view, theme, width, height: usize::from(area.height) };
        self.begin_frame(frame);
        // What was laid out may turn out to be of another text. That is found out once for an entry.
        for _ in 0..4 {
            self.is_stale = false;
            self.move_to(frame);
            let top = self.first_row(frame);
            if !self.is_stale {
                self.paint(frame, top, area, gutter, buffer, now);
            }
            if !self.is_stale {
                break;
            }
        }
        self.evict();
    }

    fn begin_frame(&mut self, frame: Frame<'_>) {
        let Frame { view, theme, width, .. } = frame;
        self.frame += 1;
        if self.width != width || self.theme.as_ref() != Some(theme) {
            self.width = width;
            self.theme = Some(theme.clone());
            for laid in self.laid.values_mut() {
                laid.drop_lines();
            }
        }
        let first = view.first_place();
        if self.laid.first_key_value().is_some_and(|(place, _)| *place < first) {
            self.laid = self.laid.split_off(&first);
            // What stands before the first entry now is another.
            self.laid.remove(&first);
        }
        if self.folds.first_key_value().is_some_and(|(place, _)| *place < first) {
            self.folds = self.folds.split_off(&first);
        }
        self.remember_end(view);
        self.focus = self.focus.filter(|place| view.entry(*place).is_some());
        self.top = Rc::new(plan::top_lines(view, width, theme));
        self.bottom = Rc::new(plan::bottom_lines(view, width, theme, self.has_plan));
    }

    /// The view knows only how the last turn ended. The others are kept here, at the entry that was the last then.
    fn remember_end(&mut self, view: &SessionView) {
        let is_busy = view.state.is_busy();
        let has_ended = !is_busy && self.was_busy != Some(false);
        self.was_busy = Some(is_busy);
        let last = (view.first_place() + view.timeline().len()).checked_sub(1);
        if let (true, Some(last), Some(end)) = (has_ended, last, TurnEnd::of(view)) {
            self.ends.insert(last, end);
            self.changed(last);
            while self.ends.len() > MAX_ENDS {
                self.ends.pop_first();
            }
        }
    }

    /// The first row on the screen. Where what is below does not fill the screen, it follows the end.
    fn first_row(&mut self, frame: Frame<'_>) -> Position {
        if let Some(anchor) = self.anchor {
            let anchor = self.clamped(frame, anchor);
            let rows = self.rows_from(frame, anchor, frame.height + 1);
            if self.is_stale {
                return anchor;
            }
            if rows > frame.height {
                self.anchor = Some(anchor);
                return anchor;
            }
            self.anchor = None;
        }
        let last = self.last_position(frame);
        self.up(frame, last, frame.height - 1)
    }

    fn move_to(&mut self, frame: Frame<'_>) {
        while let Some(scroll) = self.scrolls.pop_front() {
            let before = (self.anchor, self.focus);
            self.move_by(frame, scroll);
            if self.is_stale {
                (self.anchor, self.focus) = before;
                self.scrolls.push_front(scroll);
                return;
            }
        }
    }

    fn move_by(&mut self, frame: Frame<'_>, scroll: Scroll) {
        let top = self.first_row(frame);
        let page = i64::try_from(frame.height).unwrap_or(i64::MAX).saturating_sub(1).max(1);
        let lines = match scroll {
            Scroll::Lines(lines) => i64::from(lines),
            Scroll::Pages(pages) => i64::from(pages).saturating_mul(page),
            Scroll::Top => {
                self.anchor = Some(self.first_position(frame));
                self.focus = None;
                return;
            }
            Scroll::Bottom => {
                self.anchor = None;
                self.focus = None;
                return;
            }
            Scroll::NextEntry => {
                self.move_focus(frame, 1);
                return;
            }
            Scroll::PreviousEntry => {
                self.move_focus(frame, -1);
                return;
            }
            Scroll::NextMessage | Scroll::PreviousMessage => {
                self.move_to_message(frame, top, scroll == Scroll::NextMessage);
                return;
            }
        };
        let distance = usize::try_from(lines.unsigned_abs()).unwrap_or(usize::MAX);
        if lines < 0 {
            self.anchor = Some(self.up(frame, top, distance));
        } else if self.anchor.is_some() {
            self.anchor = Some(self.down(frame, top, distance));
        }
    }

    fn move_focus(&mut self, frame: Frame<'_>, by: isize) {
        let first = frame.view.first_place();
        let end = first + frame.view.timeline().len();
        if end == first {
            return;
        }
        let current = self.focus.or(self.seen.map(|(_, last)| last)).unwrap_or(end - 1);
        // The first step only shows where the focus is.
        let place = if self.focus.is_some() { current.saturating_add_signed(by) } else { current };
        let place = place.clamp(first, end - 1);
        self.focus = Some(place);
        let is_seen = self.seen.is_some_and(|(first, last)| (first + 1..=last).contains(&place));
        if !is_seen {
            self.anchor = Some(self.head_of(frame, place));
        }
    }

    fn move_to_message(&mut self, frame: Frame<'_>, top: Position, is_next: bool) {
        let view = frame.view;
        let first = view.first_place();
        let is_user = |place: &usize| matches!(view.entry(*place), Some(Entry::Message(message)) if message.role == MessageRole::User);
        let from = match top.slot {
            Slot::Top => first,
            Slot::Entry(place) => place,
            Slot::Bottom => first + view.timeline().len(),
        };
        let is_at_start = match top.slot {
            Slot::Entry(place) => top <= self.head_of(frame, place),
            _ => true,
        };
        let found = if is_next {
            let from = if matches!(top.slot, Slot::Entry(_)) { from + 1 } else { from };
            (from..first + view.timeline().len()).find(is_user)
        } else {
            let from = if is_at_start { from } else { from + 1 };
            (first..from).rev().find(is_user)
        };
        match found {
            Some(place) => {
                self.anchor = Some(self.head_of(frame, place));
                self.focus = Some(place);
            }
            None if is_next => self.anchor = None,
            None => {}
        }
    }

    fn paint(&mut self, frame: Frame<'_>, top: Position, area: Rect, gutter: u16, buffer: &mut Buffer, now: Tick) {
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                buffer[(x, y)].reset();
            }
        }
        self.is_animated = false;
        let (mut seen, mut foldable) = (None, None);
        let mut y = area.top();
        let mut position = Some(top);
        while let Some(at) = position.filter(|_| y < area.bottom()) {
            let Some((lines, spinner)) = self.lines(frame, at.slot, at.piece) else { break };
            for (index, line) in lines.iter().enumerate().skip(at.line) {
                if y >= area.bottom() {
                    break;
                }
                buffer.set_line(area.left() + gutter, y, line, area.width - gutter);
                if spinner == Some(index) {
                    self.is_animated = true;
                    let sign = spinner_sign(frame.theme, now);
                    buffer[(area.left() + gutter, y)].set_symbol(sign).set_style(frame.theme.accent);
                }
                let is_gap = at.piece == 0 && index == 0 && line.width() == 0;
                if gutter > 0 && !is_gap && self.focus.is_some_and(|place| at.slot == Slot::Entry(place)) {
                    let mark = frame.theme.sign("▌", ">");
                    buffer[(area.left(), y)].set_symbol(mark).set_style(frame.theme.accent);
                }
                y += 1;
            }
            if let Slot::Entry(place) = at.slot {
                let (first, _) = seen.unwrap_or((place, place));
                seen = Some((first, place));
                if frame.view.entry(place).is_some_and(card::is_foldable) {
                    foldable = Some(place);
                }
            }
            position = self.next(frame, at);
        }
        self.seen = seen;
        self.default_focus = foldable.or(seen.map(|(_, last)| last));
        self.focus = self.focus.filter(|place| seen.is_some_and(|(first, last)| (first..=last).contains(place)));
    }

    /// Forgets what was not on the screen for the longest time, if too much is kept.
    fn evict(&mut self) {
        let mut weight = self.cached_bytes();
        if weight <= CACHE_BYTES && self.laid.len() <= CACHE_ENTRIES {
            return;
        }
        let mut old: Vec<(u64, usize)> = self
            .laid
            .iter()
            .filter(|(_, laid)| laid.used != self.frame)
            .map(|(place, laid)| (laid.used, *place))
            .collect();
        old.sort_unstable();
        for (_, place) in old {
            if weight <= CACHE_BYTES / 2 && self.laid.len() <= CACHE_ENTRIES / 2 {
                return;
            }
            weight -= self.laid.remove(&place).map_or(0, |laid| laid.weight());
        }
        for laid in self.laid.values_mut().filter(|_| weight > CACHE_BYTES / 2) {
            laid.drop_unused(self.frame);
        }
    }
}

fn spinner_sign(theme: &Theme, now: Tick) -> &'static str {
    const DOTS: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    const LINES: [&str; 4] = ["|", "/", "-", "\\"];
    let signs: &[&str] = if theme.is_unicode { &DOTS } else { &LINES };
    usize::try_from(now % signs.len() as u64).ok().and_then(|index| signs.get(index)).copied().unwrap_or("*")
}

/// One entry as lines, folded: for the normal scrollback of a terminal.
pub fn block(view: &SessionView, place: usize, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    block_in(view, place, width, theme, "")
}

/// The same, with the paths in a directory relative to it.
pub fn block_in(view: &SessionView, place: usize, width: usize, theme: &Theme, root: &str) -> Vec<Line<'static>> {
    let Some(entry) = view.entry(place) else { return Vec::new() };
    let context = Context { view, width: width.max(1), theme, root: root.trim_end_matches('/'), is_unfolded: false };
    let mut laid = Laid::default();
    laid.update(view, entry, place, false, None);
    let mut lines = Vec::new();
    for piece in 0..laid.len() {
        if let Some(found) = laid.lines(&context, entry, piece, 0, None).lines {
            lines.extend(found.iter().cloned());
            laid.drop_unused(1);
        }
    }
    if lines.first().is_some_and(|line| line.width() == 0) {
        lines.remove(0);
    }
    lines
}

/// How the last turn ended, if it did not just come to its end: for the normal scrollback of a terminal.
pub fn turn_end(view: &SessionView, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    TurnEnd::of(view).map(|end| card::end_lines(&end, width.max(1), theme)).unwrap_or_default()
}
