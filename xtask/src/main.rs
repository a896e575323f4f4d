//! What the project does with itself: releases (`cargo xtask dist`) and the table of platforms (`cargo xtask matrix`).

mod archive;
mod checksums;
mod compile;
mod dependencies;
mod dist;
mod licences;
mod matrix;
mod package;
mod project;
mod reproducible;
mod sbom;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use project::Project;
use target::Target;

/// Tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build what is released: archives for all platforms, packages, checksums.
    ///
    /// A platform that cannot be built on this machine is named, with the reason.
    Dist {
        /// Build for this platform only; can be repeated.
        #[arg(long = "target", value_name = "TRIPLE", value_parser = target::parse)]
        targets: Vec<&'static Target>,
        /// The directory for what is built [default: target/assets].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Build archives only, and make no packages of them.
        #[arg(long)]
        no_packages: bool,
        /// Build the commit twice, in different directories, and compare what comes out.
        #[arg(long, conflicts_with = "no_packages")]
        check_reproducible: bool,
    },
    /// Make packages and checksums of archives that `dist` has built.
    Package {
        /// The directory with the archives, and for the packages [default: target/assets].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Write docs/platforms.md from the records of what was run; or run a suite and record it.
    Matrix(matrix::Arguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Does a task. False is an answer: something was not built, or did not pass, and has been reported.
fn run(task: Task) -> Result<bool> {
    let project = Project::here()?;
    let assets = |out: Option<PathBuf>| out.unwrap_or_else(|| project.target_directory.join("assets"));
    match task {
        Task::Dist { targets, check_reproducible: true, .. } => reproducible::check(&project, &targets),
        Task::Dist { targets, out, no_packages, .. } => dist::dist(&project, &targets, &assets(out), !no_packages),
        Task::Package { out } => package::package(&project, &assets(out)).map(|()| true),
        Task::Matrix(arguments) => matrix::matrix(&project, arguments),
    }
}
