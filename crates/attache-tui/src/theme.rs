//! Colours and signs.

use ratatui::style::{Color, Modifier, Style};

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColorDepth {
    /// None: `NO_COLOR`, or a terminal that has none.
    None,
    /// The sixteen of the terminal's own palette.
    Ansi16,
    /// The 256 of xterm.
    Ansi256,
    /// Any.
    True,
}

/// What the background of the terminal is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Dark.
    Dark,
    /// Light.
    Light,
}

/// The styles and signs of a screen. Every meaning has a sign or a word besides its colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// How many colours may be used.
    pub depth: ColorDepth,
    /// What they are seen on.
    pub background: Background,
    /// Whether signs beyond ASCII may be used.
    pub is_unicode: bool,
    /// Ordinary text.
    pub text: Style,
    /// What is less important.
    pub dim: Style,
    /// What can be acted upon, and what has the focus.
    pub accent: Style,
    /// The person's own words.
    pub user: Style,
    /// Thoughts of the agent.
    pub thought: Style,
    /// Something that went well.
    pub success: Style,
    /// Something to look at.
    pub warning: Style,
    /// Something that failed.
    pub error: Style,
    /// Lines that a change adds, and words within them.
    pub added: Style,
    /// Words within an added line that differ.
    pub added_word: Style,
    /// Lines that a change removes.
    pub removed: Style,
    /// Words within a removed line that differ.
    pub removed_word: Style,
    /// Code within a text.
    pub code: Style,
    /// The row that is chosen.
    pub selected: Style,
    /// Frames.
    pub border: Style,
}

impl Theme {
    /// The theme for a terminal.
    pub fn new(depth: ColorDepth, background: Background, is_unicode: bool) -> Self {
        let plain = Style::new();
        let color = |color: Color| if depth == ColorDepth::None { plain } else { plain.fg(color) };
        let bold = |style: Style| style.add_modifier(Modifier::BOLD);
        // Backgrounds leave the foreground to the highlighting of code. With sixteen colours there are no tints, and
        // the yellow of most palettes cannot be read on white.
        let has_tints = depth >= ColorDepth::Ansi256;
        let is_light = background == Background::Light;
        let tint = |dark: (u8, u8, u8), light: (u8, u8, u8)| {
            let (red, green, blue) = if is_light { light } else { dark };
            plain.bg(fitted(Color::Rgb(red, green, blue), depth))
        };
        let word = |style: Style| bold(style).add_modifier(Modifier::UNDERLINED);
        let (added, added_word, removed, removed_word) = if has_tints {
            (
                tint((16, 48, 28), (221, 248, 226)),
                bold(tint((24, 96, 48), (166, 232, 184))),
                tint((64, 22, 26), (255, 229, 228)),
                bold(tint((128, 36, 42), (255, 190, 188))),
            )
        } else {
            let (green, red) = (color(Color::Green), color(Color::Red));
            (green, word(green), red, word(red))
        };
        let yellow = if has_tints && is_light { fitted(Color::Rgb(140, 95, 0), depth) } else { Color::Yellow };
        let cyan = if has_tints && is_light { fitted(Color::Rgb(0, 105, 135), depth) } else { Color::Cyan };
        Theme {
            depth,
            background,
            is_unicode,
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            accent: bold(color(cyan)),
            user: bold(plain),
            thought: plain.add_modifier(Modifier::DIM | Modifier::ITALIC),
            success: color(Color::Green),
            warning: color(yellow),
            error: bold(color(Color::Red)),
            added,
            added_word,
            removed,
            removed_word,
            code: color(Color::Magenta),
            selected: plain.add_modifier(Modifier::REVERSED),
            border: plain.add_modifier(Modifier::DIM),
        }
    }

    /// The sign, or what stands for it where only ASCII can be shown.
    pub fn sign(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.is_unicode { unicode } else { ascii }
    }

    /// A style with the nearest colours that the terminal has.
    pub fn fit(&self, style: Style) -> Style {
        fit_style(style, self.depth)
    }
}

/// A style with the nearest colours that a terminal of this depth has.
pub(crate) fn fit_style(mut style: Style, depth: ColorDepth) -> Style {
    style.fg = style.fg.map(|color| fitted(color, depth)).filter(|color| *color != Color::Reset);
    style.bg = style.bg.map(|color| fitted(color, depth)).filter(|color| *color != Color::Reset);
    style
}

/// The sixteen colours in the order of their numbers, as xterm shows them.
const PALETTE: [(Color, (u8, u8, u8)); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];

/// The levels of each colour in the cube of the 256.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn fitted(color: Color, depth: ColorDepth) -> Color {
    match (color, depth) {
        (_, ColorDepth::None) => Color::Reset,
        // By name, because a terminal with sixteen colours does not know the sequence for numbers.
        (Color::Indexed(index @ 0..16), _) => PALETTE[usize::from(index)].0,
        (Color::Rgb(red, green, blue), ColorDepth::Ansi256) => Color::Indexed(nearest_of_256((red, green, blue))),
        (Color::Rgb(red, green, blue), ColorDepth::Ansi16) => nearest_of_16((red, green, blue)),
        (Color::Indexed(index), ColorDepth::Ansi16) => nearest_of_16(rgb_of(index)),
        (color, _) => color,
    }
}

fn distance(one: (u8, u8, u8), other: (u8, u8, u8)) -> u32 {
    let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    square(one.0, other.0) + square(one.1, other.1) + square(one.2, other.2)
}

fn nearest_of_16(rgb: (u8, u8, u8)) -> Color {
    PALETTE.iter().min_by_key(|(_, known)| distance(rgb, *known)).map_or(Color::Reset, |(color, _)| *color)
}

fn nearest_of_256(rgb: (u8, u8, u8)) -> u8 {
    (16..=255).min_by_key(|index| distance(rgb, rgb_of(*index))).unwrap_or(15)
}

/// What a number from 16 stands for: a cube of 6 × 6 × 6, then greys.
fn rgb_of(index: u8) -> (u8, u8, u8) {
    match index {
        0..16 => PALETTE[usize::from(index)].1,
        16..232 => {
            let level = |step: u8| CUBE[usize::from((index - 16) / step % 6)];
            (level(36), level(6), level(1))
        }
        232.. => {
            let grey = 8 + (index - 232) * 10;
            (grey, grey, grey)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_mapped_down_to_what_the_terminal_has() {
        let orange = Color::Rgb(255, 135, 0);
        let rows = [
            (orange, ColorDepth::True, orange),
            (orange, ColorDepth::Ansi256, Color::Indexed(208)),
            (orange, ColorDepth::Ansi16, Color::Yellow),
            (orange, ColorDepth::None, Color::Reset),
            (Color::Indexed(1), ColorDepth::Ansi16, Color::Red),
            (Color::Indexed(1), ColorDepth::True, Color::Red),
            (Color::Indexed(196), ColorDepth::Ansi16, Color::LightRed),
            (Color::Indexed(250), ColorDepth::Ansi256, Color::Indexed(250)),
            (Color::Rgb(250, 250, 250), ColorDepth::Ansi16, Color::White),
        ];
        for (color, depth, seen) in rows {
            assert_eq!(fitted(color, depth), seen, "{color:?} {depth:?}");
        }
    }

    #[test]
    fn a_theme_without_colours_has_none() {
        for background in [Background::Dark, Background::Light] {
            let theme = Theme::new(ColorDepth::None, background, false);
            let styles = [
                theme.text,
                theme.dim,
                theme.accent,
                theme.user,
                theme.thought,
                theme.success,
                theme.warning,
                theme.error,
                theme.added,
                theme.added_word,
                theme.removed,
                theme.removed_word,
                theme.code,
                theme.selected,
                theme.border,
            ];
            assert!(styles.iter().all(|style| style.fg.is_none() && style.bg.is_none()));
        }
    }
}
