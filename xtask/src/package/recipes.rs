//! Installers and the recipes of package managers: templates in `packaging`, filled with version, address and checksums.

use std::fs;

use anyhow::{Context, Result, bail};

use super::Release;
use crate::project::Project;

/// A template, and what it is called when it is filled.
pub(crate) struct Recipe {
    pub(crate) template: &'static str,
    pub(crate) name: &'static str,
}

pub(crate) const RECIPES: &[Recipe] = &[
    Recipe { template: "packaging/install.sh", name: "install.sh" },
    Recipe { template: "packaging/install.ps1", name: "install.ps1" },
    Recipe { template: "packaging/homebrew/attache.rb", name: "attache.rb" },
    Recipe { template: "packaging/scoop/attache.json", name: "attache.json" },
    Recipe { template: "packaging/nix/attache.nix", name: "attache.nix" },
];

/// A filled template; or the platform whose archive it names and which is not there.
pub(crate) fn fill(project: &Project, release: &Release, recipe: &Recipe) -> Result<Result<String, String>> {
    let path = project.root.join(recipe.template);
    let template = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    fill_text(release, &template).with_context(|| format!("cannot fill `{}`", recipe.template))
}

/// Puts values where names stand between `@`: `@VERSION@`, `@REPOSITORY@`, and `@SHA256:triple@` for the archive of a platform.
fn fill_text(release: &Release, template: &str) -> Result<Result<String, String>> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('@') {
        text.push_str(before);
        // In PHP, Ruby, JSON and mail addresses it stands alone.
        let Some((name, behind)) = after.split_once('@').filter(|(name, _)| is_name(name)) else {
            text.push('@');
            rest = after;
            continue;
        };
        match name.split_once(':') {
            None if name == "VERSION" => text.push_str(&release.version),
            None if name == "REPOSITORY" => text.push_str(&release.repository),
            Some(("SHA256", triple)) => match release.archives.iter().find(|archive| archive.target.triple == triple) {
                Some(archive) => text.push_str(&archive.sha256),
                None => return Ok(Err(triple.to_owned())),
            },
            _ => bail!("nothing is called `@{name}@`"),
        }
        rest = behind;
    }
    text.push_str(rest);
    Ok(Ok(text))
}

fn is_name(text: &str) -> bool {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let is_triple = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte));
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) && is_triple(text)
}
