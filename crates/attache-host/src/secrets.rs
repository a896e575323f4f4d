//! Where secrets are: the one list that questions and the sandbox go by.
//!
//! A name in it is asked about wherever it stands in a path. Where the row says so, it is also hidden from everything
//! that runs in a sandbox: at that path beneath the home directory, where the program that it belongs to keeps it. From
//! commands that nobody was asked about, files of these names are hidden in the project, too.

use std::path::{Path, PathBuf};

use crate::permission::is_named;

/// One name, and why it is in the list.
pub(crate) struct Secret {
    /// Parts of a path. `*` stands at one end.
    pub(crate) name: &'static str,
    /// Where it is hidden in a sandbox.
    pub(crate) hidden: Hidden,
    /// What is in it.
    #[cfg_attr(not(test), allow(dead_code, reason = "for whoever reads the table; a test wants one in each row"))]
    pub(crate) why: &'static str,
}

/// Where a sandbox hides a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Beneath the home directory.
    AtHome,
    /// Nowhere else than in a project: such files have no one place.
    Nowhere,
}

use Hidden::{AtHome, Nowhere};

macro_rules! secrets {
    ($($name:literal $hidden:ident $why:literal;)*) => {
        &[$(Secret { name: $name, hidden: $hidden, why: $why }),*]
    };
}

/// The list, by name.
pub(crate) const SECRETS: &[Secret] = secrets! {
    ".attache"                    Nowhere "what a project brings along for us, which takes trust";
    ".authinfo"                   AtHome  "passwords for Emacs";
    ".authinfo.gpg"               AtHome  "passwords for Emacs, encrypted";
    ".aws"                        AtHome  "keys and tokens of AWS";
    ".azure"                      AtHome  "tokens of Azure";
    ".bash_history"               AtHome  "what was typed, passwords included";
    ".boto"                       AtHome  "keys of Google Cloud Storage";
    ".bundle/config"              AtHome  "passwords of gem servers";
    ".cargo/credentials"          AtHome  "tokens of crates.io, the old name";
    ".cargo/credentials.toml"     AtHome  "tokens of crates.io";
    ".composer/auth.json"         AtHome  "tokens of Composer repositories";
    ".config/1password"           AtHome  "accounts of 1Password";
    ".config/attache"             AtHome  "our own keys, rules and settings";
    ".config/bitwarden cli"       AtHome  "the vault of Bitwarden";
    ".config/chromium"            AtHome  "cookies and passwords of a browser";
    ".config/composer/auth.json"  AtHome  "tokens of Composer repositories";
    ".config/containers/auth.json" AtHome "logins of container registries";
    ".config/doctl"               AtHome  "tokens of DigitalOcean";
    ".config/gcloud"              AtHome  "tokens of Google Cloud";
    ".config/gh"                  AtHome  "tokens of GitHub";
    ".config/glab-cli"            AtHome  "tokens of GitLab";
    ".config/google-chrome"       AtHome  "cookies and passwords of a browser";
    ".config/hub"                 AtHome  "tokens of GitHub";
    ".config/op"                  AtHome  "accounts of 1Password";
    ".config/pip/pip.conf"        AtHome  "passwords of package indexes";
    ".config/pypoetry/auth.toml"  AtHome  "passwords of package indexes";
    ".config/rclone"              AtHome  "tokens of cloud storage";
    ".docker"                     AtHome  "logins of container registries, keys of Docker, its sockets";
    ".env"                        Nowhere "keys of a project";
    ".env.*"                      Nowhere "keys of a project";
    ".envrc"                      Nowhere "keys of a project, set when its directory is entered";
    ".fly"                        AtHome  "tokens of Fly.io";
    ".gem/credentials"            AtHome  "tokens of RubyGems";
    ".git-credentials"            AtHome  "passwords of git";
    ".git/config"                 Nowhere "addresses with passwords in them";
    ".git/credentials"            Nowhere "passwords of git";
    ".gnupg"                      AtHome  "private keys, and the socket of their agent";
    ".gradle/gradle.properties"   AtHome  "passwords of repositories, keys to sign with";
    ".hex/hex.config"             AtHome  "tokens of Hex";
    ".htpasswd"                   Nowhere "passwords of a web server";
    ".ivy2/.credentials"          AtHome  "passwords of repositories";
    ".kube"                       AtHome  "tokens of clusters";
    ".local/share/gem/credentials" AtHome "tokens of RubyGems";
    ".local/share/keyrings"       AtHome  "the desktop's passwords";
    ".local/share/kwalletd"       AtHome  "the desktop's passwords";
    ".local/share/uv/credentials" AtHome  "passwords of package indexes";
    ".local/state/attache"        AtHome  "our own rules, trust, sessions and records";
    ".m2/settings-security.xml"   AtHome  "the password of the passwords of Maven";
    ".m2/settings.xml"            AtHome  "passwords of Maven repositories";
    ".mozilla"                    AtHome  "cookies and passwords of a browser";
    ".my.cnf"                     AtHome  "passwords of MySQL";
    ".mylogin.cnf"                AtHome  "passwords of MySQL";
    ".netrc"                      AtHome  "passwords of many programs";
    ".npmrc"                      AtHome  "tokens of npm";
    ".nuget/nuget/nuget.config"   AtHome  "passwords of NuGet repositories";
    ".oci"                        AtHome  "keys of Oracle Cloud";
    ".password-store"             AtHome  "passwords of pass";
    ".pgpass"                     AtHome  "passwords of PostgreSQL";
    ".pip/pip.conf"               AtHome  "passwords of package indexes";
    ".pub-cache/credentials.json" AtHome  "tokens of pub.dev";
    ".pypirc"                     AtHome  "tokens of PyPI";
    ".s3cfg"                      AtHome  "keys of S3";
    ".sbt/.credentials"           AtHome  "passwords of repositories";
    ".ssh"                        AtHome  "private keys, and the sockets of shared connections";
    ".terraform.d/credentials.tfrc.json" AtHome "tokens of Terraform";
    ".terraformrc"                AtHome  "tokens of Terraform";
    ".thunderbird"                AtHome  "mail and passwords";
    ".vault-token"                AtHome  "the token of Vault";
    ".yarnrc.yml"                 AtHome  "tokens of npm";
    ".zsh_history"                AtHome  "what was typed, passwords included";
    "_netrc"                      AtHome  "passwords of many programs";
    "appdata/local/attache"       Nowhere "our own rules, trust, sessions and records, on Windows";
    "appdata/local/bravesoftware" Nowhere "cookies and passwords of a browser, on Windows";
    "appdata/local/google/chrome" Nowhere "cookies and passwords of a browser, on Windows";
    "appdata/local/microsoft/credentials" Nowhere "passwords that Windows keeps";
    "appdata/local/microsoft/edge" Nowhere "cookies and passwords of a browser, on Windows";
    "appdata/local/microsoft/vault" Nowhere "passwords that Windows keeps";
    "appdata/roaming/attache"     Nowhere "our own keys, rules and settings, on Windows";
    "appdata/roaming/bitwarden cli" Nowhere "the vault of Bitwarden, on Windows";
    "appdata/roaming/composer/auth.json" Nowhere "tokens of Composer repositories, on Windows";
    "appdata/roaming/docker"      Nowhere "logins of container registries, on Windows";
    "appdata/roaming/gcloud"      Nowhere "tokens of Google Cloud, on Windows";
    "appdata/roaming/github cli"  Nowhere "tokens of GitHub, on Windows";
    "appdata/roaming/gnupg"       Nowhere "private keys, on Windows";
    "appdata/roaming/microsoft/credentials" Nowhere "passwords that Windows keeps";
    "appdata/roaming/microsoft/crypto" Nowhere "private keys that Windows keeps";
    "appdata/roaming/microsoft/protect" Nowhere "what Windows encrypts passwords with";
    "appdata/roaming/microsoft/vault" Nowhere "passwords that Windows keeps";
    "appdata/roaming/microsoft/windows/powershell/psreadline" Nowhere "what was typed, passwords included";
    "appdata/roaming/mozilla"     Nowhere "cookies and passwords of a browser, on Windows";
    "appdata/roaming/mysql/.mylogin.cnf" Nowhere "passwords of MySQL, on Windows";
    "appdata/roaming/nuget/nuget.config" Nowhere "passwords of NuGet repositories, on Windows";
    "appdata/roaming/pip/pip.ini" Nowhere "passwords of package indexes, on Windows";
    "appdata/roaming/postgresql/pgpass.conf" Nowhere "passwords of PostgreSQL, on Windows";
    "appdata/roaming/pypoetry/auth.toml" Nowhere "passwords of package indexes, on Windows";
    "appdata/roaming/rclone"      Nowhere "tokens of cloud storage, on Windows";
    "appdata/roaming/terraform.d/credentials.tfrc.json" Nowhere "tokens of Terraform, on Windows";
    "appdata/roaming/terraform.rc" Nowhere "tokens of Terraform, on Windows";
    "appdata/roaming/thunderbird" Nowhere "mail and passwords, on Windows";
    "credentials.json"            Nowhere "keys of service accounts";
    "id_dsa"                      Nowhere "a private key";
    "id_ecdsa"                    Nowhere "a private key";
    "id_ecdsa_sk"                 Nowhere "a private key";
    "id_ed25519"                  Nowhere "a private key";
    "id_ed25519_sk"               Nowhere "a private key";
    "id_rsa"                      Nowhere "a private key";
    "library/application support/bravesoftware" Nowhere "cookies and passwords of a browser, on macOS";
    "library/application support/firefox" Nowhere "cookies and passwords of a browser, on macOS";
    "library/application support/google/chrome" Nowhere "cookies and passwords of a browser, on macOS";
    "library/cookies"             Nowhere "cookies of a browser, on macOS";
    "library/keychains"           Nowhere "passwords that macOS keeps";
    "secrets.json"                Nowhere "keys of a project";
    "secrets.yaml"                Nowhere "keys of a project";
    "secrets.yml"                 Nowhere "keys of a project";
    "*.jks"                       Nowhere "a store of private keys";
    "*.kdbx"                      Nowhere "the vault of KeePass";
    "*.key"                       Nowhere "a private key";
    "*.keystore"                  Nowhere "a store of private keys";
    "*.p12"                       Nowhere "a private key";
    "*.pem"                       Nowhere "a private key";
    "*.pfx"                       Nowhere "a private key";
    "*.ppk"                       Nowhere "a private key";
};

/// Names that are spelled otherwise where they are hidden. Questions do not tell capitals from small letters, the file
/// system does.
const SPELLED: [(&str, &str); 2] =
    [(".config/bitwarden cli", ".config/Bitwarden CLI"), (".nuget/nuget/nuget.config", ".nuget/NuGet/NuGet.Config")];

/// What a sandbox hides beneath a home directory.
pub(crate) fn hidden_beneath(home: &Path) -> Vec<PathBuf> {
    let spelled = |name: &'static str| SPELLED.iter().find(|(plain, _)| *plain == name).map_or(name, |(_, real)| real);
    SECRETS.iter().filter(|secret| secret.hidden == AtHome).map(|secret| home.join(spelled(secret.name))).collect()
}

/// Whether a file of a project may hold secrets, by its name and those of the directories that it is in, in small letters.
pub(crate) fn is_secret_file(directories: &[String], name: &str) -> bool {
    SECRETS.iter().any(|secret| is_called(directories, name, secret))
}

/// Whether all that is in a directory of a project may be secret: one in which secrets are kept at home, and here, too. What
/// is a secret as a file, such as `.env`, may be anything as a directory.
pub(crate) fn is_secret_directory(directories: &[String], name: &str) -> bool {
    SECRETS.iter().any(|secret| secret.hidden == AtHome && is_called(directories, name, secret))
}

fn is_called(directories: &[String], name: &str, secret: &Secret) -> bool {
    let mut above = directories.iter().rev().map(String::as_str);
    let mut path = std::iter::once(name).chain(&mut above);
    secret.name.rsplit('/').all(|part| path.next().is_some_and(|name| is_named(name, part)))
}

/// What shells, desktops and others start from that is not among the names that are asked about in every directory.
const START: [&str; 10] = [
    ".config/environment.d",
    ".config/plasma-workspace",
    ".config/zsh",
    ".cshrc",
    ".local/share/applications",
    ".pam_environment",
    ".tcshrc",
    ".xsession",
    ".xsessionrc",
    ".zlogout",
];

/// What programs start from beneath a home directory, so that a sandbox protects it if the home can be changed. Not the
/// repository of a home: of that, commands may change what is not run.
pub(crate) fn start_files(home: &Path) -> Vec<PathBuf> {
    let names = crate::permission::RUN.iter().filter(|name| name.starts_with('.') && **name != ".git");
    names.chain(&START).map(|name| home.join(name)).collect()
}

/// What programs run from the top of a project by themselves, so that a sandbox protects it from what nobody was asked
/// about. Not its repository, of which git's own files are protected one by one.
pub(crate) fn run_in_project(root: &Path) -> Vec<PathBuf> {
    let names = crate::permission::RUN.iter().filter(|name| **name != ".git" && !name.contains('*'));
    names.chain(&[".attache", ".envrc"]).map(|name| root.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_every_row_says_why() {
        let mut before = "";
        for secret in SECRETS {
            let (is_glob, was_glob) = (secret.name.starts_with('*'), before.starts_with('*'));
            assert!((was_glob, before) < (is_glob, secret.name), "{} is out of order or there twice", secret.name);
            assert!(!secret.why.is_empty() && secret.name == secret.name.to_lowercase(), "{}", secret.name);
            assert!(secret.hidden == Nowhere || !secret.name.contains('*'), "{} has no one place", secret.name);
            before = secret.name;
        }
        assert!(SPELLED.iter().all(|(plain, _)| SECRETS.iter().any(|secret| secret.name == *plain)));
    }

    #[test]
    fn what_programs_start_from_is_found_beneath_a_home() {
        let home = Path::new("/home/me");
        let files = start_files(home);
        for name in [".bashrc", ".profile", ".zshenv", ".gitconfig", ".config/fish", ".config/autostart", ".local/bin"]
        {
            assert!(files.contains(&home.join(name)), "{name}");
        }
        assert!(!files.contains(&home.join(".git")) && !files.contains(&home.join("jenkinsfile")));
        assert!(START.is_sorted());
    }

    #[test]
    fn every_row_is_asked_about_and_hidden_where_it_says() {
        let home = Path::new("/home/me");
        let hidden = hidden_beneath(home);
        for secret in SECRETS {
            let name = secret.name.replace('*', "x");
            assert!(crate::permission::is_secret(Path::new(&name)), "{name}");
            assert!(crate::permission::is_secret(&Path::new("some/where").join(&name)), "{name}");
            assert_eq!(
                hidden
                    .iter()
                    .any(|path| path.to_string_lossy().to_lowercase().replace('\\', "/") == format!("/home/me/{name}")),
                secret.hidden == AtHome,
                "{name}"
            );
        }
        for name in [".ssh", ".npmrc", ".cargo/credentials.toml", ".pgpass", ".vault-token", ".local/state/attache"] {
            assert!(hidden.contains(&home.join(name)), "{name}");
        }
    }
}
