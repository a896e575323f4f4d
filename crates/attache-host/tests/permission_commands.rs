//! What rules make of commands: none is smuggled past them, and the harmless ones still pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::path::PathBuf;

use attache::model::terminal::CreateTerminalRequest;
use attache_host::commands::Command;
use attache_host::permission::{Action, Engine, Places, Policy, Rule, Scope, Session, Subject, Verdict, parse_rules};
use attache_testkit::Dice;
use tempfile::TempDir;

/// What a user may have allowed, and programs that a rule for their bare name must not allow much of.
const ALLOWED: &str = r#"
    git status|git log|cargo test|cargo build|cargo check|npm test|npm run build|ls|cat|head|wc|rg|find|make test|sort
    printf|echo|python -m pytest|timeout 60 cargo test|nohup cargo build
    sudo|doas|env|command|builtin|exec|eval|source|nohup|nice|timeout|stdbuf|setsid|xargs|parallel|watch|ssh|sh|bash|zsh
    python|python3|perl|ruby|node|awk|sed|busybox|chroot|su|script|strace|flock|alias|hash|enable|export|set|shopt|trap
    read|unset|declare|test|[|mapfile|compgen|complete|bind|fc|wait|jobs|pushd|let|time|coproc|function|select
    bash -c|sh -c|bash -lc|python -c|python3 -c|perl -e|ruby -e|node -e|env -S|env -i|env A=b|sudo -u|timeout 5|nice -n
"#;

struct Desk {
    directory: TempDir,
    engine: Engine,
}

impl Desk {
    fn new(policy: Policy, rules: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["config", "project/src"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        std::fs::write(path("config/permissions.toml"), rules).unwrap();
        let places = Places { config_dir: path("config"), state_dir: path("state"), project: Some(path("project")) };
        let engine = Engine::open(places, policy);
        assert_eq!(engine.problems().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
        Desk { directory, engine }
    }

    fn with_allowed() -> Self {
        let mut rules =
            String::from("[[rule]]\nverdict = \"allow\"\ncommand = [\"git\", \"diff\"]\nnot_args = [\"--no-index\"]\n");
        for command in ALLOWED.trim().split(['|', '\n']) {
            let words: Vec<&str> = command.split_whitespace().collect();
            rules.push_str(&format!("[[rule]]\nverdict = \"allow\"\ncommand = {words:?}\n"));
        }
        Desk::new(Policy::Ask, &rules)
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn session(&self) -> Session {
        Session::new("agent", "session", self.project())
    }

    fn subject(&self, line: &str) -> Subject {
        let line = line.replace("/project", &self.project().to_string_lossy());
        from_terminal(self.session(), &CreateTerminalRequest::new("session", line))
    }

    fn words(&self, words: &[&str]) -> Verdict {
        let mut request = CreateTerminalRequest::new("session", words[0]);
        request.args = words[1..].iter().map(ToString::to_string).collect();
        self.engine.decide(&from_terminal(self.session(), &request)).verdict
    }

    fn verdict(&self, line: &str) -> Verdict {
        self.engine.decide(&self.subject(line)).verdict
    }
}

fn rows(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.starts_with("# ")).map(str::to_owned).collect()
}

/// A row of the table with its escapes replaced.
fn unescape(row: &str) -> String {
    let mut text = String::new();
    let mut rest = row;
    while let Some(position) = rest.find('\\') {
        text.push_str(&rest[..position]);
        rest = &rest[position + 1..];
        let simple = [("\\", '\\'), ("n", '\n'), ("t", '\t'), ("r", '\r'), ("0", '\0'), ("e", '\x1b')];
        if let Some(hex) = rest.strip_prefix("u{") {
            let (digits, after) = hex.split_once('}').unwrap();
            text.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
            rest = after;
        } else if let Some((name, c)) = simple.iter().find(|(name, _)| rest.starts_with(name)) {
            text.push(*c);
            rest = &rest[name.len()..];
        } else {
            text.push('\\');
        }
    }
    text + rest
}

#[test]
fn nothing_is_smuggled_past_the_rules() {
    let desk = Desk::with_allowed();
    let rows = rows(include_str!("commands/smuggled.txt"));
    let lines: HashSet<String> = rows.iter().map(|row| unescape(row)).collect();
    assert_eq!(lines.len(), rows.len(), "the rows differ");
    assert!(lines.len() >= 200);
    let passed: Vec<&String> = rows.iter().filter(|row| desk.verdict(&unescape(row)) == Verdict::Allow).collect();
    assert_eq!(passed, Vec::<&String>::new());
}

#[test]
fn nothing_is_smuggled_as_words_either() {
    let desk = Desk::with_allowed();
    for row in rows(include_str!("commands/smuggled.txt")) {
        let line = unescape(&row);
        // A whole line as the name of a program, or as the line that a shell is given.
        assert_ne!(desk.words(&[&line, ""]), Verdict::Allow, "{row}");
        for shell in ["sh", "/bin/bash", "zsh"] {
            assert_ne!(desk.words(&[shell, "-c", &line]), Verdict::Allow, "{row}");
        }
        assert_ne!(desk.words(&["bash", "-lc", &line]), Verdict::Allow, "{row}");
        assert_ne!(desk.words(&["bash", "-x", "-c", &line]), Verdict::Allow, "{row}");
    }
    for words in [
        vec!["git", "status\nrm x"],
        vec!["git", "status;rm", "x"],
        vec!["git status", "x"],
        vec!["./git", "status"],
        vec!["/tmp/bash", "-c", "git status"],
        vec!["bash", "-c", "git status", "x", "y"],
        vec!["bash", "--rcfile", "x", "-c", "git status"],
        vec!["sh", "-ic", "git status"],
        vec!["fish", "-c", "git status"],
        vec!["env", "git", "status"],
        vec!["git", "log", "\u{202e}"],
        vec!["", "git", "status"],
    ] {
        assert_ne!(desk.words(&words), Verdict::Allow, "{words:?}");
    }
}

#[test]
fn a_shell_that_reads_files_of_the_user_may_look_for_directories_elsewhere() {
    let desk = Desk::with_allowed();
    for (words, verdict) in [
        (["sh", "-c", "cd src && git status"], Verdict::Allow),
        (["/bin/bash", "-c", "cd src && git status"], Verdict::Allow),
        // A profile may set CDPATH, which is for names that do not begin with a dot.
        (["bash", "-lc", "cd src && git status"], Verdict::Ask),
        (["zsh", "-c", "cd src && git status"], Verdict::Ask),
        (["bash", "-lc", "cd ./src && git status"], Verdict::Allow),
    ] {
        assert_eq!(desk.words(&words), verdict, "{words:?}");
    }
}

#[test]
fn a_rule_about_paths_also_sees_them_from_where_a_command_went() {
    let rules = "[[rule]]\nverdict = \"allow\"\ncommand = [\"cat\"]\n\
        [[rule]]\nverdict = \"deny\"\nkind = \"read\"\npath = \"src/private/**\"\n";
    for policy in [Policy::Ask, Policy::All] {
        let desk = Desk::new(policy, rules);
        std::fs::create_dir_all(desk.project().join("src/private")).unwrap();
        for line in [
            "cat src/private/x",
            "cd src && cat private/x",
            "cd src && cd private && cat x",
            "cd /project/src/private && cat x",
            "cd src/private || cd src; cat ./x",
            "git -C src show HEAD:private/x private/x",
        ] {
            assert_eq!(desk.verdict(line), Verdict::Ask, "{line}");
        }
        assert_eq!(desk.verdict("cd src && cat main.rs"), Verdict::Allow);
    }
}

#[test]
fn a_command_that_names_a_secret_is_asked_about_as_such_each_time() {
    let rules = "[[rule]]\nverdict = \"allow\"\ncommand = [\"cat\"]\n\
        [[rule]]\nverdict = \"allow\"\ncommand = [\"head\", \".env.local\"]\n";
    let desk = Desk::new(Policy::Ask, rules);
    std::fs::write(desk.project().join(".env"), "KEY=x\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../.env", desk.project().join("src/plain.txt")).unwrap();
    for line in [
        "cat .env",
        "head .env",
        "cat ./src/../.env",
        "unknown --file=.env",
        "cat .env | head",
        "cat .env > x",
        "cat id_rsa",
        "cat src/plain.txt",
        "cd src && wc plain.txt",
    ] {
        let decision = desk.engine.decide(&desk.subject(line));
        assert_eq!(decision.verdict, Verdict::Ask, "{line}");
        assert!(decision.reason.contains("may hold secrets"), "{line}: {}", decision.reason);
        assert_eq!(decision.suggestion, [], "{line}");
    }
    // Who names the file in a rule means it.
    assert_eq!(desk.verdict("head .env.local"), Verdict::Allow);
}

#[test]
fn a_line_in_one_word_is_told_as_the_mistake_that_it_is() {
    let rule = |words: &[&str], verdict| {
        let command = words.iter().map(ToString::to_string).collect();
        Rule { command, ..Rule::new(verdict) }
    };
    for verdict in [Verdict::Allow, Verdict::Deny] {
        let mistake = rule(&["cargo test"], verdict).mistake().unwrap();
        assert!(mistake.contains("`command = [\"cargo\", \"test\"]`"), "{mistake}");
        assert_eq!(rule(&["cargo test"], verdict).narrowed(), None);
        assert_eq!(rule(&["cargo", "test"], verdict).mistake(), None);
        assert_eq!(rule(&["echo", "a b"], verdict).mistake(), None);
        assert_eq!(rule(&["/opt/My Tools/run"], verdict).mistake(), None);
    }
    // For those who run others, `args = "any"` would not help.
    for words in [&["npm", "run"][..], &["npm", "exec"], &["python3", "x.py"], &["uv", "run", "pytest"]] {
        let sentence = rule(words, Verdict::Allow).narrowed().unwrap();
        assert!(!sentence.contains("any"), "{sentence}");
    }
}

#[test]
fn the_harmless_ones_still_pass() {
    let desk = Desk::with_allowed();
    let rows = rows(include_str!("commands/harmless.txt"));
    assert_eq!(rows.iter().collect::<HashSet<_>>().len(), rows.len(), "the rows differ");
    assert!(rows.len() >= 100);
    let mut stopped = Vec::new();
    for row in &rows {
        let decision = desk.engine.decide(&desk.subject(row));
        if decision.verdict != Verdict::Allow {
            stopped.push((row, decision.reason));
        }
        // The same line, given to a shell.
        let line = row.replace("/project", &desk.project().to_string_lossy());
        assert_eq!(desk.words(&["bash", "-lc", &line]), decision.verdict, "{row}");
    }
    assert_eq!(stopped, []);
    // As words, everything but the name of the program and a control character is only itself.
    for words in [
        vec!["git", "status", "$(rm x)", ";", "rm"],
        vec!["git", "log", "--grep=`x`", "*", "{a,b}"],
        vec!["rg", "a|b", ">", "x"],
        vec!["cargo", "test", "--", "a b"],
    ] {
        assert_eq!(desk.words(&words), Verdict::Allow, "{words:?}");
    }
}

#[test]
fn a_rule_with_a_path_means_that_path() {
    let rules = "[[rule]]\nverdict = \"allow\"\ncommand = [\"/usr/bin/git\", \"status\"]\n";
    let desk = Desk::new(Policy::Ask, rules);
    assert_eq!(desk.verdict("/usr/bin/git status"), Verdict::Allow);
    assert_eq!(desk.verdict("git status"), Verdict::Ask);
    assert_eq!(desk.verdict("/bin/git status"), Verdict::Ask);
}

#[test]
fn a_rule_for_a_bare_git_allows_what_changes_nothing() {
    let desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = \"allow\"\ncommand = [\"git\"]\n");
    for line in ["git status", "git diff --stat", "git log -c", "git --no-pager show HEAD", "git branch -a"] {
        assert_eq!(desk.verdict(line), Verdict::Allow, "{line}");
    }
    for line in [
        "git push",
        "git commit -m x",
        "git branch -D x",
        "git -c core.pager=x log",
        "git -ccore.pager=x log",
        "git --exec-path=/tmp log",
        "git -C /tmp log",
        "git clone --config core.fsmonitor=x y",
        "git submodule foreach rm",
        "git bisect run rm",
        "git rebase -x rm HEAD~3",
        "git rebase --exec rm HEAD~3",
        "git fetch --upload-pack=x y",
        "git clone ext::sh",
        "git clone --template=x y",
        "git grep -O x",
        "git grep --open-files-in-pager=rm x",
    ] {
        assert_eq!(desk.verdict(line), Verdict::Ask, "{line}");
    }
}

#[test]
fn variables_and_directories_of_a_terminal_count() {
    let desk = Desk::with_allowed();
    let decide = |name: &str, value: &str, cwd: Option<&str>| {
        let mut request = CreateTerminalRequest::new("session", "git status");
        if !name.is_empty() {
            request.env = vec![attache::model::mcp::EnvVariable::new(name, value)];
        }
        request.cwd = cwd.map(|cwd| cwd.replace("/project", &desk.project().to_string_lossy()));
        desk.engine.decide(&from_terminal(desk.session(), &request)).verdict
    };
    assert_eq!(decide("", "", None), Verdict::Allow);
    assert_eq!(decide("NO_COLOR", "1", None), Verdict::Allow);
    assert_eq!(decide("GIT_PAGER", "cat", Some("/project/src")), Verdict::Allow);
    for (name, value) in
        [("PATH", "/tmp"), ("LD_PRELOAD", "x"), ("GIT_PAGER", "rm"), ("TERM", "../x"), ("git", "x"), ("BASH_ENV", "x")]
    {
        assert_eq!(decide(name, value, None), Verdict::Ask, "{name}");
    }
    for cwd in ["/", "/tmp", "/project/..", "/project/../other", "..", "/projects"] {
        assert_eq!(decide("", "", Some(cwd)), Verdict::Ask, "{cwd}");
    }
}

#[cfg(unix)]
#[test]
fn a_directory_that_leads_out_of_the_project_is_outside() {
    let desk = Desk::with_allowed();
    std::os::unix::fs::symlink("/", desk.project().join("out")).unwrap();
    assert_eq!(desk.verdict("cd /project/out && git status"), Verdict::Ask);
    assert_eq!(desk.verdict("cd /project/src && git status"), Verdict::Allow);
    let mut request = CreateTerminalRequest::new("session", "git status");
    request.cwd = Some(desk.project().join("out").to_string_lossy().into_owned());
    assert_eq!(desk.engine.decide(&from_terminal(desk.session(), &request)).verdict, Verdict::Ask);
}

const DENIED: &str = "
    [[rule]]
    verdict = 'deny'
    command = ['rm']
    [[rule]]
    verdict = 'deny'
    command = ['git', 'push']
    [[rule]]
    verdict = 'allow'
    command = ['git']
";

#[test]
fn a_denied_command_is_found_wherever_it_hides() {
    for policy in [Policy::Ask, Policy::All, Policy::None, Policy::Edits] {
        let desk = Desk::new(policy, DENIED);
        for line in [
            "rm x",
            "/bin/rm x",
            "./rm",
            "../bin/rm x",
            "command rm x",
            "ls; rm x",
            "ls && rm x",
            "ls || rm x",
            "ls | rm",
            "ls & rm x",
            "(rm x)",
            "{ rm x; }",
            "if ls; then rm x; fi",
            "for i in a; do rm $i; done",
            "while rm x; do ls; done",
            "case x in x) rm x;; esac",
            "echo $(rm x)",
            "echo `rm x`",
            "echo \"$(rm x)\"",
            "cat <(rm x)",
            "f() { rm x; }",
            "A=b rm x",
            "A=$(rm x) ls",
            "rm > x",
            "r\\m x",
            "'rm' x",
            "\"r\"m x",
            "sudo rm x",
            "sudo -u root rm x",
            "env -i A=b rm x",
            "xargs rm",
            "ls | xargs -n 1 rm -f",
            "nohup rm x",
            "timeout 5 rm x",
            "nice -n 5 rm x",
            "sh -c 'rm x'",
            "bash -lc 'ls; rm x'",
            "sh -c \"sh -c 'rm x'\"",
            "eval 'rm x'",
            "eval rm x",
            "exec rm x",
            "find . -exec rm {} +",
            "ssh host rm x",
            "ssh host 'ls; rm x'",
            "busybox rm x",
            "! rm x",
            "time rm x",
            "ls\nrm x",
            "ls > x; rm x",
            "git push",
            "git push --force",
            "git -C /x push",
            "git -c a=b push",
            "git --no-pager push",
            "/usr/bin/git push",
            "sudo git push",
            "git status && git push origin",
            "coproc rm x",
            "rm",
            "rm;",
            "rm&",
        ] {
            assert_eq!(desk.verdict(line), Verdict::Deny, "{policy:?}: {line}");
        }
        assert_eq!(desk.words(&["rm", "x"]), Verdict::Deny);
        assert_eq!(desk.words(&["sh", "-c", "ls; rm x"]), Verdict::Deny);
        assert_eq!(desk.words(&["sh", "-e", "-c", "ls; rm x"]), Verdict::Deny);
    }
}

#[test]
fn what_may_be_a_denied_command_is_asked_about_even_if_everything_is_allowed() {
    let desk = Desk::new(Policy::All, DENIED);
    for line in [
        "$x",
        "$(echo rm) x",
        "r? x",
        "/bin/r[m] x",
        "$'rm' x",
        "echo ${x:-$(rm y)}",
        "(((",
        "if",
        "git $x",
        "ls 'x",
        "[[ a ]]",
    ] {
        assert_eq!(desk.verdict(line), Verdict::Ask, "{line}");
    }
    for line in [
        "ls $x",
        "echo rm",
        "git commit -m rm",
        "git commit -m push",
        "ls > x",
        "for i in a; do ls $i; done",
        "rmdir x",
    ] {
        assert_eq!(desk.verdict(line), Verdict::Allow, "{line}");
    }
    // Without a rule that denies commands there is nothing to miss.
    assert_eq!(Desk::new(Policy::All, "").verdict("$x ((("), Verdict::Allow);
}

#[test]
fn long_and_deep_lines_are_asked_about_at_once() {
    let desk = Desk::with_allowed();
    let begin = std::time::Instant::now();
    for opener in [
        "(",
        "$(",
        "{ ",
        "`",
        "\"$(",
        "if ",
        "! ",
        "while ",
        "case x in x) ",
        "${x:-",
        "$((",
        "[[ ",
        "[[ ( ",
        "<(",
        "a=(",
        "!",
        "time ",
        "\\",
        "'",
        "\"",
        "|",
        "&&",
        "a;",
        "a|",
        "<<a\n",
        "f() ",
        "'(' ",
        "sh '$(' ",
        "sudo '$((' ",
    ] {
        for count in [3, 20, 60, 1000, 20_000] {
            assert_eq!(desk.verdict(&opener.repeat(count)), Verdict::Ask, "{opener} {count}");
            desk.verdict(&format!("git status {}", opener.repeat(count)));
            desk.verdict(&format!("sh -c '{}'", opener.repeat(count)));
        }
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn long_lines_are_compared_with_rules_that_deny_at_once() {
    let desk = Desk::new(Policy::All, DENIED);
    let begin = std::time::Instant::now();
    for piece in [
        "sh ",
        "sudo ",
        "sudo sh ",
        "xargs git ",
        "env -i ",
        "git -c ",
        "A=b ",
        "python; ",
        "find -exec sh ",
        "'a b' ",
        "git p; ",
    ] {
        for (before, after) in [("", ""), ("sudo sh ", "x"), ("docker run ", "sh")] {
            for count in [90, 2000] {
                let line = format!("{before}{}{after}", piece.repeat(count));
                desk.verdict(&line);
                desk.words(&line.split(' ').collect::<Vec<_>>());
            }
        }
    }
    // What is too long to be read is found as far as it is, and asked about otherwise.
    let long = "x".repeat(40_000);
    assert_eq!(desk.words(&["rm", &long]), Verdict::Deny);
    assert_eq!(desk.words(&["sudo", "rm", &long]), Verdict::Deny);
    assert_eq!(desk.words(&["ls", &long]), Verdict::Ask);
    assert_eq!(desk.words(&vec!["sudo"; 100_000]), Verdict::Ask);
    assert!(begin.elapsed() < std::time::Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// Whether a line means these commands only, judged by rules of its own: after taking quoted texts out, nothing is left
/// but letters, blanks and the signs between commands.
fn is_evidently_harmless(line: &str) -> bool {
    let mut bare = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                if chars.next().is_none_or(|next| next == '\n') {
                    return false;
                }
                bare.push('q');
            }
            '\'' | '"' => {
                let mut escaped = false;
                let mut inside = String::new();
                let end = chars.by_ref().find(|&next| {
                    let end = !escaped && (next == c || (c == '"' && matches!(next, '$' | '`')));
                    escaped = !escaped && c == '"' && next == '\\';
                    if !end {
                        inside.push(next);
                    }
                    end
                });
                if end != Some(c) {
                    return false;
                }
                // What is quoted means itself; only its place in a word matters here.
                bare.extend(inside.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { 'q' }));
            }
            c => bare.push(c),
        }
    }
    let commands = bare.replace("&&", ";").replace("||", ";").replace('|', ";");
    let mut commands: Vec<&str> = commands.split(';').collect();
    if commands.len() > 1 && commands.last().is_some_and(|last| last.trim().is_empty()) {
        commands.pop();
    }
    let plain = |command: &&str| {
        let mut words = command.split(' ').filter(|word| !word.is_empty());
        let first = words.next();
        let is_allowed = match first {
            Some("git") => words.next() == Some("status"),
            Some("ls") => true,
            _ => false,
        };
        is_allowed && command.chars().all(|c| c.is_ascii_alphanumeric() || " -./~#=^%+,@".contains(c))
    };
    commands.iter().all(plain)
}

#[test]
fn no_random_line_is_allowed_unless_it_is_allowed_commands_only() {
    let desk = Desk::with_allowed();
    let pieces = [
        "git status",
        "ls",
        " ",
        " ",
        ";",
        "&",
        "&&",
        "|",
        "||",
        "\n",
        "$",
        "$(",
        ")",
        "`",
        "<",
        ">",
        "'",
        "\"",
        "\\",
        "{",
        "}",
        "(",
        "!",
        "*",
        "?",
        "[",
        "]",
        "~",
        "#",
        "=",
        "A=b",
        "rm",
        " rm ",
        "x",
        "-x",
        "\t",
        "\r",
        "\0",
        "^",
        "%",
        "if",
        "then",
        "fi",
        "<<x",
        "2>",
        "$x",
        "${",
        "@",
        "+",
        ",",
        "\u{a0}",
        "\u{202e}",
    ];
    let mut allowed = 0;
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let mut line = String::new();
        for _ in 0..dice.below(5) {
            line.push_str(dice.pick(&pieces));
        }
        line.push_str(dice.pick(&["git status", "ls"]));
        for _ in 0..dice.below(6) {
            line.push_str(dice.pick(&pieces));
        }
        if desk.verdict(&line) == Verdict::Allow {
            allowed += 1;
            assert!(is_evidently_harmless(&line), "seed {seed}: {line:?}");
        }
    }
    assert!(allowed > 500, "the property says something: {allowed}");
}

#[test]
fn a_suggested_rule_allows_what_it_was_suggested_for_and_nothing_hidden() {
    for (line, commands) in [
        ("cargo test --lib", vec!["cargo test"]),
        ("npm run build -- x", vec!["npm run build -- x"]),
        ("npm run build", vec!["npm run build"]),
        ("rm -r build", vec!["rm -r build"]),
        ("cargo fmt && cargo test", vec!["cargo fmt", "cargo test"]),
        ("cd /project && cargo doc", vec!["cargo doc"]),
        ("sudo systemctl status", vec!["sudo systemctl status"]),
        ("git -C /x push", vec!["git -C /x push"]),
        ("git --no-pager diff --stat", vec!["git diff"]),
        ("timeout 60 cargo test --lib", vec!["cargo test"]),
        ("git push --force", vec!["git push --force"]),
        ("git push origin main", vec!["git push"]),
        ("git branch -D x", vec!["git branch -D x"]),
        ("uv run sh -c 'x y'", vec!["uv run sh -c x y"]),
        ("uv run pytest -q", vec!["uv run pytest"]),
        ("npx eslint src", vec!["npx eslint src"]),
        ("frobnicate --all", vec!["frobnicate --all"]),
        ("cat /etc/hosts", vec!["cat /etc/hosts"]),
        ("rm old.txt", vec!["rm old.txt"]),
        ("touch src/new.rs", vec!["touch src/new.rs"]),
        ("git checkout main", vec!["git checkout main"]),
        ("sh -c 'make x; make y'", vec![]),
        ("python -c 'x'", vec![]),
        ("ls | sh", vec![]),
        ("ls | xargs rm", vec![]),
        ("ls | sudo sh", vec![]),
        ("ls | sudo -u me bash", vec![]),
        ("ls | env python", vec![]),
        ("ls | uv run python", vec![]),
        ("ls | sudo -s", vec![]),
        ("ls | python - x", vec![]),
        ("ls | sh /dev/stdin", vec![]),
        ("ls | bash -es x", vec![]),
        ("ls | ssh host", vec![]),
        ("ls | at now", vec![]),
        ("vim x", vec![]),
        ("sed -i s/a/b/ x", vec!["sed -i s/a/b/ x"]),
        ("uv run python x.py", vec!["uv run python x.py"]),
        ("eval x", vec![]),
        ("source x", vec![]),
        ("python x.py", vec!["python x.py"]),
        ("ls $(x)", vec![]),
        ("cat .env", vec![]),
        ("frobnicate --all 2>&1", vec!["frobnicate --all"]),
        ("cargo fmt > x", vec![]),
    ] {
        let mut desk = Desk::new(Policy::Ask, "");
        let subject = desk.subject(line);
        let decision = desk.engine.decide(&subject);
        assert_eq!(decision.verdict, Verdict::Ask, "{line}");
        let suggested: Vec<String> = decision.suggestion.iter().map(|rule| rule.command.join(" ")).collect();
        assert_eq!(suggested, commands, "{line}");
        desk.engine.remember(Scope::Session, &desk.session(), &decision.suggestion).unwrap();
        let later = desk.engine.decide(&subject).verdict;
        assert_eq!(later, if commands.is_empty() { Verdict::Ask } else { Verdict::Allow }, "{line}");
        assert_ne!(desk.verdict(&format!("{line}; curl x")), Verdict::Allow, "{line}");
    }
}

#[test]
fn rules_of_the_first_version_load_and_say_what_they_allow_less() {
    let text = "
        [[rule]]
        verdict = 'allow'
        command = ['make', 'test']
        match = ['make test VERBOSE=1']
        [[rule]]
        verdict = 'allow'
        command = ['frobnicate', '--all']
        [[rule]]
        verdict = 'allow'
        command = ['git']
        [[rule]]
        verdict = 'allow'
        command = ['uv', 'run', 'sh']
        [[rule]]
        verdict = 'allow'
        command = ['git', 'push', '--force']
        [[rule]]
        verdict = 'deny'
        command = ['rm']
        [[rule]]
        verdict = 'allow'
        command = ['frobnicate']
        args = 'any'
        [[rule]]
        verdict = 'allow'
        command = ['cargo', 'test']
        args = 'known'
    ";
    let rules = parse_rules("r.toml", text).unwrap();
    let sentences: Vec<String> = rules.iter().filter_map(|rule| rule.narrowed()).collect();
    let parts = [
        "`make test` allows it with arguments that are known to be harmless only",
        "`frobnicate --all` allows it without further arguments only",
        "`git` allows only those of its subcommands that change nothing",
        "`uv run sh` allows exactly that",
        "`git push --force` allows it without further arguments only",
    ];
    assert_eq!(sentences.len(), parts.len(), "{sentences:?}");
    for (sentence, part) in sentences.iter().zip(parts) {
        // What runs others is named with all its words, whatever a rule says about arguments.
        let can_be_any = !sentence.contains("`uv run sh`");
        assert!(sentence.contains(part) && sentence.contains("args = \"any\"") == can_be_any, "{sentence}");
    }
    assert_eq!(rules[0].to_string(), "allow the command `make test …`");
    assert_eq!(rules[1].to_string(), "allow the command `frobnicate --all`");
    assert_eq!(rules[5].to_string(), "deny the command `rm …`");
    assert_eq!(rules[6].to_string(), "allow the command `frobnicate …` with any arguments");
    // What says what it means about arguments is held to its examples.
    let wrong = text.replace("args = 'known'", "args = 'known'\nmatch = ['cargo test --config x']");
    assert!(parse_rules("r.toml", &wrong).unwrap_err().to_string().contains("does not match its example"));
    for wrong in ["args = 'some'", "args = ['any']"] {
        assert!(parse_rules("r.toml", &text.replace("args = 'any'", wrong)).is_err(), "{wrong}");
    }
    assert!(parse_rules("r.toml", "[[rule]]\nverdict = 'deny'\ncommand = ['x']\nargs = 'any'\n").is_err());
    assert!(parse_rules("r.toml", "[[rule]]\nverdict = 'allow'\nkind = 'read'\nargs = 'any'\n").is_err());
}

#[test]
fn what_is_remembered_says_what_it_means_about_arguments() {
    let mut desk = Desk::new(Policy::Ask, "");
    for line in ["cargo test --lib", "frobnicate x"] {
        let decision = desk.engine.decide(&desk.subject(line));
        desk.engine.remember(Scope::Always, &desk.session(), &decision.suggestion).unwrap();
    }
    let text = std::fs::read_to_string(desk.directory.path().join("config/permissions.toml")).unwrap();
    assert!(text.contains("command = [\"cargo\", \"test\"]\nargs = \"known\""), "{text}");
    assert!(text.contains("command = [\"frobnicate\", \"x\"]\nargs = \"none\""), "{text}");
    assert_eq!(desk.engine.rules().filter_map(|rule| rule.narrowed()).count(), 0);
    assert_eq!(desk.verdict("cargo test -p x"), Verdict::Allow);
    assert_eq!(desk.verdict("frobnicate x"), Verdict::Allow);
    assert_eq!(desk.verdict("frobnicate x y"), Verdict::Ask);
    // The same, denied: a word about arguments has no place there.
    let rules: Vec<Rule> = desk.engine.rules().cloned().collect();
    let denied: Vec<Rule> = rules.into_iter().map(|rule| Rule { verdict: Verdict::Deny, ..rule }).collect();
    for _ in 0..2 {
        desk.engine.remember(Scope::Project, &desk.session(), &denied).unwrap();
    }
    assert_eq!(desk.engine.project_rules().len(), 2);
    assert_eq!(desk.verdict("frobnicate x y"), Verdict::Deny);
}

#[test]
fn examples_are_checked_when_rules_are_read() {
    let rules = |examples: &str| {
        parse_rules("r.toml", &format!("\n[[rule]]\nverdict = 'allow'\ncommand = ['git', 'status']\n{examples}\n"))
    };
    assert!(rules("match = ['git status -s', 'git status']\nnot_match = ['git push', 'git status; rm x']").is_ok());
    for (examples, problem) in [
        ("match = ['git push']", "does not match its example `git push`"),
        ("match = ['git status', 'git status > x']", "does not match its example `git status > x`"),
        ("not_match = ['git status -s']", "matches `git status -s`, which it is not to"),
    ] {
        let error = rules(examples).unwrap_err().to_string();
        assert!(error.starts_with("`r.toml:2`: ") && error.contains(problem), "{error}");
    }
    let denied = "[[rule]]\nverdict = 'deny'\ncommand = ['rm']\nmatch = ['ls; sudo rm x']\nnot_match = ['echo rm']\n";
    assert!(parse_rules("r.toml", denied).is_ok());
}

/// The shells that there are run a line that is allowed, with recorders for programs.
#[cfg(unix)]
#[test]
fn real_shells_run_nothing_else_either() {
    use std::os::unix::fs::PermissionsExt;

    let desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'allow'\ncommand = ['ls']\n");
    let (programs, log) = (desk.directory.path().join("programs"), desk.directory.path().join("log"));
    std::fs::create_dir(&programs).unwrap();
    for name in ["ls", "rm", "x", "git"] {
        let path = programs.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho {name} >> '{}'\n", log.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let pieces = [
        "ls", " ", "'", "\"", "\\", ";", "&&", "|", "||", "#", "=", "~", "^", "%", "!", "rm", "x", "{", "(", "$", "`",
        "\n", "<", ">", "&", "*", "[", "@", "+", "-", "é", ",", ":", "a~b", "\\\\", "\\'", "\\\"", "'\"'", "\"'\"",
    ];
    let mut ran = 0;
    for seed in 0.. {
        let mut dice = Dice::new(seed);
        let mut line = String::from("ls ");
        for _ in 0..dice.below(12) {
            line.push_str(dice.pick(&pieces));
        }
        let is_plain = !line.contains(['\'', '"', '\\', ';', '|', '&']);
        if is_plain || desk.verdict(&line) != Verdict::Allow {
            continue;
        }
        for shell in
            ["/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh"].iter().filter(|path| PathBuf::from(path).exists())
        {
            let _ = std::fs::remove_file(&log);
            let output = std::process::Command::new(shell)
                .args(["-c", &line])
                .env_clear()
                .env("PATH", &programs)
                .current_dir(desk.project())
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}: {line:?}");
            let run = std::fs::read_to_string(&log).unwrap_or_default();
            assert!(run.lines().all(|name| name == "ls"), "{shell}: {line:?} ran {run:?}");
        }
        ran += 1;
        if ran == 100 {
            break;
        }
    }
}

/// A request without arguments is a line here, also where it could be the name of a program.
fn from_terminal(session: Session, request: &CreateTerminalRequest) -> Subject {
    let mut action = attache_host::terminals::invocation(request, &session.cwd).action();
    if let Action::Execute { command, .. } = &mut action
        && request.args.is_empty()
    {
        *command = Command::Line(request.command.clone());
    }
    Subject::served(session, action)
}

#[test]
fn no_line_takes_memory_without_end() {
    let desk = Desk::new(Policy::All, "[[rule]]\nverdict = \"deny\"\ncommand = [\"rm\"]\n");
    // The parser would run out of memory on these.
    for line in ["ls <<x$(            ", "ls <<\\\n$(            ", "ls <<`      ", "ls <<${x:-$(        "] {
        assert_eq!(desk.verdict(line), Verdict::Ask, "{line:?}");
    }
}
