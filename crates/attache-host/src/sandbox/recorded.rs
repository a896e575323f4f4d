//! Whether a repository has recorded what is in a file. Whoever may read the repository reads it there.
//!
//! Commands may write to a repository. They cannot make it seem as if it had recorded something that they do not know:
//! git names everything by its digest.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use sha1::{Digest as _, Sha1};

/// Files that are longer count as not recorded.
const LONGEST: u64 = 1 << 20;
/// More packs are not looked at. Git makes one of them from 50 on.
const MOST_PACKS: usize = 256;
/// What the list of a pack begins with: a sign, and the version.
const HEADER: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// Where its names begin: after the header, and after how many there are up to each first byte.
const NAMES: u64 = 8 + 256 * 4;

/// The digest by which git names what is in a file.
type Id = [u8; 20];

/// What a repository has recorded.
pub(super) struct Recorded {
    objects: PathBuf,
    /// The lists of what is in packs.
    packs: Vec<fs::File>,
}

impl Recorded {
    /// Opens a repository, by its `.git`.
    pub(super) fn of(repository: &Path) -> Self {
        let objects = repository.join("objects");
        let entries = fs::read_dir(objects.join("pack")).into_iter().flatten().flatten();
        let lists = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "idx"));
        let packs = lists.take(MOST_PACKS).filter_map(|path| open(&path)).collect();
        Recorded { objects, packs }
    }

    /// Whether it has recorded what is in a file now.
    pub(super) fn has(&self, file: &Path) -> bool {
        id(file).is_some_and(|id| self.is_loose(&id) || self.packs.iter().any(|pack| is_in(pack, &id) == Some(true)))
    }

    fn is_loose(&self, id: &Id) -> bool {
        let name: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (directory, file) = name.split_at(2);
        fs::symlink_metadata(self.objects.join(directory).join(file)).is_ok_and(|found| found.is_file())
    }
}

fn id(file: &Path) -> Option<Id> {
    let mut content = Vec::new();
    let length = open(file)?.take(LONGEST + 1).read_to_end(&mut content).ok()?;
    let head = format!("blob {length}\0");
    (length as u64 <= LONGEST).then(|| Sha1::new().chain_update(head).chain_update(content).finalize().into())
}

/// Opens a plain file. Anything else that came in its place must not keep us waiting.
fn open(path: &Path) -> Option<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.read(true).open(path).ok()?;
    file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
}

/// Whether the list of a pack has a name. `None` if it is no such list.
fn is_in(mut pack: &fs::File, id: &Id) -> Option<bool> {
    let mut read = |at: u64, into: &mut [u8]| {
        pack.seek(SeekFrom::Start(at)).ok()?;
        pack.read_exact(into).ok()
    };
    let mut header = [0; 8];
    read(0, &mut header)?;
    if header != HEADER {
        return None;
    }
    let mut count_up_to = |first: u64| {
        let mut count = [0; 4];
        read(8 + first * 4, &mut count).map(|()| u64::from(u32::from_be_bytes(count)))
    };
    let first = u64::from(id[0]);
    let mut from = if first == 0 { 0 } else { count_up_to(first - 1)? };
    let mut to = count_up_to(first)?;
    while from < to {
        let middle = from + (to - from) / 2;
        let mut name: Id = [0; 20];
        read(NAMES + middle * 20, &mut name)?;
        match name.cmp(id) {
            std::cmp::Ordering::Less => from = middle + 1,
            std::cmp::Ordering::Equal => return Some(true),
            std::cmp::Ordering::Greater => to = middle,
        }
    }
    Some(false)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_is_recorded_is_known_by_its_content_loose_and_in_packs() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let git = |words: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(root);
            git.env_remove("GIT_DIR").output().is_ok_and(|output| output.status.success())
        };
        if !git(&["init", "--quiet", "--object-format=sha1"]) {
            eprintln!("git is not here");
            return;
        }
        let has = |name: &str| Recorded::of(&root.join(".git")).has(&root.join(name));
        for number in 0..300 {
            fs::write(root.join(format!("{number}.txt")), format!("text {number}")).unwrap();
        }
        fs::write(root.join(".env"), "KEY=1").unwrap();
        assert!(!has("0.txt") && !has(".env") && !has("missing"));
        assert!(git(&["add", "--", "*.txt"]) && git(&["commit", "--quiet", "-m", "all"]));
        assert!((0..300).all(|number| has(&format!("{number}.txt"))) && !has(".env"));
        assert!(git(&["repack", "-a", "-d", "--quiet"]) && git(&["prune-packed", "--quiet"]));
        let loose = Recorded { packs: Vec::new(), ..Recorded::of(&root.join(".git")) };
        assert!(!loose.has(&root.join("1.txt")));
        assert!((0..300).all(|number| has(&format!("{number}.txt"))) && !has(".env"));
        // What was changed since is not what is recorded, whatever the index says.
        fs::write(root.join("0.txt"), "text 0 and more").unwrap();
        assert!(!has("0.txt"));
        fs::write(root.join(".git/objects/pack/x.idx"), b"no list").unwrap();
        assert!(has("1.txt") && !has(".env"));
    }
}
