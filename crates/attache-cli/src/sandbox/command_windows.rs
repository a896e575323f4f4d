//! `attache sandbox run` where there is no sandbox.

use attache_host::sandbox::Sandbox;

use super::named;
use crate::cli::SandboxOptions;
use crate::exit::Failure;

/// Runs nothing: what is to be confined and cannot be does not run.
pub(super) async fn start(options: &SandboxOptions, _: &[String]) -> Result<i32, Failure> {
    let why = match Sandbox::new(&named(options)?.policy) {
        Err(error) => error.to_string(),
        Ok(_) => "it could not be started in its sandbox".to_owned(),
    };
    Err(Failure::usage(format!("cannot confine the command: {why}")))
}
