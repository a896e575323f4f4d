//! Reading and writing the text of a file: through the client where it offers that, else by ourselves.

use attache::Error;
use attache::agent::SessionHandle;
use attache_host::files::{EntryKind, FileError};

use super::{Target, Text, TextError, Workspace, blocking, refusal, text};
use crate::tools::Refusal;

/// How many bytes a file may have that is read as a whole. A change of it goes over the wire twice, old and new, and has
/// to fit into one message.
pub(crate) const TEXT_LIMIT: usize = 4 << 20;

impl Workspace {
    /// The text of a file, with changes that are not saved yet where the client has an editor.
    pub(crate) async fn read_text(&self, target: &Target) -> Result<Text, Refusal> {
        check_file(target)?;
        let (files, real) = (self.files_for(&[target]), target.real.clone());
        let bytes =
            blocking(move || files.read_bytes(&real, TEXT_LIMIT)).await?.map_err(|error| too_large(target, &error))?;
        let on_disk = Text::decode(bytes).map_err(|error| not_text(target, error))?;
        // Editors speak of text; whether one of them would take this encoding is not known.
        let Some(client) = self.reader(target).filter(|_| on_disk.is_utf8()) else { return Ok(on_disk) };
        let content = client.read_text_file(target.path.as_str()).await.map_err(|error| refused(target, &error))?;
        if content.len() > TEXT_LIMIT {
            return Err(larger(target));
        }
        let mut text = Text::from_marked(content);
        // An editor may keep the mark to itself, and then puts it back when it writes.
        if self.writer(target).is_none() {
            text.encoding = on_disk.encoding;
        }
        Ok(text)
    }

    /// Some lines of a text that is too large to be read as a whole.
    pub(crate) async fn read_lines(&self, target: &Target, line: u32, limit: u32) -> Result<String, Refusal> {
        check_file(target)?;
        if let Some(client) = self.reader(target) {
            let lines = client.read_lines(target.path.as_str(), Some(line), Some(limit)).await;
            return lines.map_err(|error| refused(target, &error));
        }
        let (files, real) = (self.files_for(&[target]), target.real.clone());
        let lines = blocking(move || files.read_lines(&real, Some(line), Some(limit))).await?;
        lines.map_err(|error| refusal(&error))
    }

    /// Writes a file.
    pub(crate) async fn write_text(&self, target: &Target, text: &Text) -> Result<(), Refusal> {
        if let Some(c) = text.unwritable() {
            let name = &target.name;
            return Err(Refusal(format!("`{name}` is written in Latin-1, which does not have the character `{c}`")));
        }
        if let Some(client) = self.writer(target).filter(|_| text.is_utf8()) {
            // Editors make files, but not all of them make directories.
            if target.info.is_none() {
                let (files, real) = (self.files_for(&[target]), target.real.clone());
                blocking(move || files.create_parents(&real)).await?.map_err(|error| refusal(&error))?;
            }
            let written = client.write_text_file(target.path.as_str(), text.marked()).await;
            written.map_err(|error| refused(target, &error))?;
        } else {
            let (files, real) = (self.files_for(&[target]), target.real.clone());
            let is_from_editor = self.reader(target).is_some();
            let new = text.clone();
            let write = move || {
                let bytes = match files.read_bytes(&real, TEXT_LIMIT).map(Text::decode) {
                    // The editor showed its own line ends. The file keeps those that it has on the disk.
                    Ok(Ok(old)) if is_from_editor => Text { encoding: new.encoding, ..old.with(new.content) }.encode(),
                    _ => new.encode(),
                };
                files.write_bytes(&real, &bytes)
            };
            blocking(write).await?.map_err(|error| refusal(&error))?;
        }
        Ok(())
    }

    /// Whether the text of this file comes from the client.
    pub(crate) fn reads_through_client(&self, target: &Target) -> bool {
        self.reader(target).is_some()
    }

    /// Whether the text of this file goes to the client.
    pub(crate) fn writes_through_client(&self, target: &Target) -> bool {
        self.writer(target).is_some()
    }

    /// The client, if it reads this file. What is outside of the session's directories is none of its business.
    fn reader(&self, target: &Target) -> Option<&SessionHandle> {
        self.client.as_ref().filter(|client| target.is_inside() && client.client().capabilities.fs.read_text_file)
    }

    fn writer(&self, target: &Target) -> Option<&SessionHandle> {
        self.client.as_ref().filter(|client| target.is_inside() && client.client().capabilities.fs.write_text_file)
    }
}

/// Whether it is a file that can be read.
pub(crate) fn check_file(target: &Target) -> Result<(), Refusal> {
    let name = &target.name;
    Err(Refusal(match target.kind() {
        Some(EntryKind::File) => return Ok(()),
        Some(EntryKind::Directory) => format!("`{name}` is a directory\nhint: use list_directory"),
        Some(EntryKind::Link | EntryKind::Other) => format!("`{name}` is a FIFO, a socket or a device, not a file"),
        None => format!("there is no file `{name}`"),
    }))
}

/// Whether it is small enough to be changed.
pub(crate) fn check_size(target: &Target) -> Result<(), Refusal> {
    match target.info {
        Some(info) if info.size > TEXT_LIMIT as u64 => Err(larger(target)),
        _ => Ok(()),
    }
}

fn too_large(target: &Target, error: &FileError) -> Refusal {
    if matches!(error, FileError::TooLarge { .. }) { larger(target) } else { refusal(error) }
}

fn larger(target: &Target) -> Refusal {
    Refusal(format!(
        "`{}` has more than {} MiB, which is too much to be changed here\nhint: change it with a command",
        target.name,
        TEXT_LIMIT >> 20
    ))
}

pub(crate) fn not_text(target: &Target, error: TextError) -> Refusal {
    let name = &target.name;
    Refusal(match error {
        TextError::Binary => format!("`{name}` is a binary file, not text"),
        TextError::Encoding => {
            format!("`{name}` is broken UTF-16\nhint: convert it with a command such as `iconv` if it is text")
        }
    })
}

fn refused(target: &Target, error: &Error) -> Refusal {
    let reason = match error {
        Error::Refused(answer) => {
            // Many clients call everything an internal error and say beside it what it was.
            let data: Option<serde_json::Value> = answer.data.as_ref().and_then(|data| data.parse().ok());
            let details = data.as_ref().and_then(|data| data.as_str().or_else(|| data.get("details")?.as_str()));
            let said = [Some(answer.message.as_str()), details].into_iter().flatten().collect::<Vec<_>>().join(": ");
            attache_host::permission::visible_lines(&text::shortened(&said, 500))
        }
        other => other.to_string(),
    };
    Refusal(format!("the client does not give access to `{}`: {reason}", target.name))
}
