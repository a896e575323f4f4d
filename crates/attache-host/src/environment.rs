//! The environment of what we start: the one list of variables that are let through.
//!
//! A command that an agent chose can print what it is given, and send it anywhere. So commands, MCP servers and agents do
//! not get our environment, in which there are keys of all kinds under names that no list can know. They start from the
//! variables of [`PASSED`], which say where things are and how they are to look, and get what was named for them besides.
//! Proxies are passed without the user and password in them.
//!
//! What is missing on purpose, because it opens a door rather than names a place:
//!
//! - `SSH_AUTH_SOCK`, `GPG_AGENT_INFO`: whoever has them signs with the person's keys.
//! - `DISPLAY`, `WAYLAND_DISPLAY`, `XAUTHORITY`: whoever has them reads the clipboard and types into other windows.
//! - `DBUS_SESSION_BUS_ADDRESS`, `XDG_RUNTIME_DIR`, `DOCKER_HOST`: they lead to programs that act outside of a sandbox.
//! - Tokens (`GITHUB_TOKEN`, `NPM_TOKEN`, …), addresses of registries, which often have tokens in them, and options of
//!   programs that hold whole command lines (`JAVA_TOOL_OPTIONS`).
//! - `PWD`, `MAKEFLAGS` and the like, which would be wrong in another process.
//!
//! A person lets more through by name, where that is set up: such a variable is passed as it is.
//!
//! ```
//! use attache_host::environment::is_passed;
//!
//! assert!(is_passed("PATH", &[]) && is_passed("LC_ALL", &[]));
//! assert!(!is_passed("OPENAI_API_KEY", &[]) && !is_passed("DIFY_KEY", &[]));
//! assert!(is_passed("GITHUB_TOKEN", &["GITHUB_*".into()]));
//! ```

use std::ffi::{OsStr, OsString};

use attache::process::Command;

/// The variables that are passed to every process, by what they are for. A `*` at the end stands for any end.
pub const PASSED: &[(&str, &[&str])] = &[
    ("who and where one is", &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "HOSTTYPE", "OSTYPE"]),
    (
        "the same on Windows, and where the system and its programs are",
        &[
            "ALLUSERSPROFILE",
            "APPDATA",
            "COMPUTERNAME",
            "ComSpec",
            "CommonProgramFiles",
            "CommonProgramFiles(x86)",
            "CommonProgramW6432",
            "HOMEDRIVE",
            "HOMEPATH",
            "LOCALAPPDATA",
            "NUMBER_OF_PROCESSORS",
            "OS",
            "PATHEXT",
            "PROCESSOR_ARCHITECTURE",
            "PROCESSOR_ARCHITEW6432",
            "PROCESSOR_IDENTIFIER",
            "PROCESSOR_LEVEL",
            "PROCESSOR_REVISION",
            "PSModulePath",
            "PUBLIC",
            "ProgramData",
            "ProgramFiles",
            "ProgramFiles(x86)",
            "ProgramW6432",
            "SystemDrive",
            "SystemRoot",
            "USERDOMAIN",
            "USERNAME",
            "USERPROFILE",
            "windir",
        ],
    ),
    ("language and time", &["LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "LOCPATH", "LOCALE_ARCHIVE", "NLSPATH"]),
    (
        "how output looks",
        &["TERM", "TERMINFO", "TERMINFO_DIRS", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "CLICOLOR", "FORCE_COLOR"],
    ),
    (
        "directories",
        &[
            "TMPDIR",
            "TMP",
            "TEMP",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
            "XDG_BIN_HOME",
            "XDG_CONFIG_DIRS",
            "XDG_DATA_DIRS",
            "MANPATH",
            "INFOPATH",
        ],
    ),
    ("that nobody is there to answer", &["CI", "DEBIAN_FRONTEND"]),
    (
        "whose certificates are trusted",
        &[
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "CURL_CA_BUNDLE",
            "REQUESTS_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
            "GIT_SSL_CAINFO",
            "NIX_SSL_CERT_FILE",
            "CARGO_HTTP_CAINFO",
            "PIP_CERT",
            "AWS_CA_BUNDLE",
        ],
    ),
    (
        "who writes commits",
        &["EMAIL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"],
    ),
    (
        "C and the like",
        &[
            "CC",
            "CXX",
            "CPP",
            "LD",
            "AR",
            "CFLAGS",
            "CXXFLAGS",
            "CPPFLAGS",
            "LDFLAGS",
            "CPATH",
            "LIBRARY_PATH",
            "LD_LIBRARY_PATH",
            "PKG_CONFIG_PATH",
            "CMAKE_PREFIX_PATH",
            "CMAKE_GENERATOR",
            "CMAKE_BUILD_PARALLEL_LEVEL",
            "CCACHE_DIR",
            "SCCACHE_DIR",
            "SOURCE_DATE_EPOCH",
            "DEVELOPER_DIR",
            "SDKROOT",
            "MACOSX_DEPLOYMENT_TARGET",
        ],
    ),
    (
        "Rust",
        &[
            "CARGO_HOME",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
            "CARGO_TARGET_DIR",
            "CARGO_INCREMENTAL",
            "CARGO_BUILD_JOBS",
            "CARGO_BUILD_TARGET",
            "CARGO_NET_OFFLINE",
            "CARGO_PROFILE_*",
            "CARGO_TERM_COLOR",
            "RUSTC_WRAPPER",
            "RUSTFLAGS",
            "RUSTDOCFLAGS",
            "RUST_BACKTRACE",
            "RUST_LOG",
            "RUST_TEST_THREADS",
        ],
    ),
    (
        "Go",
        &[
            "GOPATH",
            "GOROOT",
            "GOBIN",
            "GOCACHE",
            "GOMODCACHE",
            "GOFLAGS",
            "GOOS",
            "GOARCH",
            "GOTOOLCHAIN",
            "GOPRIVATE",
            "GONOSUMDB",
            "GOSUMDB",
            "CGO_ENABLED",
        ],
    ),
    (
        "Java and Android",
        &[
            "JAVA_HOME",
            "JDK_HOME",
            "GRADLE_HOME",
            "GRADLE_USER_HOME",
            "MAVEN_HOME",
            "M2_HOME",
            "SDKMAN_DIR",
            "KOTLIN_HOME",
            "SCALA_HOME",
            "ANDROID_HOME",
            "ANDROID_SDK_ROOT",
            "ANDROID_NDK_HOME",
        ],
    ),
    (
        "JavaScript",
        &[
            "NVM_DIR",
            "NVM_BIN",
            "NVM_INC",
            "FNM_DIR",
            "FNM_MULTISHELL_PATH",
            "VOLTA_HOME",
            "N_PREFIX",
            "NODE_ENV",
            "NODE_PATH",
            "PNPM_HOME",
            "BUN_INSTALL",
            "DENO_DIR",
            "DENO_INSTALL",
            "COREPACK_HOME",
            "YARN_CACHE_FOLDER",
            "npm_config_cache",
            "npm_config_prefix",
            "NPM_CONFIG_CACHE",
            "NPM_CONFIG_PREFIX",
        ],
    ),
    (
        "Python",
        &[
            "VIRTUAL_ENV",
            "VIRTUAL_ENV_PROMPT",
            "PYENV_ROOT",
            "PYENV_VERSION",
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONUSERBASE",
            "PYTHONUNBUFFERED",
            "PYTHONDONTWRITEBYTECODE",
            "PIPX_HOME",
            "PIPX_BIN_DIR",
            "PIP_CACHE_DIR",
            "POETRY_HOME",
            "UV_CACHE_DIR",
            "UV_PYTHON",
            "UV_PYTHON_INSTALL_DIR",
            "UV_PROJECT_ENVIRONMENT",
            "UV_TOOL_DIR",
            "CONDA_PREFIX",
            "CONDA_DEFAULT_ENV",
            "CONDA_EXE",
            "CONDA_PYTHON_EXE",
            "CONDA_SHLVL",
            "MAMBA_EXE",
            "MAMBA_ROOT_PREFIX",
        ],
    ),
    (
        "Ruby",
        &[
            "GEM_HOME",
            "GEM_PATH",
            "RBENV_ROOT",
            "RBENV_VERSION",
            "RUBY_VERSION",
            "RUBYLIB",
            "BUNDLE_PATH",
            "BUNDLE_GEMFILE",
        ],
    ),
    (
        "other languages",
        &[
            "CABAL_DIR",
            "COMPOSER_HOME",
            "DOTNET_CLI_HOME",
            "DOTNET_ROOT",
            "ELIXIR_HOME",
            "FLUTTER_ROOT",
            "GHCUP_INSTALL_BASE_PREFIX",
            "JULIA_DEPOT_PATH",
            "MIX_HOME",
            "NUGET_PACKAGES",
            "OPAMROOT",
            "OPAMSWITCH",
            "OPAM_SWITCH_PREFIX",
            "PERL5LIB",
            "PERL_LOCAL_LIB_ROOT",
            "PUB_CACHE",
            "R_LIBS_USER",
            "STACK_ROOT",
            "ZIG_GLOBAL_CACHE_DIR",
        ],
    ),
    (
        "where programs come from",
        &[
            "ASDF_DIR",
            "ASDF_DATA_DIR",
            "MISE_DATA_DIR",
            "MISE_CONFIG_DIR",
            "HOMEBREW_PREFIX",
            "HOMEBREW_CELLAR",
            "HOMEBREW_REPOSITORY",
            "NIX_PATH",
            "NIX_PROFILES",
            "NIX_STORE",
            "IN_NIX_SHELL",
            "GUIX_PROFILE",
        ],
    ),
];

/// The variables that hold addresses of proxies, in small letters; programs know them in both cases. They are passed
/// without the user and password.
const PROXIES: [&str; 5] = ["http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"];

/// What is set for commands, which nobody watches: no pager, no colours, no questions.
pub const UNATTENDED: [(&str, &str); 5] =
    [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("NO_COLOR", "1")];

/// Whether a variable is passed: one of the list, a proxy, or one of `more`, in which a `*` at the end stands for any end.
pub fn is_passed(name: &str, more: &[String]) -> bool {
    let listed = || PASSED.iter().flat_map(|(_, names)| *names).any(|pattern| is_like(name, pattern));
    listed() || is_proxy(name) || is_named(name, more)
}

/// The command with what is let through of our environment, instead of all of it. What is set for the command wins.
#[must_use]
pub fn start_from(command: Command, more: &[String]) -> Command {
    command.base_env(inherited(more))
}

/// What is let through of our environment. On Windows also what keeps `cmd` and those who do as it does from starting programs
/// out of the directory that they are in, where a project may have put them.
pub fn inherited(more: &[String]) -> Vec<(OsString, OsString)> {
    let mut variables = select(std::env::vars_os(), more);
    if cfg!(windows) {
        variables.push(("NoDefaultCurrentDirectoryInExePath".into(), "1".into()));
    }
    variables
}

/// The variables of our environment that are not let through and are called like a key, sorted: to tell a person which
/// one may be missing.
pub fn withheld_keys(more: &[String]) -> Vec<String> {
    const ENDS: [&str; 6] = ["KEY", "KEYS", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"];
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let is_key = |name: &String| ENDS.iter().any(|end| name.to_ascii_uppercase().ends_with(end));
    let mut names: Vec<String> = names.filter(|name| is_key(name) && !is_passed(name, more)).collect();
    names.sort();
    names
}

fn select(all: impl Iterator<Item = (OsString, OsString)>, more: &[String]) -> Vec<(OsString, OsString)> {
    all.filter_map(|(name, value)| {
        let text = name.to_str()?;
        if is_proxy(text) && !is_named(text, more) {
            let value = without_password(&value)?;
            return Some((name, value));
        }
        is_passed(text, more).then_some((name, value))
    })
    .collect()
}

fn is_named(name: &str, more: &[String]) -> bool {
    more.iter().any(|pattern| is_like(name, pattern))
}

/// Windows does not tell capitals from small letters in names.
fn is_like(name: &str, pattern: &str) -> bool {
    let is_same = |one: &str, other: &str| if cfg!(windows) { one.eq_ignore_ascii_case(other) } else { one == other };
    match pattern.strip_suffix('*') {
        Some(beginning) => name.get(..beginning.len()).is_some_and(|name| is_same(name, beginning)),
        None => is_same(name, pattern),
    }
}

fn is_proxy(name: &str) -> bool {
    PROXIES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy))
}

/// The address, or the list of hosts, without what stands before an `@`. `None` if it is not text, and cannot be read.
fn without_password(value: &OsStr) -> Option<OsString> {
    let text = value.to_str()?;
    let (scheme, rest) = text.split_at(text.find("://").map_or(0, |at| at + 3));
    // The last one, wherever it is: passwords that should have been escaped are cut off as well.
    let host = rest.rsplit('@').next().unwrap_or_default();
    Some(format!("{scheme}{host}").into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_passed() {
        let rows = [
            ("PATH", true),
            ("HOME", true),
            ("LC_MESSAGES", true),
            ("CARGO_HOME", true),
            ("CARGO_PROFILE_DEV_DEBUG", true),
            ("https_proxy", true),
            ("HTTPS_PROXY", true),
            ("OPENAI_API_KEY", false),
            ("DIFY_KEY", false),
            ("GITHUB_TOKEN", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("CARGO_REGISTRY_TOKEN", false),
            ("CARGO_REGISTRIES_MINE_TOKEN", false),
            ("CONDA_TOKEN", false),
            ("BUNDLE_GEMS__EXAMPLE__COM", false),
            ("SSH_AUTH_SOCK", false),
            ("DISPLAY", false),
            ("XDG_RUNTIME_DIR", false),
            ("LD_PRELOAD", false),
            ("path", cfg!(windows)),
            ("SYSTEMROOT", cfg!(windows)),
            ("SystemRoot", true),
            ("lc_all", cfg!(windows)),
            ("openai_api_key", false),
            ("PATHS", false),
            ("", false),
        ];
        for (name, passed) in rows {
            assert_eq!(is_passed(name, &[]), passed, "{name}");
        }
    }

    #[test]
    fn nothing_that_is_called_like_a_key_is_in_the_list() {
        for name in PASSED.iter().flat_map(|(_, names)| *names) {
            let is_key =
                ["KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH", "CREDENTIAL"].iter().any(|key| name.contains(key));
            assert!(!is_key || name.starts_with("GIT_AUTHOR_"), "{name}");
            assert!(name.len() > 2 || matches!(*name, "TZ" | "CC" | "LD" | "AR" | "CI" | "OS"), "{name}");
        }
    }

    #[test]
    fn proxies_are_passed_without_their_passwords() {
        let rows = [
            ("http://host:3128", "http://host:3128"),
            ("http://user:secret@host:3128/", "http://host:3128/"),
            ("user:secret@host:3128", "host:3128"),
            ("http://user:se/cr@et@host", "http://host"),
            ("socks5h://user@[::1]:1080", "socks5h://[::1]:1080"),
            ("localhost,.example.com", "localhost,.example.com"),
            ("", ""),
        ];
        for (value, passed) in rows {
            assert_eq!(without_password(OsStr::new(value)).unwrap(), passed, "{value}");
        }
    }

    #[test]
    fn a_variable_that_was_named_is_passed_as_it_is() {
        let all = || {
            [("A_KEY", "1"), ("B_KEY", "2"), ("HTTP_PROXY", "http://me:pw@host"), ("HOME", "/home/me")]
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .into_iter()
        };
        let select = |more: &[&str]| {
            let more: Vec<String> = more.iter().map(|name| (*name).into()).collect();
            let text = |(name, value): (OsString, OsString)| format!("{}={}", name.display(), value.display());
            super::select(all(), &more).into_iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(select(&[]), "HTTP_PROXY=http://host HOME=/home/me");
        assert_eq!(select(&["A_KEY"]), "A_KEY=1 HTTP_PROXY=http://host HOME=/home/me");
        assert_eq!(select(&["HTTP_*", "B_*"]), "B_KEY=2 HTTP_PROXY=http://me:pw@host HOME=/home/me");
    }

    #[test]
    fn what_is_set_for_a_command_wins() {
        let command = start_from(Command::new("env").env("HOME", "/elsewhere"), &[]);
        let expected = Command::new("env").base_env(inherited(&[])).env("HOME", "/elsewhere");
        assert_eq!(command, expected);
    }
}
