//! What a server sent, as text.

use encoding_rs::{Encoding, UTF_8};
use reqwest::Url;
use serde_json::{Value, json};

use super::html;
use crate::tools::Refusal;

/// What was read.
pub(super) struct Read {
    pub(super) url: Url,
    pub(super) content_type: String,
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// There was more.
    pub(super) is_cut: bool,
}

/// A page as text.
#[derive(Debug)]
pub(super) struct Page {
    /// A line about it.
    pub(super) summary: String,
    pub(super) text: String,
    /// The same as the summary, for programs.
    pub(super) facts: Value,
    /// The server says that it is what was asked for.
    pub(super) is_good: bool,
}

enum Kind {
    Html,
    Text,
    Binary,
    /// It has to be looked at.
    Unknown,
}

fn kind(content_type: &str) -> Kind {
    const TEXTS: [&str; 12] = [
        "json",
        "xml",
        "javascript",
        "ecmascript",
        "x-javascript",
        "yaml",
        "x-yaml",
        "toml",
        "x-sh",
        "sql",
        "graphql",
        "x-ndjson",
    ];
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.split_once('/') {
        Some(("text", "html")) | Some(("application", "xhtml+xml")) => Kind::Html,
        Some(("text", _)) => Kind::Text,
        Some((_, subtype)) if subtype.ends_with("+json") || subtype.ends_with("+xml") => Kind::Text,
        Some(("application", subtype)) if TEXTS.contains(&subtype) => Kind::Text,
        Some(("application", "octet-stream")) | None => Kind::Unknown,
        Some(_) => Kind::Binary,
    }
}

/// Refuses what is no text before it is read.
pub(super) fn check_type(content_type: &str, size: Option<u64>) -> Result<(), Refusal> {
    match kind(content_type) {
        Kind::Binary => Err(binary(content_type, size)),
        Kind::Html | Kind::Text | Kind::Unknown => Ok(()),
    }
}

fn binary(content_type: &str, size: Option<u64>) -> Refusal {
    let content_type = if content_type.is_empty() { "of unknown type" } else { content_type };
    let size = size.map(|size| format!(", {size} bytes")).unwrap_or_default();
    Refusal(format!("it is no text: {content_type}{size}\nhint: a command can download it"))
}

pub(super) fn make(read: Read) -> Result<Page, Refusal> {
    let Read { url, content_type, status, body, is_cut } = read;
    let text = decode(&content_type, &body);
    if text.contains('\0') {
        return Err(binary(&content_type, Some(body.len() as u64)));
    }
    let text = match kind(&content_type) {
        Kind::Html => html::to_text(&text, &url),
        Kind::Unknown if looks_like_html(&text) => html::to_text(&text, &url),
        // A character that is none in such a text: these are bytes of something else.
        Kind::Unknown if text.contains('\u{fffd}') => return Err(binary(&content_type, Some(body.len() as u64))),
        _ => text,
    };
    let essence = content_type.split(';').next().filter(|essence| !essence.is_empty()).unwrap_or("no type");
    let cut = if is_cut { ", cut off there" } else { "" };
    let summary = format!("{url}: HTTP {status}, {}, {} bytes{cut}", essence.trim(), body.len());
    let facts = json!({
        "url": url.as_str(),
        "status": status,
        "contentType": essence.trim(),
        "bytes": body.len(),
        "truncated": is_cut,
    });
    Ok(Page { summary, text, facts, is_good: (200..300).contains(&status) })
}

/// The bytes as text: by a byte order mark, by what the server says, by what the page says, else as UTF-8.
fn decode(content_type: &str, body: &[u8]) -> String {
    let said = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let label = lower.split("charset=").nth(1)?.trim_start_matches(['"', '\'', ' ']);
        let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c))).unwrap_or(label.len());
        Encoding::for_label(&label.as_bytes()[..end])
    };
    let in_page = || said(&String::from_utf8_lossy(&body[..body.len().min(1024)]));
    let is_html = matches!(kind(content_type), Kind::Html);
    let encoding = said(content_type).or_else(|| in_page().filter(|_| is_html)).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

fn looks_like_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(15).collect::<String>().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}
