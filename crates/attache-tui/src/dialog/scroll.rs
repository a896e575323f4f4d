//! Which rows of a long text are seen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Which rows of a long text are seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scroll {
    pub(super) top: usize,
    page: usize,
    total: usize,
}

impl Scroll {
    /// There are so many rows, and room for so many of them.
    pub(super) fn fit(&mut self, total: usize, page: u16) {
        self.total = total;
        self.page = usize::from(page);
        self.top = self.top.min(total.saturating_sub(self.page));
    }

    /// Makes sure that a row is seen.
    pub(super) fn show(&mut self, first: usize, last: usize) {
        self.top = self.top.max((last + 1).saturating_sub(self.page)).min(first);
    }

    /// How many rows are below what is seen.
    pub(super) fn below(&self) -> usize {
        self.total.saturating_sub(self.top + self.page)
    }

    pub(super) fn by(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows).min(self.total.saturating_sub(self.page));
    }

    /// Goes on by a page; one row stays in sight.
    pub(super) fn page_down(&mut self) {
        self.by(self.step());
    }

    fn step(&self) -> isize {
        isize::try_from(self.page.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Takes a key in. Whether it scrolls.
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> bool {
        let page = self.step();
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => self.by(-1),
            KeyCode::Down => self.by(1),
            KeyCode::PageUp => self.by(-page),
            KeyCode::PageDown => self.by(page),
            KeyCode::Char('b' | 'u') if is_ctrl => self.by(-page),
            KeyCode::Char('f' | 'd') if is_ctrl => self.by(page),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.by(isize::MAX),
            _ => return false,
        }
        true
    }
}
