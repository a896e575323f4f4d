//! Which file a program's name stands for on Windows.
//!
//! Left to itself the system looks in places that a project can write to, and knows no scripts. So a name is looked up in the
//! directories of the search path and nowhere else: not where we are, not where the program is to be started.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// What can be started, in the order in which it is tried. Scripts (`npx.cmd`) are run by `cmd`, which the standard library
/// finds by its full path and quotes arguments for, or refuses to.
const ENDS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// The full path of a program. One with a directory is meant from `cwd`; any other is looked up in `search_path`.
pub(super) fn find(program: &OsStr, cwd: Option<&Path>, search_path: Option<&OsStr>) -> Option<PathBuf> {
    if super::command::has_directory(program) {
        // Without a root, `C:x` depends on where we happen to be on that disk.
        let path = match cwd {
            Some(cwd) => cwd.join(program),
            None => env::current_dir().ok()?.join(program),
        };
        let path = path.is_absolute().then_some(path)?;
        return candidates(path.as_os_str()).find(|path| is_there(path)).or_else(|| is_there(&path).then_some(path));
    }
    // `x:y` is a stream of a file, or a file on another disk.
    if program.to_string_lossy().contains(':') {
        return None;
    }
    let directories = env::split_paths(search_path?).filter(|directory| directory.is_absolute());
    directories.flat_map(|directory| candidates(directory.join(program).as_os_str())).find(|path| is_there(path))
}

/// The path with each end that can be started, or itself if it has one.
fn candidates(path: &OsStr) -> impl Iterator<Item = PathBuf> + use<> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let ends: &[&str] = if ENDS.iter().any(|end| name.ends_with(end)) { &[""] } else { &ENDS };
    let path = path.to_owned();
    ends.iter().map(move |end| {
        let mut path = OsString::from(&path);
        path.push(end);
        path.into()
    })
}

/// Not following links, because what stands for a program of the Store cannot be opened, only started.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_dir())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_name_is_looked_up_in_the_search_path_and_nowhere_else() {
        let top = env::temp_dir().join(format!("attache-program-{}", std::process::id()));
        let (one, two) = (top.join("one"), top.join("two"));
        for directory in [&one, &two] {
            fs::create_dir_all(directory).unwrap();
        }
        for path in
            [one.join("npx"), one.join("npx.cmd"), two.join("npx.exe"), two.join("tool.1.exe"), two.join("data.txt")]
        {
            fs::write(path, "").unwrap();
        }
        let search = env::join_paths([Path::new("relative"), Path::new(""), &one, &two]).unwrap();
        let find = |name: &str, cwd: Option<&Path>| super::find(name.as_ref(), cwd, Some(&search));
        assert_eq!(find("npx", None), Some(one.join("npx.cmd")));
        assert_eq!(find("NPX.EXE", None), Some(two.join("NPX.EXE")));
        assert_eq!(find("tool.1", None), Some(two.join("tool.1.exe")));
        assert_eq!(find("data.txt", None), None);
        assert_eq!(find("npx.cmd:stream", None), None);
        assert_eq!(find("missing", Some(&one)), None);
        assert_eq!(find("npx", Some(&two)), Some(one.join("npx.cmd")));
        assert_eq!(find(r".\npx", Some(&two)), Some(two.join(r".\npx.exe")));
        assert_eq!(super::find("npx".as_ref(), Some(&two), None), None);
        assert_eq!(super::find("npx".as_ref(), None, Some("one".as_ref())), None);
        fs::remove_dir_all(&top).unwrap();
    }
}
