use super::*;
use crate::theme::{Background, ColorDepth};
use crate::wrap::spans_width;

fn shown(text: &str, width: usize) -> String {
    let theme = Theme::new(ColorDepth::None, Background::Dark, true);
    let lines = lines(text, width, &theme);
    assert!(lines.iter().all(|line| spans_width(&line.spans) <= width), "wider than {width}: {lines:?}");
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(text: &str, width: usize, expected: &str) {
    let seen = shown(text, width);
    assert!(seen == expected, "--- is\n{seen}\n--- expected\n{expected}");
}

#[test]
fn blocks_look_like_what_they_are() {
    check("# Title\n\nSome *text* with `code`.\n", 40, "# Title\n\nSome text with `code`.");
    check("- one\n- two\n  - deep\n- three", 40, "• one\n• two\n  • deep\n• three");
    check("1. one\n1. two\n   more\n\n   again", 40, "1. one\n2. two\n   more\n\n   again");
    check("- [x] done\n- [ ] open", 40, "• [x] done\n• [ ] open");
    check("> quoted\n> text\n\nafter", 40, "▌ quoted\n▌ text\n\nafter");
    check("a\n\n---\n\nb", 8, "a\n\n────────\n\nb");
    check("~~old~~ **new**", 40, "~~old~~ new");
    check("line  \nbreak", 40, "line\nbreak");
}

#[test]
fn addresses_are_seen() {
    check("[here](https://a.example/x)", 60, "here (https://a.example/x)");
    check("<https://a.example>", 60, "https://a.example");
    check("![cat](cat.png)", 60, "[image: cat] (cat.png)");
    check("see [1]\n\n[1]: https://a.example\n", 60, "see 1 (https://a.example)\n[1]: https://a.example");
}

#[test]
fn code_stands_behind_a_bar() {
    check("```rust\nlet x = 1;\n\nlet y;\n```", 40, "│ let x = 1;\n│\n│ let y;");
    check("```\nabcdefghij\n", 7, "│ abcde\n│ fghij");
    check("```py\nunfinished", 40, "│ unfinished");
    check("- item\n  ```\n  code\n  ```\n", 40, "• item\n  │ code");
    check("<b>html</b>\n\n<!-- seen -->\n", 40, "<b>html</b>\n\n<!-- seen -->");
}

#[test]
fn tables_fit() {
    let table = "| name | value |\n|:--|--:|\n| a | 1 |\n| long name here | 22 |\n";
    check(table, 40, "name           │ value\n───────────────┼──────\na              │     1\nlong name here │    22");
    check(table, 14, "name   │ value\n───────┼──────\na      │     1\nlong   │    22\nname   │\nhere   │");
    check(table, 8, "name: a\nvalue: 1\n────────\nname:\nlong\nname\nhere\nvalue:\n22");
    check("| 日本 | b |\n|-|-|\n| x | y |", 40, "日本 │ b\n─────┼──\nx    │ y");
}

/// However the text is cut into chunks, the lines are the same in the end.
#[test]
fn a_stream_ends_like_the_whole() {
    let text = "# T\n\nPara *one*\ntwo\n\n- a\n- b\n\n  c\n\n```rust\nfn f() {}\n// x\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n1. x\n1. y\n\n> q\n\nend";
    let theme = Theme::new(ColorDepth::True, Background::Dark, true);
    let whole = lines(text, 30, &theme);
    for size in [1, 2, 5, 13] {
        let mut stream = Stream::new(30, theme.clone());
        let mut seen = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            seen.extend(stream.push(chunk));
            rest = after;
        }
        // Most is there before the end.
        assert!(seen.len() + 4 >= whole.len(), "{} of {}", seen.len(), whole.len());
        seen.extend(stream.finish());
        assert_eq!(seen, whole, "in chunks of {size}");
    }
}

#[test]
fn no_nesting_breaks_the_layout() {
    for text in ["> ".repeat(5000), "- ".repeat(3000), "[".repeat(9000), "*a **b ".repeat(2000), "|".repeat(9000)] {
        for width in [1, 2, 5, 80] {
            let theme = Theme::new(ColorDepth::None, Background::Dark, false);
            let lines = lines(&text, width, &theme);
            assert!(lines.iter().all(|line| spans_width(&line.spans) <= width), "{width}");
        }
    }
}
