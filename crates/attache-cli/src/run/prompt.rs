//! The prompt: text from the command line, a file or stdin, and what is attached to it.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use attache::model::capability::PromptCapabilities;
use attache::model::content::{
    BlobResource, ContentBlock, EmbeddedResource, ImageContent, ResourceContents, ResourceLink, TextResource,
};
use attache::proto::base64;

use crate::exit::Failure;

/// The most that is read from stdin or a prompt file: what fits into one message with room to spare.
const LONGEST_TEXT: u64 = 16 << 20;

/// A file up to this size is embedded, a longer one linked: more would fill a model's context.
const LARGEST_EMBEDDED: u64 = 1 << 20;

/// The largest image.
const LARGEST_IMAGE: u64 = 20 << 20;

/// What a person asks, before it is known what the agent takes.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) text: String,
    attachments: Vec<PathBuf>,
    images: Vec<(PathBuf, Vec<u8>, &'static str)>,
    /// Words like `@this` that name no file.
    pub(crate) unmatched: Vec<String>,
}

impl Question {
    /// Reads it. May wait for stdin.
    pub(crate) fn read(
        prompt: Option<&str>,
        file: Option<&Path>,
        attach: &[PathBuf],
        images: &[PathBuf],
        cwd: &Path,
    ) -> Result<Self, Failure> {
        let stdin = || match piped_stdin() {
            true => read_limited(&mut io::stdin(), "stdin"),
            false => Ok(String::new()),
        };
        let mut text = match (prompt, file) {
            (Some("-"), _) => read_limited(&mut io::stdin(), "stdin")?,
            (Some(prompt), _) => join(prompt, &stdin()?),
            (None, Some(path)) => {
                let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
                join(&read_limited(&mut file, &path.display().to_string())?, &stdin()?)
            }
            (None, None) => stdin()?,
        };
        text.truncate(text.trim_end().len());
        if text.is_empty() {
            return Err(Failure::usage("there is no prompt\nhint: give it in quotes, with -f FILE, or on stdin"));
        }
        let mut question = Question { text, attachments: Vec::new(), images: Vec::new(), unmatched: Vec::new() };
        question.find_mentions(prompt.unwrap_or_default(), cwd);
        for path in attach {
            let path = cwd.join(path);
            fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
            question.attach(path);
        }
        for path in images {
            let path = cwd.join(path);
            let data = read_image(&path)?;
            let kind = image_kind(&data).ok_or_else(|| {
                Failure::usage(format!(
                    "`{}` is no image\nhint: PNG, JPEG, GIF and WebP are understood",
                    path.display()
                ))
            })?;
            question.images.push((path, data, kind));
        }
        Ok(question)
    }

    /// Words like `@src/main.rs` that name a file attach it. Only what the person typed is searched: what comes
    /// through a pipe is not theirs to say.
    fn find_mentions(&mut self, typed: &str, cwd: &Path) {
        for word in typed.split_whitespace() {
            let Some(name) = word.strip_prefix('@') else { continue };
            let bare = name.trim_end_matches([',', '.', ';', ':', '!', '?', ')']);
            match [name, bare].iter().find(|name| !name.is_empty() && cwd.join(name).exists()) {
                Some(name) => self.attach(cwd.join(name)),
                None if bare.is_empty() => {}
                None => self.unmatched.push(word.to_owned()),
            }
        }
    }

    fn attach(&mut self, path: PathBuf) {
        if !self.attachments.contains(&path) {
            self.attachments.push(path);
        }
    }

    /// Whether the agent takes all of it in one form or another.
    pub(crate) fn check(&self, offered: &PromptCapabilities) -> Result<(), Failure> {
        match self.images.is_empty() || offered.image.is_some() {
            true => Ok(()),
            false => {
                let hint = "hint: leave out --image, or choose another agent or model";
                Err(Failure::usage(format!("the agent takes no images\n{hint}")))
            }
        }
    }

    /// The content of the prompt, in forms that the agent takes.
    pub(crate) fn blocks(&self, offered: &PromptCapabilities) -> Result<Vec<ContentBlock>, Failure> {
        let mut blocks = vec![ContentBlock::text(&*self.text)];
        for path in &self.attachments {
            let embedded = if offered.embedded_context.is_some() { embed(path)? } else { None };
            blocks.push(embedded.unwrap_or_else(|| link(path)));
        }
        for (path, data, kind) in &self.images {
            let image = ImageContent::new(base64::encode(data), *kind).uri(uri(path));
            blocks.push(ContentBlock::Image(Box::new(image)));
        }
        Ok(blocks)
    }
}

/// Whether stdin brings something: a pipe, a file or a socket, but no terminal and no `/dev/null`.
fn piped_stdin() -> bool {
    let kind = fs::metadata("/dev/stdin").map(|metadata| metadata.file_type());
    !io::stdin().is_terminal() && kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file() || kind.is_socket())
}

fn join(prompt: &str, context: &str) -> String {
    if context.trim().is_empty() { prompt.to_owned() } else { format!("{prompt}\n\n{context}") }
}

fn read_limited(source: &mut dyn Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = source.take(LONGEST_TEXT + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("cannot read `{name}`: {error}")))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        let hint = "hint: attach it with --attach FILE";
        return Err(Failure::usage(format!("`{name}` is longer than 16 MiB\n{hint}")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("`{name}` is not UTF-8 text")))
}

/// The content of a file as a block; `None` when it is a directory or too long, which are linked.
fn embed(path: &Path) -> Result<Option<ContentBlock>, Failure> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() || metadata.len() > LARGEST_EMBEDDED {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    file.take(LARGEST_EMBEDDED + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > LARGEST_EMBEDDED {
        return Ok(None);
    }
    let resource: ResourceContents = match String::from_utf8(bytes) {
        Ok(text) => TextResource::new(text, uri(path)).into(),
        Err(error) => BlobResource::new(base64::encode(error.as_bytes()), uri(path)).into(),
    };
    Ok(Some(ContentBlock::Resource(Box::new(EmbeddedResource::new(resource)))))
}

fn link(path: &Path) -> ContentBlock {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len());
    ContentBlock::ResourceLink(Box::new(ResourceLink::new(name, uri(path)).with(|link| link.size = size)))
}

fn read_image(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    file.take(LARGEST_IMAGE + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > LARGEST_IMAGE {
        return Err(Failure::usage(format!("`{}` is larger than 20 MiB", path.display())));
    }
    Ok(bytes)
}

/// The type of an image, by its first bytes.
fn image_kind(data: &[u8]) -> Option<&'static str> {
    match data {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// A `file:` address. What is not plain in an address is written as `%XX`.
fn uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read `{}`: {error}", path.display()))
}
