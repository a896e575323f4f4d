//! What a prompt names: files, commands, and names that stand in the code.

/// How many words of a prompt are looked at.
const MOST_WORDS: usize = 60;

/// Programs by which people name a command. Others may be anything that stands in quotes.
const PROGRAMS: [&str; 22] = [
    "bash", "bun", "cargo", "cmake", "deno", "dotnet", "go", "gradle", "just", "make", "mvn", "node", "npm", "npx",
    "php", "pnpm", "pytest", "python", "python3", "ruby", "sh", "yarn",
];

/// What says that something is not to be done, or not now.
const NOT: [&str; 17] = [
    "avoid", "before", "cannot", "doesn't", "don't", "dont", "instead", "must", "never", "no", "nor", "not", "nothing",
    "refrain", "should", "unless", "without",
];

/// How much of a prompt is looked at.
const MOST_BYTES: usize = 16 << 10;

/// What in a text may be the name of a file: what stands in quotes, and words with a dot or a slash in them.
pub(super) fn files(text: &str) -> Vec<String> {
    let text = start_of(text);
    let quoted = ['`', '"', '\''].into_iter().flat_map(|mark| text.split(mark).skip(1).step_by(2));
    let plain = text.split(|c: char| c.is_whitespace() || "`\"'()[]{}<>,;:".contains(c));
    let plain = plain.map(|word| word.trim_end_matches(['.', '?', '!'])).filter(|word| word.contains(['.', '/']));
    let all = quoted.chain(plain).map(str::trim);
    let all = all.filter(|word| !word.is_empty() && word.len() < 200 && !word.contains(['\n', '\0']));
    let mut files: Vec<String> = Vec::new();
    for word in all.take(MOST_WORDS) {
        if !files.iter().any(|known| known == word) {
            files.push(word.to_owned());
        }
    }
    files
}

/// The commands in backticks that the person wants to be run: "run `make`", "`make` fails". Any other may only be talked about,
/// and one in a sentence that has a no in it may be forbidden: those are left to the model.
pub(super) fn commands(text: &str) -> Vec<String> {
    // What comes after a blank line may be a log that was pasted, or what a program said.
    let text = start_of(text).split("\n\n").next().unwrap_or_default();
    let mut commands: Vec<String> = Vec::new();
    let parts: Vec<&str> = text.split('`').collect();
    for at in (1..parts.len()).step_by(2) {
        let command = parts[at].trim();
        let program = command.split_whitespace().next().unwrap_or_default();
        let is_command = PROGRAMS.contains(&program) || program.starts_with("./");
        let is_whole = command.contains(' ') || program.starts_with("./") || matches!(program, "make" | "pytest");
        let is_one = is_command && is_whole && !command.contains('\n') && command.len() < 200;
        if !is_one || commands.iter().any(|known| known == command) {
            continue;
        }
        // What is in other backticks belongs to the sentence, but is no word of it.
        let before = parts[..at].iter().step_by(2).copied().collect::<Vec<_>>().join(" x ");
        let after = parts[at + 1..].iter().step_by(2).copied().collect::<Vec<_>>().join(" x ");
        let before = words(before.rsplit(['.', '!', '?', ';', '\n']).next().unwrap_or_default());
        let after = words(after.split(['.', '!', '?', ';', '\n']).next().unwrap_or_default());
        let is_wanted = matches!(before.last().map(String::as_str), Some("run" | "execute"))
            || matches!(after.first().map(String::as_str), Some("fails" | "fail"));
        let is_forbidden = [before, after].iter().any(|words| forbids(words));
        if is_wanted && !is_forbidden {
            commands.push(command.to_owned());
        }
    }
    commands
}

/// Whether there is a no among words. "And nothing else" is none.
fn forbids(words: &[String]) -> bool {
    let is_else = |at: usize| words[at] == "nothing" && words.get(at + 1).is_some_and(|next| next == "else");
    (0..words.len()).any(|at| NOT.contains(&words[at].as_str()) && !is_else(at))
}

/// The words of a sentence, in small letters, with plain apostrophes.
fn words(sentence: &str) -> Vec<String> {
    let sentence = sentence.to_lowercase().replace('\u{2019}', "'");
    let words = sentence.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The beginning of a prompt, as far as it is looked at.
fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_BYTES)]
}

/// Names of the code that stand in backticks: `total`, `total(x)`, `Shop::total`.
pub(super) fn symbols(text: &str) -> Vec<String> {
    let mut symbols: Vec<String> = Vec::new();
    for quoted in start_of(text).split('`').skip(1).step_by(2) {
        let name = quoted.split('(').next().unwrap_or_default();
        let name = name.rsplit(['.', ':']).next().unwrap_or_default();
        let is_name = name.len() > 2
            && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_name && !quoted.contains(' ') && !symbols.iter().any(|known| known == name) {
            symbols.push(name.to_owned());
        }
    }
    symbols
}

/// Whether a question asks for a number of things.
pub(super) fn is_count(text: &str) -> bool {
    let text = text.to_lowercase();
    // "After how many seconds" asks for a value.
    text.starts_with("how many") || text.contains("count the")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_found_in_a_sentence() {
        let found = files("Mend `über uns.txt`, src/lib.rs: and (days.py). It's in \"a b\"?");
        for name in ["über uns.txt", "src/lib.rs", "days.py", "a b"] {
            assert!(found.iter().any(|word| word == name), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|word| word == "Mend" || word.is_empty()), "{found:?}");
    }

    #[test]
    fn commands_are_what_runs_a_program_and_is_wanted() {
        for (text, expected) in [
            ("Run `python3 dice.py` and say what it prints.", vec!["python3 dice.py"]),
            ("Run `python3 dice.py` and answer with the number, and nothing else.", vec!["python3 dice.py"]),
            ("Run `sh a.sh` and change nothing.", vec![]),
            ("`make` fails, and so does `./run.sh`.", vec!["make"]),
            ("Run `sh build.sh`. It fails; fix it. Do not change build.sh.", vec!["sh build.sh"]),
            ("It works. Never run `sh x.sh`. Run `sh y.sh`.", vec!["sh y.sh"]),
            ("Run `cargo test", vec!["cargo test"]),
            // What is forbidden, or only talked about.
            ("Do not run `make deploy`.", vec![]),
            ("Do not run `make test` or run `make deploy`.", vec![]),
            ("Explain what `make deploy` does, without doing it.", vec![]),
            ("Which files does `make deploy` change?", vec![]),
            ("NOT: run `make deploy`", vec![]),
            ("I don\u{2019}t want you to run `make deploy`", vec![]),
            ("run `make deploy` must not be done", vec![]),
            ("Mend it so that `make test` passes.", vec![]),
            ("Rename `go` to `node`, run `rm -rf x` and `total(x)`.", vec![]),
            ("run `sh a\nb`", vec![]),
        ] {
            assert_eq!(commands(text), expected, "{text}");
        }
    }

    #[test]
    fn symbols_are_names_and_nothing_else() {
        let found = symbols("`total(names)` and `Shop::open`, `a.b.count`, `two words`, `x`, `src/lib.rs`, `-n COUNT`");
        assert_eq!(found, ["total", "open", "count"]);
    }
}
