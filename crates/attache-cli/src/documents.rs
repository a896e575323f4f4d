//! Holds what the documents say of the command line against the command line: every command that they show can be typed, and
//! their tables are those of the program.

use std::fs;
use std::path::{Path, PathBuf};

use attache_agent::model::catalog::PROVIDERS;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::agents::catalog::ROWS;
use crate::cli::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page that shows commands, with its text.
fn pages() -> Vec<(String, String)> {
    let mut names: Vec<String> =
        ["README.md", "SECURITY.md", "CONTRIBUTING.md", "deploy/README.md"].map(String::from).into();
    for (folder, is_page) in [("docs", true), ("crates", false)] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            match is_page {
                true if name.ends_with(".md") => names.push(format!("{folder}/{name}")),
                true => {}
                false => names.push(format!("{folder}/{name}/README.md")),
            }
        }
    }
    names.into_iter().map(|name| (name.clone(), fs::read_to_string(root().join(&name)).unwrap())).collect()
}

/// The commands of a script, word by word: as much of a shell's grammar as the documents use.
fn commands(script: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (vec![], Vec::<String>::new());
    let mut word: Option<String> = None;
    // What a `>` or `<` leads to is no word of the command.
    let mut is_redirected = false;
    let mut chars = script.chars().peekable();
    while let Some(char) = chars.next() {
        let text = |word: &mut Option<String>, char| word.get_or_insert_default().push(char);
        match char {
            '\'' | '"' => {
                let quoted = word.get_or_insert_default();
                while let Some(next) = chars.next_if(|next| *next != char) {
                    quoted.push(next);
                }
                chars.next();
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(next) => text(&mut word, next),
            },
            '#' if word.is_none() => while chars.next_if(|next| *next != '\n').is_some() {},
            // `2>` is a redirection of a number.
            '>' | '<' => {
                word.take_if(|word| word.chars().all(|char| char.is_ascii_digit()));
                while chars.next_if(|next| matches!(next, '>' | '<' | '&')).is_some() {}
                is_redirected = true;
            }
            '\n' | ';' | '|' | '&' | '(' | ')' => {
                words.extend(word.take().filter(|_| !std::mem::take(&mut is_redirected)));
                commands.push(std::mem::take(&mut words));
            }
            ' ' | '\t' => match word.take() {
                Some(_) if std::mem::take(&mut is_redirected) => {}
                Some(whole) => words.push(whole),
                None => {}
            },
            char => text(&mut word, char),
        }
    }
    words.extend(word.filter(|_| !is_redirected));
    commands.push(words);
    // Variables stand before the name of a command, and so does what starts it as somebody else or in a container, where
    // `attache` is also the name of an account and of an image.
    let is_start = |word: &str| matches!(word, "attache" | "sudo" | "podman") || word.contains('=');
    let is_command = |words: &[String], at: usize| {
        words[at] == "attache" && words.get(at + 1).is_some_and(|next| !next.starts_with('-'))
    };
    let of_ours = |words: Vec<String>| {
        let at = (0..words.len()).find(|at| is_command(&words, *at))?;
        is_start(&words[0]).then(|| words[at..].to_vec())
    };
    commands.into_iter().filter_map(of_ours).collect()
}

#[test]
fn scripts_are_read_as_a_shell_reads_them() {
    let rows: &[(&str, &[&[&str]])] = &[
        ("attache run \"a b\" 'c'd # no\n", &[&["attache", "run", "a b", "cd"]]),
        (
            "git diff | attache run -o json x > a.json && attache models",
            &[&["attache", "run", "-o", "json", "x"], &["attache", "models"]],
        ),
        ("attache doctor 2>&1 || true", &[&["attache", "doctor"]]),
        ("attache run \\\n  x < in", &[&["attache", "run", "x"]]),
        ("A=b attache agents; echo attache", &[&["attache", "agents"]]),
        ("attache run 'a\nb'", &[&["attache", "run", "a\nb"]]),
    ];
    for (script, expected) in rows {
        assert_eq!(commands(script), *expected, "{script}");
    }
}

/// What stands between fences of the language `sh`.
fn scripts(page: &str) -> impl Iterator<Item = &str> {
    let fenced = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    fenced.filter(|(info, _)| info.split(',').next() == Some("sh")).map(|(_, script)| script)
}

#[test]
fn every_command_that_the_documents_show_can_be_typed() {
    let mut seen = 0;
    for (name, page) in pages() {
        for script in scripts(&page) {
            for words in commands(script) {
                seen += 1;
                let Err(error) = Cli::try_parse_from(&words) else { continue };
                // What is missing may be in a variable that the script sets before. And help is no mistake.
                let is_set = error.kind() == ErrorKind::MissingRequiredArgument && script.contains("export ATTACHE_");
                assert!(is_set || !error.use_stderr(), "{name}: {}\n{error}", words.join(" "));
            }
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(Cli::try_parse_from(["attache", "run", "--nonsense"]).is_err());
}

/// What is wrong with a command as a sentence names it, with or without all that belongs to it, if anything.
fn mistake(words: &str) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    let mut rest = words.split_whitespace().take_while(|word| *word != "--");
    while let Some(word) = rest.next() {
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or_default();
            let known = command.get_arguments().find(|argument| argument.get_long() == Some(name));
            match known {
                None => return Some(format!("no option `--{name}` in `attache {words}`")),
                // All that follows is the command of another program.
                Some(argument) if argument.is_allow_hyphen_values_set() => return None,
                Some(argument)
                    if !option.contains('=') && argument.get_num_args().is_some_and(|few| few.min_values() > 0) =>
                {
                    rest.next();
                }
                Some(_) => {}
            }
        } else if let Some(found) = command.find_subcommand(word) {
            if found.is_hide_set() {
                return Some(format!("`attache {words}` is an old name"));
            }
            command = found.clone();
        } else if command.has_subcommands() && command.get_positionals().next().is_none() {
            return Some(format!("no command `{word}` in `attache {words}`"));
        }
    }
    None
}

#[test]
fn every_command_that_the_documents_name_is_there() {
    let mut seen = 0;
    for (name, page) in pages() {
        let text: String = page.split("```").step_by(2).collect();
        for code in text.split('`').skip(1).step_by(2).filter(|code| code.lines().count() < 3) {
            // What stands in quotes is a prompt.
            let bare: String = code.replace('\n', " ").split(['"', '\'']).step_by(2).collect();
            let Some(words) = bare.split(['|', '>']).find_map(|part| part.trim().strip_prefix("attache ")) else {
                continue;
            };
            assert_eq!(mistake(words), None, "{name}: {code}");
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
    assert!(mistake("agent sessions list").is_some() && mistake("run --nonsense").is_some());
}

/// The first cell of each row of a page's tables, with the rest of the row.
fn rows(page: &str) -> Vec<(String, Vec<String>)> {
    let bare = |cell: &str| cell.trim().replace('`', "");
    let lines = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix('|'));
    lines
        .map(|line| {
            let mut cells = line.split('|').map(bare);
            (cells.next().unwrap_or_default(), cells.collect())
        })
        .collect()
}

#[test]
fn the_table_of_providers_is_the_one_of_the_program() {
    let page = fs::read_to_string(root().join("docs/models.md")).unwrap();
    let mut expected: Vec<(String, Vec<String>)> = PROVIDERS
        .iter()
        .map(|provider| {
            let key = if provider.needs_key { provider.key_variables.join(", ") } else { "none needed".into() };
            let model = provider.default_model.unwrap_or("what is installed");
            (provider.name.to_owned(), vec![key, model.to_owned(), provider.base_url.to_owned()])
        })
        .collect();
    expected.push(("offline".into(), ["none", "rules", "built in"].map(String::from).into()));
    assert_eq!(rows(&page), expected);
}

#[test]
fn the_table_of_agents_is_the_one_of_the_program() {
    let page = fs::read_to_string(root().join("docs/other-agents.md")).unwrap();
    let agent = |row: &crate::agents::catalog::Row| {
        let program = [&[row.program], row.args].concat().join(" ");
        (row.name.to_owned(), vec![row.title.to_owned(), program, row.login.unwrap_or_default().to_owned()])
    };
    assert_eq!(rows(&page), ROWS.iter().map(agent).collect::<Vec<_>>());
}
