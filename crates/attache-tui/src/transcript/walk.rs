//! From row to row of a transcript, laying out what is passed.

use std::rc::Rc;

use attache_proto::view::SessionView;
use ratatui::text::Line;

use super::card::Context;
use super::entry::Laid;
use super::{Frame, Position, Slot, Transcript};

impl Transcript {
    /// How many pieces there are at a slot.
    pub(super) fn count(&mut self, frame: Frame<'_>, slot: Slot) -> usize {
        match slot {
            Slot::Top => usize::from(!self.top.is_empty()),
            Slot::Bottom => usize::from(!self.bottom.is_empty()),
            Slot::Entry(place) => self.ensure(frame, place).map_or(0, |laid| laid.len()),
        }
    }

    /// The entry at a place, with its pieces as they are now.
    pub(super) fn ensure(&mut self, frame: Frame<'_>, place: usize) -> Option<&mut Laid> {
        let entry = frame.view.entry(place)?;
        let is_unfolded = self.is_unfolded_at(place);
        let laid = self.laid.entry(place).or_default();
        laid.used = self.frame;
        if laid.is_dirty || laid.is_unfolded != is_unfolded {
            laid.update(frame.view, entry, place, is_unfolded, self.ends.get(&place));
        }
        Some(laid)
    }

    /// The lines of a piece, and which of them begins with a spinner.
    pub(super) fn lines(
        &mut self,
        frame: Frame<'_>,
        slot: Slot,
        piece: usize,
    ) -> Option<(Rc<Vec<Line<'static>>>, Option<usize>)> {
        let place = match slot {
            Slot::Top => return (!self.top.is_empty()).then(|| (self.top.clone(), None)),
            Slot::Bottom => return (!self.bottom.is_empty()).then(|| (self.bottom.clone(), None)),
            Slot::Entry(place) => place,
        };
        let entry = frame.view.entry(place)?;
        let is_unfolded = self.is_unfolded_at(place);
        let root = std::mem::take(&mut self.root);
        let context = Context { view: frame.view, width: frame.width, theme: frame.theme, root: &root, is_unfolded };
        let (now, end) = (self.frame, self.ends.get(&place).cloned());
        let found = self.ensure(frame, place).map(|laid| laid.lines(&context, entry, piece, now, end.as_ref()));
        self.root = root;
        let found = found?;
        self.layouts += found.layouts;
        if found.is_stale {
            self.is_stale = true;
            if let Some(laid) = self.laid.get_mut(&place) {
                *laid = Laid::default();
            }
            return None;
        }
        Some((found.lines?, found.spinner))
    }

    pub(super) fn height(&mut self, frame: Frame<'_>, slot: Slot, piece: usize) -> usize {
        self.lines(frame, slot, piece).map_or(0, |(lines, _)| lines.len())
    }

    pub(super) fn next_slot(&self, view: &SessionView, slot: Slot) -> Option<Slot> {
        let first = view.first_place();
        let end = first + view.timeline().len();
        let next = match slot {
            Slot::Top => first,
            Slot::Entry(place) => (place + 1).max(first),
            Slot::Bottom => return None,
        };
        Some(if next < end { Slot::Entry(next) } else { Slot::Bottom })
    }

    pub(super) fn previous_slot(&self, view: &SessionView, slot: Slot) -> Option<Slot> {
        let first = view.first_place();
        let end = first + view.timeline().len();
        let last = match slot {
            Slot::Top => return None,
            Slot::Entry(place) => place.min(end),
            Slot::Bottom => end,
        };
        Some(if last > first { Slot::Entry(last - 1) } else { Slot::Top })
    }

    /// The first row of the piece that follows.
    pub(super) fn next(&mut self, frame: Frame<'_>, position: Position) -> Option<Position> {
        if position.piece + 1 < self.count(frame, position.slot) {
            return Some(Position { piece: position.piece + 1, line: 0, ..position });
        }
        let mut slot = position.slot;
        loop {
            slot = self.next_slot(frame.view, slot)?;
            if self.count(frame, slot) > 0 {
                return Some(Position { slot, piece: 0, line: 0 });
            }
        }
    }

    /// The first row of the piece before.
    pub(super) fn previous(&mut self, frame: Frame<'_>, position: Position) -> Option<Position> {
        if position.piece > 0 {
            return Some(Position { piece: position.piece - 1, line: 0, ..position });
        }
        let mut slot = position.slot;
        loop {
            slot = self.previous_slot(frame.view, slot)?;
            if let Some(piece) = self.count(frame, slot).checked_sub(1) {
                return Some(Position { slot, piece, line: 0 });
            }
        }
    }

    /// The first row of an entry, without the empty line before it.
    pub(super) fn head_of(&mut self, frame: Frame<'_>, place: usize) -> Position {
        let line = self.ensure(frame, place).map_or(0, |laid| usize::from(laid.has_gap()));
        Position { slot: Slot::Entry(place), piece: 0, line }
    }

    pub(super) fn first_position(&mut self, frame: Frame<'_>) -> Position {
        let top = Position { slot: Slot::Top, piece: 0, line: 0 };
        if self.count(frame, Slot::Top) > 0 { top } else { self.next(frame, top).unwrap_or(top) }
    }

    pub(super) fn last_position(&mut self, frame: Frame<'_>) -> Position {
        let bottom = Position { slot: Slot::Bottom, piece: 0, line: 0 };
        let last = match self.count(frame, Slot::Bottom) {
            0 => self.previous(frame, bottom).unwrap_or(bottom),
            _ => bottom,
        };
        let line = self.height(frame, last.slot, last.piece).saturating_sub(1);
        Position { line, ..last }
    }

    /// A row that there is, at or near another.
    pub(super) fn clamped(&mut self, frame: Frame<'_>, position: Position) -> Position {
        let first = frame.view.first_place();
        let end = first + frame.view.timeline().len();
        match position.slot {
            Slot::Entry(place) if place < first => return self.first_position(frame),
            Slot::Entry(place) if place >= end => return self.last_position(frame),
            _ => {}
        }
        match self.count(frame, position.slot) {
            0 => self.next(frame, position).unwrap_or(position),
            count => {
                let piece = position.piece.min(count - 1);
                let height = self.height(frame, position.slot, piece);
                Position { piece, line: position.line.min(height.saturating_sub(1)), ..position }
            }
        }
    }

    pub(super) fn up(&mut self, frame: Frame<'_>, mut position: Position, mut rows: usize) -> Position {
        loop {
            if rows <= position.line {
                position.line -= rows;
                return position;
            }
            rows -= position.line + 1;
            let Some(before) = self.previous(frame, position) else { return Position { line: 0, ..position } };
            let height = self.height(frame, before.slot, before.piece);
            if self.is_stale {
                return before;
            }
            position = Position { line: height.saturating_sub(1), ..before };
        }
    }

    pub(super) fn down(&mut self, frame: Frame<'_>, mut position: Position, mut rows: usize) -> Position {
        loop {
            let height = self.height(frame, position.slot, position.piece);
            let below = height.saturating_sub(position.line + 1);
            if rows <= below || self.is_stale {
                return Position { line: position.line + rows.min(below), ..position };
            }
            rows -= below + 1;
            match self.next(frame, position) {
                Some(next) => position = next,
                None => return Position { line: height.saturating_sub(1), ..position },
            }
        }
    }

    /// How many rows there are from here on, counted up to a limit.
    pub(super) fn rows_from(&mut self, frame: Frame<'_>, position: Position, limit: usize) -> usize {
        let mut rows = 0;
        let mut at = Some(position);
        while let Some(position) = at.filter(|_| rows < limit && !self.is_stale) {
            rows += self.height(frame, position.slot, position.piece).saturating_sub(position.line);
            at = self.next(frame, position);
        }
        rows
    }
}
