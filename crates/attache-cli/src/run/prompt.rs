//! The prompt: text from the command line, a file or stdin, and what is attached to it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use attache::model::capability::PromptCapabilities;
use attache::model::content::{
    BlobResource, ContentBlock, EmbeddedResource, ImageContent, ResourceContents, ResourceLink, TextResource,
};
use attache::proto::base64;
use attache_host::files::{FileError, Files, Place, open_named, resolve_named};
use attache_host::permission::is_secret;

use crate::connect::here;
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
    attachments: Vec<Attachment>,
    images: Vec<(PathBuf, Vec<u8>, &'static str)>,
    /// What is left as text of words like `@this`, and why: sentences for the person.
    pub(crate) unmatched: Vec<String>,
}

/// A file or a directory that goes along with the prompt, as it was read when it was named.
#[derive(Debug)]
struct Attachment {
    /// Where it is, without links.
    path: PathBuf,
    /// How long it is; `None` for a directory.
    size: Option<u64>,
    /// What is in it, unless it is a directory or too long to be embedded.
    content: Option<Vec<u8>>,
}

impl Question {
    /// Reads it. May wait for stdin.
    pub(crate) fn read(
        prompt: Option<&str>,
        file: Option<&Path>,
        attach: &[PathBuf],
        images: &[PathBuf],
        directories: &[PathBuf],
        cwd: &Path,
    ) -> Result<Self, Failure> {
        let stdin = || match piped_stdin() {
            true => read_limited(&mut io::stdin(), "stdin"),
            false => Ok(String::new()),
        };
        let mut text = match (prompt, file) {
            (Some("-"), None) => read_limited(&mut io::stdin(), "stdin")?,
            (Some("-"), Some(path)) => join(&read_limited(&mut io::stdin(), "stdin")?, &read_prompt_file(path, cwd)?),
            (prompt, Some(path)) if path == Path::new("/dev/stdin") => {
                join(prompt.unwrap_or_default(), &read_limited(&mut io::stdin(), "stdin")?)
            }
            (Some(prompt), Some(path)) => join(&join(prompt, &read_prompt_file(path, cwd)?), &stdin()?),
            (Some(prompt), None) => join(prompt, &stdin()?),
            (None, Some(path)) => join(&read_prompt_file(path, cwd)?, &stdin()?),
            (None, None) => stdin()?,
        };
        text.truncate(text.trim_end().len());
        if text.is_empty() {
            return Err(Failure::usage("there is no prompt\nhint: give it in quotes, with -f FILE, or on stdin"));
        }
        Question::new(text, prompt.unwrap_or_default(), attach, images, directories, cwd)
    }

    /// A prompt with what is attached to it. Only what was `typed` by hand can name files by `@`.
    pub(crate) fn new(
        text: String,
        typed: &str,
        attach: &[PathBuf],
        images: &[PathBuf],
        directories: &[PathBuf],
        cwd: &Path,
    ) -> Result<Self, Failure> {
        let mut question = Question { text, attachments: Vec::new(), images: Vec::new(), unmatched: Vec::new() };
        question.find_mentions(typed, directories, cwd);
        for path in attach {
            let path = resolve_named(&cwd.join(path), Some(cwd)).map_err(refused)?;
            question.attach(match path.is_dir() {
                true => Attachment { path, size: None, content: None },
                false => Attachment::read(open_by_hand(&path, cwd)?)?,
            });
        }
        for path in images {
            let (file, path) = open_by_hand(&cwd.join(path), cwd)?;
            let data = read_image(file, &path)?;
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

    /// A prompt that came as data: nothing in it is looked at.
    pub(crate) fn plain(text: String) -> Self {
        Question { text, attachments: Vec::new(), images: Vec::new(), unmatched: Vec::new() }
    }

    /// Words like `@src/main.rs` that name a file attach it. Only what the person typed is searched: what comes
    /// through a pipe is not theirs to say.
    ///
    /// Yet a script may have put somebody else's words into what was typed. So a mention is not as good as `--attach`: it
    /// has to be a plain file of the session's directories, and none that may hold secrets.
    fn find_mentions(&mut self, typed: &str, directories: &[PathBuf], cwd: &Path) {
        let mut files = None;
        for word in typed.split_whitespace() {
            let Some(name) = word.strip_prefix('@') else { continue };
            let bare = name.trim_end_matches([',', '.', ';', ':', '!', '?', ')']);
            let Some(name) = [name, bare].into_iter().find(|name| !name.is_empty() && cwd.join(name).exists()) else {
                if !bare.is_empty() {
                    self.unmatched.push(format!("`{word}` names no file here and is left as text"));
                }
                continue;
            };
            let opened = files.get_or_insert_with(|| Files::open(cwd, directories).map_err(|error| error.to_string()));
            self.mention(word, name, opened, cwd);
        }
    }

    /// Attaches files that were chosen from a list, whatever they are called: the same as a word that names one.
    pub(crate) fn mention_chosen(&mut self, names: &[&String], directories: &[PathBuf], cwd: &Path) {
        if names.is_empty() {
            return;
        }
        let opened = Files::open(cwd, directories).map_err(|error| error.to_string());
        for name in names {
            self.mention(&format!("@{name}"), name, &opened, cwd);
        }
    }

    fn mention(&mut self, word: &str, name: &str, files: &Result<Files, String>, cwd: &Path) {
        let path = cwd.join(name);
        let attachment = match files {
            Ok(files) => mentioned(files, &path),
            Err(error) => Err(error.clone()),
        };
        match attachment {
            Ok(attachment) => self.attach(attachment),
            Err(why) => {
                let why = why.lines().next().unwrap_or_default();
                // A link that leads out of the repository is not attached by its name.
                let name = match resolve_named(&path, Some(cwd)) {
                    Err(FileError::LeadsOut { path, .. }) => path.display().to_string(),
                    _ => name.to_owned(),
                };
                let hint = format!("hint: `--attach {name}` attaches it if you mean it");
                self.unmatched.push(format!("`{word}` is not attached and is left as text: {why}\n{hint}"));
            }
        }
    }

    fn attach(&mut self, attachment: Attachment) {
        if !self.attachments.iter().any(|known| known.path == attachment.path) {
            self.attachments.push(attachment);
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
        for attachment in &self.attachments {
            let embedded = offered.embedded_context.as_ref().and_then(|_| attachment.embedded());
            blocks.push(embedded.unwrap_or_else(|| attachment.link()));
        }
        for (path, data, kind) in &self.images {
            let image = ImageContent::new(base64::encode(data), *kind).uri(uri(path));
            blocks.push(ContentBlock::Image(Box::new(image)));
        }
        Ok(blocks)
    }
}

/// Whether stdin brings something: a pipe, a file or a socket, but no terminal and no `/dev/null`.
#[cfg(unix)]
fn piped_stdin() -> bool {
    use std::io::IsTerminal;
    use std::os::unix::fs::FileTypeExt;
    let kind = std::fs::metadata("/dev/stdin").map(|metadata| metadata.file_type());
    !io::stdin().is_terminal() && kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file() || kind.is_socket())
}

/// Whether stdin brings something: a pipe, a file or a socket, but no console and no `NUL`.
#[cfg(windows)]
fn piped_stdin() -> bool {
    use std::os::windows::io::AsRawHandle;
    use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType};
    // SAFETY: asks about a handle, which may be none.
    let kind = unsafe { GetFileType(io::stdin().as_raw_handle()) };
    matches!(kind, FILE_TYPE_DISK | FILE_TYPE_PIPE)
}

fn read_prompt_file(path: &Path, cwd: &Path) -> Result<String, Failure> {
    let (mut file, path) = open_by_hand(&here()?.join(path), cwd)?;
    read_limited(&mut file, &path.display().to_string())
}

fn join(prompt: &str, context: &str) -> String {
    if prompt.is_empty() {
        return context.to_owned();
    }
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

impl Attachment {
    /// Reads a file that is open, as far as it can be embedded.
    fn read((file, path): (File, PathBuf)) -> Result<Self, Failure> {
        let size = file.metadata().map_err(|error| unreadable(&path, &error))?.len();
        let mut bytes = Vec::new();
        file.take(LARGEST_EMBEDDED + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&path, &error))?;
        let content = Some(bytes).filter(|bytes| bytes.len() as u64 <= LARGEST_EMBEDDED);
        Ok(Attachment { path, size: Some(size), content })
    }

    /// Its content as a block; `None` when it is a directory or too long.
    fn embedded(&self) -> Option<ContentBlock> {
        let bytes = self.content.as_ref()?;
        let resource: ResourceContents = match std::str::from_utf8(bytes) {
            Ok(text) => TextResource::new(text, uri(&self.path)).into(),
            Err(_) => BlobResource::new(base64::encode(bytes), uri(&self.path)).into(),
        };
        Some(ContentBlock::Resource(Box::new(EmbeddedResource::new(resource))))
    }

    fn link(&self) -> ContentBlock {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned();
        let link = ResourceLink::new(name, uri(&self.path)).with(|link| link.size = self.size);
        ContentBlock::ResourceLink(Box::new(link))
    }
}

/// A file or a directory of the session's directories that the prompt mentions, or why it cannot be attached.
fn mentioned(files: &Files, path: &Path) -> Result<Attachment, String> {
    let place = files.place(path).map_err(|error| error.to_string())?;
    if !place.path().is_dir() {
        let opened = files.open_unasked(path).map_err(|error| error.to_string())?;
        return Attachment::read(opened).map_err(|failure| failure.message);
    }
    match place {
        Place::Inside { relative, .. } if is_secret(&relative) => Err("it may hold secrets".into()),
        Place::Inside { path, .. } => Ok(Attachment { path, size: None, content: None }),
        Place::Outside { path } => Err(FileError::Outside { path }.to_string()),
    }
}

/// Opens a plain file that the person named on the command line.
fn open_by_hand(path: &Path, cwd: &Path) -> Result<(File, PathBuf), Failure> {
    open_named(path, Some(cwd)).map_err(refused)
}

fn refused(error: FileError) -> Failure {
    let hint = match error {
        FileError::NotAFile { .. } => "\nhint: what comes through a pipe can be given on stdin",
        _ => "",
    };
    Failure::usage(format!("{error}{hint}"))
}

fn read_image(file: File, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
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
    if cfg!(windows)
        && let Some(uri) = attache_host::paths::to_uri(path)
    {
        return uri;
    }
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
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
