//! What people see of something long that a tool found: its beginning, and how much more there is.

use attache::model::tool::ToolCallContent;
use serde_json::Value;

use crate::cut::clean;

/// How much is shown: about a screen. It is kept with the session, and the model gets more.
const MOST_LINES: usize = 60;
const MOST_BYTES: usize = 4 << 10;

/// How much of a list goes into a raw output.
const MOST_ITEMS: usize = 100;
const MOST_ITEM_BYTES: usize = 8 << 10;

/// The beginning of a text as a block of code. `more` lines are not even in the text.
pub(crate) fn excerpt(language: &str, text: &str, more: usize) -> ToolCallContent {
    let text = clean(text);
    let text = text.trim_end_matches('\n');
    let mut end = text.match_indices('\n').nth(MOST_LINES - 1).map_or(text.len(), |(at, _)| at);
    if end > MOST_BYTES {
        let most = text.floor_char_boundary(MOST_BYTES);
        // Whole lines, unless the first is too long by itself.
        end = text[..most].rfind('\n').unwrap_or(most);
    }
    let (shown, rest) = text.split_at(end);
    let hidden = rest.trim_start_matches('\n').lines().count() + more;
    let language = if language.chars().all(|c| c.is_ascii_alphanumeric()) { language } else { "" };
    match hidden {
        0 => fenced(language, shown),
        1 => fenced(language, &format!("{shown}\n[… 1 more line]")),
        hidden => fenced(language, &format!("{shown}\n[… {hidden} more lines]")),
    }
}

/// The first of some texts, as many as a raw output holds.
pub(crate) fn first_items<'a>(items: impl IntoIterator<Item = &'a String>) -> Value {
    let mut bytes = 0;
    let fits = |item: &&String| {
        bytes += item.len();
        bytes <= MOST_ITEM_BYTES
    };
    items.into_iter().take(MOST_ITEMS).take_while(fits).map(String::as_str).collect()
}

/// Text as a block of Markdown that nothing in it can end.
pub(crate) fn fenced(language: &str, text: &str) -> ToolCallContent {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    ToolCallContent::text(format!("{fence}{language}\n{text}{line_end}{fence}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn text(content: ToolCallContent) -> String {
        let ToolCallContent::Content(block) = content else { panic!("no content") };
        block.content.as_text().unwrap_or_default().to_owned()
    }

    #[test]
    fn what_is_short_is_shown_whole() {
        assert_eq!(text(excerpt("rs", "fn main() {}\n", 0)), "```rs\nfn main() {}\n```");
        assert_eq!(text(excerpt("c++ `", "a", 2)), "```\na\n[… 2 more lines]\n```");
        assert_eq!(text(excerpt("", "", 0)), "```\n```");
        assert_eq!(text(excerpt("", "\x1b[31mred\x1b[0m\0", 0)), "```\nred\n```");
    }

    #[test]
    fn what_is_long_is_cut_between_lines() {
        let long: String = (1..=100).map(|number| format!("line {number}\n")).collect();
        let shown = text(excerpt("", &long, 900));
        assert!(shown.ends_with("\nline 60\n[… 940 more lines]\n```"), "{shown}");
        let wide: String = format!("{}\n", "é".repeat(700)).repeat(10);
        let shown = text(excerpt("", &wide, 0));
        assert!(shown.len() < MOST_BYTES + 100 && shown.ends_with("é\n[… 8 more lines]\n```"), "{shown}");
        let one = text(excerpt("", &"é".repeat(1 << 20), 0));
        assert!(one.len() < MOST_BYTES + 100 && one.ends_with("é\n[… 1 more line]\n```"), "{one}");
    }

    #[test]
    fn a_block_cannot_be_ended_from_inside() {
        assert_eq!(text(fenced("console", "a\n```\nb ````")), "`````console\na\n```\nb ````\n`````");
    }

    #[test]
    fn a_list_in_a_raw_output_is_bounded() {
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        assert_eq!(first_items(&many).as_array().map(Vec::len), Some(MOST_ITEMS));
        let wide: Vec<String> = vec!["x".repeat(1000); 50];
        assert_eq!(first_items(&wide).as_array().map(Vec::len), Some(8));
    }
}
