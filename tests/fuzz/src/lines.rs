//! Lines for a shell: read by rules to know what they run.

use std::time::{Duration, Instant};

use attache_host::permission::plain_commands;

use crate::input::Input;

/// No line takes more than some milliseconds; a machine that is busy takes longer.
const LONGEST: Duration = Duration::from_secs(10);

/// No line makes the reader panic or take long. The words of one that is plain mean themselves: quoted one by one, they are
/// read as the same, and a command after them is one more.
pub fn lines(data: &[u8]) {
    let mut input = Input::new(data);
    let line = if input.one_in(3) { String::from_utf8_lossy(input.rest()).into_owned() } else { words(&mut input) };
    let begin = Instant::now();
    let read = plain_commands(&line);
    assert!(begin.elapsed() < LONGEST, "{:?} for {line:?}", begin.elapsed());
    let Ok(commands) = read else { return };
    assert!(!commands.is_empty() && commands.iter().all(|words| !words.is_empty()), "{line:?}");
    let quoted: Vec<String> = commands.iter().map(|words| quote(words)).collect();
    assert_eq!(plain_commands(&quoted.join(" && ")).as_ref(), Ok(&commands), "{line:?}");
    if let Ok(more) = plain_commands(&format!("{line} ; rm x")) {
        let expected: Vec<Vec<String>> = commands.into_iter().chain([vec!["rm".into(), "x".into()]]).collect();
        assert_eq!(more, expected, "{line:?}");
    }
}

/// A line of what matters to shells.
fn words(input: &mut Input<'_>) -> String {
    let pieces = [
        "ls", "git", "a", "-b", " ", " ", "  ", ";", "&&", "||", "|", "&", "'", "\"", "\\", "$", "$(", ")", "`", "(",
        "{", "}", "<", ">", "*", "?", "[", "]", "~", "#", "!", "=", "^", "%", "\n", "\t", "if", "then", "fi", "<<x",
        "\u{a0}", "\u{202e}", "é", "''", "\"\"", "'a b'", "\"a b\"", "\\ ", "\\;", "\\$", "x=y", "-", "--", "/", "..",
        "@", ":", ",", "+", ".",
    ];
    let mut line = String::new();
    while !input.is_empty() && line.len() < 4096 {
        line.push_str(input.pick(&pieces));
    }
    line
}

/// Words in quotes that every shell reads in the same way.
fn quote(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    quoted.join(" ")
}
