//! A recording as a page: one self-contained HTML file, in which text of others is never markup.
//!
//! Everything is computed here; the page shows it. What it shows of a session at a moment comes from
//! [`SessionView`](attache_proto::view::SessionView): the page gets what each message changed of the view, and adds that up.

mod data;
mod fold;
mod text;

use attache_proto::base64;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::exchange::Message;
use crate::record::Record;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of a recording. It loads nothing and runs nothing but its own script.
pub fn page(name: &str, record: &Record) -> String {
    let data = data::data(name, record);
    // The data is text of a script element: nothing in it may look like the end of one, or like a comment.
    let data = data.to_string().replace('<', "\\u003c");
    let hash = |text: &str| base64::encode(&Sha256::digest(text.as_bytes()));
    let filled = [
        ("@SCRIPT-HASH@", hash(SCRIPT)),
        ("@STYLE-HASH@", hash(STYLE)),
        ("@STYLE@", STYLE.to_owned()),
        ("@SCRIPT@", SCRIPT.to_owned()),
        ("@DATA@", data),
    ];
    // One pass from the front: what was filled in is not looked at again.
    let mut page = String::new();
    let mut rest = PAGE;
    for (mark, text) in filled {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(&text);
        rest = after;
    }
    page + rest
}

/// A recording as lines of text: what the page shows, for a terminal.
pub fn text(record: &Record) -> String {
    text::text(record)
}

/// The texts of messages, of which an array of them has a part each.
#[derive(Default)]
struct OwnTexts<'r> {
    entry: Option<usize>,
    parts: Vec<&'r RawValue>,
}

impl<'r> OwnTexts<'r> {
    /// The text of a message without those that came with it. They are asked for in order.
    fn of(&mut self, message: &Message<'r>) -> &'r str {
        let Some(place) = message.in_batch else { return message.text };
        if self.entry.replace(message.entry) != Some(message.entry) {
            self.parts = serde_json::from_str(message.text).unwrap_or_default();
        }
        self.parts.get(place).map_or("", |part| part.get())
    }
}

#[cfg(test)]
mod tests;
