//! Code in colours.

use std::sync::OnceLock;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use syntect::highlighting::{FontStyle, HighlightIterator, HighlightState, Highlighter, ThemeSet};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use crate::theme::{Background, ColorDepth, Theme};

/// The longest code that is highlighted, in lines.
pub(crate) const MAX_LINES: usize = 2_000;

/// The longest code that is highlighted, in bytes.
pub(crate) const MAX_BYTES: usize = 200 << 10;

/// The longest line that is highlighted, in bytes: longer ones were not written by a person.
const MAX_LINE: usize = 2_000;

struct Assets {
    syntaxes: SyntaxSet,
    themes: ThemeSet,
}

fn assets() -> &'static Assets {
    static ASSETS: OnceLock<Assets> = OnceLock::new();
    ASSETS.get_or_init(|| Assets { syntaxes: SyntaxSet::load_defaults_newlines(), themes: ThemeSet::load_defaults() })
}

fn highlighter(background: Background) -> Option<&'static Highlighter<'static>> {
    static DARK: OnceLock<Option<Highlighter<'static>>> = OnceLock::new();
    static LIGHT: OnceLock<Option<Highlighter<'static>>> = OnceLock::new();
    let (cell, name) = match background {
        Background::Dark => (&DARK, "base16-ocean.dark"),
        Background::Light => (&LIGHT, "InspiredGitHub"),
    };
    cell.get_or_init(|| assets().themes.themes.get(name).map(Highlighter::new)).as_ref()
}

/// Loads what highlighting needs, which takes some tens of milliseconds: for a thread of its own, while there is nothing
/// to show.
pub fn preload(background: Background) {
    let _ = highlighter(background);
}

/// Prepares for code in a language, which takes some tens of milliseconds at its first line: for a thread of its own.
pub fn warm_up(language: &str, background: Background) {
    let theme = Theme::new(ColorDepth::True, background, true);
    if let Some(mut highlight) = Highlight::start(language, &theme) {
        highlight.line("word(1, \"two\");", &theme);
    }
}

/// The languages that the syntaxes have no name for, and the nearest that they have one for.
const LIKE: [(&str, &str); 14] = [
    ("cjs", "js"),
    ("console", "sh"),
    ("fish", "sh"),
    ("javascriptreact", "js"),
    ("jsonc", "json"),
    ("jsx", "js"),
    ("kotlin", "java"),
    ("kt", "java"),
    ("mjs", "js"),
    ("shell", "sh"),
    ("svelte", "html"),
    ("ts", "js"),
    ("tsx", "js"),
    ("typescript", "js"),
];

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let language = language.to_ascii_lowercase();
    let found = assets().syntaxes.find_syntax_by_token(&language).or_else(|| {
        let (_, like) = LIKE.iter().find(|(name, _)| *name == language)?;
        assets().syntaxes.find_syntax_by_token(like)
    });
    found.filter(|syntax| syntax.name != "Plain Text")
}

/// Where the highlighting of some code stands after a line.
#[derive(Clone)]
pub(crate) struct Highlight {
    parse: ParseState,
    style: HighlightState,
}

impl Highlight {
    /// The beginning of code in a language, named as after a fence or by the extension of a file. `None` if it is not
    /// known, or if there are no colours to show.
    pub(crate) fn start(language: &str, theme: &Theme) -> Option<Self> {
        if language.is_empty() || theme.depth == ColorDepth::None {
            return None;
        }
        let parse = ParseState::new(syntax(language)?);
        let style = HighlightState::new(highlighter(theme.background)?, ScopeStack::new());
        Some(Highlight { parse, style })
    }

    /// The next line, without its end. The text has to be clean already.
    pub(crate) fn line(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        let plain = || vec![Span::raw(line.to_owned())];
        let Some(highlighter) = highlighter(theme.background).filter(|_| line.len() <= MAX_LINE) else {
            return plain();
        };
        let ended = format!("{line}\n");
        let Ok(changes) = self.parse.parse_line(&ended, &assets().syntaxes) else { return plain() };
        let default = highlighter.get_default().foreground;
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (style, text) in HighlightIterator::new(&mut self.style, &changes, &ended, highlighter) {
            let text = text.trim_end_matches('\n');
            if text.is_empty() {
                continue;
            }
            let mut shown = Style::new();
            let color = style.foreground;
            if color != default {
                shown = shown.fg(code_color((color.r, color.g, color.b), theme));
            }
            if style.font_style.contains(FontStyle::BOLD) {
                shown = shown.add_modifier(Modifier::BOLD);
            }
            if style.font_style.contains(FontStyle::ITALIC) {
                shown = shown.add_modifier(Modifier::ITALIC);
            }
            let shown = theme.fit(shown);
            match spans.last_mut() {
                Some(span) if span.style == shown => span.content.to_mut().push_str(text),
                _ => spans.push(Span::styled(text.to_owned(), shown)),
            }
        }
        spans
    }
}

/// A colour of code. The themes have muted colours, for which the nearest of sixteen is grey: there the hue counts.
fn code_color((red, green, blue): (u8, u8, u8), theme: &Theme) -> Color {
    if theme.depth != ColorDepth::Ansi16 {
        return Color::Rgb(red, green, blue);
    }
    let (low, high) = (red.min(green).min(blue), red.max(green).max(blue));
    let range = i32::from(high - low);
    if range < 30 {
        return Color::DarkGray;
    }
    let share = |one: u8, other: u8| 60 * (i32::from(one) - i32::from(other)) / range;
    let hue = match high {
        _ if high == red => share(green, blue).rem_euclid(360),
        _ if high == green => 120 + share(blue, red),
        _ => 240 + share(red, green),
    };
    match hue {
        0..25 | 330.. => Color::Red,
        25..75 => Color::Yellow,
        75..160 => Color::Green,
        160..195 => Color::Cyan,
        // The blue of many palettes cannot be read on black.
        195..255 if theme.background == Background::Dark => Color::Cyan,
        195..255 => Color::Blue,
        _ => Color::Magenta,
    }
}

/// The language of a file, by its name.
pub(crate) fn language_of(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_colours_where_there_are_any() {
        let theme = Theme::new(ColorDepth::True, Background::Dark, true);
        let mut rust = Highlight::start("rust", &theme).unwrap();
        let spans = rust.line("fn main() {} // done", &theme);
        assert!(spans.len() > 3, "{spans:?}");
        assert_eq!(spans.iter().map(|span| &*span.content).collect::<String>(), "fn main() {} // done");
        // A comment goes on in the next line.
        let mut open = Highlight::start("rs", &theme).unwrap();
        open.line("/* one", &theme);
        assert_eq!(open.line("two", &theme).len(), 1);
        assert!(open.line("two", &theme)[0].style.fg.is_some());

        assert!(Highlight::start("tsx", &theme).is_some());
        assert!(Highlight::start("no such language", &theme).is_none());
        assert!(Highlight::start("rust", &Theme::new(ColorDepth::None, Background::Dark, true)).is_none());
        assert_eq!(language_of("/a.b/c.rs"), "rs");
        assert_eq!(language_of("/a/Makefile"), "Makefile");
    }
}
