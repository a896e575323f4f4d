//! Package managers as commands that nobody was asked about. They work with what is on the machine, and all that they write
//! outside of the project stays in private layers: what is shared is as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::sandbox::{can_be_enforced, confined, free, home};
use super::support::{Place, Ran};

/// All that is outside of the project and of our own records: what is in files, where links lead, and modes.
fn outside(place: &Place) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let left_out = [place.project(), place.home().join(".local/state/attache")];
    let mut found = BTreeMap::new();
    let mut ahead = vec![place.path("")];
    while let Some(path) = ahead.pop() {
        let is = fs::symlink_metadata(&path).unwrap();
        let content = if is.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if is.is_dir() {
            let inside = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            ahead.extend(inside.filter(|path| !left_out.contains(path)));
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(path, (is.permissions().mode(), content));
    }
    found
}

/// Runs it, and looks whether all else is as it was.
fn check(place: &Place, ran: impl FnOnce() -> Ran, expected: &str) {
    let before = outside(place);
    let ran = ran();
    assert!(ran.code == Some(0) && ran.out.ends_with(expected), "{ran:?}");
    assert!(outside(place) == before, "something else was changed: {ran:?}");
}

fn unasked(place: &Place, line: &str) -> Ran {
    confined(place, &["--unasked"], line)
}

/// Whether a tool is here. Where it is not, that is said, and nothing can be tested.
fn has(place: &Place, tool: &str) -> bool {
    let ran = free(place, &format!("{tool} >/dev/null"));
    if ran.code != Some(0) {
        eprintln!("`{tool}` does not work here, so it is not tested: {}", ran.err);
    }
    ran.code == Some(0)
}

#[test]
fn cargo_fetches_and_builds() {
    if !can_be_enforced() || !has(&home(), "git --version") {
        return;
    }
    // The one that these tests are built with. It may be in a home that only we can read.
    let toolchain = Path::new(env!("CARGO")).parent().unwrap().display().to_string();
    for has_cache in [false, true] {
        let place = home();
        if has_cache {
            place.write(".cargo/registry/index/crate", "good");
        }
        let package = |name: &str| format!("[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2021'\n");
        place.write("dependency/Cargo.toml", package("dependency"));
        place.write("dependency/src/lib.rs", "pub const WORD: &str = \"built\";\n");
        let git = "git -c user.name=me -c user.email=me@example.com";
        let made = free(&place, &format!("cd ../dependency && git init -q && git add . && {git} commit -qm one"));
        assert_eq!(made.code, Some(0), "{made:?}");
        let address =
            format!("[dependencies]\ndependency = {{ git = 'file://{}/dependency' }}\n", place.home().display());
        place.write("project/Cargo.toml", package("project") + &address);
        place.write("project/src/lib.rs", "pub const WORD: &str = dependency::WORD;\n");
        let run = |line: &str| {
            let mut command = std::process::Command::new(super::support::attache());
            command.args(["sandbox", "run", "--unasked", "--", "sh", "-c", line]);
            place.prepare_for_us(&mut command);
            command.env("TMPDIR", place.path("tmp")).env("PATH", format!("{toolchain}:/usr/local/bin:/usr/bin:/bin"));
            place.run(command)
        };
        check(&place, || run("cargo fetch -q && echo fetched"), "fetched\n");
        // The next command has what this one fetched.
        check(&place, || run("cargo build -q --offline && echo built"), "built\n");
        assert_eq!(place.home().join(".cargo").exists(), has_cache);
    }
}

#[test]
fn npm_installs() {
    if !can_be_enforced() || !has(&home(), "npm --version") {
        return;
    }
    for has_cache in [false, true] {
        let place = home();
        if has_cache {
            place.write(".npm/_cacache/index-v5/x", "good");
        }
        place.write("package/package.json", r#"{"name": "tiny", "version": "1.0.0", "bin": {"tiny": "tiny.js"}}"#);
        place.write("package/index.js", "module.exports = 'installed'\n");
        place.write("package/tiny.js", "#!/usr/bin/env node\nconsole.log(require('tiny'))\n");
        place.write("project/package.json", r#"{"name": "project", "version": "1.0.0"}"#);
        let made = free(&place, "tar czf ../tiny.tgz -C .. package");
        assert_eq!(made.code, Some(0), "{made:?}");
        let line = "npm install --no-audit --no-fund ../tiny.tgz >/dev/null && node_modules/.bin/tiny";
        check(&place, || unasked(&place, line), "installed\n");
        assert_eq!(place.home().join(".npm").exists(), has_cache);
    }
}

/// Makes a wheel without a network: a module and a script.
const WHEEL: &str = r#"
import zipfile
info = "tiny-1.0.dist-info/"
files = {
    "tiny.py": "def main(): print('installed')\n",
    info + "METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    info + "entry_points.txt": "[console_scripts]\ntiny = tiny:main\n",
}
record = info + "RECORD"
files[record] = "".join(f"{name},,\n" for name in [*files, record])
with zipfile.ZipFile("../tiny-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
"#;

#[test]
fn pip_installs() {
    if !can_be_enforced() || !has(&home(), "python3 -m pip --version") {
        return;
    }
    for has_packages in [false, true] {
        let place = home();
        place.write("wheel.py", WHEEL);
        let made = free(&place, "python3 ../wheel.py && python3 -m site --user-site");
        let packages = made.out.trim().strip_prefix(place.home().to_str().unwrap()).unwrap().trim_start_matches('/');
        assert_eq!(packages.split('/').next(), Some(".local"), "{made:?}");
        place.write(".local/bin/other", "good");
        if has_packages {
            place.write(&format!("{packages}/other.py"), "word = 'there'\n");
        }
        // The system's own Python wants to be left alone.
        let line = "export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1; \
                    python3 -m pip install -q --user --no-index --no-warn-script-location ../tiny-1.0-py3-none-any.whl";
        let use_it = "python3 -c 'import tiny; tiny.main()' && $(python3 -m site --user-base)/bin/tiny";
        check(&place, || unasked(&place, &format!("{line} && {use_it}")), "installed\ninstalled\n");
        check(&place, || unasked(&place, use_it), "installed\ninstalled\n");
        assert_ne!(free(&place, "python3 -c 'import tiny'").code, Some(0));
        if has_packages {
            check(&place, || unasked(&place, "python3 -c 'import other; print(other.word)'"), "there\n");
        }
    }
}

#[test]
fn go_builds() {
    if !can_be_enforced() || !has(&home(), "go version") {
        return;
    }
    for has_cache in [false, true] {
        let place = home();
        if has_cache {
            place.write(".cache/go-build/README", "good");
            place.write("go/pkg/mod/cache/lock", "");
        }
        place.write("project/go.mod", "module example.com/project\n\ngo 1.20\n");
        place.write("project/main.go", "package main\n\nfunc main() { println(\"built\") }\n");
        check(&place, || unasked(&place, "GOTOOLCHAIN=local go build -o built . && ./built 2>&1"), "built\n");
        assert_eq!(place.home().join("go").exists(), has_cache);
    }
}
