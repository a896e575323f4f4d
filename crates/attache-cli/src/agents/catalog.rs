//! The agents that are known by name without being set up.

use std::path::{Path, PathBuf};

use crate::paths;

/// How a well-known agent is started, and where it keeps what it knows.
#[derive(Debug)]
pub(crate) struct Row {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) title: &'static str,
    /// Its program, looked for on PATH.
    pub(crate) program: &'static str,
    /// What its program, or that of its package, is given.
    pub(crate) args: &'static [&'static str],
    /// The npm package that serves where the program is not installed. Held to a major version, or to the version that
    /// was seen to work where there is no major version yet.
    pub(crate) package: Option<&'static str>,
    /// How to install it, or where that is told.
    pub(crate) install: &'static str,
    /// How to log in outside of the protocol, where there is a way.
    pub(crate) login: Option<&'static str>,
    /// Where it keeps its state: beneath `~`, or where a variable says so.
    pub(crate) state: &'static [&'static str],
    /// The variables that it gets besides those that every process does: its keys and settings.
    pub(crate) env: &'static [&'static [&'static str]],
}

macro_rules! rows {
    ($($name:literal: $title:literal, $program:literal $args:tt, $package:expr, $install:literal, $login:expr, $state:tt, $env:tt;)*) => {
        &[$(Row { name: $name, title: $title, program: $program, args: &$args, package: $package, install: $install, login: $login, state: &$state, env: &$env }),*]
    };
}

/// The keys of the services that an agent for many models can use.
const PROVIDERS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT",
    "CEREBRAS_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "LITELLM_API_KEY",
    "LITELLM_HOST",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OLLAMA_HOST",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_HOST",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
];

/// All of them.
#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = rows! {
    "claude": "Claude Code", "claude-agent-acp" [], Some("@agentclientprotocol/claude-agent-acp@0.99.1"),
        "npm install -g @agentclientprotocol/claude-agent-acp", Some("claude /login"), ["~/.claude", "~/.claude.json", "$CLAUDE_CONFIG_DIR"],
        [&["ANTHROPIC_*", "CLAUDE_*", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_REGION", "CLOUD_ML_REGION", "VERTEX_REGION_*", "MAX_THINKING_TOKENS"]];
    "codex": "Codex", "codex-acp" [], Some("@agentclientprotocol/codex-acp@2"),
        "npm install -g @agentclientprotocol/codex-acp", Some("codex login"), ["~/.codex", "$CODEX_HOME"],
        [&["CODEX_*", "OPENAI_*"]];
    "gemini": "Gemini CLI", "gemini" ["--acp"], Some("@google/gemini-cli@0.61.0"),
        "npm install -g @google/gemini-cli", None, ["~/.gemini"],
        [&["GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_*", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*"]];
    "opencode": "OpenCode", "opencode" ["acp"], Some("opencode-ai@1"),
        "npm install -g opencode-ai", Some("opencode auth login"),
        ["~/.config/opencode", "~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode",
         "$XDG_CONFIG_HOME/opencode", "$XDG_DATA_HOME/opencode", "$XDG_STATE_HOME/opencode", "$XDG_CACHE_HOME/opencode"],
        [&["OPENCODE_*"], PROVIDERS];
    "kimi": "Kimi Code", "kimi" ["acp"], Some("@moonshot-ai/kimi-code@2"),
        "npm install -g @moonshot-ai/kimi-code", Some("kimi login"), ["~/.kimi", "~/.kimi-code", "$KIMI_SHARE_DIR", "$KIMI_CODE_HOME"],
        [&["KIMI_*", "MOONSHOT_*"]];
    "qwen": "Qwen Code", "qwen" ["--acp"], Some("@qwen-code/qwen-code@0.21.14"),
        "npm install -g @qwen-code/qwen-code", None, ["~/.qwen"],
        [&["QWEN_*", "DASHSCOPE_*", "BAILIAN_*", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"]];
    "goose": "goose", "goose" ["acp"], None,
        "see https://block.github.io/goose", Some("goose configure"),
        ["~/.config/goose", "~/.local/share/goose", "~/.local/state/goose",
         "$XDG_CONFIG_HOME/goose", "$XDG_DATA_HOME/goose", "$XDG_STATE_HOME/goose"],
        [&["GOOSE_*", "DATABRICKS_HOST", "DATABRICKS_TOKEN"], PROVIDERS];
    "copilot": "GitHub Copilot CLI", "copilot" ["--acp"], Some("@github/copilot@1"),
        "npm install -g @github/copilot", None, ["~/.copilot"],
        [&["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"]];
    "cursor": "Cursor CLI", "cursor-agent" ["acp"], None,
        "see https://cursor.com/docs/cli", Some("cursor-agent login"), ["~/.cursor", "~/.config/cursor", "$XDG_CONFIG_HOME/cursor"],
        [&["CURSOR_*"]];
    "auggie": "Auggie", "auggie" ["--acp"], Some("@augmentcode/auggie@0.21.0"),
        "npm install -g @augmentcode/auggie", Some("auggie login"), ["~/.augment"],
        [&["AUGMENT_*"]];
    "cline": "Cline", "cline" ["--acp"], Some("cline@3"),
        "npm install -g cline", None, ["~/.cline", "$CLINE_DIR"],
        [&["CLINE_*"], PROVIDERS];
    "droid": "Factory Droid", "droid" ["exec", "--output-format", "acp-daemon"], Some("droid@0.218.0"),
        "npm install -g droid", None, ["~/.factory"],
        [&["FACTORY_*"]];
    "kilo": "Kilo", "kilo" ["acp"], Some("@kilocode/cli@7"),
        "npm install -g @kilocode/cli", None,
        ["~/.config/kilo", "~/.local/share/kilo", "~/.local/state/kilo", "~/.cache/kilo",
         "$XDG_CONFIG_HOME/kilo", "$XDG_DATA_HOME/kilo", "$XDG_STATE_HOME/kilo", "$XDG_CACHE_HOME/kilo"],
        [&["KILO_*", "KILOCODE_*"], PROVIDERS];
    "vibe": "Mistral Vibe", "vibe-acp" [], None,
        "see https://github.com/mistralai/mistral-vibe", None, ["~/.vibe"],
        [&["VIBE_*", "MISTRAL_*"]];
};

/// Agents that fail when the client tells them that a file is not there, and so could not make one: Gemini CLI takes every
/// error of the client for a failure (seen with 0.61.0).
pub(crate) const READ_THEMSELVES: &[&str] = &["gemini"];

/// Whether an agent can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Installed {
    /// Its program is there.
    Yes,
    /// It is fetched when it is first started.
    OnDemand,
    /// Its program is missing.
    No,
}

impl Row {
    /// The command that starts it: its own program, else its package if `npx` is there.
    pub(crate) fn command(&self) -> (Vec<String>, Installed) {
        let own = || std::iter::once(self.program).chain(self.args.iter().copied()).map(String::from).collect();
        if on_path(self.program).is_some() {
            return (own(), Installed::Yes);
        }
        match self.package.filter(|_| on_path("npx").is_some()) {
            Some(package) => {
                let words = ["npx", "-y", package].into_iter().chain(self.args.iter().copied());
                (words.map(String::from).collect(), Installed::OnDemand)
            }
            None => (own(), Installed::No),
        }
    }
}

/// Whether the command of an agent that is not in the catalog can be started.
pub(crate) fn installed(words: &[String]) -> Installed {
    match words.first().map(String::as_str) {
        Some("npx" | "uvx") if words.first().is_some_and(|program| on_path(program).is_some()) => Installed::OnDemand,
        Some(program) if on_path(program).is_some() => Installed::Yes,
        _ => Installed::No,
    }
}

/// The row that a name or a command belongs to.
pub(crate) fn row_of(name: &str, words: &[String]) -> Option<&'static Row> {
    let by_name = ROWS.iter().find(|row| row.name == name);
    by_name.or_else(|| {
        let program = Path::new(words.first()?).file_name()?.to_str()?;
        let package = |row: &Row| row.package.is_some_and(|own| words.iter().any(|word| same_package(own, word)));
        ROWS.iter().find(|row| row.program == program || matches!(program, "npx" | "bunx") && package(row))
    })
}

/// The package that a command of `npx` or `uvx` fetches: what follows `--package` or `--from`, else the first word that is
/// no option.
pub(crate) fn fetched_package(words: &[String]) -> Option<&str> {
    let mut rest = words.iter().skip(1).map(String::as_str);
    let mut first = None;
    while let Some(word) = rest.next() {
        match word {
            "--package" | "-p" | "--from" => return rest.next(),
            word if word.starts_with('-') => {}
            word => first = first.or(Some(word)),
        }
        if first.is_some() {
            break;
        }
    }
    first
}

/// Whether two commands fetch the same package in different versions.
pub(crate) fn is_other_version(one: &[String], other: &[String]) -> bool {
    match (fetched_package(one), fetched_package(other)) {
        (Some(one), Some(other)) => one != other && same_package(one, other),
        _ => false,
    }
}

/// Whether two names of packages differ at most in their version.
fn same_package(one: &str, other: &str) -> bool {
    let bare = |package| match str::rfind(package, '@') {
        Some(1..) => package[..package.rfind('@').unwrap_or_default()].to_owned(),
        _ => package.to_owned(),
    };
    bare(one) == bare(other)
}

/// The paths that the agent of a command keeps its state in, whether or not they exist.
pub(crate) fn state(name: &str, words: &[String]) -> Vec<PathBuf> {
    let own = row_of(name, words).map_or(&[][..], |row| row.state);
    let fetched: &[&str] = match words.first().map(String::as_str) {
        Some("npx") => &["~/.npm", "$npm_config_cache"],
        Some("uvx") => &["~/.cache/uv", "~/.local/share/uv", "$UV_CACHE_DIR"],
        _ => &[],
    };
    own.iter().chain(fetched).filter_map(|place| expand(place)).collect()
}

/// `~/x` in the home directory, `$NAME/x` in the directory that a variable names; nothing if there is none.
fn expand(place: &str) -> Option<PathBuf> {
    let (base, rest) = place.split_once('/').unwrap_or((place, ""));
    let base = match base.strip_prefix('$') {
        Some(variable) => std::env::var_os(variable)?,
        None => paths::home()?.into_os_string(),
    };
    let path = PathBuf::from(base);
    if !path.is_absolute() {
        return None;
    }
    Some(if rest.is_empty() { path } else { path.join(rest) })
}

/// The file that a program's name stands for, if there is one that may be executed.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    if paths::has_directory(program) {
        return executable(PathBuf::from(program));
    }
    let search_path = std::env::var_os("PATH")?;
    let directories = std::env::split_paths(&search_path);
    // A relative one would lead into whatever project we are in.
    directories
        .filter(|directory| !cfg!(windows) || directory.is_absolute())
        .find_map(|directory| executable(directory.join(program)))
}

/// What to start for a program's name. The system itself finds no batch files on Windows, which programs of npm are.
pub(crate) fn startable(program: &str) -> PathBuf {
    let found = if cfg!(windows) { on_path(program) } else { None };
    found.unwrap_or_else(|| program.into())
}

#[cfg(unix)]
fn executable(path: PathBuf) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_executable = path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    is_executable.then_some(path)
}

/// The file with one of the endings that programs have: those that can be started here, in the order of `PATHEXT`. npm gives
/// every program an ending in `.cmd`, and beside it one without, for other systems.
#[cfg(windows)]
fn executable(path: PathBuf) -> Option<PathBuf> {
    let set = std::env::var("PATHEXT").ok().filter(|set| !set.trim().is_empty());
    let set = set.as_deref().unwrap_or(".COM;.EXE;.BAT;.CMD");
    let endings: Vec<&str> =
        set.split(';').filter_map(|ending| ending.strip_prefix('.')).filter(|ending| is_startable(ending)).collect();
    let has_one = |path: &PathBuf| {
        let own = path.extension().and_then(|ending| ending.to_str());
        own.is_some_and(|own| endings.iter().any(|ending| own.eq_ignore_ascii_case(ending)))
    };
    if has_one(&path) && path.is_file() {
        return Some(path);
    }
    let with = |ending: &&str| {
        let mut name = path.clone().into_os_string();
        name.push(format!(".{}", ending.to_ascii_lowercase()));
        PathBuf::from(name)
    };
    endings.iter().map(with).find(|path| path.is_file())
}

/// Whether the system starts such a file by itself. Others in `PATHEXT` are scripts that it has another program for.
#[cfg(windows)]
fn is_startable(ending: &str) -> bool {
    ["com", "exe", "bat", "cmd"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Whether a program is this one.
pub(crate) fn is_ourselves(program: &str) -> bool {
    let real = |path: PathBuf| paths::real(&path).ok();
    let ours = std::env::current_exe().ok().and_then(real);
    ours.is_some() && on_path(program).and_then(real) == ours
}

/// The names that are nearest to a mistyped one, at most three.
pub(crate) fn suggestions<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (if name.starts_with(wrong) || wrong.starts_with(name) { 1 } else { distance(wrong, name) }, name))
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How many characters have to be put in, taken out, changed or swapped with their neighbour to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    // A name is short; what is long is not a mistyped name, and is not worth the time.
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().take(64).collect(), other.chars().take(64).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut next = vec![i];
        for j in 1..=other.len() {
            let changed = row[j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = changed.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_named_and_is_named_once() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(super::super::config::is_name(row.name), "{}", row.name);
            assert!(!ROWS[..index].iter().any(|other| other.name == row.name), "{}", row.name);
            assert!(row.state.iter().all(|place| place.starts_with("~/") || place.starts_with('$')), "{}", row.name);
            let has_version = |package: &str| package[1..].contains('@');
            assert!(row.package.is_none_or(has_version), "{}", row.name);
            // Without one it could not log in from a script, and `*` alone would pass everything.
            assert!(!row.env.is_empty(), "{}", row.name);
            assert!(row.env.iter().copied().flatten().all(|name| name.find('*').unwrap_or(4) >= 3), "{}", row.name);
        }
    }

    #[test]
    fn mistyped_names_are_understood() {
        let rows: [(&str, &[&str]); 7] = [
            ("claud", &["claude"]),
            ("cluade", &["claude"]),
            ("claude-code", &["claude"]),
            ("gemni", &["gemini"]),
            ("codx", &["codex"]),
            ("something-else", &[]),
            ("", &[]),
        ];
        for (wrong, right) in rows {
            let names = ROWS.iter().map(|row| row.name).filter(|_| !wrong.is_empty());
            assert_eq!(suggestions(wrong, names), right, "{wrong}");
        }
    }

    #[test]
    fn a_command_is_recognised_by_its_program_or_package() {
        let name = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
            row_of("mine", &words).map(|row| row.name)
        };
        assert_eq!(name(&["/opt/bin/codex-acp"]), Some("codex"));
        assert_eq!(name(&["npx", "-y", "@google/gemini-cli@latest", "--acp"]), Some("gemini"));
        assert_eq!(name(&["npx", "cline"]), Some("cline"));
        assert_eq!(name(&["./my-agent"]), None);
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn what_is_fetched_is_known() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        let rows = [
            ("npx -y @a/b@1 --acp", Some("@a/b@1")),
            ("npx -y --package @a/b@1 b", Some("@a/b@1")),
            ("uvx --from c d", Some("c")),
            ("uvx", None),
        ];
        for (line, expected) in rows {
            assert_eq!(fetched_package(&words(line)), expected, "{line}");
        }
        assert!(is_other_version(&words("npx -y @a/b@1"), &words("npx -y @a/b@2 --acp")));
        assert!(!is_other_version(&words("npx -y @a/b@1"), &words("npx -y @a/c@2")));
    }
}
