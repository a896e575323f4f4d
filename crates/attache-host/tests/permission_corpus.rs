//! The corpus of commands: what rules make of each line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::str::FromStr;

use attache_host::commands::{Command, Invocation};
use attache_host::permission::{Engine, Places, Policy, Session, Subject, Verdict};
use tempfile::TempDir;

const CORPUS: &str = include_str!("corpus/commands.txt");

/// The rules of a section, in a directory of their own.
struct Section {
    directory: TempDir,
    engine: Engine,
}

impl Section {
    /// From the words after the `=`.
    fn new(text: &str) -> Self {
        let mut policy = Policy::Ask;
        let mut rules = String::new();
        for part in text.split(", ").map(str::trim) {
            let (word, rest) = part.split_once(' ').unwrap();
            let words: Vec<&str> = rest.split(' ').collect();
            match word {
                "policy" => policy = Policy::from_str(rest).unwrap(),
                "any" => rules += &format!("[[rule]]\nverdict = 'allow'\ncommand = {words:?}\nargs = 'any'\n"),
                _ => rules += &format!("[[rule]]\nverdict = '{word}'\ncommand = {words:?}\n"),
            }
        }
        let directory = tempfile::tempdir().unwrap();
        lay_out(directory.path());
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("config/permissions.toml"), rules).unwrap();
        let places = Places { config_dir: path("config"), state_dir: path("state"), project: Some(path("project")) };
        let engine = Engine::open(places, policy);
        assert_eq!(engine.problems().map(ToString::to_string).collect::<Vec<_>>(), [""; 0], "{text}");
        Section { directory, engine }
    }

    fn verdict(&self, line: &str) -> Verdict {
        let project = self.directory.path().join("project");
        let line = line.replace("\\n", "\n").replace("/project", &project.to_string_lossy());
        let session = Session::new("agent", "session", project);
        let invocation = Invocation::new(Command::Line(line), &session.cwd);
        self.engine.decide(&Subject::served(session, invocation.action())).verdict
    }
}

/// A project with links that lead out of it, and a repository without a work tree that came with it.
fn lay_out(directory: &Path) {
    let path = |name: &str| directory.join(name);
    for name in [
        "config",
        "project/src",
        "project/.git/hooks",
        "project/bare/objects",
        "project/bare/refs",
        "project/hub.git",
        "project/src/trap",
        "elsewhere",
    ] {
        std::fs::create_dir_all(path(name)).unwrap();
    }
    for name in ["project/src/main.rs", "project/README.md", "project/.env", "project/bare/HEAD", "elsewhere/file"] {
        std::fs::write(path(name), "text\n").unwrap();
    }
    #[cfg(unix)]
    for (target, link) in [
        ("/etc", "out"),
        ("../.env", "src/plain.txt"),
        ("../../elsewhere", "src/away"),
        ("/etc/x", "src/trap/README.md"),
        ("bare/objects", "link-to-bare"),
    ] {
        std::os::unix::fs::symlink(target, path("project").join(link)).unwrap();
    }
}

#[test]
fn every_line_of_the_corpus_gets_its_verdict() {
    let mut section = None;
    let (mut lines, mut attacks, mut wrong) = (0, 0, Vec::new());
    for (number, row) in CORPUS.lines().enumerate() {
        let Some((sign, line)) = row.split_once(' ') else { continue };
        let expected = match sign {
            "#" => continue,
            "=" => {
                section = Some(Section::new(line));
                continue;
            }
            "+" => Verdict::Allow,
            "?" | "!" => Verdict::Ask,
            "-" => Verdict::Deny,
            _ if row.starts_with("  ") || row.starts_with('#') => continue,
            _ => panic!("line {}: `{row}` begins with an unknown sign", number + 1),
        };
        lines += 1;
        attacks += usize::from(sign == "!");
        let verdict = section.as_ref().unwrap().verdict(line);
        if verdict != expected {
            wrong.push(format!("{}: {row}   is {}", number + 1, verdict.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{} of {lines} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(lines >= 400, "only {lines} lines");
    assert!(attacks >= 150, "only {attacks} attacks");
}
