//! What was allowed with a tool call covers the files and commands that the client serves for it.

use std::path::Path;

use attache::model::tool::ToolKind;

use super::judge::is_harmless_variable;
use super::subject::{Action, Command};

/// Whether doing `wanted`, which the agent asks the client to do, was allowed when `granted` was.
///
/// A command has to be the same, but may be told to run in the session's directory and be given variables that change
/// nothing.
///
/// ```
/// use attache_host::permission::{Action, Command, covers};
///
/// let run = |line: &str| Action::Execute {
///     command: Command::Line(line.into()),
///     cwd: None,
///     env: Vec::new(),
///     paths: Vec::new(),
/// };
/// assert!(covers(&run("make all"), &run("cd '/project' && make all"), "/project".as_ref()));
/// assert!(!covers(&run("make all"), &run("make all; rm -rf ."), "/project".as_ref()));
/// ```
pub fn covers(granted: &Action, wanted: &Action, session_cwd: &Path) -> bool {
    match (granted, wanted) {
        (Action::Files { kind: ToolKind::Edit, paths: granted }, Action::Files { kind: ToolKind::Edit, paths }) => {
            paths.iter().all(|path| granted.contains(path))
        }
        (
            Action::Execute { command: granted, cwd: granted_cwd, env: granted_env, .. },
            Action::Execute { command, cwd, env, .. },
        ) => {
            let granted_cwd = granted_cwd.as_deref().map_or(session_cwd, Path::new);
            let is_same = command == granted || is_in_directory(command, granted, granted_cwd);
            let is_there = cwd.as_deref().is_none_or(|cwd| Path::new(cwd) == granted_cwd);
            let adds_nothing = env.iter().all(|variable| {
                granted_env.contains(variable) || is_harmless_variable(&variable.0, variable.1.expose())
            });
            is_same && is_there && adds_nothing
        }
        _ => false,
    }
}

/// Whether a command is another one behind a `cd` to the directory.
fn is_in_directory(command: &Command, granted: &Command, directory: &Path) -> bool {
    let (Command::Line(command), Command::Line(granted), Some(directory)) = (command, granted, directory.to_str())
    else {
        return false;
    };
    // A directory that needs more than quotes is not worth the risk.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@ ".contains(c);
    if !directory.chars().all(is_plain) {
        return false;
    }
    let Some(head) = command.strip_suffix(granted.as_str()).and_then(|head| head.strip_suffix(" && ")) else {
        return false;
    };
    let is_bare = !directory.contains(' ') && head == format!("cd {directory}");
    is_bare || head == format!("cd '{directory}'") || head == format!("cd \"{directory}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: &str, env: &[(&str, &str)]) -> Action {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        Action::Execute { command: Command::Line(line.into()), cwd: None, env, paths: Vec::new() }
    }

    #[test]
    fn only_the_same_command_is_covered() {
        type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], bool);
        let rows: &[Row<'_>] = &[
            ("make", "make", &[], true),
            ("make", "cd /w/x && make", &[], true),
            ("make", "cd '/w/x' && make", &[], true),
            ("make", "cd \"/w/x\" && make", &[], true),
            ("make", "make", &[("TERM", "dumb"), ("SHELL", "/bin/bash")], true),
            ("make", "make", &[("SHELL", "/tmp/evil")], false),
            ("make", "make", &[("LD_PRELOAD", "x")], false),
            ("make", "cd / && make", &[], false),
            ("make", "cd /w/x; make", &[], false),
            ("make", "cd /w/x && rm -rf . && make", &[], false),
            ("make", "cd /w/x && make && rm -rf .", &[], false),
            ("make", "make x", &[], false),
            ("", "cd /w/x && ", &[], true),
        ];
        for (granted, wanted, env, expected) in rows {
            let covered = covers(&line(granted, &[]), &line(wanted, env), Path::new("/w/x"));
            assert_eq!(covered, *expected, "{granted} {wanted} {env:?}");
        }
        let edit = |path: &str| Action::Files { kind: ToolKind::Edit, paths: vec![path.into()] };
        let read = Action::Files { kind: ToolKind::Read, paths: vec!["/w/a".into()] };
        assert!(covers(&edit("/w/a"), &edit("/w/a"), Path::new("/w")));
        assert!(!covers(&edit("/w/a"), &edit("/w/b"), Path::new("/w")));
        assert!(!covers(&read, &edit("/w/a"), Path::new("/w")));
        let elsewhere = Action::Execute {
            command: Command::Line("make".into()),
            cwd: Some("/etc".into()),
            env: Vec::new(),
            paths: Vec::new(),
        };
        assert!(!covers(&line("make", &[]), &elsewhere, Path::new("/w/x")));
    }
}
