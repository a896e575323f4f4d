//! What a prompt names: files, commands, and names that stand in the code.

/// How many words of a prompt are looked at.
const MOST_WORDS: usize = 60;

/// Programs by which people name a command. Others may be anything that stands in quotes.
const PROGRAMS: [&str; 22] = [
    "bash", "bun", "cargo", "cmake", "deno", "dotnet", "go", "gradle", "just", "make", "mvn", "node", "npm", "npx",
    "php", "pnpm", "pytest", "python", "python3", "ruby", "sh", "yarn",
];

/// What says that something is not to be done.
const NOT: [&str; 5] = ["not", "never", "don't", "without", "instead"];

/// What in a text may be the name of a file: what stands in quotes, and words with a dot or a slash in them.
pub(super) fn files(text: &str) -> Vec<String> {
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

/// The commands that stand in backticks. One in a sentence that says not to is none.
pub(super) fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let parts: Vec<&str> = text.split('`').collect();
    for at in (1..parts.len()).step_by(2) {
        let (before, command) = (parts[at - 1], parts[at].trim());
        let sentence = before.rsplit(['.', '!', '?', '\n']).next().unwrap_or_default().to_lowercase();
        let is_unwanted = sentence.split_whitespace().any(|word| NOT.contains(&word));
        let program = command.split_whitespace().next().unwrap_or_default();
        let is_command = PROGRAMS.contains(&program) || program.starts_with("./");
        let is_whole = command.contains(' ') || program.starts_with("./") || matches!(program, "make" | "pytest");
        let is_one = is_command && is_whole && !command.contains('\n') && command.len() < 200;
        if is_one && !is_unwanted && !commands.iter().any(|known| known == command) {
            commands.push(command.to_owned());
        }
    }
    commands
}

/// Names of the code that stand in backticks: `total`, `total(x)`, `Shop::total`.
pub(super) fn symbols(text: &str) -> Vec<String> {
    let mut symbols: Vec<String> = Vec::new();
    for quoted in text.split('`').skip(1).step_by(2) {
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
            ("`make` fails, and so does `./run.sh`.", vec!["make", "./run.sh"]),
            ("Do not run `make deploy`.", vec![]),
            ("It works. Never run `sh x.sh`. Run `sh y.sh`.", vec!["sh y.sh"]),
            ("Rename `go` to `node`, `rm -rf x` and `total(x)`.", vec![]),
            ("`cargo test", vec!["cargo test"]),
            ("`sh a\nb`", vec![]),
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
