//! `cargo xtask matrix`: which platforms which tests were run on. The page says what was recorded, and nothing else.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::project::Project;
use crate::sbom::date;

/// One JSON object a line, sorted, so that records made on several branches merge.
const RECORDS: &str = "docs/platforms.jsonl";
const PAGE: &str = "docs/platforms.md";

/// The platforms in the order of the page, and what people call them.
const PLATFORMS: [(&str, &str); 7] = [
    ("x86_64-unknown-linux-gnu", "Linux on x86-64, with glibc"),
    ("x86_64-unknown-linux-musl", "Linux on x86-64, static"),
    ("aarch64-unknown-linux-gnu", "Linux on ARM64, with glibc"),
    ("aarch64-unknown-linux-musl", "Linux on ARM64, static"),
    ("x86_64-pc-windows-gnu", "Windows on x86-64"),
    ("x86_64-apple-darwin", "macOS on Intel"),
    ("aarch64-apple-darwin", "macOS on Apple silicon"),
];

/// Without a command, the page is written anew.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The platform that the command is about.
    #[arg(long, value_name = "TRIPLE", requires = "command")]
    platform: Option<String>,
    /// What is tested: the name of a crate, or of a suite of its own.
    #[arg(long, value_name = "NAME", requires = "command")]
    suite: Option<String>,
    /// What the platform's programs run under here, like `qemu-user` or `wine`.
    #[arg(long, value_name = "EMULATOR")]
    under: Option<String>,
    /// The command only compiles: nothing of the platform is run.
    #[arg(long)]
    compiled: bool,
    /// A command to run and to record the outcome of.
    #[arg(last = true, requires = "platform", requires = "suite")]
    command: Vec<String>,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    platform: String,
    suite: String,
    did: Did,
    /// What the programs ran under, where the machine itself does not run them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under: Option<String>,
    passed: bool,
    /// How many tests passed, where the command said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tests: Option<u64>,
    date: String,
    commit: String,
    command: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Did {
    Run,
    Compile,
}

pub(crate) fn matrix(project: &Project, arguments: Arguments) -> Result<bool> {
    let path = project.root.join(RECORDS);
    let mut passed = true;
    if let (Some(platform), Some(suite), [program, words @ ..]) =
        (arguments.platform, arguments.suite, arguments.command.as_slice())
    {
        if rank(&platform).is_none() {
            bail!("unknown platform `{platform}`; PLATFORMS in xtask/src/matrix.rs lists them");
        }
        let commit = project.commit()?;
        let changes = if commit.is_dirty { " and uncommitted changes" } else { "" };
        let (ended_well, tests) = watch(Command::new(program).args(words).current_dir(&project.root))?;
        passed = ended_well;
        // Not before: another command may have been recorded meanwhile.
        let mut records = read(&path)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?.as_secs();
        records.retain(|record| record.platform != platform || record.suite != suite);
        records.push(Record {
            platform,
            suite,
            did: if arguments.compiled { Did::Compile } else { Did::Run },
            under: arguments.under,
            passed,
            tests,
            date: date(now),
            commit: format!("{}{changes}", &commit.id[..12]),
            command: line(project, &arguments.command),
        });
        records.sort_by_key(|record| (rank(&record.platform), record.suite.clone()));
        let lines = records.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        fs::write(&path, lines.join("\n") + "\n").with_context(|| format!("cannot write `{RECORDS}`"))?;
    }
    fs::write(project.root.join(PAGE), page(&read(&path)?)).with_context(|| format!("cannot write `{PAGE}`"))?;
    Ok(passed)
}

fn rank(platform: &str) -> Option<usize> {
    PLATFORMS.iter().position(|(triple, _)| *triple == platform)
}

fn read(path: &Path) -> Result<Vec<Record>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read `{RECORDS}`"))?,
    };
    let lines = text.lines().enumerate();
    lines.map(|(index, line)| serde_json::from_str(line).with_context(|| format!("{RECORDS}:{}", index + 1))).collect()
}

/// Runs a command, shows what it writes, and adds up the tests that it says have passed.
fn watch(command: &mut Command) -> Result<(bool, Option<u64>)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run `{program}`"))?;
    let mut tests = None;
    let mut reader = BufReader::new(child.stdout.take().context("no stdout")?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        std::io::stderr().write_all(&line)?;
        if let Some(passed) = tests_passed(&String::from_utf8_lossy(&line)) {
            tests = Some(tests.unwrap_or(0) + passed);
        }
        line.clear();
    }
    Ok((child.wait()?.success(), tests))
}

/// The number in `test result: ok. 12 passed; 0 failed; …`.
fn tests_passed(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    rest.split_once(" passed")?.0.parse().ok()
}

/// A command as it would be typed in the repository's directory.
fn line(project: &Project, words: &[String]) -> String {
    let root = format!("{}/", project.root.display());
    let quoted = words.iter().map(|word| {
        let word = word.replace(&root, "");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:+,@%".contains(&byte);
        let is_plain = !word.is_empty() && word.bytes().all(is_plain);
        if is_plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The page of some records.
fn page(records: &[Record]) -> String {
    let suites: BTreeSet<&str> = records.iter().map(|record| record.suite.as_str()).collect();
    let mut page = String::from(
        "# What was tested where\n\n\
         `cargo xtask matrix` writes this page from [platforms.jsonl](platforms.jsonl), into which it has written what came of each\n\
         command that it ran. *Passed* means that programs of the platform ran, with the number of tests; *compiles* that they were\n\
         only built or checked; an empty cell that nothing was recorded.\n\n| platform |",
    );
    for suite in &suites {
        let _ = write!(page, " {suite} |");
    }
    let _ = writeln!(page, "\n|---|{}", "---|".repeat(suites.len()));
    for (triple, name) in PLATFORMS {
        let _ = write!(page, "| {name} (`{triple}`) |");
        for suite in &suites {
            let record = records.iter().find(|record| record.platform == triple && record.suite == *suite);
            let _ = write!(page, " {} |", record.map_or(String::new(), cell));
        }
        page.push('\n');
    }
    page.push_str(
        "\n## Records\n\n| platform | suite | outcome | date | commit | command |\n|---|---|---|---|---|---|\n",
    );
    for record in records {
        let Record { platform, suite, date, commit, .. } = record;
        let command = record.command.replace('|', "\\|");
        let _ = writeln!(page, "| `{platform}` | {suite} | {} | {date} | {commit} | `{command}` |", cell(record));
    }
    page
}

fn cell(record: &Record) -> String {
    let mut cell = match (record.did, record.passed, record.tests) {
        (_, false, _) => "**failed**".to_owned(),
        (Did::Compile, true, _) => "compiles".to_owned(),
        (Did::Run, true, None) => "passed".to_owned(),
        (Did::Run, true, Some(tests)) => format!("passed, {tests}"),
    };
    if let Some(under) = &record.under {
        let _ = write!(cell, ", under {under}");
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(passed: bool, did: Did) -> Record {
        Record {
            platform: "x86_64-unknown-linux-musl".into(),
            suite: "attache".into(),
            did,
            under: None,
            passed,
            tests: Some(3),
            date: "2026-11-19".into(),
            commit: "0123456789ab".into(),
            command: "cargo test".into(),
        }
    }

    #[test]
    fn the_page_is_made_of_the_records() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let records = read(&root.join(RECORDS)).unwrap();
        let written = fs::read_to_string(root.join(PAGE)).unwrap();
        assert_eq!(written, page(&records), "`cargo xtask matrix` writes the page");
    }

    #[test]
    fn a_cell_claims_no_more_than_was_done() {
        assert_eq!(cell(&record(true, Did::Run)), "passed, 3");
        assert_eq!(cell(&record(true, Did::Compile)), "compiles");
        assert_eq!(cell(&record(false, Did::Run)), "**failed**");
        assert_eq!(cell(&record(false, Did::Compile)), "**failed**");
        let emulated = Record { under: Some("qemu-user".into()), ..record(true, Did::Run) };
        assert_eq!(cell(&emulated), "passed, 3, under qemu-user");
        // Only the platform of the record has something in its row.
        let page = page(&[record(true, Did::Run)]);
        assert_eq!(page.matches("passed, 3 |").count(), 2, "in the table, and in the list");
    }

    #[test]
    fn tests_are_counted_as_cargo_tells_them() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.1s\n";
        assert_eq!(tests_passed(line), Some(12));
        assert_eq!(tests_passed("test result: FAILED. 2 passed; 1 failed"), Some(2));
        assert_eq!(tests_passed("test x ... ok"), None);
    }

    #[test]
    fn a_record_that_is_not_understood_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records");
        fs::write(&path, "{\"platform\":\"x\"}\n").unwrap();
        assert!(read(&path).is_err());
    }
}
