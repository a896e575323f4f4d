//! Settings of package managers for JavaScript and Python, in the home: where packages come from, and often the tokens for
//! that.
//!
//! A file without credentials is not hidden. One with credentials is, and then the registry that it names is told by a
//! variable: whoever asked the public one for a package of the company's would get what a stranger put there.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Settings that are longer are not read, and stay hidden.
const MOST_BYTES: u64 = 64 << 10;

/// One program's settings, a key and a value in each line.
struct Settings {
    /// Beneath the home.
    file: &'static str,
    separator: char,
    /// Whether lines such as `[global]` come before others. It does not matter which.
    has_sections: bool,
    /// The key of the registry, and the variable that says the same.
    registry: (&'static str, &'static str),
    /// Keys whose values are never secrets. Anything else may be one.
    harmless: &'static [&'static str],
}

/// Keys of pip that say nothing secret.
const PIP: &[&str] = &[
    "break-system-packages",
    "cache-dir",
    "disable-pip-version-check",
    "no-cache-dir",
    "no-input",
    "prefer-binary",
    "progress-bar",
    "quiet",
    "require-hashes",
    "require-virtualenv",
    "retries",
    "timeout",
    "trusted-host",
    "user",
    "verbose",
];

const ALL: [Settings; 4] = [
    Settings {
        file: ".config/pip/pip.conf",
        separator: '=',
        has_sections: true,
        registry: ("index-url", "PIP_INDEX_URL"),
        harmless: PIP,
    },
    Settings {
        file: ".pip/pip.conf",
        separator: '=',
        has_sections: true,
        registry: ("index-url", "PIP_INDEX_URL"),
        harmless: PIP,
    },
    Settings {
        file: ".npmrc",
        separator: '=',
        has_sections: false,
        registry: ("registry", "npm_config_registry"),
        harmless: &[
            "access",
            "audit",
            "audit-level",
            "cache",
            "cafile",
            "color",
            "engine-strict",
            "fund",
            "ignore-scripts",
            "init-author-name",
            "init-license",
            "init-version",
            "install-strategy",
            "legacy-peer-deps",
            "loglevel",
            "maxsockets",
            "min-release-age",
            "node-linker",
            "noproxy",
            "package-lock",
            "prefer-offline",
            "prefix",
            "progress",
            "save",
            "save-exact",
            "save-prefix",
            "script-shell",
            "shamefully-hoist",
            "sign-git-tag",
            "store-dir",
            "strict-peer-dependencies",
            "strict-ssl",
            "tag-version-prefix",
            "update-notifier",
        ],
    },
    Settings {
        file: ".yarnrc.yml",
        separator: ':',
        has_sections: false,
        registry: ("npmRegistryServer", "YARN_NPM_REGISTRY_SERVER"),
        harmless: &[
            "cacheFolder",
            "checksumBehavior",
            "compressionLevel",
            "defaultSemverRangePrefix",
            "enableGlobalCache",
            "enableImmutableInstalls",
            "enableScripts",
            "enableTelemetry",
            "globalFolder",
            "httpTimeout",
            "nmHoistingLimits",
            "nmMode",
            "nodeLinker",
            "yarnPath",
        ],
    },
];

/// Whether a file is one of these, and has no credentials in it.
pub(super) fn is_harmless(home: &Path, path: &Path) -> bool {
    let settings = ALL.iter().find(|settings| home.join(settings.file) == path);
    settings.is_some_and(|settings| read(path).is_some_and(|text| settings.are_harmless(&text)))
}

/// What is to be said by variables, because the file that says it is hidden.
pub(super) fn variables(home: &Path, hidden: &[PathBuf]) -> Vec<(String, String)> {
    let hidden = ALL.iter().filter(|settings| hidden.contains(&home.join(settings.file)));
    let found = hidden.filter_map(|settings| {
        let variable = settings.registry.1;
        // A sandbox inside of another cannot read the file, and has been told.
        let told = std::env::var(variable).ok().and_then(|address| without_credentials(&address));
        let read = || settings.registry(&read(&home.join(settings.file))?);
        Some((variable.to_owned(), told.or_else(read)?))
    });
    found.collect()
}

fn read(path: &Path) -> Option<String> {
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MOST_BYTES);
    let mut text = String::new();
    let mut options = fs::OpenOptions::new();
    // Something else that came in its place must not keep us waiting.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.read(true).open(path).ok().filter(|_| is_file)?;
    let length = file.take(MOST_BYTES + 1).read_to_string(&mut text).ok()?;
    (length as u64 <= MOST_BYTES).then_some(text)
}

impl Settings {
    fn are_harmless(&self, text: &str) -> bool {
        self.lines(text).all(|line| {
            let Some((key, value)) = self.pair(line) else { return false };
            let is_registry = key == self.registry.0 || key.starts_with('@') && key.ends_with(":registry");
            match is_registry {
                true => without_credentials(value).is_some_and(|clean| clean == value),
                false => self.harmless.contains(&key) && !value.contains("://"),
            }
        })
    }

    /// The registry that counts: the last one.
    fn registry(&self, text: &str) -> Option<String> {
        let pairs = self.lines(text).filter_map(|line| self.pair(line)).filter(|(key, _)| *key == self.registry.0);
        pairs.last().and_then(|(_, value)| without_credentials(value))
    }

    fn lines<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let is_section = |line: &&str| self.has_sections && line.starts_with('[') && line.trim_end().ends_with(']');
        lines(text).filter(move |line| !is_section(line))
    }

    fn pair<'a>(&self, line: &'a str) -> Option<(&'a str, &'a str)> {
        // What is indented belongs to something that we do not read. In YAML a blank comes after the key.
        let at = match self.separator {
            ':' => line.find(": ")?,
            separator => line.find(separator)?,
        };
        let (key, value) = (line[..at].trim_end(), line[at + 1..].trim());
        let bare = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        (!key.starts_with([' ', '\t'])).then_some((key, bare('"').or_else(|| bare('\'')).unwrap_or(value)))
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with(['#', ';']))
}

/// An address of the web without a user, a password and whatever comes after a path. `None` if it is no such address.
fn without_credentials(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))?;
    let rest = rest.split(['?', '#']).next()?;
    // The last one, wherever it is: passwords that should have been escaped are cut off as well.
    let rest = rest.rsplit('@').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/%[]+".contains(c);
    (rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') && rest.chars().all(is_plain))
        .then(|| format!("{scheme}://{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_harmless() {
        let rows = [
            (2, "", true),
            (2, "# a\n; b\n\nregistry=https://npm.example.com/\n", true),
            (2, "registry = \"https://npm.example.com\"\n@corp:registry=https://corp.example.com/npm\n", true),
            (2, "save-exact=true\nprefix=~/.local", true),
            (2, "registry=https://me:pw@npm.example.com/", false),
            (2, "registry=https://npm.example.com/?token=x", false),
            (2, "registry=${REGISTRY}", false),
            (2, "//npm.example.com/:_authToken=x", false),
            (2, "_auth=x", false),
            (2, "_password = x", false),
            (2, "https-proxy=http://me:pw@proxy", false),
            (2, "cafile=https://me:pw@host", false),
            (2, "unknown=1", false),
            (2, "no value", false),
            (2, "\u{feff}registry=https://npm.example.com/", false),
            (3, "nodeLinker: node-modules\nnpmRegistryServer: \"https://npm.example.com\"", true),
            (3, "npmAuthToken: x", false),
            (0, "[global]\nindex-url = https://pypi.example.com/simple\ntimeout = 60\n", true),
            (0, "[global]\nindex-url = https://me:pw@pypi.example.com/simple\n", false),
            (0, "[global]\nextra-index-url = https://pypi.example.com/simple\n", false),
            (1, "[global]\nfind-links =\n    https://me:pw@host/\n", false),
            (2, "[global]\nregistry=https://npm.example.com/", false),
            (3, "npmScopes:\n  corp:\n    npmAuthToken: x", false),
            (3, "npmRegistries:\n  nodeLinker: x", false),
        ];
        for (index, text, expected) in rows {
            let settings: &Settings = &ALL[index];
            assert_eq!(settings.are_harmless(text), expected, "{text}");
        }
    }

    #[test]
    fn a_registry_is_told_without_credentials() {
        let rows = [
            ("registry=https://npm.example.com/\n_auth=x", Some("https://npm.example.com/")),
            ("registry=https://a.example.com\nregistry=https://me:p@w@b.example.com:8443/x?y=z", {
                Some("https://b.example.com:8443/x")
            }),
            ("@corp:registry=https://npm.example.com", None),
            ("registry=ftp://npm.example.com", None),
            ("registry=https://", None),
            ("registry=https://a b", None),
            ("registry", None),
        ];
        for (text, expected) in rows {
            assert_eq!(ALL[2].registry(text).as_deref(), expected, "{text}");
        }
        let text = "[global]\nindex-url = https://me:pw@pypi.example.com/simple\n";
        assert_eq!(ALL[0].registry(text).as_deref(), Some("https://pypi.example.com/simple"));
    }
}
