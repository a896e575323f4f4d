//! `attache trace view`: a recording as a page.

use std::path::PathBuf;

use super::options::View;
use crate::check::read;
use crate::exit::Failure;
use crate::paths;

/// Writes the page of a recording and opens it.
pub(super) async fn run(options: &View) -> Result<(), Failure> {
    let record = read(&options.file)?;
    if options.text {
        return crate::print(&attache_check::view::text(&record));
    }
    let name = options.file.file_name().map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned());
    let page = attache_check::view::page(&name, &record);
    let path = options.output.clone().map_or_else(|| new_page(&name), Ok)?;
    let written = paths::write_private(&path, page.as_bytes());
    written.map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
    if options.output.is_some() || options.no_open {
        return crate::print(&format!("{}\n", path.display()));
    }
    if let Err(error) = crate::client::browser::open_file(&path) {
        eprintln!("cannot open a browser: {error}");
    }
    eprintln!("the page is `{}`", path.display());
    Ok(())
}

/// A page that only its owner can read: conversations are private. It takes the place of an earlier one of the same file.
fn new_page(name: &str) -> Result<PathBuf, Failure> {
    let plain: String =
        name.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).take(100).collect();
    Ok(paths::state()?.join("pages").join(format!("{plain}.html")))
}
