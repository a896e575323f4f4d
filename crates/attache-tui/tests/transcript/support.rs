//! Sessions to show, and screens as text.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use attache_proto::base64;
use attache_proto::model::content::ContentBlock;
use attache_proto::model::terminal::{ExitStatus, TerminalOutputChunk, TerminalUpdate};
use attache_proto::model::tool::{ToolCallContent, ToolCallStatus, ToolCallTerminal, ToolCallUpdate, ToolKind};
use attache_proto::model::update::{MessageChunk, SessionUpdate};
use attache_proto::view::SessionView;
use attache_tui::theme::{Background, ColorDepth, Theme};
use attache_tui::transcript::Transcript;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use unicode_width::UnicodeWidthStr;

pub(crate) fn theme(depth: ColorDepth) -> Theme {
    Theme::new(depth, Background::Dark, true)
}

pub(crate) fn say(text: impl Into<String>) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(MessageChunk::new(ContentBlock::text(text)))
}

pub(crate) fn think(text: impl Into<String>) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(MessageChunk::new(ContentBlock::text(text)))
}

pub(crate) fn call(id: &str, title: &str, kind: ToolKind, status: ToolCallStatus) -> ToolCallUpdate {
    ToolCallUpdate::new(id).title(title).kind(kind).status(status)
}

pub(crate) fn terminal(id: &str) -> ToolCallContent {
    ToolCallContent::Terminal(ToolCallTerminal::new(id))
}

pub(crate) fn command(id: &str, command: &str) -> SessionUpdate {
    SessionUpdate::TerminalUpdate(Box::new(TerminalUpdate::new(id).command(command)))
}

pub(crate) fn output(id: &str, bytes: &[u8]) -> SessionUpdate {
    SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new(id, base64::encode(bytes)))
}

pub(crate) fn exit(id: &str, status: ExitStatus) -> SessionUpdate {
    SessionUpdate::TerminalUpdate(Box::new(TerminalUpdate::new(id).exit_status(status)))
}

pub(crate) fn apply(view: &mut SessionView, updates: impl IntoIterator<Item = SessionUpdate>) {
    for update in updates {
        view.apply(&update);
    }
}

pub(crate) fn draw(transcript: &mut Transcript, view: &SessionView, size: (u16, u16), theme: &Theme) -> Buffer {
    let area = Rect::new(0, 0, size.0, size.1);
    let mut buffer = Buffer::empty(area);
    transcript.render(view, area, &mut buffer, theme, 0);
    buffer
}

/// The rows of a screen as text.
pub(crate) fn rows(buffer: &Buffer) -> Vec<String> {
    let row = |y: u16| {
        let mut row = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += u16::try_from(symbol.width().max(1)).unwrap();
        }
        assert!(x == buffer.area.width, "a character straddles the edge: {row:?}");
        row.trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect()
}

/// The runs of cells that have a style: row, columns, style.
fn styles(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let style = buffer[(x, y)].style();
            let start = x;
            while x < buffer.area.width && buffer[(x, y)].style() == style {
                x += 1;
            }
            let name = style_name(style);
            if !name.is_empty() {
                let _ = writeln!(text, "{y:>2} {start:>3}-{:<3} {name}", x - 1);
            }
        }
    }
    text
}

fn style_name(style: Style) -> String {
    let mut names = Vec::new();
    if let Some(color) = style.fg.filter(|color| *color != Color::Reset) {
        names.push(color.to_string());
    }
    if let Some(color) = style.bg.filter(|color| *color != Color::Reset) {
        names.push(format!("on {color}"));
    }
    names.extend(style.add_modifier.iter_names().map(|(name, _)| name.to_lowercase()));
    names.join(" ")
}

/// Compares screens of three sizes with a file, and the styles of the middle one. `BLESS=1` takes what there is for right.
#[track_caller]
pub(crate) fn check(name: &str, view: &SessionView, prepare: impl Fn(&mut Transcript)) {
    check_with(name, view, &theme(ColorDepth::Ansi16), prepare);
}

#[track_caller]
pub(crate) fn check_with(name: &str, view: &SessionView, theme: &Theme, prepare: impl Fn(&mut Transcript)) {
    let mut seen = String::new();
    for size in [(40, 12), (80, 24), (140, 40)] {
        let mut transcript = Transcript::new();
        transcript.set_root("/work");
        // What is chosen by keys depends on what was on the screen before.
        draw(&mut transcript, view, size, theme);
        prepare(&mut transcript);
        let buffer = draw(&mut transcript, view, size, theme);
        let _ = writeln!(seen, "--- {}x{}", size.0, size.1);
        let rows = rows(&buffer);
        let last = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        for row in &rows[..last] {
            seen.push_str(row);
            seen.push('\n');
        }
        if size.0 == 80 {
            let _ = write!(seen, "--- styles\n{}", styles(&buffer));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/transcript").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, seen).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(seen == kept, "{name} is not as it was; look at it, then BLESS=1\n--- was\n{kept}\n--- is\n{seen}");
}
