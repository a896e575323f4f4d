//! What the reader calls plain is what real shells execute, word for word.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use attache_testkit::Dice;

use super::read;
use crate::permission::strict::{Simple, To};

/// Programs that note their arguments. No shell has them built in.
const PROGRAMS: &[&str] = &["cargo", "git", "ls", "make", "rm", "x", "x-y", "x.y"];

/// Lines for each shell.
const LINES: usize = 400;

/// Notes which of its outputs lead nowhere, two variables, its name and its arguments as one record. No plain line has the
/// characters between.
const RECORDER: &str = "#!/bin/sh\nnull=\nfor output in 1 2; do [ /dev/fd/$output -ef /dev/null ] && null=$null$output; done\n\
    record=\"$null,${CI-},${NO_COLOR-}\u{1f}${0##*/}\"\nfor word; do record=\"$record\u{1f}$word\"; done\n\
    printf '%s\u{1e}' \"$record\" >> \"$RECORDS\"\n";

/// Starts what it is given, as the program does that shells without such a word have.
const TIME: &str = "#!/bin/sh\n\"$@\"\n";

/// What the recorder notes of a command.
fn record(command: &Simple) -> Vec<String> {
    // Where standard output and standard error lead.
    let mut null = [false, false];
    for redirection in command.redirections.iter().filter(|redirection| redirection.descriptor > 0) {
        null[redirection.descriptor as usize - 1] = match redirection.to {
            To::Null => true,
            To::Descriptor(other) => null[other as usize - 1],
        };
    }
    let null: String =
        [(null[0], "1"), (null[1], "2")].iter().filter(|(is_null, _)| *is_null).map(|(_, n)| *n).collect();
    let value = |wanted: &str| {
        let found = command.assignments.iter().rev().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let mut record = vec![format!("{null},{},{}", value("CI"), value("NO_COLOR"))];
    record.extend(command.words.iter().cloned());
    record
}

/// A line of words, quotes, escapes, operators and all that shells replace.
fn line(dice: &mut Dice) -> String {
    let words = [
        "a",
        "b1",
        "--long",
        "-s",
        "--key=value",
        "a/b",
        "./c",
        "../d",
        "a,b",
        "a:b",
        "a@b",
        "a+b",
        "50%",
        "a~b",
        "HEAD~1",
        "HEAD^",
        "a=b",
        "x=",
        "é",
        "日本",
        "''",
        "\"\"",
        "'a b'",
        "\"a b\"",
        "'a\"b'",
        "\"a'b\"",
        "'$x'",
        "\"\\$x\"",
        "'`x`'",
        "\"\\`x\\`\"",
        "a\\ b",
        "\\'",
        "\\\"",
        "\\\\",
        "\\$x",
        "\\*",
        "\\#",
        "\\;",
        "\\|",
        "\\&",
        "\\~",
        "\\!",
        "'*'",
        "\"*.rs\"",
        "'?'",
        "'[a]'",
        "'{a,b}'",
        "\"{1..3}\"",
        "'~'",
        "\"~/x\"",
        "'#x'",
        "a#b",
        "';'",
        "\"&& rm\"",
        "'| rm'",
        "'> f'",
        "\"< f\"",
        "\"a\\b\"",
        "\"\\\\\"",
        "'\\'",
        "'!'",
        "if",
        "then",
        "fi",
        "in",
        "do",
        "time",
        "'if'",
        "\"a\\\"b\"",
        "'it'\\''s'",
        "a'b'c",
        "a\"b\"'c'",
        "\\-x",
        "--",
        "-",
        "\u{1F600}",
        "'\u{1F600} x'",
        "^x",
        "a^b",
        "]",
        "a]",
        "}",
        "'a  b'",
        "%1",
        "=x",
        "a=~",
        "a:~",
        "@",
    ];
    let wild = [
        "$x", "${x}", "$(rm)", "`rm`", "*", "?", "[a]", "{a,b}", "~", "~root", "#", "!", "!!", "<f", ">f", "2>&1", "&",
        "(", ")", "{", "}", "$'a'", "$\"a\"", "\\", "'", "\"", "\u{a0}", "\u{2003}", "\u{3000}", "\t", "\\\n", "\n",
        "((1))", "<<x", "$((1))", "~+",
    ];
    let redirections = [
        "2>&1",
        ">&2",
        "1>&2",
        "2>/dev/null",
        ">/dev/null",
        "> /dev/null",
        "2>  /dev/null",
        "</dev/null",
        "0</dev/null",
        "1>/dev/null",
        ">&1",
        "2>&2",
        ">/dev/nullx",
        "2>&1x",
        "&>/dev/null",
        ">&/dev/null",
        ">|/dev/null",
        "2>&1-",
        ">&22",
        "3>/dev/null",
        "2</dev/null",
        "<>/dev/null",
        "2>f",
        "2>&1>f",
    ];
    let before =
        ["CI=1 ", "CI=a-b NO_COLOR=1 ", "CI= ", "CI=1 CI=2 ", "CI=a=b ", "CI='1' ", "time ", "time CI=1 ", "time -p "];
    let mut line = String::new();
    for number in 0..1 + dice.below(3) {
        if number > 0 {
            line += dice.pick(&[";", "; ", " ; ", "&&", " && ", "|", " | ", " || ", "||"]);
        }
        line += dice.pick(&["", " ", "  "]);
        if dice.one_in(4) {
            line += dice.pick(&before);
        }
        if dice.one_in(8) {
            line += dice.pick(&redirections);
            line += dice.pick(&["", " ", " "]);
        }
        let program = dice.pick(PROGRAMS);
        match dice.below(8) {
            0 => line += &format!("'{program}'"),
            1 => line += &format!("\"{program}\""),
            2 => line += &format!("{}\\{}", &program[..program.len() - 1], &program[program.len() - 1..]),
            _ => line += program,
        }
        for _ in 0..dice.below(5) {
            line += dice.pick(&[" ", " ", "  ", "   "]);
            for _ in 0..1 + dice.below(3) {
                line += if dice.one_in(24) { dice.pick(&wild) } else { dice.pick(&words) };
            }
            if dice.one_in(6) {
                line += dice.pick(&["", " ", " ", " 2", " 1"]);
                line += dice.pick(&redirections);
            }
        }
    }
    line + dice.pick(&["", "", " ", ";", " ;"])
}

/// Runs lines, one after the other, as a script of a shell. Returns what each executed.
fn executed(shell: &str, directory: &Path, lines: &[String]) -> BTreeMap<usize, Vec<Vec<String>>> {
    let (programs, records) = (directory.join("programs"), directory.join(shell.replace('/', "_")));
    let mut script = String::new();
    for (number, line) in lines.iter().enumerate() {
        script += &format!("printf '\u{1d}{number}\u{1e}' >> \"$RECORDS\"\n{line}\n");
    }
    let (script_path, empty) = (records.with_extension("script"), records.with_extension("empty"));
    std::fs::write(&script_path, script).unwrap();
    std::fs::create_dir(&empty).unwrap();
    let mut command = Command::new(shell);
    command.arg(&script_path).current_dir(&empty).env_clear().env("PATH", &programs).env("RECORDS", &records);
    // Without a format, bash tells no times.
    command.env("TIMEFORMAT", "");
    let output = command.env("LC_ALL", "C.UTF-8").stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "{shell} made a file");
    let (mut found, mut number) = (BTreeMap::new(), 0);
    for record in std::fs::read_to_string(&records).unwrap().split_terminator('\u{1e}') {
        match record.strip_prefix('\u{1d}') {
            Some(mark) => number = mark.parse().unwrap(),
            None => {
                let words: Vec<String> = record.split('\u{1f}').map(str::to_owned).collect();
                found.entry(number).or_insert_with(Vec::new).push(words);
            }
        }
    }
    found
}

#[test]
fn real_shells_execute_exactly_the_words_that_were_judged() {
    let directory = tempfile::tempdir().unwrap();
    let programs = directory.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in PROGRAMS {
        std::fs::write(programs.join(name), RECORDER).unwrap();
        std::fs::set_permissions(programs.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(programs.join("time"), TIME).unwrap();
    std::fs::set_permissions(programs.join("time"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut lines, mut judged, mut refused) = (Vec::new(), Vec::new(), 0);
    let (mut redirected, mut timed) = (0, 0);
    for seed in 0.. {
        let line = line(&mut Dice::new(seed));
        let found = read(&line);
        match found.plain() {
            Ok(commands) => {
                assert!(commands.iter().eq(found.simple.iter().map(|command| &command.words)), "{line:?}");
                redirected += found.simple.iter().filter(|command| !command.redirections.is_empty()).count();
                timed += found.simple.iter().filter(|command| command.timed).count();
                judged.push(found.simple.iter().map(record).collect::<Vec<_>>());
                lines.push(line);
            }
            Err(_) => refused += 1,
        }
        if lines.len() == LINES {
            break;
        }
    }
    assert!(refused > LINES / 10, "the generator makes lines that are not plain too: {refused}");
    assert!(redirected > LINES / 20 && timed > LINES / 100, "{redirected} {timed}");
    let mut seen = Vec::new();
    for shell in ["/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh"] {
        // Where `sh` is one of the others, once is enough.
        let Ok(real) = Path::new(shell).canonicalize() else { continue };
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let executed = executed(shell, directory.path(), &lines);
        for (number, line) in lines.iter().enumerate() {
            let mut found = executed.get(&number).cloned().unwrap_or_default();
            let mut expected = judged[number].clone();
            // The programs of a pipeline run side by side.
            found.sort();
            expected.sort();
            if line.contains("||") {
                // What stands behind `||` is not run here: every program succeeds.
                expected.retain(|words| found.contains(words));
                assert!(!found.is_empty(), "{shell}: {line:?}");
                found.dedup();
                expected.dedup();
            }
            assert_eq!(found, expected, "{shell}: {line:?}");
        }
    }
}
