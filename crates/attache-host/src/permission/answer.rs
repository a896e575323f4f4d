//! Which of the agent's own choices an answer is.

use std::collections::BTreeMap;

use attache::model::permission::{PermissionOption, PermissionOptionKind, PermissionOutcome};

use super::engine::Scope;

/// The agent offers no choice that says as much as the user does and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent offers no way to allow this only once\nhint: allow it always, or refuse it")]
pub struct NoSuchChoice;

/// The choice that allows: this once. What is for longer is remembered here, as rules that say what they cover and can be
/// taken back; what an agent would make of "always" only the agent knows. So that is said only where the agent offers nothing
/// less and the user said so.
///
/// ```
/// use attache::model::permission::{PermissionOption, PermissionOptionKind, PermissionOutcome};
/// use attache_host::permission::{Scope, allow, reject};
///
/// let options = [
///     PermissionOption::new("yes", "Allow", PermissionOptionKind::AllowOnce),
///     PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
/// ];
/// assert_eq!(allow(&options, Scope::Always)?, PermissionOutcome::selected("yes"));
/// assert_eq!(reject(&options), PermissionOutcome::selected("no"));
/// # Ok::<(), attache_host::permission::NoSuchChoice>(())
/// ```
pub fn allow(options: &[PermissionOption], scope: Scope) -> Result<PermissionOutcome, NoSuchChoice> {
    let kinds: &[PermissionOptionKind] = match scope {
        Scope::Once | Scope::Session => &[PermissionOptionKind::AllowOnce],
        Scope::Project | Scope::Always => &[PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways],
    };
    select(options, kinds).ok_or(NoSuchChoice)
}

/// The choice that refuses, or `cancelled` if the agent offers none.
pub fn reject(options: &[PermissionOption]) -> PermissionOutcome {
    select(options, &[PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways])
        .unwrap_or_else(PermissionOutcome::cancelled)
}

/// The choices that can be given as an answer, in their order: an id that stands for two could be taken for the other.
pub fn answerable(options: &[PermissionOption]) -> impl Iterator<Item = &PermissionOption> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for option in options {
        *counts.entry(option.option_id.as_str()).or_default() += 1;
    }
    options.iter().filter(move |option| counts.get(option.option_id.as_str()) == Some(&1))
}

/// The first choice of the first of these kinds.
fn select(options: &[PermissionOption], kinds: &[PermissionOptionKind]) -> Option<PermissionOutcome> {
    let options: Vec<&PermissionOption> = answerable(options).collect();
    let option = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))?;
    Some(PermissionOutcome::selected(option.option_id.clone()))
}
