//! Systems that we know no sandbox for.

use std::{convert::Infallible, sync::Arc};

use attache::process::Command;

use super::{Policy, ProjectLayers, SandboxError, Support, view::Row};

/// There is none.
pub(super) struct Confinement(Infallible);

impl Confinement {
    pub(super) fn new(_: Support, _: &[Row], _: &Policy) -> Result<Self, SandboxError> {
        Err(SandboxError::OtherSystem)
    }

    pub(super) fn apply(&self) -> std::io::Result<()> {
        match self.0 {}
    }
}

pub(super) fn check() -> Result<Support, SandboxError> {
    Err(SandboxError::OtherSystem)
}

pub(super) fn why_no_namespaces() -> Option<String> {
    None
}

pub(super) fn can_overlay(_: &ProjectLayers) -> bool {
    false
}

pub(super) fn is_inside_of_another() -> bool {
    false
}

pub(super) fn confine(_: Command, confinement: Arc<Confinement>) -> Command {
    match confinement.0 {}
}
