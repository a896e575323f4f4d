//! What is made is private, and stays what it was if it was there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{Read as _, Write as _},
    path::PathBuf,
};

use super::*;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("attache-private-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_made_is_private() {
    let scratch = Scratch::new("made");
    let directory = scratch.0.join("a").join("b");
    create_directory(&directory).unwrap();
    create_directory(&directory).unwrap();
    assert!(is_private(&directory).unwrap() && is_private(&scratch.0.join("a")).unwrap());
    let made = [create_new, create, append, read_and_append, open_or_create];
    for (index, make) in made.into_iter().enumerate() {
        let path = directory.join(index.to_string());
        make(&path).unwrap().write_all(b"text").unwrap();
        assert!(is_private(&path).unwrap(), "{index}");
        assert_eq!(fs::read(&path).unwrap(), b"text");
    }
}

#[test]
fn files_are_opened_as_their_names_say() {
    let scratch = Scratch::new("opened");
    let path = scratch.0.join("file");
    fs::write(&path, "one").unwrap();
    assert_eq!(create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let mut text = String::new();
    let mut file = read_and_append(&path).unwrap();
    file.write_all(b" two").unwrap();
    open_or_create(&path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two");
    drop(create(&path).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(create_new(&scratch.0.join("no").join("file")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn what_others_may_read_can_be_taken_from_them() {
    let scratch = Scratch::new("taken");
    let path = scratch.0.join("file");
    fs::write(&path, "text").unwrap();
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    #[cfg(unix)]
    assert!(!is_private(&path).unwrap());
    protect(&path).unwrap();
    assert!(is_private(&path).unwrap(), "the file");
    protect(&scratch.0).unwrap();
    assert!(is_private(&scratch.0).unwrap(), "the directory");
    assert_eq!(fs::read(&path).unwrap(), b"text");
}
