//! Content that is not text, as the words that stand for it.

use attache_proto::model::content::{ContentBlock, ResourceContents};

use crate::wrap::clean_line;

/// What stands for content that is not text. `None` for text.
pub(crate) fn placeholder(block: &ContentBlock) -> Option<String> {
    let shown = match block {
        ContentBlock::Text(_) => return None,
        ContentBlock::Image(image) => {
            let name = image.uri.as_deref().map(|uri| format!(" {}", clean_line(uri))).unwrap_or_default();
            format!("[image {}, {}]{name}", subtype(&image.mime_type), size(decoded_length(&image.data)))
        }
        ContentBlock::Audio(audio) => {
            format!("[audio {}, {}]", subtype(&audio.mime_type), size(decoded_length(&audio.data)))
        }
        ContentBlock::ResourceLink(link) => {
            let name = clean_line(link.title.as_deref().unwrap_or(&link.name));
            let bytes = link.size.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
            format!("[{name}{bytes}] {}", clean_line(&link.uri))
        }
        ContentBlock::Resource(embedded) => {
            let uri = clean_line(embedded.resource.uri());
            match &embedded.resource {
                ResourceContents::Text(resource) => {
                    let lines = resource.text.lines().count();
                    format!("[resource, {}] {uri}", counted(lines, "line"))
                }
                ResourceContents::Blob(resource) => {
                    let kind = resource.mime_type.as_deref().map(subtype).unwrap_or_else(|| "binary".into());
                    format!("[resource {kind}, {}] {uri}", size(decoded_length(&resource.blob)))
                }
            }
        }
        _ => "[content of an unknown kind]".to_owned(),
    };
    Some(shown)
}

/// The second half of a media type: `png` of `image/png`.
fn subtype(mime_type: &str) -> String {
    clean_line(mime_type.rsplit('/').next().unwrap_or_default())
}

fn decoded_length(base64: &str) -> u64 {
    let padding = base64.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    (base64.len() as u64 / 4 * 3).saturating_sub(padding as u64)
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A number of things: `1 line`, `2 lines`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(count))
}

/// A number with its digits in groups: `12,345`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_proto::model::content::ImageContent;

    #[test]
    fn what_is_not_text_is_named() {
        let image = ContentBlock::from(ImageContent::new("A".repeat(16_000), "image/png"));
        assert_eq!(placeholder(&image).as_deref(), Some("[image png, 12 KB]"));
        assert_eq!(placeholder(&"text".into()), None);
        assert_eq!([size(999), size(1_001), size(2_345_678)], ["999 B", "2 KB", "2.3 MB"]);
        assert_eq!([counted(1, "line"), counted(1234567, "line")], ["1 line", "1,234,567 lines"]);
    }
}
