//! Files that are asked about even where rules with patterns and modes allow: those that hold secrets (the list is in
//! `crate::secrets`), and those that decide what other programs run.

use attache::model::tool::ToolKind;

use crate::secrets::SECRETS;

/// Names that are asked about only where something is changed: what is in them is run, sooner or later, by editors, hooks,
/// package managers and CI, without anybody naming it. In small letters. Makefiles and the like are not here: they are run
/// by a command that names them, as the code of the project is.
pub(crate) const RUN: &[&str] = &[
    "*.code-workspace",
    ".aider.conf.yml",
    ".amp",
    ".azure-pipelines",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bazelrc",
    ".buildkite",
    ".cargo/config",
    ".cargo/config.toml",
    ".circleci",
    ".claude",
    ".codex",
    ".config/autostart",
    ".config/fish",
    ".config/git",
    ".config/nvim",
    ".config/systemd",
    ".continue",
    ".crush.json",
    ".cursor",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".drone.yml",
    ".emacs",
    ".emacs.d",
    ".exrc",
    ".factory",
    ".fleet",
    ".forgejo",
    ".gdbinit",
    ".gemini",
    ".ghci",
    ".git",
    ".gitattributes",
    ".gitconfig",
    ".gitea",
    ".github",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".hg/hgrc",
    ".hgrc",
    ".husky",
    ".idea",
    ".inputrc",
    ".irbrc",
    ".jj",
    ".junie",
    ".kiro",
    ".kshrc",
    ".lefthook",
    ".lefthook.toml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".local/bin",
    ".login",
    ".mcp.json",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".mvn",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".octaverc",
    ".opencode",
    ".overcommit.yml",
    ".pnp.cjs",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".profile",
    ".pryrc",
    ".pythonrc",
    ".qwen",
    ".roo",
    ".rprofile",
    ".rvmrc",
    ".screenrc",
    ".tmux.conf",
    ".tool-versions",
    ".travis.yml",
    ".trunk",
    ".vim",
    ".vimrc",
    ".vscode",
    ".windsurf",
    ".woodpecker",
    ".woodpecker.yml",
    ".xinitrc",
    ".xprofile",
    ".yarn",
    ".yarnrc",
    ".yarnrc.yml",
    ".zed",
    ".zlogin",
    ".zprofile",
    ".zsh",
    ".zshenv",
    ".zshrc",
    "authorized_keys",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "bunfig.toml",
    "crontab",
    "crush.json",
    "jenkinsfile",
    "lefthook-local.yaml",
    "lefthook-local.yml",
    "lefthook.json",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
    "mise.local.toml",
    "mise.toml",
    "opencode.json",
    "opencode.jsonc",
    "rust-toolchain",
    "rust-toolchain.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

/// The same for what is run on Windows alone: what starts with the person's session, and settings of PowerShell.
const RUN_ON_WINDOWS: &[&str] = &[
    "autorun.inf",
    "desktop.ini",
    "documents/powershell",
    "documents/windowspowershell",
    "start menu/programs/startup",
];

/// Whether a path, as seen from the root that it is beneath, names a file that may hold secrets: a key, a password, `.env`.
///
/// What does not show such files by itself, as a search does, need not ask about each.
pub fn is_secret(path: &std::path::Path) -> bool {
    path.to_str().is_none_or(|path| is_guarded(path, &ToolKind::Read))
}

/// Whether a path is asked about when it is used in this way.
pub(super) fn is_guarded(path: &str, kind: &ToolKind) -> bool {
    // Some file systems do not tell capitals from small letters.
    let path = path.to_lowercase();
    let parts = path.split(['/', '\\']).map(as_windows_reads_it).filter(|part| !part.is_empty() && *part != ".");
    let parts: Vec<&str> = parts.collect();
    let reads = matches!(kind, ToolKind::Read | ToolKind::Search);
    holds(&parts, SECRETS.iter().map(|secret| secret.name))
        || is_hook(&parts)
        || (!reads && holds(&parts, RUN.iter().copied()))
        || (!reads && cfg!(windows) && holds(&parts, RUN_ON_WINDOWS.iter().copied()))
}

/// A name without what Windows leaves out: `.env.`, `.env ` and `.env::$DATA` are `.env`.
fn as_windows_reads_it(name: &str) -> &str {
    if !cfg!(windows) || matches!(name, "." | "..") {
        return name;
    }
    name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' '])
}

/// Whether an argument of a command names such a file.
pub(super) fn is_in_word(word: &str) -> bool {
    let read = |part: &str| is_guarded(part, &ToolKind::Read);
    // As in `--file=.env`, `HEAD:.env`, `@.env` and `-f.env`.
    read(word)
        || word.split(['=', ':', ',', '@']).any(read)
        || word.get(2..).is_some_and(|v| word.starts_with('-') && read(v))
}

/// Hooks of git run by themselves.
fn is_hook(parts: &[&str]) -> bool {
    parts.windows(2).any(|pair| pair == [".git", "hooks"])
}

fn holds(parts: &[&str], mut names: impl Iterator<Item = &'static str>) -> bool {
    names.any(|name| {
        let wanted: Vec<&str> = name.split('/').collect();
        parts.windows(wanted.len()).any(|window| window.iter().zip(&wanted).all(|(part, name)| is_named(part, name)))
    })
}

/// Whether a part of a path is named like this, both in small letters.
pub(crate) fn is_named(part: &str, name: &str) -> bool {
    if let Some(end) = name.strip_prefix('*') {
        part.ends_with(end)
    } else if let Some(start) = name.strip_suffix('*') {
        part.starts_with(start)
    } else {
        // `.env~` and `id_rsa.bak` hold the same.
        part == name
            || part.strip_prefix(name).is_some_and(|rest| matches!(rest, "~" | ".bak" | ".old" | ".orig" | ".swp"))
    }
}
