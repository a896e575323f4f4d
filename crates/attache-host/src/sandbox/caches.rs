//! The caches of package managers and compilers, and where they install: read as they are, written in a layer of one's own.
//!
//! A command that may write to `~/.cargo` or `~/.npm` decides what every later build on this machine runs. So nothing that
//! is confined does. Where the kernel has overlays, the shared directory can be seen through the layer, and what is written
//! stays in the layer. Where it has not, or where there is no shared directory yet, the program is told by its own variable
//! to use a private directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Layer, Policy, ProjectLayers, Sandbox, kernel, view};

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
    "python"       ".local/lib"         ""                     ""    ""                 "" [];
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

/// Caches that are better read-only than empty, where there are no overlays.
const WORK_READ_ONLY: [&str; 4] = ["cargo", "go", "maven", "nuget"];

impl Cache {
    /// Where it is, by what the person has set or by default.
    fn place(&self, home: &Path) -> Option<PathBuf> {
        let (variable, sub) = self.variable;
        let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        match set {
            Some(path) => Some(if sub.is_empty() { path } else { path.join(sub) }),
            None if self.path.is_empty() => None,
            None => Some(home.join(self.path)),
        }
    }
}

impl Policy {
    /// Has caches written in the layers of a project. What cannot be, because the machine has no overlays or there is no
    /// such directory, is private, if the program has a variable for it; else it stays read-only.
    pub fn use_layers(&mut self, layers: &ProjectLayers) {
        let Some(home) = std::env::home_dir().filter(|home| home.parent().is_some()) else { return };
        let can_overlay = Sandbox::check().is_ok_and(|support| support.namespaces) && kernel::can_overlay(layers);
        let real = |paths: &[PathBuf]| paths.iter().map(|path| view::resolve(path)).collect::<Vec<_>>();
        let (hidden, writable, real_home) = (real(&self.hidden), real(&self.writable), view::resolve(&home));
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
            let shared = cache.place(&home).and_then(|place| fs::canonicalize(place).ok()).filter(|path| path.is_dir());
            match shared {
                // It is part of one already.
                Some(shared) if taken.iter().any(|taken| shared.starts_with(taken)) => {}
                Some(shared) if is_no_cache(&shared) => {}
                Some(shared) if can_overlay && let Ok(layer) = layers.layer(cache, &shared) => {
                    taken.push(shared);
                    self.layers.push(layer);
                }
                // Builds that need nothing new work with what is there.
                Some(_) if WORK_READ_ONLY.contains(&cache.name) => {}
                _ if cache.private.0.is_empty() => {}
                // Where the person wants it to be, there it stays.
                _ if std::env::var_os(cache.private.0).is_some() => {}
                _ => {
                    let directory = layers.private(cache.name).ok();
                    let Some(directory) = directory.as_deref().and_then(Path::to_str) else { continue };
                    needs_private = true;
                    let (variable, before) = cache.private;
                    self.private_variables.push((variable.to_owned(), format!("{before}{directory}")));
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

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
