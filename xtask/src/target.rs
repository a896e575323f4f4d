//! The platforms that are released, and what each of them is called elsewhere: one table.

use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    MacOs,
    Windows,
}

/// A platform that is released.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) triple: &'static str,
    pub(crate) system: System,
    /// `os` and `cpu` of a package for npm.
    pub(crate) npm: (&'static str, &'static str),
    /// The tags of a wheel. The Linux binaries are static, so they say the oldest systems that there are tags for.
    pub(crate) wheel: &'static str,
    /// The architecture of a Debian package.
    pub(crate) debian: Option<&'static str>,
}

pub(crate) const TARGETS: [Target; 5] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        system: System::Linux,
        npm: ("linux", "x64"),
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        debian: Some("amd64"),
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        system: System::Linux,
        npm: ("linux", "arm64"),
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        debian: Some("arm64"),
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        system: System::Windows,
        npm: ("win32", "x64"),
        wheel: "win_amd64",
        debian: None,
    },
    // What Rust 1.95 itself needs of macOS.
    Target {
        triple: "x86_64-apple-darwin",
        system: System::MacOs,
        npm: ("darwin", "x64"),
        wheel: "macosx_10_12_x86_64",
        debian: None,
    },
    Target {
        triple: "aarch64-apple-darwin",
        system: System::MacOs,
        npm: ("darwin", "arm64"),
        wheel: "macosx_11_0_arm64",
        debian: None,
    },
];

/// How a platform is built on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builder {
    Cargo,
    /// With Zig's C compiler and linker. They are the same on every machine, and the libc that they bring is musl with an allocator of
    /// Zig's: musl's own needs five times its CPU, and twice that of glibc, so that it would take a dependency to replace it.
    Zigbuild,
}

/// A platform by its name, for the command line.
pub(crate) fn parse(triple: &str) -> Result<&'static Target, String> {
    TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| {
        let known = TARGETS.map(|target| target.triple);
        format!("expected {}", known.join(", "))
    })
}

impl Target {
    /// The name of the archive without its ending.
    pub(crate) fn archive_stem(&self, version: &str) -> String {
        format!("attache-{version}-{}", self.triple)
    }

    pub(crate) fn archive_name(&self, version: &str) -> String {
        let ending = if self.system == System::Windows { "zip" } else { "tar.gz" };
        format!("{}.{ending}", self.archive_stem(version))
    }

    /// The directory that all in the archive is in. It has no version: entries of registries name the program in it, and are not written
    /// anew for each release.
    pub(crate) fn archive_directory(&self) -> String {
        format!("attache-{}", self.triple)
    }

    pub(crate) fn program_name(&self) -> &'static str {
        if self.system == System::Windows { "attache.exe" } else { "attache" }
    }

    /// How to build it here, or why that cannot be done.
    pub(crate) fn builder(&self) -> Result<Builder, String> {
        if !has_standard_library(self.triple) {
            return Err(format!("no standard library; run `rustup target add {}`", self.triple));
        }
        match self.system {
            System::Linux if !is_installed("cargo-zigbuild") => {
                Err("needs cargo-zigbuild; run `pip install cargo-zigbuild ziglang`".to_owned())
            }
            System::Linux => Ok(Builder::Zigbuild),
            System::Windows if !is_installed("x86_64-w64-mingw32-gcc") => {
                Err("needs x86_64-w64-mingw32-gcc; Debian's package is gcc-mingw-w64-x86-64".to_owned())
            }
            System::Windows => Ok(Builder::Cargo),
            System::MacOs if !cfg!(target_os = "macos") => {
                Err("needs Apple's SDK; run the same command on a Mac".to_owned())
            }
            System::MacOs => Ok(Builder::Cargo),
        }
    }

    /// Whether this machine runs programs of it.
    pub(crate) fn runs_here(&self) -> bool {
        let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
        let own = match self.system {
            System::Linux => "linux",
            System::MacOs => "macos",
            System::Windows => "windows",
        };
        system == own && self.triple.starts_with(architecture)
    }
}

fn has_standard_library(triple: &str) -> bool {
    let found = Command::new("rustc").args(["--print", "target-libdir", "--target", triple]).output();
    found.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_dir())
}

fn is_installed(program: &str) -> bool {
    let run =
        Command::new(program).arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}
