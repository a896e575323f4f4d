//! Which directories the user trusts, bound to what is in them.
//!
//! Nothing that a repository brings along (configuration, commands of agents, rules, MCP servers) takes effect until the
//! user trusts it. What is trusted are the contents of its folder `.attache`, not its name: when a byte of them changes,
//! the user is asked again. What was compared is what is then used: [`Trust::check`] returns the bytes it has read, and
//! nobody reads the files a second time.
//!
//! Variables of the environment that its MCP servers are given ([`Contents::variables`]) are part of it, by their names.
//!
//! Files of the project that the folder's commands name ([`Contents::starts`]) are part of it: when such a program changes,
//! the user is asked again, too. What those programs load in turn, and programs from elsewhere, are not.

mod starts;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use attache::model::mcp::McpServer;
use sha2::{Digest, Sha256};
pub use starts::{Started, StartedFile};
use toml_edit::{DocumentMut, Item, Table, value};

use crate::mcp::{Loaded, Written};
use crate::{paths, store};

/// The folder of a repository that can take effect.
pub const FOLDER: &str = ".attache";

/// The project that a directory is in: itself, or the one above it that holds [`FOLDER`], up to the repository's.
pub fn project_of(cwd: &Path) -> PathBuf {
    for directory in cwd.ancestors() {
        if directory.join(FOLDER).symlink_metadata().is_ok() {
            return directory.to_owned();
        }
        if directory.join(".git").exists() {
            break;
        }
    }
    cwd.to_owned()
}

/// Limits of that folder, far beyond what settings need: someone has to be able to look at all of it.
const MAX_FILES: usize = 256;
const MAX_BYTES: u64 = 4 << 20;
const MAX_DEPTH: usize = 8;

/// Why the contents of a directory cannot be trusted, or trust not be kept.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Something cannot be read or written.
    #[error("cannot use `{}`: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A link or a device: what is behind it can change without a trace.
    #[error("`{}` is neither a file nor a directory\nhint: only plain files can be trusted", .0.display())]
    NotAFile(PathBuf),
    /// A file with another name, which may lie anywhere.
    #[error("`{}` has more than one hard link\nhint: only files with one name can be trusted; copy it", .0.display())]
    HardLink(PathBuf),
    /// A name that is not UTF-8.
    #[error("`{}` has a name that is not UTF-8", .0.display())]
    Name(PathBuf),
    /// Too much to look at.
    #[error("`{}` is too large to be trusted\nhint: at most 256 files, 4 MiB in all, 8 directories deep", .0.display())]
    TooLarge(PathBuf),
    /// The list of trusted directories is not as it was written.
    #[error("`{}` is not a list of trusted directories\nhint: delete it to trust nothing", .0.display())]
    BadList(PathBuf),
}

/// Whether a directory is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The user trusts these very contents.
    Trusted,
    /// The user trusted other contents.
    Changed,
    /// The user trusted these contents with an earlier version, which did not cover the programs that they start or the
    /// variables that they read.
    Uncovered,
    /// The user was never asked.
    Unknown,
    /// There is nothing that could take effect.
    NothingToTrust,
}

/// What a directory brings along, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    directory: PathBuf,
    files: NamedFiles,
    starts: Vec<Started>,
    variables: Vec<(String, Vec<String>)>,
    digest: String,
    /// Of the files alone, as the first version had it. The same as `digest` where no command names a file.
    old_digest: String,
    /// Without a file that a command names: what was trusted if that file was not there then.
    digests_without: Vec<(PathBuf, String)>,
}

/// Of more files that commands name, nobody is told which one is new.
const MOST_COMPARED: usize = 64;

impl Contents {
    /// Reads what would take effect in a directory.
    pub fn read(directory: &Path) -> Result<Self, TrustError> {
        let (directory, files) = read_files(directory)?;
        Contents::of(directory, files)
    }

    fn of(directory: PathBuf, files: NamedFiles) -> Result<Self, TrustError> {
        let mut hash = Sha256::new();
        for (name, bytes) in &files {
            // With the lengths no two sets of files look alike.
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        let hex = |hash: Sha256| hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let old_digest = hex(hash.clone());
        let starts = Started::read(&directory, &files)?;
        let variables = variables_of(&files);
        let digest_without = |missing: Option<&Path>| {
            let mut hash = hash.clone();
            Started::pin(&starts, missing, &mut hash);
            for name in variables.iter().flat_map(|(_, names)| names) {
                // No pin of a file looks like this. Who trusted the folder before variables meant something is asked
                // again.
                let pin = format!("${{{name}}}");
                hash.update((pin.len() as u64).to_le_bytes());
                hash.update(&pin);
            }
            hex(hash)
        };
        let digest = digest_without(None);
        let named = starts.iter().flat_map(|started| &started.files).map(|file| &file.path).take(MOST_COMPARED);
        let digests_without = named.map(|path| (path.clone(), digest_without(Some(path)))).collect();
        Ok(Contents { directory, files, starts, variables, digest, old_digest, digests_without })
    }

    /// What these contents are, for one who trusted what has this digest.
    fn status(&self, trusted: Option<&str>) -> Status {
        match trusted {
            Some(digest) if digest == self.digest => Status::Trusted,
            Some(digest) if digest == self.old_digest => Status::Uncovered,
            Some(_) => Status::Changed,
            None => Status::Unknown,
        }
    }

    /// The file that was not there when these contents were trusted, if that is all that has changed since.
    fn new_file(&self, trusted: &str) -> Option<&Path> {
        self.digests_without.iter().find(|(_, digest)| digest == trusted).map(|(path, _)| path.as_path())
    }

    /// The directory, without links.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What would be started by its `mcp.json`, `agents.toml` and `hooks.toml`.
    pub fn starts(&self) -> &[Started] {
        &self.starts
    }

    /// The MCP servers of its `mcp.json` that are given variables of the user's environment, with the names of these.
    pub fn variables(&self) -> &[(String, Vec<String>)] {
        &self.variables
    }

    /// The MCP servers of its `mcp.json`, with the variables of this process in them: only for contents that are trusted.
    /// Files of the project that their commands name are the ones that are trusted, in whichever directory of it they
    /// are started.
    pub fn mcp_servers(&self) -> Result<Loaded, String> {
        let mut written = self.file("mcp.json").map_or(Ok(Written::default()), crate::mcp::parse)?;
        for server in &mut written.servers {
            if let McpServer::Stdio(server) = server {
                if server.command.contains('/') {
                    server.command = self.anchored(&server.command);
                }
                server.args = server.args.iter().map(|word| self.anchored(word)).collect();
            }
        }
        Ok(Loaded::new(written, crate::mcp::environment))
    }

    /// A word of a command with its file named from the top, if it names one of the project.
    pub fn anchored(&self, word: &str) -> String {
        starts::anchored(&self.directory, word)
    }

    /// The files with their names relative to the folder, sorted.
    pub fn files(&self) -> &[(String, Vec<u8>)] {
        &self.files
    }

    /// The bytes of a file, by its name relative to the folder: `permissions.toml`.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(other, _)| other == name).map(|(_, bytes)| bytes.as_slice())
    }
}

/// The MCP servers that are given variables, and which.
fn variables_of(files: &[(String, Vec<u8>)]) -> Vec<(String, Vec<String>)> {
    let file = files.iter().find(|(name, _)| name == "mcp.json");
    let servers = file.and_then(|(_, content)| crate::mcp::parse(content).ok()).unwrap_or_default().servers;
    let named = servers.iter().map(|server| (crate::mcp::name_of(server).to_owned(), crate::mcp::variables_of(server)));
    named.filter(|(_, names)| !names.is_empty()).collect()
}

struct Reading {
    files: NamedFiles,
    bytes: u64,
}

impl Reading {
    fn read_folder(&mut self, path: &Path, prefix: &str, depth: usize) -> Result<(), TrustError> {
        let failed = |error| TrustError::Io { path: path.to_path_buf(), error };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && depth == 0 => return Ok(()),
            Err(error) => return Err(failed(error)),
            Ok(metadata) if !metadata.is_dir() => return Err(TrustError::NotAFile(path.to_path_buf())),
            Ok(_) if depth > MAX_DEPTH => return Err(TrustError::TooLarge(path.to_path_buf())),
            Ok(_) => {}
        }
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|_| TrustError::Name(path.clone()))?;
            let name = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                self.read_folder(&path, &format!("{name}/"), depth + 1)?;
            } else if kind.is_file() {
                let bytes = self.read_file(&path)?;
                self.files.push((name, bytes));
                if self.files.len() > MAX_FILES {
                    return Err(TrustError::TooLarge(path));
                }
            } else {
                return Err(TrustError::NotAFile(path));
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<Vec<u8>, TrustError> {
        let failed = |error| TrustError::Io { path: path.to_path_buf(), error };
        let file = open(path).map_err(failed)?;
        // It may have become something else since the directory was read.
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(TrustError::NotAFile(path.to_path_buf()));
        }
        if crate::files::links(&file).map_err(failed)? > 1 {
            return Err(TrustError::HardLink(path.to_path_buf()));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES - self.bytes + 1).read_to_end(&mut bytes).map_err(failed)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES { Err(TrustError::TooLarge(path.to_path_buf())) } else { Ok(bytes) }
    }
}

/// Files by their names within the folder.
type NamedFiles = Vec<(String, Vec<u8>)>;

/// The directory, without links, and the files of its folder.
fn read_files(directory: &Path) -> Result<(PathBuf, NamedFiles), TrustError> {
    let directory =
        paths::canonicalize(directory).map_err(|error| TrustError::Io { path: directory.to_path_buf(), error })?;
    let mut reading = Reading { files: Vec::new(), bytes: 0 };
    reading.read_folder(&directory.join(FOLDER), "", 0)?;
    let mut files = reading.files;
    files.sort();
    Ok((directory, files))
}

/// Opens a file that is no link, without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    // A link is opened itself then, and is no file.
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::custom_flags(
        &mut options,
        windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OPEN_REPARSE_POINT,
    );
    options.open(path)
}

/// The list of trusted directories: a file of the user.
///
/// ```
/// use attache_host::trust::{Status, Trust};
///
/// let directory = tempfile::tempdir()?;
/// let project = directory.path().join("project");
/// std::fs::create_dir_all(project.join(".attache"))?;
/// std::fs::write(project.join(".attache/permissions.toml"), "")?;
///
/// let trust = Trust::new(directory.path().join("state/trust.toml"));
/// let (status, contents) = trust.check(&project)?;
/// assert_eq!(status, Status::Unknown);
/// trust.trust(&contents)?; // After the user has looked at them.
/// assert_eq!(trust.check(&project)?.0, Status::Trusted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Trust {
    path: PathBuf,
}

impl Trust {
    /// A list in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Trust { path: path.into() }
    }

    /// Whether a directory is trusted, with the contents that this is said of. Use these and read nothing again.
    pub fn check(&self, directory: &Path) -> Result<(Status, Contents), TrustError> {
        let contents = Contents::read(directory)?;
        if contents.files.is_empty() {
            return Ok((Status::NothingToTrust, contents));
        }
        Ok((contents.status(self.digest_of(&contents.directory)?.as_deref()), contents))
    }

    /// The same for whoever needs the contents only if they are trusted, as before every decision. What was never trusted may
    /// name large programs, and is not read that far.
    pub(crate) fn check_trusted(&self, directory: &Path) -> Result<(Status, Option<Contents>), TrustError> {
        let (directory, files) = read_files(directory)?;
        if files.is_empty() {
            return Ok((Status::NothingToTrust, None));
        }
        let Some(digest) = self.digest_of(&directory)? else { return Ok((Status::Unknown, None)) };
        let contents = Contents::of(directory, files)?;
        Ok((contents.status(Some(&digest)), Some(contents)))
    }

    /// What was trusted of a directory.
    fn digest_of(&self, directory: &Path) -> Result<Option<String>, TrustError> {
        let text = store::read(&self.path).map_err(|error| self.failed(error))?.unwrap_or_default();
        Ok(self.parse(&text)?.get(self.key(directory)?).and_then(Item::as_str).map(str::to_owned))
    }

    /// What a project brings along, if it is trusted; else, if it brings something, a sentence for its user.
    pub fn contents(&self, project: &Path) -> (Option<Contents>, Option<String>) {
        let why = match self.check_trusted(project) {
            Ok((Status::Trusted, contents)) => return (contents, None),
            Ok((Status::NothingToTrust, _)) => return (None, None),
            Ok((status @ (Status::Changed | Status::Uncovered), contents)) => {
                return (None, Some(self.changed(status, project, contents.as_ref())));
            }
            Ok((Status::Unknown, _)) => ", because it is not trusted",
            Err(error) => return (None, Some(format!("`{FOLDER}` here has no effect: {error}"))),
        };
        let hint = format!("hint: look at it, then type `attache trust {}`", project.display());
        (None, Some(format!("`{FOLDER}` here has no effect{why}\n{hint}")))
    }

    /// What the user is told of contents that are not what was trusted, as exactly as it can be told.
    fn changed(&self, status: Status, project: &Path, contents: Option<&Contents>) -> String {
        let trusted = contents.and_then(|contents| self.digest_of(&contents.directory).ok().flatten());
        let new = contents.zip(trusted.as_deref()).and_then(|(contents, trusted)| contents.new_file(trusted));
        let new = new.map(|file| crate::visible::one_line(&file.to_string_lossy()));
        let why = match (status, &new) {
            (Status::Uncovered, None) => {
                "it was trusted without the programs that it starts or the variables that it reads".to_owned()
            }
            (Status::Uncovered, Some(file)) => format!(
                "it was trusted without the programs that it starts or the variables that it reads: one of its commands \
                 names `{file}`, which was not there then, or which an earlier version did not cover"
            ),
            (_, Some(file)) => {
                format!("one of its commands names `{file}`, which was not there when it was trusted")
            }
            (_, None) => "it has changed since it was trusted, or a program that it starts has".to_owned(),
        };
        let written = match new {
            Some(_) => "\nhint: what a hook writes is not part of what is trusted where it stands behind a `>`",
            None => "",
        };
        let project = project.display();
        format!(
            "`{FOLDER}` here has no effect, because {why}\nhint: look at it, then type `attache trust {project}`{written}"
        )
    }

    /// Trusts contents that the user has seen. Should the directory have changed meanwhile, it is not trusted.
    pub fn trust(&self, contents: &Contents) -> Result<(), TrustError> {
        let key = self.key(&contents.directory)?;
        self.change(|list| _ = list.insert(key, value(&contents.digest)))
    }

    /// Trusts a directory no longer. One that is gone can be named, too.
    pub fn revoke(&self, directory: &Path) -> Result<(), TrustError> {
        let directory = paths::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
        let key = self.key(&directory)?;
        self.change(|list| _ = list.remove(key))
    }

    fn change(&self, change: impl FnOnce(&mut Table)) -> Result<(), TrustError> {
        store::change(&self.path, |text| {
            let mut list = self.parse(text).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            change(&mut list);
            let mut document = DocumentMut::new();
            document.insert("trusted", Item::Table(list));
            Ok(document.to_string())
        })
        .map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => TrustError::BadList(self.path.clone()),
            _ => self.failed(error),
        })
    }

    fn parse(&self, text: &str) -> Result<Table, TrustError> {
        let bad = || TrustError::BadList(self.path.clone());
        let mut document: DocumentMut = text.parse().map_err(|_| bad())?;
        match document.remove("trusted") {
            None if document.is_empty() => Ok(Table::new()),
            Some(Item::Table(list)) if document.is_empty() && list.iter().all(|(_, item)| item.is_str()) => Ok(list),
            _ => Err(bad()),
        }
    }

    fn key<'a>(&self, directory: &'a Path) -> Result<&'a str, TrustError> {
        directory.to_str().ok_or_else(|| TrustError::Name(directory.to_path_buf()))
    }

    fn failed(&self, error: io::Error) -> TrustError {
        TrustError::Io { path: self.path.clone(), error }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_trusted_is_not_read_further_than_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().join("project");
        let trust = Trust::new(directory.path().join("trust.toml"));
        let checked = || trust.check_trusted(&project);
        fs::create_dir_all(project.join(FOLDER)).unwrap();
        assert!(matches!(checked(), Ok((Status::NothingToTrust, None))));
        let write = |words: &str| {
            let server = format!(r#"{{"mcpServers": {{"a": {{"command": "sh", "args": [{words}]}}}}}}"#);
            fs::write(project.join(FOLDER).join("mcp.json"), server).unwrap();
        };
        fs::write(project.join("run.sh"), "exit 0").unwrap();
        write("\"run.sh\"");
        assert!(matches!(checked(), Ok((Status::Unknown, None))));
        trust.trust(&Contents::read(&project).unwrap()).unwrap();
        assert!(matches!(checked(), Ok((Status::Trusted, Some(_)))));
        fs::write(project.join("run.sh"), "exit 1").unwrap();
        assert!(matches!(checked(), Ok((Status::Changed, Some(_)))));
        // Its programs are read only for one who trusted it once, and are too many then.
        write(&vec!["\"run.sh\""; 2000].join(","));
        assert!(matches!(checked(), Err(TrustError::TooLarge(_))));
        assert!(matches!(trust.check(&project), Err(TrustError::TooLarge(_))));
        trust.revoke(&project).unwrap();
        assert!(matches!(checked(), Ok((Status::Unknown, None))));
        // A list that is none trusts nothing.
        fs::write(directory.path().join("trust.toml"), "= =").unwrap();
        assert!(matches!(checked(), Err(TrustError::BadList(_))));
    }
}
