//! What people and models are told of a command.

use std::sync::Arc;

use attache::model::terminal::ExitStatus;
use attache::model::tool::ToolCallContent;

use super::OUTPUT;
use crate::cut::{self, Spill};
use crate::model::Part;
use crate::tools::{Outcome, fenced};

/// How long a title is at most, in characters.
const TITLE: usize = 120;

/// The command as a title: its first line, shortened.
pub(super) fn title(line: &str) -> String {
    let trimmed = line.trim();
    let first = trimmed.lines().next().unwrap_or_default().trim_end();
    let mut title: String = first.chars().take(TITLE).collect();
    if title.len() < trimmed.len() {
        title.push('…');
    }
    title
}

/// What is said of the sandbox when a command fails in it: to the model, which has to find another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    /// In any case.
    usual: &'static str,
    /// Where it seems to have failed because of the sandbox.
    denied: &'static str,
}

impl Note {
    const ON_TEXT: &str = "(it ran in a sandbox: files can be changed only beneath the session's directories, and git's \
                           settings and hooks not at all. More can be named by the user: `[commands] writable` in \
                           agent.toml. To run it without, call it again with `needs: [\"unsandboxed\"]` and a `reason`)";
    pub(super) const ON: Note = Note { usual: Self::ON_TEXT, denied: Self::ON_TEXT };
    const OFFLINE_TEXT: &str = "(it ran in a sandbox: no network; files can be changed only beneath the session's \
                                directories, and git's settings and hooks not at all. More can be named by the user: \
                                `[commands] writable` in agent.toml)";
    pub(super) const OFFLINE: Note = Note { usual: Self::OFFLINE_TEXT, denied: Self::OFFLINE_TEXT };
    pub(super) const UNASKED: Note = Note {
        usual: "(it ran in the sandbox, without the network)",
        denied: "(it ran unasked, so in the strictest sandbox: no network and no sockets; only the project can be changed, \
                 but not git's settings and hooks, nor settings of editors and CI; temporary files are separate; secrets are \
                 hidden, also those of the project, such as `.env`. If it needs more, call it again with `needs: [\"network\"]` or `needs: [\"unsandboxed\"]` and a \
                 `reason`: the user is asked)",
    };
    /// The same for small models, which have no `needs`: what cannot be done is not worth another try.
    pub(super) const SMALL_ON: Note = Note { usual: Self::SMALL_ON_TEXT, denied: Self::SMALL_ON_TEXT };
    const SMALL_ON_TEXT: &str = "(it ran in a sandbox: files can be changed only beneath the session's directories, and git's \
                                 settings and hooks not at all. Nothing else can be changed here: do without, or say what \
                                 the user has to run)";
    pub(super) const SMALL_UNASKED: Note = Note {
        denied: "(it ran in the sandbox: there is no network here, only files of the project can be changed, and secrets such \
                 as `.env` cannot be read. Do without, or say what the user has to run)",
        ..Self::UNASKED
    };

    /// What to say, by what the command wrote.
    pub(super) fn about(self, written: &str) -> &'static str {
        if looks_denied(written) { self.denied } else { self.usual }
    }
}

/// Words of programs that were kept from something, in small letters.
const DENIED: [&str; 19] = [
    "access denied",
    "connection refused",
    "could not connect",
    "could not resolve",
    "couldn't connect",
    "eacces",
    "eai_again",
    "enetunreach",
    "enotfound",
    "eperm",
    "erofs",
    "failed to download",
    "failed to resolve",
    "name resolution",
    "network",
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "socket",
];

/// Whether a command seems to have been kept from something. What it says may be about anything, so this only decides how
/// much the model is told.
fn looks_denied(written: &str) -> bool {
    let end = written.len().saturating_sub(LOOKED_AT);
    let end = (end..written.len()).find(|at| written.is_char_boundary(*at)).unwrap_or(0);
    let text = written[end..].to_ascii_lowercase();
    DENIED.iter().any(|word| text.contains(word))
}

/// How much of the end of the output is looked at.
const LOOKED_AT: usize = 16 << 10;

/// How a command ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// By itself, or killed by somebody.
    Exit(ExitStatus),
    /// By us, because its time was over: after so many seconds.
    TimeOver(u64),
}

impl Ending {
    fn is_good(&self) -> bool {
        matches!(self, Ending::Exit(ExitStatus { exit_code: Some(0), .. }))
    }
}

/// How a command ended, in words.
pub(super) fn in_words(status: &ExitStatus) -> String {
    match (status.exit_code, &status.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by {}", cut::clean(signal)),
        (None, None) => "ended, exit status unknown".to_owned(),
    }
}

/// What a command wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) text: String,
    /// What was written before that is not kept.
    pub(super) is_truncated: bool,
}

impl Written {
    /// What it wrote as the model gets it.
    pub(super) async fn for_model(&self, spill: &Arc<Spill>) -> String {
        let text = cut::cut_off_thread(&settled(&self.text), cut::Limits::default(), spill).await;
        if self.is_truncated {
            return format!("[output truncated: only the last {} KiB are kept]\n{text}", OUTPUT >> 10);
        }
        text
    }
}

/// The outcome of a command that ran to its end. `note` is said when it failed.
pub(super) async fn outcome(ending: &Ending, written: &Written, note: Option<Note>, spill: &Arc<Spill>) -> Outcome {
    let text = written.for_model(spill).await;
    let is_good = ending.is_good();
    let what = match ending {
        Ending::Exit(_) if is_good && text.is_empty() => "(no output)".to_owned(),
        Ending::Exit(_) if is_good => return Outcome::done(text),
        Ending::Exit(status) => in_words(status),
        Ending::TimeOver(seconds) => format!(
            "the command did not end within {seconds} seconds, and was ended with everything it started\n\
             hint: `background` is for what runs long"
        ),
    };
    let note = note.filter(|_| !is_good).map(|note| format!("\n{}", note.about(&written.text))).unwrap_or_default();
    let text = match text.is_empty() {
        true => format!("{what}{note}"),
        false => format!("{what}{note}\n\n{text}"),
    };
    Outcome { is_error: !is_good, ..Outcome::done(text) }
}

/// What the model is told, for people who see text only.
pub(super) fn as_content(outcome: &Outcome) -> Vec<ToolCallContent> {
    let text = |part: &Part| match part {
        Part::Text { text } => Some(fenced("console", text)),
        Part::Media { .. } => None,
    };
    outcome.parts.iter().filter_map(text).collect()
}

/// Text in which lines that were written over are as they were last: progress bars.
fn settled(text: &str) -> String {
    let mut settled = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let end = line.trim_end_matches(['\r', '\n']).len();
        let start = line[..end].rfind('\r').map_or(0, |start| start + 1);
        settled.push_str(&line[start..end]);
        if line.ends_with('\n') {
            settled.push('\n');
        }
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title(" cargo test\n"), "cargo test");
        assert_eq!(title("cat <<E\nx\nE"), "cat <<E…");
        assert_eq!(title(&"é".repeat(200)), "é".repeat(120) + "…");
    }

    #[test]
    fn much_is_said_of_the_sandbox_only_where_it_may_be_the_cause() {
        let rows = [
            ("", false),
            ("test result: FAILED. 3 passed; 1 failed", false),
            ("touch: cannot touch '/etc/x': Read-only file system", true),
            ("curl: (6) Could not resolve host: crates.io", true),
            ("npm error code EAI_AGAIN", true),
            ("sh: 1: cannot create /x: Permission denied", true),
        ];
        for (written, expected) in rows {
            assert_eq!(Note::UNASKED.about(written) == Note::UNASKED.denied, expected, "{written}");
        }
        assert!(looks_denied(&format!("{}EPERM", "é".repeat(LOOKED_AT))));
        assert!(!looks_denied(&format!("EPERM{}", "é".repeat(LOOKED_AT))));
    }

    #[test]
    fn no_model_is_told_of_what_it_cannot_say() {
        for (note, can_say) in
            [(Note::ON, true), (Note::UNASKED, true), (Note::SMALL_ON, false), (Note::SMALL_UNASKED, false)]
        {
            assert_eq!(note.about("Permission denied").contains("needs: ["), can_say, "{note:?}");
        }
        assert_eq!(Note::SMALL_UNASKED.about("1 failed"), Note::UNASKED.about("1 failed"));
    }

    #[test]
    fn a_line_that_was_written_over_is_as_it_was_last() {
        assert_eq!(settled("10%\r20%\r100%\r\nend\r\n\rx\r"), "100%\nend\nx");
        assert_eq!(settled("plain\n\nlines"), "plain\n\nlines");
    }
}
