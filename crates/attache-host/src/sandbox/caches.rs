//! The caches of package managers and compilers, and where they install: read as they are, written in a layer of one's own.
//!
//! A command that may write to `~/.cargo` or `~/.npm` decides what every later build on this machine runs. So nothing that
//! is confined does. Where the kernel has overlays, the shared directory can be seen through the layer, and what is written
//! stays in the layer. Where it has not, or where there is no shared directory yet, the program is told by its own variable
//! to use a private directory.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Layer, Network, Policy, ProjectLayers, Sandbox, kernel, view};

/// One directory that programs keep what they have downloaded or built in.
struct Cache {
    /// What it is called among the layers.
    name: &'static str,
    /// Where it is beneath the home; empty if only a variable says so.
    path: &'static str,
    /// The variable that says where it is, and what comes after its value.
    variable: (&'static str, &'static str),
    /// The variable that leads to a private directory instead, and what comes before that in its value.
    private: (&'static str, &'static str),
    /// What stays as it is in it, read-only: programs, and settings that name some.
    kept: &'static [&'static str],
}

macro_rules! caches {
    ($($name:literal $path:literal $variable:literal $sub:literal $private:literal $before:literal [$($kept:literal)*];)*) => {
        &[$(Cache {
            name: $name,
            path: $path,
            variable: ($variable, $sub),
            private: ($private, $before),
            kept: &[$($kept),*],
        }),*]
    };
}

/// The table. The general directory for caches comes first: much of the rest is in it, unless a variable says otherwise.
const CACHES: &[Cache] = caches! {
    "cache"        ".cache"             "XDG_CACHE_HOME"       ""    "XDG_CACHE_HOME"   "" [];
    "bun"          ".bun"               "BUN_INSTALL"          ""    ""                 "" ["bin"];
    "bundler"      ".bundle"            ""                     ""    ""                 "" ["config"];
    "cabal"        ".cabal"             "CABAL_DIR"            ""    ""                 "" ["bin" "config"];
    "cargo"        ".cargo"             "CARGO_HOME"           ""    "CARGO_HOME"       "" ["bin" "config" "config.toml" "env"];
    "ccache"       ".ccache"            "CCACHE_DIR"           ""    ""                 "" [];
    "composer"     ".composer"          "COMPOSER_HOME"        ""    ""                 "" ["config.json" "vendor"];
    "conan"        ".conan2"            ""                     ""    ""                 "" [];
    "deno"         ""                   "DENO_DIR"             ""    ""                 "" [];
    "dotnet"       ".dotnet"            "DOTNET_CLI_HOME"      ".dotnet" ""             "" ["tools"];
    "gem"          ".gem"               ""                     ""    ""                 "" [];
    "gem-home"     ""                   "GEM_HOME"             ""    ""                 "" ["bin"];
    "gem-share"    ".local/share/gem"   ""                     ""    ""                 "" [];
    "go"           "go/pkg"             "GOPATH"               "pkg" "GOPATH"           "" [];
    "go-build"     ""                   "GOCACHE"              ""    ""                 "" [];
    "go-modules"   ""                   "GOMODCACHE"           ""    ""                 "" [];
    "gradle"       ".gradle"            "GRADLE_USER_HOME"     ""    "GRADLE_USER_HOME" "" ["init.d" "init.gradle" "init.gradle.kts"];
    "hex"          ".hex"               ""                     ""    ""                 "" [];
    "ivy"          ".ivy2"              ""                     ""    ""                 "" [];
    "julia"        ".julia"             ""                     ""    ""                 "" ["config"];
    "maven"        ".m2"                ""                     ""    "MAVEN_ARGS"       "-Dmaven.repo.local=" ["extensions.xml"];
    "mix"          ".mix"               "MIX_HOME"             ""    ""                 "" [];
    "npm"          ".npm"               "npm_config_cache"     ""    "npm_config_cache" "" [];
    "npm-upper"    ""                   "NPM_CONFIG_CACHE"     ""    ""                 "" [];
    "nuget"        ".nuget"             "NUGET_PACKAGES"       ""    "NUGET_PACKAGES"   "" [];
    "nuget-share"  ".local/share/NuGet" ""                     ""    ""                 "" [];
    "opam"         ".opam"              "OPAMROOT"             ""    ""                 "" ["config"];
    "pip"          ""                   "PIP_CACHE_DIR"        ""    ""                 "" [];
    "pnpm"         ".local/share/pnpm"  "PNPM_HOME"            ""    "PNPM_HOME"        "" [];
    "pub"          ".pub-cache"         "PUB_CACHE"            ""    ""                 "" ["bin"];
    "pyenv"        ".pyenv"             "PYENV_ROOT"           ""    ""                 "" ["bin" "libexec"];
    "python"       ".local/lib"         "PYTHONUSERBASE"       "lib" "PYTHONUSERBASE"   "" [];
    "rbenv"        ".rbenv"             "RBENV_ROOT"           ""    ""                 "" ["bin" "libexec"];
    "sbt"          ".sbt"               ""                     ""    ""                 "" [];
    "sccache"      ""                   "SCCACHE_DIR"          ""    ""                 "" [];
    "stack"        ".stack"             "STACK_ROOT"           ""    ""                 "" ["config.yaml"];
    "uv"           ""                   "UV_CACHE_DIR"         ""    ""                 "" [];
    "uv-share"     ".local/share/uv"    ""                     ""    ""                 "" ["tools"];
    "yarn"         ""                   "YARN_CACHE_FOLDER"    ""    ""                 "" [];
    "yarn-berry"   ".yarn"              ""                     ""    "YARN_GLOBAL_FOLDER" "" [];
    "zig"          ""                   "ZIG_GLOBAL_CACHE_DIR" ""    ""                 "" [];
};

/// Caches that are better read-only than empty, where there are neither overlays nor a network to fill them from.
const WORK_READ_ONLY: [&str; 4] = ["cargo", "go", "maven", "nuget"];
/// What programs run from, so that it is never replaced by something empty. They are installed beside it: pip puts scripts
/// into `bin`, which is on the person's path and stays as it is.
const INSTALLED: &str = "python";

impl Cache {
    /// Where it is, by what the person has set or by default.
    fn place(&self, home: &Path, set: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let (variable, sub) = self.variable;
        match set(variable).map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(path) => Some(if sub.is_empty() { path } else { path.join(sub) }),
            None if self.path.is_empty() => None,
            None => Some(home.join(self.path)),
        }
    }
}

impl Policy {
    /// Has caches written in the layers of a project. What cannot be, because the machine has no overlays or there is no
    /// such directory, is private, if the program has a variable for it; else it stays read-only. So it depends on the
    /// network, which is to be set before.
    pub fn use_layers(&mut self, layers: &ProjectLayers) {
        let Some(home) = std::env::home_dir().filter(|home| home.parent().is_some()) else { return };
        let can_overlay = Sandbox::check().is_ok_and(|support| support.namespaces) && kernel::can_overlay(layers);
        self.use_caches(layers, &home, can_overlay, &|name| std::env::var_os(name));
    }

    fn use_caches(
        &mut self,
        layers: &ProjectLayers,
        home: &Path,
        can_overlay: bool,
        set: &dyn Fn(&str) -> Option<OsString>,
    ) {
        let real = |paths: &[PathBuf]| paths.iter().map(|path| view::resolve(path)).collect::<Vec<_>>();
        let (hidden, writable, real_home) = (real(&self.hidden), real(&self.writable), view::resolve(home));
        // Whether it is something around the home or around what can be changed, or in the latter by itself: such as one
        // that the project has for its own. A home that can be changed has caches like any other.
        let is_no_cache = |shared: &Path| {
            let is_in = |writable: &PathBuf| {
                writable.starts_with(shared) || shared.starts_with(writable) && !real_home.starts_with(writable)
            };
            real_home.starts_with(shared)
                || hidden.iter().any(|hidden| shared.starts_with(hidden))
                || writable.iter().any(is_in)
        };
        let mut taken: Vec<PathBuf> = Vec::new();
        let mut needs_private = false;
        for cache in CACHES {
            let place = cache.place(home, set).and_then(|place| fs::canonicalize(place).ok());
            let shared = place.filter(|path| path.is_dir());
            let (variable, before) = cache.private;
            // A variable with a place in it says where the person wants it to be. Others say more than that.
            let is_wanted = set(variable).is_some() && (shared.is_none() || !before.is_empty());
            let directory = match shared {
                // It is part of one already.
                Some(shared) if taken.iter().any(|taken| shared.starts_with(taken)) => continue,
                Some(shared) if is_no_cache(&shared) => continue,
                Some(shared) if can_overlay && let Ok(layer) = layers.layer(cache, &shared) => {
                    self.layers.push(layer);
                    taken.push(shared.clone());
                    if cache.name != INSTALLED {
                        continue;
                    }
                    layers.private_around(cache.name, cache.variable.1, &shared)
                }
                Some(_) if cache.name == INSTALLED => continue,
                // Builds that need nothing new work with what is there.
                Some(_) if self.network == Network::Offline && WORK_READ_ONLY.contains(&cache.name) => continue,
                _ if variable.is_empty() || is_wanted => continue,
                _ => layers.private(cache.name),
            };
            let Some(directory) = directory.ok().and_then(|path| path.into_os_string().into_string().ok()) else {
                continue;
            };
            needs_private = true;
            self.private_variables.push((variable.to_owned(), format!("{before}{directory}")));
        }
        if needs_private {
            self.writable.push(layers.private_directory());
        }
    }
}

impl ProjectLayers {
    fn layer(&self, cache: &Cache, shared: &Path) -> io::Result<Layer> {
        let directory = self.directory().join(cache.name);
        for part in ["upper", "work"] {
            super::layers::make_private(&directory.join(part))?;
        }
        let beneath = self.beneath().map(|layer| layer.join(cache.name).join("upper"));
        Ok(Layer {
            at: shared.to_owned(),
            kept: cache.kept.iter().map(|name| shared.join(name)).collect(),
            beneath: beneath.filter(|upper| upper.is_dir()).collect(),
            directory,
        })
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// A home with these directories, and the variables that commands get in its project.
    struct Home {
        directory: tempfile::TempDir,
        /// What the person has set.
        set: Vec<(&'static str, PathBuf)>,
    }

    impl Home {
        fn new(directories: &[&str]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            for name in directories.iter().chain(&["project", "state"]) {
                fs::create_dir_all(directory.path().join(name)).unwrap();
            }
            Home { directory, set: Vec::new() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        /// The policy, and the names of the variables that lead to a private directory.
        fn policy(&self, network: Network, can_overlay: bool) -> (Policy, Vec<String>) {
            let layers = ProjectLayers::take(&self.path("state"), &self.path("project"), false).unwrap();
            let mut policy = Policy { network, ..Policy::new([self.path("project")]) };
            let set = |name: &str| {
                let found = self.set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.clone().into_os_string())
            };
            policy.use_caches(&layers, self.directory.path(), can_overlay, &set);
            let private = layers.private_directory();
            assert_eq!(policy.writable.contains(&private), !policy.private_variables.is_empty());
            let leads_there = |(_, value): &&(String, String)| value.contains(private.to_str().unwrap());
            let names = policy.private_variables.iter().filter(leads_there).map(|(name, _)| name.clone()).collect();
            (policy, names)
        }
    }

    #[test]
    fn without_overlays_a_network_fills_private_caches_and_without_both_the_shared_ones_are_read() {
        let mut home = Home::new(&[".cargo", "go/pkg", ".m2", ".nuget"]);
        let names = ["CARGO_HOME", "GOPATH", "MAVEN_ARGS", "NUGET_PACKAGES"];
        let of_those = |found: &[String]| names.map(|name| found.iter().any(|found| found == name));
        for (network, can_overlay, expected) in
            [(Network::Offline, false, false), (Network::Open, false, true), (Network::Open, true, false)]
        {
            let (policy, found) = home.policy(network, can_overlay);
            assert_eq!(of_those(&found), [expected; 4], "{network:?} {can_overlay} {found:?}");
            assert_eq!(policy.layers.len(), if can_overlay { 4 } else { 0 });
        }
        // One that is elsewhere can be read just the same, and one of the project is changed where it is. What maven is told
        // besides is not lost.
        fs::create_dir_all(home.path("project/go/pkg")).unwrap();
        home.set = vec![
            ("CARGO_HOME", home.path(".nuget")),
            ("GOPATH", home.path("project/go")),
            ("MAVEN_ARGS", PathBuf::from("--offline")),
            ("NUGET_PACKAGES", home.path("missing")),
        ];
        assert_eq!(of_those(&home.policy(Network::Open, false).1), [true, false, false, false]);
    }

    #[test]
    fn pip_installs_beside_what_is_there() {
        let base = |home: &Home, network, can_overlay| {
            let (policy, _) = home.policy(network, can_overlay);
            policy.private_variables.into_iter().find(|(name, _)| name == "PYTHONUSERBASE").map(|(_, value)| value)
        };
        for network in [Network::Offline, Network::Open] {
            let (empty, used) = (Home::new(&[]), Home::new(&[".local/lib"]));
            for can_overlay in [false, true] {
                let own = PathBuf::from(base(&empty, network, can_overlay).unwrap());
                assert_eq!(fs::read_dir(own).unwrap().count(), 0);
            }
            // What is installed is better read-only than gone.
            assert_eq!(base(&used, network, false), None);
            let own = PathBuf::from(base(&used, network, true).unwrap());
            assert_eq!(own.join("lib").canonicalize().unwrap(), used.path(".local/lib").canonicalize().unwrap());
            // It is left as a command has made it: whatever is done there would be done outside of the sandbox.
            fs::remove_file(own.join("lib")).unwrap();
            assert_eq!(base(&used, network, true).map(PathBuf::from), Some(own.clone()));
            assert_eq!(fs::read_dir(own).unwrap().count(), 0);
        }
    }

    #[test]
    fn the_table_is_in_order_and_says_where_everything_is() {
        assert!(CACHES[1..].is_sorted_by(|one, other| one.name < other.name));
        for cache in CACHES {
            assert!(!cache.path.is_empty() || !cache.variable.0.is_empty(), "{}", cache.name);
            let is_relative = |path: &str| !path.starts_with('/') && !path.contains("..");
            assert!(is_relative(cache.path) && cache.kept.iter().all(|kept| is_relative(kept)), "{}", cache.name);
            for variable in [cache.variable.0].into_iter().filter(|variable| !variable.is_empty()) {
                // What a command does not get says nothing about where it looks.
                assert!(crate::environment::is_passed(variable, &[]), "{variable}");
            }
        }
    }
}
