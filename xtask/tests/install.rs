//! `install.sh`, with releases in directories and on a loopback server: what it installs, and what it refuses to.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

const ARCHIVE: &str = "attache-1.2.3-x86_64-unknown-linux-musl.tar.gz";

/// What the script uses besides a way to download.
const TOOLS: [&str; 16] = [
    "sh",
    "awk",
    "cat",
    "chmod",
    "cp",
    "cut",
    "grep",
    "gzip",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "sha256sum",
    "shasum",
    "openssl",
    "tar",
];

/// A machine with a release: the home directory, the tools that are there, and the files of version 1.2.3.
struct Machine {
    directory: TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { directory: tempfile::tempdir().unwrap() };
        for name in ["home", "bin", "release"] {
            fs::create_dir(machine.path(name)).unwrap();
        }
        for tool in TOOLS {
            machine.has(tool);
        }
        machine.is("Linux", "x86_64");
        machine.releases("#!/bin/sh\necho attache 1.2.3\n");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn installed(&self) -> PathBuf {
        self.path("home/.local/bin/attache")
    }

    /// Puts a tool of this machine on its path. False if there is none.
    fn has(&self, tool: &str) -> bool {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|directory| directory.join(tool)).find(|path| path.exists());
        found.is_some_and(|found| symlink(found, self.path("bin").join(tool)).is_ok())
    }

    /// Puts a script on its path.
    fn script(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        let _ = fs::remove_file(&path);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn is(&self, system: &str, machine: &str) {
        self.script("uname", &format!("#!/bin/sh\n[ \"$1\" = -s ] && echo {system} || echo {machine}\n"));
    }

    /// Releases a program.
    fn releases(&self, program: &str) {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o755);
        header.set_size(program.len() as u64);
        let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        let path = format!("{}/attache", ARCHIVE.strip_suffix(".tar.gz").unwrap().replace("-1.2.3", ""));
        builder.append_data(&mut header, path, program.as_bytes()).unwrap();
        let bytes = builder.into_inner().unwrap().finish().unwrap();
        let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(self.path("release").join(ARCHIVE), bytes).unwrap();
        fs::write(self.path("release/SHA256SUMS"), format!("{}  other.tar.gz\n{sum}  {ARCHIVE}\n", "0".repeat(64)))
            .unwrap();
    }

    /// Runs the installer.
    fn install(&self, arguments: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("packaging/install.sh");
        let mut command = Command::new(self.path("bin/sh"));
        command.arg(script).args(arguments).env_clear().stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("PATH", self.path("bin")).env("TMPDIR", self.directory.path());
        command.output().unwrap()
    }

    fn install_from(&self, from: &str) -> Output {
        self.install(&["--version", "1.2.3", "--from", from])
    }

    fn release(&self) -> String {
        self.path("release").to_str().unwrap().to_owned()
    }

    /// Checks that the installer refused, said why, and left nothing behind.
    fn refused(&self, output: &Output, words: &str) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("error: {words}")), "expected `{words}` in:\n{said}");
        assert!(!self.installed().exists(), "something was installed");
        self.is_clean();
    }

    /// Checks that nothing temporary is left.
    fn is_clean(&self) {
        let names = |path: &Path| -> Vec<String> {
            let entries = fs::read_dir(path).into_iter().flatten();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mut left = names(self.directory.path());
        left.retain(|name| !["home", "bin", "release"].contains(&name.as_str()));
        let mut beside = names(&self.path("home/.local/bin"));
        beside.retain(|name| name != "attache");
        assert!(left.is_empty() && beside.is_empty(), "left behind: {left:?} {beside:?}");
    }
}

/// What a server does with the archive.
#[derive(Clone, Copy, PartialEq)]
enum Serves {
    Whole,
    /// The connection ends in the middle.
    Half,
}

/// Serves a directory on loopback until the process ends, and says at which address.
fn serve(directory: PathBuf, how: Serves) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = answer(stream.unwrap(), &directory, how);
        }
    });
    format!("http://{address}/here")
}

fn answer(mut stream: TcpStream, directory: &Path, how: Serves) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let name = request.split(' ').nth(1).and_then(|path| path.strip_prefix("/here/")).unwrap_or("none");
    let Ok(bytes) = fs::read(directory.join(name)) else {
        return stream.write_all(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    };
    write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len())?;
    let length = if how == Serves::Half && name == ARCHIVE { bytes.len() / 2 } else { bytes.len() };
    stream.write_all(&bytes[..length])
}

#[test]
fn a_release_is_installed_from_a_directory() {
    let machine = Machine::new();
    let output = machine.install_from(&machine.release());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Installed attache 1.2.3") && said.contains("is not in PATH"), "{said}");
    let run = Command::new(machine.installed()).output().unwrap();
    assert_eq!(run.stdout, b"attache 1.2.3\n");
    machine.is_clean();
    // Once more, over what is there, and elsewhere.
    assert!(machine.install_from(&machine.release()).status.success());
    let other = machine.path("home/bin of mine");
    let release = machine.release();
    let to = format!("--to={}", other.display());
    assert!(machine.install(&["--version=v1.2.3", &to, "--from", &release]).status.success());
    assert!(other.join("attache").exists());
}

#[test]
fn a_release_is_installed_with_curl_and_with_wget() {
    let mut tried = 0;
    for tool in ["curl", "wget"] {
        let machine = Machine::new();
        if !machine.has(tool) {
            continue;
        }
        tried += 1;
        let output = machine.install_from(&serve(machine.path("release"), Serves::Whole));
        assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(machine.installed().exists());
        machine.is_clean();
    }
    assert!(tried > 0, "neither curl nor wget is installed");
}

#[test]
fn without_curl_and_wget_nothing_is_downloaded() {
    let machine = Machine::new();
    machine.refused(&machine.install_from("http://127.0.0.1:9/here"), "neither curl nor wget is installed");
}

#[test]
fn a_wrong_checksum_installs_nothing() {
    let machine = Machine::new();
    let archive = machine.path("release").join(ARCHIVE);
    let mut bytes = fs::read(&archive).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&archive, bytes).unwrap();
    machine.refused(&machine.install_from(&machine.release()), "wrong checksum of attache-1.2.3");
}

#[test]
fn without_a_way_to_verify_nothing_is_installed() {
    let machine = Machine::new();
    for tool in ["sha256sum", "shasum", "openssl"] {
        let _ = fs::remove_file(machine.path("bin").join(tool));
    }
    machine.refused(&machine.install_from(&machine.release()), "none of sha256sum, shasum and openssl is installed");
}

#[test]
fn an_archive_that_is_not_listed_or_not_there_installs_nothing() {
    let machine = Machine::new();
    fs::write(machine.path("release/SHA256SUMS"), format!("{}  other.tar.gz\n", "0".repeat(64))).unwrap();
    machine.refused(&machine.install_from(&machine.release()), "SHA256SUMS does not list attache-1.2.3");
    machine.releases("#!/bin/sh\n");
    fs::remove_file(machine.path("release").join(ARCHIVE)).unwrap();
    machine.refused(&machine.install_from(&machine.release()), "no `attache-1.2.3");
    for tool in ["curl", "wget"] {
        let machine = Machine::new();
        if machine.has(tool) {
            fs::remove_file(machine.path("release").join(ARCHIVE)).unwrap();
            let output = machine.install_from(&serve(machine.path("release"), Serves::Whole));
            machine.refused(&output, "cannot download http://127.0.0.1");
        }
    }
}

#[test]
fn an_interrupted_download_installs_nothing() {
    for tool in ["curl", "wget"] {
        let machine = Machine::new();
        if machine.has(tool) {
            let output = machine.install_from(&serve(machine.path("release"), Serves::Half));
            machine.refused(&output, "cannot download http://127.0.0.1");
        }
    }
}

#[test]
fn an_unsupported_platform_is_named() {
    let machine = Machine::new();
    for (system, processor) in [("Linux", "riscv64"), ("FreeBSD", "amd64"), ("Linux", "i686")] {
        machine.is(system, processor);
        let words = format!("there is no program for {system} on {processor}");
        machine.refused(&machine.install_from(&machine.release()), &words);
    }
}

#[test]
fn each_platform_gets_its_own_archive() {
    let machine = Machine::new();
    let asks_for = |triple: &str| {
        let words = format!("SHA256SUMS does not list attache-1.2.3-{triple}.tar.gz");
        machine.refused(&machine.install_from(&machine.release()), &words);
    };
    for (system, processor, triple) in [
        ("Linux", "aarch64", "aarch64-unknown-linux-musl"),
        ("Darwin", "arm64", "aarch64-apple-darwin"),
        ("Darwin", "x86_64", "x86_64-apple-darwin"),
    ] {
        machine.is(system, processor);
        asks_for(triple);
    }
    // A translated shell on Apple silicon.
    machine.script("sysctl", "#!/bin/sh\necho 1\n");
    asks_for("aarch64-apple-darwin");
}

#[test]
fn a_destination_that_cannot_be_written_is_named() {
    let machine = Machine::new();
    // Root writes everywhere but beneath a file.
    let file = machine.path("home/file");
    fs::write(&file, "").unwrap();
    let release = machine.release();
    let to = file.join("bin");
    let output = machine.install(&["--version", "1.2.3", "--from", &release, "--to", to.to_str().unwrap()]);
    machine.refused(&output, &format!("cannot create {}", to.display()));
    // A directory in the program's place is not filled, either.
    let taken = machine.path("home/taken");
    fs::create_dir_all(taken.join("attache")).unwrap();
    let output = machine.install(&["--version", "1.2.3", "--from", &release, "--to", taken.to_str().unwrap()]);
    machine.refused(&output, &format!("{}/attache is a directory", taken.display()));
    assert_eq!(fs::read_dir(taken.join("attache")).unwrap().count(), 0);
}

#[test]
fn a_program_that_does_not_run_does_not_replace_one_that_does() {
    let machine = Machine::new();
    assert!(machine.install_from(&machine.release()).status.success());
    machine.releases("#!/bin/sh\nexit 1\n");
    let output = machine.install_from(&machine.release());
    assert_eq!(output.status.code(), Some(1));
    assert!(fs::read_to_string(machine.installed()).unwrap().contains("echo attache 1.2.3"));
    machine.is_clean();
}

#[test]
fn mistakes_on_the_command_line_are_named() {
    let machine = Machine::new();
    let release = machine.release();
    machine.refused(&machine.install(&["--verison", "1"]), "unknown argument `--verison`");
    machine.refused(&machine.install(&["--to"]), "missing value for --to");
    machine.refused(&machine.install(&["--to="]), "missing value for --to");
    machine.refused(&machine.install(&["--version", "../x", "--from", &release]), "invalid version `../x`");
    // The script of the repository is a template.
    machine.refused(&machine.install(&["--from", &release]), "this copy of the script knows no version");
    machine
        .refused(&machine.install(&["--version", "1.2.3"]), "this copy of the script does not know where releases are");
}
