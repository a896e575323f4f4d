//! From the table of a policy to a list of mounts: what a namespace of one's own needs to show exactly that.
//!
//! Everything is prepared here, because the process that mounts may neither allocate nor look anything up.

use std::{
    ffi::CString,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::super::{
    Layer, Policy, SandboxError,
    view::{Access, Row, SHARED_MEMORY, Why, around},
};

/// More covers than this make no sense, and would take too long.
const MOST_MOUNTS: usize = 8192;

/// What to do, in this order: `trees` are taken, `overlays` are made, all that can be seen becomes read-only, `skeleton` is made on a new file
/// system in memory, `mounts` are made.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) trees: Vec<Tree>,
    pub(super) overlays: Vec<Overlay>,
    pub(super) is_root_writable: bool,
    pub(super) skeleton: Vec<Make>,
    pub(super) mounts: Vec<Mount>,
    /// Covers with nothing in them, mounted when all else is: so nothing can come to lie on top of them.
    pub(super) covers: Vec<Mount>,
    /// Where memory that is shared by name is.
    pub(super) shared_memory: Option<CString>,
}

/// A part of what can be seen, with what is mounted in it, to be mounted again.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) path: CString,
    pub(super) is_read_only: bool,
}

/// A file system that shows some directories through one another. What is written goes to `upper`.
#[derive(Debug)]
pub(super) struct Overlay {
    /// The uppermost first.
    pub(super) lower: Vec<CString>,
    pub(super) upper: CString,
    pub(super) work: CString,
}

/// Something to be made on the new file system. Paths are relative to its top.
#[derive(Debug)]
pub(super) enum Make {
    Directory(CString),
    File(CString),
    Link { path: CString, target: CString },
}

#[derive(Debug)]
pub(super) struct Mount {
    pub(super) what: What,
    pub(super) at: CString,
    /// It may have gone meanwhile, and then nothing has to be covered.
    pub(super) may_be_missing: bool,
}

#[derive(Debug)]
pub(super) enum What {
    /// One of the trees, on what it was taken from.
    Tree(usize),
    /// One of the trees, on what was made for it on the new file system, or on a layer.
    TreeElsewhere(usize),
    /// One of the overlays. Where it could not be made, what is shared stays, read-only.
    Overlay(usize),
    /// A path of the new file system.
    Made(CString),
}

/// A file that is there in every view of ours, by which a sandbox inside of another knows. Only root can make files there
/// otherwise.
pub(super) const SIGN: &str = "/run/.attache-sandbox";

/// What covers a directory, and a file: nobody may enter or open them.
pub(super) const EMPTY_DIRECTORY: &std::ffi::CStr = c"d";
pub(super) const EMPTY_FILE: &std::ffi::CStr = c"f";

/// Makes the plan for a table and the sockets that it leaves within reach.
pub(super) fn plan(rows: &[Row], sockets: &[PathBuf], policy: &Policy) -> Result<Plan, SandboxError> {
    let shared_memory = fs::canonicalize(SHARED_MEMORY).ok().filter(|path| path.is_dir());
    let mut plan = Plan {
        is_root_writable: rows.iter().any(|row| row.path == Path::new("/") && row.access == Access::Write),
        shared_memory: shared_memory.as_deref().and_then(|path| c_string(path).ok()),
        ..Plan::default()
    };
    let mut made = 0;
    for row in rows.iter().filter(|row| row.path.parent().is_some() && Some(&row.path) != shared_memory.as_ref()) {
        let nearest = around(rows, &row.path).next();
        let is_inside_of_hidden = nearest.is_some_and(|nearest| nearest.access == Access::Hidden);
        let is_on_layer = nearest.is_some_and(|nearest| nearest.why == Why::Layer);
        match row.access {
            _ if row.why == Why::Layer => plan.replace(row, policy)?,
            Access::Hidden if is_inside_of_hidden || row.path.symlink_metadata().is_err() => {}
            // Landlock alone hides the devices, unless something around them is writable.
            Access::Hidden if row.why == Why::Device && !is_in_writable(rows, row) => {}
            Access::Hidden => {
                let inside: Vec<&Row> = rows
                    .iter()
                    .filter(|inner| inner.access != Access::Hidden && inner.path != row.path)
                    .filter(|inner| inner.path.starts_with(&row.path) && inner.path.exists())
                    .collect();
                let has_sign = Path::new(SIGN).parent() == Some(&row.path);
                if inside.is_empty() && !has_sign {
                    plan.cover(&row.path, row.why != Why::Named)?;
                } else {
                    made += 1;
                    plan.cover_around(&row.path, &inside, made)?;
                }
            }
            // In a directory of devices that is not covered they are as they were.
            _ if row.why == Why::Device && !is_in_writable(rows, row) => {}
            Access::Read if row.why == Why::Named && nearest.is_none_or(|nearest| nearest.access == Access::Read) => {}
            Access::Read | Access::Write => plan.mount_again(row, is_inside_of_hidden || is_on_layer)?,
        }
    }
    for socket in sockets {
        plan.cover(socket, true)?;
    }
    let covers = std::mem::take(&mut plan.covers);
    plan.mounts.extend(covers);
    if plan.mounts.len() > MOST_MOUNTS { Err(SandboxError::TooManyPaths) } else { Ok(plan) }
}

fn is_in_writable(rows: &[Row], row: &Row) -> bool {
    around(rows, &row.path).any(|row| row.access == Access::Write)
}

impl Plan {
    /// Mounts a layer, or temporary files of one's own.
    fn replace(&mut self, row: &Row, policy: &Policy) -> Result<(), SandboxError> {
        let what = match (policy.layers.iter().find(|layer| layer.at == row.path), &policy.temporary) {
            (Some(layer), _) => {
                self.overlays.push(overlay(layer)?);
                What::Overlay(self.overlays.len() - 1)
            }
            (None, Some(own)) => {
                self.trees.push(Tree { path: c_string(own)?, is_read_only: false });
                What::TreeElsewhere(self.trees.len() - 1)
            }
            (None, None) => return Ok(()),
        };
        self.mounts.push(Mount { what, at: c_string(&row.path)?, may_be_missing: false });
        Ok(())
    }

    fn mount_again(&mut self, row: &Row, is_elsewhere: bool) -> Result<(), SandboxError> {
        let path = c_string(&row.path)?;
        self.trees.push(Tree { path: path.clone(), is_read_only: row.access == Access::Read });
        let may_be_missing = matches!(row.why, Why::Device | Why::Sockets | Why::Needed | Why::Shown);
        let tree = self.trees.len() - 1;
        let what = if is_elsewhere { What::TreeElsewhere(tree) } else { What::Tree(tree) };
        self.mounts.push(Mount { what, at: path, may_be_missing });
        Ok(())
    }

    fn cover(&mut self, path: &Path, may_be_missing: bool) -> Result<(), SandboxError> {
        let is_directory = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let what = if is_directory { EMPTY_DIRECTORY } else { EMPTY_FILE };
        self.covers.push(Mount { what: What::Made(what.into()), at: c_string(path)?, may_be_missing });
        Ok(())
    }

    /// Covers a directory in which something can be seen: the ways to that are made anew, and links.
    fn cover_around(&mut self, path: &Path, inside: &[&Row], number: usize) -> Result<(), SandboxError> {
        let top = PathBuf::from(number.to_string());
        self.make(&top, true)?;
        if let Some(name) = Path::new(SIGN).file_name().filter(|_| Path::new(SIGN).parent() == Some(path)) {
            self.make(&top.join(name), false)?;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            if let Ok(target) = fs::read_link(entry.path()) {
                let path = c_string(&top.join(entry.file_name()))?;
                self.skeleton.push(Make::Link { path, target: c_string(&target)? });
            }
        }
        for row in inside {
            let Ok(way) = row.path.strip_prefix(path) else { continue };
            let mut place = top.clone();
            let last = way.components().count();
            for (at, name) in way.components().enumerate() {
                place.push(name);
                self.make(&place, at + 1 < last || row.path.is_dir())?;
            }
        }
        self.mounts.push(Mount { what: What::Made(c_string(&top)?), at: c_string(path)?, may_be_missing: false });
        Ok(())
    }

    fn make(&mut self, path: &Path, is_directory: bool) -> Result<(), SandboxError> {
        let path = c_string(path)?;
        self.skeleton.push(if is_directory { Make::Directory(path) } else { Make::File(path) });
        Ok(())
    }
}

/// As many directories as are shown through one another.
const MOST_LOWER: usize = 8;

fn overlay(layer: &Layer) -> Result<Overlay, SandboxError> {
    let lower = layer.beneath.iter().take(MOST_LOWER - 1).chain([&layer.at]).map(|path| c_string(path));
    let part = |name| c_string(&layer.directory.join(name));
    Ok(Overlay { lower: lower.collect::<Result<_, _>>()?, upper: part("upper")?, work: part("work")? })
}

fn c_string(path: &Path) -> Result<CString, SandboxError> {
    let source = |_| std::io::ErrorKind::InvalidInput.into();
    let made = CString::new(path.as_os_str().as_bytes());
    made.map_err(|error| SandboxError::Path { path: path.to_owned(), source: source(error) })
}
