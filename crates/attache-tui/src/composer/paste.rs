//! What a pasted text is.

/// Longer text is shown as a label.
const LINES: usize = 8;
const CHARACTERS: usize = 1_000;

/// The most bytes that can be pasted: more than any model reads.
const LIMIT: usize = 8 * 1024 * 1024;

/// What became of a pasted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pasted {
    /// It is in the text.
    Inserted,
    /// It is in the text as a label.
    Chip,
    /// It looks like the path of an image, and is not in the text. If there is such a file, attach it; otherwise insert
    /// the path.
    MaybeImagePath(String),
    /// It is longer than can be sent, and not in the text.
    TooLong,
}

pub(super) fn judge(text: &str) -> Pasted {
    if text.len() > LIMIT {
        return Pasted::TooLong;
    }
    if let Some(path) = image_path(text) {
        return Pasted::MaybeImagePath(path);
    }
    let is_long = text.lines().nth(LINES).is_some() || text.chars().nth(CHARACTERS).is_some();
    if is_long { Pasted::Chip } else { Pasted::Inserted }
}

/// How long a text is, in words.
pub(super) fn measure(text: &str) -> String {
    match text.lines().count() {
        lines if lines > LINES => format!("{lines} lines"),
        _ => format!("{} characters", text.chars().count()),
    }
}

/// The path of an image, as file managers and terminals paste it: quoted, escaped, or as an address.
fn image_path(text: &str) -> Option<String> {
    let line = text.trim();
    if line.is_empty() || line.len() > 4096 || line.contains('\n') {
        return None;
    }
    let quoted = |quote: char| line.strip_prefix(quote).and_then(|line| line.strip_suffix(quote));
    let path = if let Some(path) = quoted('\'').or_else(|| quoted('"')) {
        path.to_owned()
    } else if line.starts_with("file://") {
        url::Url::parse(line).ok()?.to_file_path().ok()?.into_os_string().into_string().ok()?
    } else if !line.replace("\\ ", "").contains(' ') {
        line.replace("\\ ", " ")
    } else if line.starts_with(['/', '~']) {
        line.to_owned()
    } else {
        return None;
    };
    let (stem, extension) = path.rsplit_once('.')?;
    let is_image =
        ["png", "jpg", "jpeg", "gif", "webp", "bmp"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    let is_address = path.contains("://");
    (is_image && !stem.is_empty() && !is_address).then_some(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_an_image_is_seen() {
        for (text, path) in [
            ("/home/me/cat.png\n", Some("/home/me/cat.png")),
            ("'/home/me/my cat.JPG'", Some("/home/me/my cat.JPG")),
            ("/home/me/my\\ cat.gif", Some("/home/me/my cat.gif")),
            ("file:///home/me/my%20cat.webp", Some("/home/me/my cat.webp")),
            ("cat.png", Some("cat.png")),
            ("look at cat.png", None),
            ("https://example.com/cat.png", None),
            ("file:///%zz.png", Some("/%zz.png")),
            ("file:///%ff.png", None),
            ("file://elsewhere/cat.png", None),
            (".png", None),
            ("a.png\nb.png", None),
            ("notes.txt", None),
        ] {
            assert_eq!(image_path(text).as_deref(), path, "{text}");
        }
    }
}
