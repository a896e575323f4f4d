//! A message while it is written, and as it is sent.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Something that goes with a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name, such as that of its file.
    pub name: String,
    /// What it is, such as `image/png`.
    pub mime_type: String,
    /// Where it comes from.
    pub source: AttachmentSource,
}

/// Where an attachment comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentSource {
    /// A file, read when the message is sent.
    File(PathBuf),
    /// The bytes, as Base64.
    Base64(String),
}

/// A label in the text, and what it stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chip {
    /// The label, such as `[pasted 120 lines]`.
    pub label: String,
    /// What it stands for.
    pub content: ChipContent,
}

/// What a label stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChipContent {
    /// Text that was pasted; it takes the label's place when the message is sent.
    Paste(String),
    /// Something that goes with the message; the label stays in the text.
    Attachment(Attachment),
}

/// A message while it is written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// The text, with labels.
    pub text: String,
    /// What the labels stand for.
    pub chips: Vec<Chip>,
    /// Files that were chosen for an `@`, by path.
    pub mentions: Vec<String>,
    /// Words with an `@` that were pasted, and not typed.
    pub pasted: Vec<String>,
}

/// A message as it is sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Submission {
    /// The text, with all that was pasted.
    pub text: String,
    /// The text without what was pasted, as far as it can name files: only what a person typed or chose does.
    pub typed: String,
    /// The words with an `@` that are only there because they were pasted, each once.
    pub pasted_mentions: Vec<String>,
    /// What goes with it, in the order of the text.
    pub attachments: Vec<Attachment>,
    /// The files that the text mentions by `@`, each once.
    pub mentions: Vec<String>,
}

impl Message {
    /// The message as it is sent.
    pub fn submission(&self) -> Submission {
        let mut found: Vec<(usize, &Chip)> =
            self.chips.iter().filter_map(|chip| Some((self.text.find(&chip.label)?, chip))).collect();
        found.sort_by_key(|(at, _)| *at);
        let mut submission = Submission::default();
        let mut from = 0;
        let mut written = String::new();
        for (at, chip) in found {
            match &chip.content {
                ChipContent::Attachment(attachment) => submission.attachments.push(attachment.clone()),
                // A label within another cannot be meant.
                ChipContent::Paste(_) if at < from => {}
                ChipContent::Paste(text) => {
                    submission.text.push_str(&self.text[from..at]);
                    submission.text.push_str(text);
                    written.push_str(&self.text[from..at]);
                    written.push(' ');
                    from = at + chip.label.len();
                }
            }
        }
        submission.text.push_str(&self.text[from..]);
        written.push_str(&self.text[from..]);
        let mut chosen = Vec::new();
        for mention in &self.mentions {
            let word = super::completion::mention(mention);
            if self.text.contains(&word) && !submission.mentions.contains(mention) {
                submission.mentions.push(mention.clone());
                chosen.push(word);
            }
        }
        let pasted: BTreeSet<&str> = self.pasted.iter().map(String::as_str).collect();
        let words = written.split_whitespace().filter(|word| !pasted.contains(word) || is_chosen(word, &chosen));
        submission.typed = words.collect::<Vec<_>>().join(" ");
        let typed: BTreeSet<&str> = mention_words(&submission.typed).collect();
        let pasted: BTreeSet<&str> = mention_words(&submission.text).filter(|word| !typed.contains(word)).collect();
        submission.pasted_mentions = pasted.into_iter().map(String::from).collect();
        submission
    }
}

/// Whether a word is a file that was chosen, maybe with a sign at its end.
fn is_chosen(word: &str, chosen: &[String]) -> bool {
    let bare = word.trim_end_matches([',', '.', ';', ':', '!', '?', ')']);
    chosen.iter().any(|chosen| chosen == word || chosen == bare)
}

/// The words of a text that could name files.
pub(super) fn mention_words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| word.len() > 1 && word.starts_with('@'))
}

impl From<Submission> for Message {
    fn from(submission: Submission) -> Self {
        let Submission { text, attachments, mentions, pasted_mentions, .. } = submission;
        // The text names each attachment by the label that it was given.
        let mut labels: Vec<&str> = Vec::new();
        let mut rest = text.as_str();
        while let Some(start) = rest.find('[') {
            let end = rest[start..].find(']').map_or(rest.len(), |end| start + end + 1);
            let label = &rest[start..end];
            if label.starts_with("[image ") || label.starts_with("[file ") {
                labels.push(label);
            }
            rest = &rest[end.max(start + 1)..];
        }
        let labels: Vec<String> = labels.into_iter().map(Into::into).collect();
        let mut message = Message { text, chips: Vec::new(), mentions, pasted: pasted_mentions };
        let mut labels = labels.into_iter();
        for (number, attachment) in attachments.into_iter().enumerate() {
            let label = labels.next().unwrap_or_else(|| {
                let label = format!("[file {}]", number + 1);
                message.text.push_str(&label);
                label
            });
            message.chips.push(Chip { label, content: ChipContent::Attachment(attachment) });
        }
        message
    }
}
