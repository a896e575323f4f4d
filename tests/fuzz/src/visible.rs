//! Text of others on a terminal and in JSON.

use attache_host::visible::{escaped_json, harmless, json, one_line, visible, visible_lines};

use crate::input::Input;

/// Whatever is made harmless has nothing left that acts, and stays as it is when it is made harmless again; JSON says the
/// same as before.
pub fn visible_text(data: &[u8]) {
    let mut input = Input::new(data);
    let odd = [
        "\u{1b}[",
        "\u{1b}]0;",
        "\u{7}",
        "m",
        "0;1",
        "\u{9b}",
        "\u{7f}",
        "\r",
        "\n",
        "\t",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "\u{200d}",
        "\u{fe0f}",
        "\u{e0041}",
        "\u{e0101}",
        "\u{2028}",
        "\u{feff}",
        "\u{ad}",
        "a",
        "\u{e9}",
        "\\u{1b}",
        "\"",
    ];
    let mut text = String::new();
    for _ in 0..input.below(40) {
        text.push_str(input.pick(&odd));
    }
    text.push_str(&String::from_utf8_lossy(input.rest()));

    let shown = harmless(&text);
    assert!(!shown.contains(|c| acts(c) && c != '\n' && c != '\t'), "{shown:?}");
    assert_eq!(harmless(&shown), shown);
    let run = shown.split(|c| !is_joiner(c)).map(|run| run.chars().count()).max().unwrap_or(0);
    assert!(run <= 2, "{shown:?}");
    assert!(!one_line(&text).contains(acts));
    let (strict, lines) = (visible(&text), visible_lines(&text));
    assert!(!strict.contains(|c| acts(c) || is_joiner(c)), "{strict:?}");
    assert!(!lines.contains(|c| (acts(c) || is_joiner(c)) && c != '\n' && c != '\t'), "{lines:?}");
    assert_eq!((visible(&strict), visible_lines(&lines)), (strict, lines));

    let written = json(&text);
    assert!(!written.contains(|c| acts(c) || is_joiner(c)), "{written:?}");
    assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    assert_eq!(escaped_json(&written), written);
}

/// By the properties that Unicode documents, and not by the table that is tested: what is a control, turns the direction,
/// ends a line, or belongs to the tags and variation selectors.
fn acts(c: char) -> bool {
    let is_hidden =
        matches!(u32::from(c), 0xAD | 0x200B | 0x2060..=0x2064 | 0xFEFF | 0xE0000..=0xE01EF | 0xFE00..=0xFE0D);
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_hidden || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}
