//! `docs/commands.md` is made from the table: `BLESS=1 cargo test -p attache-host documentation` writes it.

use std::fmt::Write;

use super::arguments::{RowOption, Value, options};
use super::table::{ALIASES, Effect, LEADING, Operands, ROWS, Row};

const HEAD: &str = "# Commands that rules know

<!-- Made from crates/attache-host/src/permission/table.rs; `BLESS=1 cargo test -p attache-host documentation` writes it. -->

A rule in `permissions.toml` names the words that a command begins with:

```toml
[[rule]]
verdict = \"allow\"
command = [\"git\", \"diff\"]
```

It allows the command with the arguments on this page, and with no others. They are harmless: with them the command does no
more than its own words promise. It runs no other program, writes no other place, and reaches no other repository, host or
settings. Everything else is asked about: an option that is not here, a shorter form of a long one, an option before the
subcommand, a path outside the directories of the session, a file that may hold secrets.

- A rule that names a command to its last word allows exactly that, whatever it is.
- A program that is not here is allowed with exactly the words of the rule. `args = \"any\"` in the rule allows any arguments, for
  a program that you know; it is never suggested. `args = \"none\"` allows exactly the words of the rule, `args = \"known\"` is
  what a rule without `args` means.
- Programs that run what their words name (`sudo`, `env`, `xargs`, `sh -c`, `python`, `docker run`, `npm exec`, `uv run`, `npx`…)
  are allowed with all their words only, also with `args = \"any\"`, unless the command is here.
- A rule for a program alone, such as `[\"git\"]`, allows those of its commands that **read**. What the settings of a project
  can make run its code is not among them: `cargo --version` runs the toolchain that `rust-toolchain.toml` names.
- \"Always\" saves the words of the command here, or the whole command if it is not here, if it has other arguments, or if it
  changes files that it names. It is not offered for a shell with a line, for code in an argument, or for `xargs`.
- `timeout 60` and `time` before a command change nothing. Nor do redirections that write nothing (`2>&1`, `>&2`, `>/dev/null`,
  `2>/dev/null`, `</dev/null`) and variables that say how output looks (`RUST_BACKTRACE=1`, `NO_COLOR=1`, `CI=1`). `&>` is asked
  about, because `sh` reads it in another way.
- `cd DIRECTORY` needs no rule, and `git -C DIRECTORY` no other than `git`, if it is there and beneath the directories of the
  session, without `..`. What follows has to be harmless there and where the line began, because a `cd` may fail. A login shell
  and `zsh` may look elsewhere for a name, so there it is `cd ./DIRECTORY`.
- A command that names a file that may hold secrets is asked about each time, unless a rule has exactly its words.

`*` is one word that the rule has to name too. VALUE is any text, PATH a path of the session without secrets, OUT one that may
be written and that decides nothing about what other programs run, WORD letters, digits, `-` and `_`, NAME the same with `.`,
`/`, `:`, `@`, `^`, `~`, `#` and `,`, N a number. Short options may stand together (`-la`), except for programs with options of
several letters after one dash. A `--` may stand before operands that do not begin with `-`, except for programs with options of
several letters after one dash.

A search of whole directories (`grep -r`, `rg`, `git grep --untracked`) is asked about where it would come across a file that may
hold secrets: among the first ten thousand names, three directories deep. Settings of a repository count where they may hold a
password. Deeper files are not looked for. What is recorded in a repository (`git grep`, `git log -p`, `git diff`) is asked about
only where such a file is named.

What a command does at most: **reads**; **writes** files of the session or its repository; **deletes** files; **runs** code of the
project, as building and testing do; **network**: talks to a host that the project or you have set up.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    page += "\nThe same programs by other names:";
    for (index, (alias, program)) in ALIASES.iter().enumerate() {
        let _ = write!(page, "{} `{alias}` is `{program}`", if index == 0 { "" } else { "," });
    }
    page += ".\n";
    for (program, leading) in LEADING {
        let leading: Vec<String> = leading.iter().map(|option| format!("`{option}`")).collect();
        let _ = writeln!(page, "\nBefore a subcommand of `{program}` may stand: {}.", leading.join(", "));
    }
    let mut program = "";
    for row in ROWS {
        let name = row.command.split(' ').next().unwrap_or_default();
        if name != program {
            program = name;
            let _ = write!(page, "\n## {program}\n\n");
        }
        page += &entry(row);
    }
    page
}

fn entry(row: &Row) -> String {
    let mut entry = format!("- **`{}`** {}. {}", row.command, effect(row.effect), row.reason);
    let operands = operands(row.operands);
    if !operands.is_empty() {
        let _ = write!(entry, " Takes {operands}.");
    }
    let (before, behind) = options(row);
    let list = |options: &[RowOption]| options.iter().map(option).collect::<Vec<_>>().join(" ");
    if !before.is_empty() {
        let _ = write!(entry, " Options: {}", list(&before));
    }
    if let Some(behind) = behind.filter(|behind| !behind.is_empty()) {
        let _ = write!(entry, "; behind `--`: {}", list(&behind));
    }
    entry + "\n"
}

fn option(option: &RowOption) -> String {
    let kind = |kind: &str| match kind {
        "" => "VALUE".to_owned(),
        "number" => "N".to_owned(),
        "sed" => "SCRIPT".to_owned(),
        other => other.to_uppercase(),
    };
    let name = if option.name == "-#" { "-N" } else { option.name };
    let is_long = name.starts_with("--");
    match option.value {
        Value::No => format!("`{name}`"),
        Value::Needed(value) => format!("`{name} {}`", kind(value)),
        Value::Glued(value) if is_long => format!("`{name}[={}]`", kind(value)),
        Value::Glued(value) => format!("`{name}[{}]`", kind(value)),
        Value::AfterEquals(value) => format!("`{name}={}`", kind(value)),
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Reads => "reads",
        Effect::Writes => "writes",
        Effect::Deletes => "deletes",
        Effect::Runs => "runs",
        Effect::Network => "network",
    }
}

fn operands(operands: Operands) -> &'static str {
    match operands {
        Operands::Nothing => "",
        Operands::Anything => "any words",
        Operands::Text => "any text",
        Operands::Paths => "paths of the session",
        Operands::Changed => "paths of the session that decide nothing about what other programs run",
        Operands::OnePath => "one path of the session",
        Operands::Archive => "an archive as the next word, and paths in it, without `:`",
        Operands::Files => "paths of the session that are no directories",
        Operands::Printf => "a format without `%n`, and any text; numbers only for `%d` and the like",
        Operands::PatternThenPaths => "a pattern and paths of the session",
        Operands::Names => "names",
        Operands::Packages => "names of packages",
        Operands::Remote => "a remote by its name and branches, without `+` and `:`",
        Operands::Format => "a format that begins with `+`",
        Operands::Mode => "a mode and paths of the session",
        Operands::Sed => {
            "a script with `p`, `d`, `q`, `=` and `s` without its flags `e` and `w`, and paths of the session"
        }
        Operands::Awk => {
            "a program without redirections, pipes, `system`, `getline` and the like, and paths of the session"
        }
        Operands::Jq => "a filter without modules and `env`, and paths of the session",
    }
}

#[test]
fn the_page_about_commands_is_made_from_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == kept, "docs/commands.md is not what the table says; look at the table, then BLESS=1");
}
