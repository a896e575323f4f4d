//! Changes of files: seen first, then made all together or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::exit::Failure;
use crate::paths;
use crate::visible::visible_lines;

/// The longest file of settings that is changed.
const LONGEST: u64 = 4 << 20;

/// A file that is about to be changed.
#[derive(Debug)]
pub(super) struct Change {
    /// The file as people name it. It may be a link.
    pub(super) path: PathBuf,
    /// The file itself. A link to it stays a link.
    target: PathBuf,
    /// What is in it; `None` if it is not there.
    before: Option<String>,
    after: String,
    /// Whether nobody else may read it, if it has to be made.
    is_private: bool,
}

/// A file of settings as it is now.
#[derive(Debug)]
pub(super) struct Found {
    path: PathBuf,
    target: PathBuf,
    text: Option<String>,
}

impl Found {
    /// Reads a file. An error is a reason why it cannot be changed from here.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let missing = |target| Ok(Found { path: path.to_owned(), target, text: None });
        let link = fs::symlink_metadata(path);
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == ErrorKind::NotFound && link.is_err() => return missing(path.to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err("it is a link to a file that is not there".into());
            }
            Err(error) => return Err(error.to_string()),
        };
        let metadata = fs::metadata(&target).map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err("it is not a file".into());
        }
        if metadata.permissions().readonly() {
            return Err("it is read-only".into());
        }
        if metadata.len() > LONGEST {
            return Err("it is longer than 4 MiB".into());
        }
        let text = fs::read(&target).map_err(|error| error.to_string())?;
        let text = String::from_utf8(text).map_err(|_| "it is not UTF-8 text")?;
        Ok(Found { path: path.to_owned(), target, text: Some(text) })
    }

    /// What is in it; nothing if it is not there.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    pub(super) fn is_there(&self) -> bool {
        self.text.is_some()
    }

    /// The change that makes this of it, if it is one.
    pub(super) fn becomes(self, after: String, is_private: bool) -> Option<Change> {
        let is_same = self.text.as_deref() == Some(after.as_str());
        (!is_same).then_some(Change { path: self.path, target: self.target, before: self.text, after, is_private })
    }
}

impl Change {
    /// The change as a unified diff, harmless for a terminal.
    ///
    /// Lines around the change may have keys in them that somebody put there. They are left out.
    pub(super) fn diff(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let diff = TextDiff::from_lines(before, &self.after);
        let path = self.path.display().to_string();
        let old = if self.before.is_some() { &path } else { "/dev/null" };
        let text = diff.unified_diff().context_radius(3).header(old, &path).to_string();
        visible_lines(&text.lines().map(|line| without_secret(line) + "\n").collect::<String>())
    }
}

/// A line of a diff without the value of what is called a key, a token or the like.
fn without_secret(line: &str) -> String {
    const NAMES: [&str; 6] = ["key", "token", "secret", "password", "auth", "credential"];
    let ends = line.find([':', '=']).filter(|_| line.starts_with(' '));
    match ends {
        Some(at) if NAMES.iter().any(|name| line[..at].to_ascii_lowercase().contains(name)) => {
            format!("{} …", &line[..=at])
        }
        _ => line.to_owned(),
    }
}

/// Makes all changes, and does what comes last; if any of it fails, nothing is changed. Returns the copies of what was
/// there before.
pub(super) fn make_all(
    changes: &[&Change],
    backups: &Path,
    last: impl FnOnce() -> Result<(), Failure>,
) -> Result<Vec<Option<PathBuf>>, Failure> {
    let mut staged = Vec::new();
    let mut copies = Vec::new();
    for change in changes {
        let now = Found::read(&change.path).map_err(|what| cannot(&change.path, &what))?;
        if now.text != change.before || now.target != change.target {
            return Err(cannot(&change.path, "another program has just changed it\nhint: run this again"));
        }
        staged.push(Staged::new(change).map_err(|error| cannot(&change.path, &error.to_string()))?);
    }
    for change in changes {
        let copy = change.before.as_ref().map(|before| back_up(&change.path, before, backups));
        copies.push(copy.transpose().map_err(|error| cannot(backups, &error.to_string()))?);
    }
    let mut made = Made(Vec::new());
    for (change, staged) in changes.iter().copied().zip(staged) {
        staged.put_in_place(change).map_err(|error| cannot(&change.path, &error.to_string()))?;
        made.0.push(change);
    }
    last()?;
    made.0.clear();
    Ok(copies)
}

fn cannot(path: &Path, what: &str) -> Failure {
    Failure::usage(format!("cannot write `{}`, so nothing was changed: {what}", path.display()))
}

/// Changes that were made. They are taken back when this is dropped.
struct Made<'a>(Vec<&'a Change>);

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for change in self.0.drain(..).rev() {
            let restored = match &change.before {
                None => fs::remove_file(&change.target),
                Some(before) => {
                    let restore = Change {
                        path: change.path.clone(),
                        target: change.target.clone(),
                        before: Some(change.after.clone()),
                        after: before.clone(),
                        is_private: change.is_private,
                    };
                    Staged::new(&restore).and_then(|staged| staged.put_in_place(&restore))
                }
            };
            if let Err(error) = restored {
                eprintln!("error: cannot put back `{}`: {error}", change.path.display());
            }
        }
    }
}

/// What a file will be, beside it. Goes with its directories when it is dropped.
struct Staged {
    temporary: PathBuf,
    /// Directories that had to be made, the innermost first.
    directories: Vec<PathBuf>,
}

impl Staged {
    fn new(change: &Change) -> io::Result<Self> {
        let directory = change.target.parent().ok_or(ErrorKind::InvalidInput)?;
        let mut name = std::ffi::OsString::from(".");
        name.push(change.target.file_name().ok_or(ErrorKind::InvalidInput)?);
        name.push(format!(".attache-{}.tmp", std::process::id()));
        let missing = directory.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
        let staged = Staged { temporary: directory.join(name), directories: missing };
        match change.is_private {
            true => paths::private_directory(directory)?,
            false => fs::create_dir_all(directory)?,
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // What is there may be for its owner alone, so nobody else sees the new one before it is as closed as that.
        #[cfg(unix)]
        if change.is_private || change.before.is_some() {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let mut file = options.open(&staged.temporary)?;
        file.write_all(change.after.as_bytes())?;
        if change.before.is_some() {
            file.set_permissions(fs::metadata(&change.target)?.permissions())?;
        }
        file.sync_all()?;
        Ok(staged)
    }

    fn put_in_place(mut self, change: &Change) -> io::Result<()> {
        match change.before {
            Some(_) => fs::rename(&self.temporary, &change.target)?,
            // Whatever has been put there meanwhile is not ours.
            None => {
                fs::hard_link(&self.temporary, &change.target).or_else(|error| match error.kind() {
                    ErrorKind::AlreadyExists => Err(error),
                    // Not every file system has links.
                    _ => fs::rename(&self.temporary, &change.target),
                })?;
            }
        }
        self.directories.clear();
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
        for directory in &self.directories {
            // One that has something in it by now stays.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Keeps a copy of a file where only its owner can read it: there may be keys of others in it.
fn back_up(path: &Path, text: &str, backups: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let time = attache::trace::rfc3339(std::time::SystemTime::now());
    let time: String = time.chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    for number in 1..1000 {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        let copy = backups.join(format!("{time}{more}-{name}"));
        if !copy.exists() {
            return paths::write_private(&copy, text.as_bytes()).map(|()| copy);
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &Path, after: &str) -> Change {
        Found::read(path).unwrap().becomes(after.into(), false).unwrap()
    }

    #[test]
    fn all_changes_are_made_or_none() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("old"), "one\n").unwrap();
        let changes = [change(&at("old"), "two\n"), change(&at("new/er/file"), "three\n")];
        let changes: Vec<&Change> = changes.iter().collect();
        let failed = make_all(&changes, &at("backups"), || Err(Failure::usage("no room for the key"))).unwrap_err();
        assert_eq!(failed.message, "no room for the key");
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "one\n");
        assert!(!at("new/er/file").exists());
        let copies = make_all(&changes, &at("backups"), || Ok(())).unwrap();
        assert_eq!(fs::read_to_string(copies[0].as_ref().unwrap()).unwrap(), "one\n");
        assert_eq!((copies[1].as_ref(), fs::read_to_string(at("old")).unwrap()), (None, "two\n".into()));
        assert_eq!(fs::read_to_string(at("new/er/file")).unwrap(), "three\n");
        // Nothing else is left beside them.
        assert_eq!(fs::read_dir(at("new/er")).unwrap().count(), 1);
    }

    #[test]
    fn what_changed_meanwhile_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        for meanwhile in ["other\n", ""] {
            let _ = fs::remove_file(&path);
            let change = change(&path, "mine\n");
            fs::write(&path, meanwhile).unwrap();
            let failure = make_all(&[&change], &directory.path().join("backups"), || Ok(())).unwrap_err();
            assert!(failure.message.contains("has just changed it"), "{failure}");
            assert_eq!(fs::read_to_string(&path).unwrap(), meanwhile);
        }
    }

    #[test]
    fn a_diff_shows_the_change_and_no_keys_around_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "\"API_KEY\": \"sk-1\",\n\"b\": \"\u{202e}x\"\n").unwrap();
        let diff = change(&path, "\"API_KEY\": \"sk-1\",\n\"b\": \"\u{202e}x\"\n\"c\": 1\n").diff();
        assert!(diff.contains("+\"c\": 1\n") && diff.contains(" \"API_KEY\": …\n"), "{diff}");
        assert!(!diff.contains("sk-1") && !diff.contains('\u{202e}'), "{diff}");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("dotfiles")).unwrap();
        fs::write(at("dotfiles/real"), "one\n").unwrap();
        fs::set_permissions(at("dotfiles/real"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles/real", at("link")).unwrap();
        make_all(&[&change(&at("link"), "two\n")], &at("backups"), || Ok(())).unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at("dotfiles/real")).unwrap(), "two\n");
        assert_eq!(fs::metadata(at("dotfiles/real")).unwrap().permissions().mode() & 0o777, 0o640);
        symlink("nowhere", at("dangling")).unwrap();
        assert!(Found::read(&at("dangling")).unwrap_err().contains("not there"));
        fs::set_permissions(at("dotfiles/real"), fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(Found::read(&at("link")).unwrap_err(), "it is read-only");
    }
}
