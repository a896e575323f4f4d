//! What the reader calls plain is what real shells execute, word for word.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use attache_testkit::Dice;

use super::read;

/// Programs that note their arguments. No shell has them built in.
const PROGRAMS: &[&str] = &["cargo", "git", "ls", "make", "rm", "x", "x-y", "x.y"];

/// Lines for each shell.
const LINES: usize = 400;

/// Notes its name and its arguments as one record. No plain line has the characters between.
const RECORDER: &str = "#!/bin/sh\nrecord=${0##*/}\nfor word; do record=\"$record\u{1f}$word\"; done\n\
    printf '%s\u{1e}' \"$record\" >> \"$RECORDS\"\n";

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
    let mut line = String::new();
    for number in 0..1 + dice.below(3) {
        if number > 0 {
            line += dice.pick(&[";", "; ", " ; ", "&&", " && ", "|", " | ", " || ", "||"]);
        }
        line += dice.pick(&["", " ", "  "]);
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
    let (mut lines, mut judged, mut refused) = (Vec::new(), Vec::new(), 0);
    for seed in 0.. {
        let line = line(&mut Dice::new(seed));
        match read(&line).plain() {
            Ok(commands) => {
                judged.push(commands.to_vec());
                lines.push(line);
            }
            Err(_) => refused += 1,
        }
        if lines.len() == LINES {
            break;
        }
    }
    assert!(refused > LINES / 10, "the generator makes lines that are not plain too: {refused}");
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
