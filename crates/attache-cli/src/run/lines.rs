//! `--input json-lines`: many prompts on stdin, one a line.

use std::io::{BufRead, Read};

use serde::Deserialize;
use tokio::sync::mpsc;

use crate::exit::Failure;

/// The longest line: a prompt that fits into one message.
const LONGEST_LINE: u64 = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    prompt: String,
}

/// The prompts that come on stdin, in order. Dropping it leaves the thread that reads behind, which keeps nobody.
pub(super) struct Prompts(mpsc::Receiver<Result<String, Failure>>);

impl Prompts {
    /// Begins to read. Not more than one prompt is read ahead.
    pub(super) fn from_stdin() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            let mut number = 0;
            while let Some(prompt) = next(&mut stdin, &mut number) {
                let is_last = prompt.is_err();
                if sender.blocking_send(prompt).is_err() || is_last {
                    break;
                }
            }
        });
        Prompts(receiver)
    }

    /// The next one; nothing when stdin has ended. It can be cancelled and called again.
    pub(super) async fn next(&mut self) -> Option<Result<String, Failure>> {
        self.0.recv().await
    }
}

/// Reads the next line that is not blank. What is wrong names its number.
fn next(source: &mut impl BufRead, number: &mut u64) -> Option<Result<String, Failure>> {
    loop {
        *number += 1;
        let wrong = |what: String| Some(Err(Failure::usage(format!("line {number} of stdin: {what}"))));
        let mut bytes = Vec::new();
        match source.take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes) {
            Ok(0) => return None,
            Err(error) => return wrong(error.to_string()),
            Ok(_) if bytes.len() as u64 > LONGEST_LINE => return wrong("it is longer than 16 MiB".into()),
            Ok(_) if bytes.trim_ascii().is_empty() => continue,
            Ok(_) => {}
        }
        return match serde_json::from_slice::<Line>(&bytes) {
            Ok(line) if line.prompt.trim().is_empty() => wrong("the prompt is empty".into()),
            Ok(line) => Some(Ok(line.prompt)),
            // The place within the line; the line itself may hold anything.
            Err(error) => {
                let hint = "hint: a line looks like {\"prompt\": \"…\"}";
                let what = if error.is_data() { "it is not an object with a `prompt` alone" } else { "it is not JSON" };
                wrong(format!("{what}, at column {}\n{hint}", error.column()))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_prompt_or_a_mistake_with_its_number() {
        let read = |text: &str| {
            let (mut source, mut number) = (text.as_bytes(), 0);
            let prompts = std::iter::from_fn(|| next(&mut source, &mut number));
            prompts.map(|prompt| prompt.unwrap_or_else(|failure| failure.message)).collect::<Vec<_>>()
        };
        assert_eq!(read("{\"prompt\": \"a\"}\n\n{\"prompt\": \"b\"}"), ["a", "b"]);
        assert_eq!(read(""), [""; 0]);
        let rows =
            ["x", "7", "{}", "{\"prompt\": 1}", "{\"prompt\": \"a\", \"b\": 1}", "{\"prompt\": \" \"}", "\u{fe}"];
        for wrong in rows {
            let seen = read(&format!("{{\"prompt\": \"a\"}}\n\n{wrong}\n"));
            assert!(seen[1].starts_with("line 3 of stdin: "), "{wrong}: {seen:?}");
            assert_eq!(seen[1].contains("it is not JSON"), ["x", "\u{fe}"].contains(&wrong), "{seen:?}");
        }
    }
}
