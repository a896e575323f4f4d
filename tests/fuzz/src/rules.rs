//! Rules for commands, and the table of what is known to be harmless.

use std::path::{Component, Path};
use std::sync::OnceLock;

use attache_host::commands::Command;
use attache_host::permission::{Action, Engine, Places, Policy, Session, Subject, Verdict};
use tempfile::TempDir;

use crate::input::Input;

/// Commands with a rule each. Those of the second list work on nothing but paths.
const COMMANDS: &[&str] = &[
    "git diff",
    "git log",
    "git push",
    "git branch",
    "git config --get",
    "git commit",
    "git fetch",
    "cargo test",
    "cargo clippy",
    "go test",
    "npm run build",
    "make test",
    "pytest",
    "rg",
    "grep",
    "find",
    "sed",
    "awk",
    "jq",
    "tar -tf",
    "sort",
    "date",
    "printf",
    "docker ps",
    "gh pr view",
    "tsc",
    "mvn test",
    "dotnet test",
];
const PATHS_ONLY: &[&str] = &["cat", "ls", "rm", "mkdir", "touch", "cp", "mv", "wc", "tee", "stat", "uniq"];

struct World {
    directory: TempDir,
    engine: Engine,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["config", "project"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let rule = |command: &&str| {
            let words: Vec<&str> = command.split(' ').collect();
            format!("[[rule]]\nverdict = 'allow'\ncommand = {words:?}\n")
        };
        let rules: String = COMMANDS.iter().chain(PATHS_ONLY).map(rule).collect();
        std::fs::write(path("config/permissions.toml"), rules).unwrap();
        let places = Places { config_dir: path("config"), state_dir: path("state"), project: None };
        World { engine: Engine::open(places, Policy::Ask), directory }
    })
}

fn is_allowed(words: &[String]) -> bool {
    let world = world();
    let session = Session::new("agent", "session", world.directory.path().join("project"));
    let command = Command::Words(words.to_vec());
    let action = Action::Execute { command, cwd: None, env: Vec::new(), paths: Vec::new() };
    world.engine.decide(&Subject::new(session, vec![action])).verdict == Verdict::Allow
}

/// A command that a rule allows is not allowed with an unknown option before its other arguments; its paths stay in the
/// session; and what has a control character is never allowed.
pub fn rules(data: &[u8]) {
    let mut input = Input::new(data);
    let is_paths_only = input.one_in(3);
    let command = if is_paths_only { input.pick(PATHS_ONLY) } else { input.pick(COMMANDS) };
    let begin: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let arguments: Vec<String> = (0..input.below(6)).map(|_| argument(&mut input)).collect();
    let whole = [begin.clone(), arguments.clone()].concat();
    if !is_allowed(&whole) {
        return;
    }
    let with_unknown = [begin, vec!["--no-such-option".into()], arguments.clone()].concat();
    assert!(!is_allowed(&with_unknown), "{with_unknown:?}");
    assert!(whole.iter().flat_map(|word| word.chars()).all(|c| !c.is_control()), "{whole:?}");
    if is_paths_only {
        let operands = arguments.iter().filter(|word| !word.starts_with('-'));
        assert!(operands.clone().all(|path| stays_inside(Path::new(path))), "{whole:?}");
    }
}

fn argument(input: &mut Input<'_>) -> String {
    let starts = [
        "", "-", "--", "/", "../", "./", "~/", "@", "+", ":", "-n", "--output", "--stat", "-e", "-exec", "--all", "-o",
    ];
    let middles = [
        "",
        "a",
        "b/c",
        "..",
        "/etc/passwd",
        "x/../..",
        "1",
        "p",
        "1e x",
        "=",
        "=x",
        "=/etc",
        ".env",
        ".git/hooks/x",
        "\n",
        "main",
    ];
    let ends = ["", "", "=y", "/..", "/../../x", ":z", "~", "\u{202e}", "'", "$x"];
    format!("{}{}{}", input.pick(&starts), input.pick(&middles), input.pick(&ends))
}

/// Whether a path does not leave the directory that it begins in, as it is written.
fn stays_inside(path: &Path) -> bool {
    let mut depth = 0_i32;
    path.components().all(|component| {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => depth -= 1,
            Component::RootDir | Component::Prefix(_) => return false,
        }
        depth >= 0
    })
}
