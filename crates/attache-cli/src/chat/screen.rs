//! The terminal as a screen: taken at the start, drawn on, and given back however the program ends.

use std::io::{self, IsTerminal, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use attache_tui::theme::{Background, ColorDepth, Theme};

/// How many lines an inline screen takes at most.
const INLINE_ROWS: u16 = 16;

/// Whether the terminal is ours, for whoever has to give it back in a hurry.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the terminal has had another size since it was last drawn on: what it has lost of a picture then is gone.
static IS_RESIZED: AtomicBool = AtomicBool::new(false);
static IS_PLAIN: AtomicBool = AtomicBool::new(false);
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// How a screen is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All of the terminal, which is as it was afterwards.
    Full,
    /// Some lines at the end of the terminal's own text.
    Inline,
}

/// The person's terminal while it is a screen.
pub(crate) struct Screen {
    terminal: Terminal<Output>,
    mode: Mode,
    has_mouse: bool,
    drawn_size: Size,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take(mode: Mode, has_mouse: bool) -> io::Result<Self> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(io::Error::other("stdin and stdout have to be a terminal"));
        }
        give_back_on_panic();
        enter(mode, has_mouse)?;
        let cursor = match mode {
            Mode::Full => None,
            // Asked once, while nobody else reads what the terminal answers.
            Mode::Inline => crossterm::cursor::position().ok().map(Position::from),
        };
        let made = Screen::terminal(mode, cursor);
        let terminal = made.inspect_err(|_| give_back())?;
        Ok(Screen { terminal, mode, has_mouse, drawn_size: Size::default() })
    }

    /// A screen with nothing on it. Without a place for the cursor, it goes to the end of the terminal.
    fn terminal(mode: Mode, cursor: Option<Position>) -> io::Result<Terminal<Output>> {
        let (_, rows) = crossterm::terminal::size().unwrap_or((80, 24));
        let mut output = Output { inner: CrosstermBackend::new(io::stdout()), cursor: Position::ORIGIN };
        let viewport = match mode {
            Mode::Full => Viewport::Fullscreen,
            Mode::Inline => {
                output.set_cursor_position(cursor.unwrap_or(Position::new(0, rows.saturating_sub(1))))?;
                Viewport::Inline(INLINE_ROWS.min(rows.saturating_sub(1)).max(1))
            }
        };
        Terminal::with_options(output, TerminalOptions { viewport })
    }

    /// Draws a whole screen. What did not change since the last one is not written, and the terminal shows it at once.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.drawn_size = self.terminal.size()?;
        queue!(io::stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(draw).map(drop);
        execute!(io::stdout(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Prints lines into the terminal's own text, above an inline screen.
    pub(crate) fn print_above(&mut self, lines: &[Line<'static>]) -> io::Result<()> {
        // The height of a buffer is bounded, and so is what is drawn at once.
        for lines in lines.chunks(200) {
            let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
            let lines = lines.to_vec();
            self.terminal.insert_before(rows, |buffer| Paragraph::new(lines).render(buffer.area, buffer))?;
        }
        Ok(())
    }

    /// How large it is.
    pub(crate) fn size(&self) -> Rect {
        let size = self.terminal.size().unwrap_or_default();
        Rect::new(0, 0, size.width, size.height)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Draws everything anew at the next turn, in the size that the terminal has now.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        IS_RESIZED.store(false, Ordering::SeqCst);
        let top = self.terminal.get_frame().area().as_position();
        self.terminal.clear()?;
        if self.mode == Mode::Inline {
            // Where it was, as far as that is on the screen still.
            let last = self.terminal.size()?.height.saturating_sub(1);
            self.terminal = Screen::terminal(self.mode, Some(Position::new(0, top.y.min(last))))?;
        }
        Ok(())
    }

    /// Whether the terminal has, or has had, another size than the last picture.
    pub(crate) fn is_resized(&self) -> bool {
        IS_RESIZED.load(Ordering::SeqCst)
            || crossterm::terminal::size().is_ok_and(|(width, height)| self.drawn_size != Size::new(width, height))
    }

    /// Takes the mouse, or lets it go.
    pub(crate) fn set_mouse(&mut self, has_mouse: bool) -> io::Result<()> {
        self.has_mouse = has_mouse;
        match has_mouse {
            true => execute!(io::stdout(), EnableMouseCapture),
            false => execute!(io::stdout(), DisableMouseCapture),
        }
    }

    pub(crate) fn has_mouse(&self) -> bool {
        self.has_mouse
    }

    /// Gives the terminal to somebody else, until [`resume`](Screen::resume).
    pub(crate) fn suspend(&mut self) {
        give_back();
    }

    /// Takes the terminal back.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        enter(self.mode, self.has_mouse)?;
        match self.mode {
            Mode::Full => self.terminal.clear(),
            // Whoever had the terminal has moved on; the lines begin anew below.
            Mode::Inline => {
                self.terminal = Screen::terminal(self.mode, None)?;
                Ok(())
            }
        }
    }

    /// Writes bytes of our own that are no part of the picture: a bell, or something for the clipboard.
    pub(crate) fn send(&mut self, bytes: &str) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(bytes.as_bytes())?;
        out.flush()
    }
}

/// The terminal as it is drawn on. It remembers where the cursor is: to ask takes a round trip over ssh, and the answer
/// would come among the keys, where others read.
struct Output {
    inner: CrosstermBackend<Stdout>,
    cursor: Position,
}

impl Backend for Output {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        // A wide character is over the cell after it, too. What is printed above an inline screen has both.
        let mut covered = (0, 0);
        self.inner.draw(content.filter(move |(x, y, cell)| {
            let is_covered = covered.1 == *y && *x < covered.0;
            if !is_covered {
                let wide = u16::try_from(Span::raw(cell.symbol()).width()).unwrap_or(1);
                covered = (x.saturating_add(wide.max(1)), *y);
            }
            !is_covered
        }))
    }

    fn append_lines(&mut self, count: u16) -> io::Result<()> {
        self.inner.append_lines(count)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        // Of a terminal that is gone nobody is told: there is no stderr either.
        let _ = self.inner.show_cursor();
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        self.inner.set_cursor_position(self.cursor)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        self.inner.clear_region(clear_type)
    }

    fn size(&self) -> io::Result<Size> {
        self.inner.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.mode == Mode::Inline {
            // The prompt of the shell comes right below what was said.
            let top = self.terminal.get_frame().area().as_position();
            let _ = self.terminal.clear();
            let _ = self.terminal.set_cursor_position(top);
        }
        give_back();
    }
}

fn enter(mode: Mode, has_mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    IS_TAKEN.store(true, Ordering::SeqCst);
    IS_FULL.store(mode == Mode::Full, Ordering::SeqCst);
    let mut out = io::stdout();
    if mode == Mode::Full {
        queue!(out, EnterAlternateScreen)?;
    }
    if has_mouse {
        queue!(out, EnableMouseCapture)?;
    }
    execute!(out, EnableBracketedPaste, EnableFocusChange)
}

/// Gives the terminal back as it was, if it is ours.
fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = queue!(out, EndSynchronizedUpdate, DisableMouseCapture, DisableFocusChange, DisableBracketedPaste);
    if IS_FULL.load(Ordering::SeqCst) {
        let _ = queue!(out, LeaveAlternateScreen);
    }
    let _ = execute!(out, cursor::Show);
    let _ = disable_raw_mode();
}

/// Takes the signal of another size away from the reader of keys, once there is one: when both come at the same time it
/// forgets one of them, and a key waits until the next is pressed.
#[cfg(unix)]
pub(super) fn keep_resizes_from_keys() {
    extern "C" fn resized(_: libc::c_int) {
        IS_RESIZED.store(true, Ordering::SeqCst);
    }
    // SAFETY: all zeros is a valid `sigaction`; the handler does what a handler may do, and programs that we start do not
    // inherit it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = resized as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGWINCH, &action, std::ptr::null_mut());
    }
}

/// On Windows another size comes as an event among the keys.
#[cfg(not(unix))]
pub(super) fn keep_resizes_from_keys() {}

/// A panic is read on a terminal that works.
fn give_back_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}

/// From now on without colours and signs, for those who have the terminal read out.
pub(super) fn use_plain_theme() {
    IS_PLAIN.store(true, Ordering::SeqCst);
}

/// The theme for this terminal, by what its environment says.
pub(crate) fn theme(background: Option<Background>) -> Theme {
    if IS_PLAIN.load(Ordering::SeqCst) {
        return Theme::new(ColorDepth::None, Background::Dark, false);
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (term, color_term) = (variable("TERM"), variable("COLORTERM"));
    let depth = if !variable("NO_COLOR").is_empty() || term == "dumb" {
        ColorDepth::None
    } else if matches!(color_term.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
        ColorDepth::True
    } else if cfg!(windows) && term.is_empty() {
        // The console of every Windows that is kept up to date.
        ColorDepth::True
    } else if term.contains("256color") {
        ColorDepth::Ansi256
    } else {
        ColorDepth::Ansi16
    };
    let background = background.unwrap_or_else(|| match variable("COLORFGBG").rsplit(';').next() {
        // The light ones of the sixteen colours.
        Some("7" | "15") => Background::Light,
        _ => Background::Dark,
    });
    let locale = [variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG")];
    let locale = locale.iter().find(|value| !value.is_empty()).map(|value| value.to_lowercase()).unwrap_or_default();
    // Where no locale is set, as in many containers, terminals still show UTF-8; `C` and `POSIX` were chosen.
    let is_unicode = term != "linux" && (locale.is_empty() || locale.contains("utf"));
    Theme::new(depth, background, is_unicode)
}
