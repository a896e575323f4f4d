//! Skills: folders with a Markdown file that says how to do a particular kind of work.
//!
//! `skills/NAME/SKILL.md` in the person's settings, or in `.attache` of a project that they trust. It begins with its
//! `name` and its `description`, which the model is told; the rest, and the files beside it, it opens when it needs them:
//!
//! ```text
//! ---
//! name: release
//! description: How to make a release of this project
//! ---
//! 1. Run `./check` …
//! ```

use std::path::{Path, PathBuf};

use attache::model::tool::ToolKind;
use attache_host::files::{EntryKind, Files, read_named};
use attache_host::paths::canonicalize;
use attache_host::permission::visible;
use attache_host::trust::Contents;
use serde_json::{Value, json};

use crate::model::ToolSpec;
use crate::tools::{Arguments, Outcome, Prepared, Refusal, excerpt, first_line};
use crate::workspace::blocking;

/// There are not more skills than this, and none is longer.
const MOST_SKILLS: usize = 50;
const MOST_BYTES: usize = 64 << 10;
/// How much the model is told of all of them, and of one.
const SUMMARY: usize = 2 << 10;
const DESCRIPTION: usize = 200;
/// How many files beside a skill are listed, how deep, and how long one may be.
const MOST_FILES: usize = 100;
const DEEPEST: usize = 4;
const LARGEST_FILE: usize = 256 << 10;

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    pub(crate) description: String,
    body: String,
    files: Beside,
}

/// The files beside a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Beside {
    /// In a folder of the person's own, looked at when they are wanted.
    Folder(PathBuf),
    /// As they were when they were trusted.
    Trusted(Vec<(String, Vec<u8>)>),
}

/// Opens a skill, or a file beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillWork {
    skill: Skill,
    file: Option<String>,
}

/// The skills of the person's settings and of a project that is trusted, and what is wrong with some. The person's own come
/// first where both have one of the same name.
pub(crate) fn read(directory: &Path, project: Option<&Contents>) -> (Vec<Skill>, Vec<String>) {
    let (mut skills, mut notices): (Vec<Skill>, Vec<String>) = (Vec::new(), Vec::new());
    for (folder, content, files, whose) in own(directory).into_iter().chain(trusted(project)) {
        match parse(&folder, &content, files) {
            Ok(skill) if skills.iter().any(|known| known.name == skill.name) => {}
            Ok(_) if skills.len() == MOST_SKILLS => {
                notices.push(format!("there are more than {MOST_SKILLS} skills; the others are left out"));
                break;
            }
            Ok(skill) => skills.push(skill),
            Err(what) => notices.push(format!("skill `{}` of {whose}: {what}", visible(&first_line(&folder, 80)))),
        }
    }
    (skills, notices)
}

type Found = (String, Vec<u8>, Beside, &'static str);

fn own(directory: &Path) -> Vec<Found> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(10 * MOST_SKILLS).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        // The person's own settings may be links to wherever they keep them.
        let content = read_named(&path.join(FILE), None, MOST_BYTES + 1).ok()?;
        Some((name, content, Beside::Folder(path), "your settings"))
    };
    paths.into_iter().filter_map(read).collect()
}

fn trusted(project: Option<&Contents>) -> Vec<Found> {
    let files = project.map(Contents::files).unwrap_or_default();
    let skill = |(path, content): &(String, Vec<u8>)| {
        let name =
            path.strip_prefix("skills/")?.strip_suffix(FILE)?.strip_suffix('/').filter(|name| !name.contains('/'))?;
        let folder = format!("skills/{name}/");
        let beside =
            files.iter().filter_map(|(path, content)| Some((path.strip_prefix(&folder)?.to_owned(), content.clone())));
        Some((name.to_owned(), content.clone(), Beside::Trusted(beside.collect()), "the project"))
    };
    files.iter().filter_map(skill).collect()
}

/// Reads a skill. Its name is the folder's where it says none.
fn parse(folder: &str, content: &[u8], files: Beside) -> Result<Skill, String> {
    if content.len() > MOST_BYTES {
        return Err(format!("`{FILE}` has more than {} KiB", MOST_BYTES >> 10));
    }
    let text = std::str::from_utf8(content).map_err(|_| format!("`{FILE}` is not UTF-8"))?;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let begins =
        text.strip_prefix("---\n").ok_or_else(|| format!("`{FILE}` does not begin with `---` and a `description`"))?;
    let (head, body) = begins.split_once("\n---").ok_or_else(|| format!("`{FILE}` has no second `---`"))?;
    let body = body.split_once('\n').map_or("", |(_, body)| body).trim();
    let name = value(head, "name").unwrap_or_else(|| folder.into());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.len() > 64 || !name.chars().all(is_name) || name.is_empty() {
        return Err("its name may have up to 64 letters, digits, `-` and `_`".into());
    }
    let description = value(head, "description").ok_or_else(|| format!("`{FILE}` says no `description`"))?;
    let description = visible(&first_line(&description, DESCRIPTION));
    Ok(Skill { name, description, body: body.into(), files })
}

/// What a key of the head says: on its line, quoted or not, or on the indented lines below it (`key: >-`).
fn value(head: &str, key: &str) -> Option<String> {
    let mut lines = head.lines();
    let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?.trim();
    let value = match line {
        "" | ">" | ">-" | ">+" | "|" | "|-" | "|+" => {
            let below = lines.take_while(|line| line.starts_with([' ', '\t']) || line.trim().is_empty());
            below.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        }
        line => {
            let quoted = ['"', '\''].iter().find_map(|quote| line.strip_prefix(*quote)?.strip_suffix(*quote));
            quoted.unwrap_or(line).to_owned()
        }
    };
    Some(value).filter(|value| !value.is_empty())
}

/// What the model is told of skills before it opens one. Empty where there are none.
pub(crate) fn summary(skills: &[Skill]) -> String {
    let mut text = String::new();
    for (number, skill) in skills.iter().enumerate() {
        let line = format!("- `{}`: {}\n", skill.name, skill.description);
        if text.len() + line.len() > SUMMARY {
            let names: Vec<&str> = skills[number..].iter().map(|skill| skill.name.as_str()).collect();
            let names = names.join(", ");
            text.push_str(&format!("- also: {}\n", &names[..names.floor_char_boundary(SUMMARY / 4)]));
            break;
        }
        text.push_str(&line);
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\nSkills, which say how to do particular work. Call `open_skill` before you do work that one is about:\n{text}"
    )
}

/// The tool, as the model is told of it where there are skills.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "open_skill".into(),
        description:
            "Opens a skill: gives its instructions and lists the files beside it. With `file`, gives that file.".into(),
        schema: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of the skill"},
                "file": {"type": "string", "description": "A file beside it, as it was listed"},
            },
            "required": ["name"],
        }),
    }
}

/// Looks at a call. `None`: it is for another tool.
pub(crate) fn prepare(skills: &[Skill], name: &str, arguments: &Value) -> Option<Result<Prepared<SkillWork>, Refusal>> {
    (name == "open_skill" && !skills.is_empty()).then(|| {
        let text = |key: &str| {
            let text = Arguments::new(arguments).optional_text(key)?.unwrap_or_default().trim().to_owned();
            Ok((!text.is_empty()).then_some(text))
        };
        let name = text("name")?.ok_or_else(|| Refusal("`name` is missing: the name of a skill".into()))?;
        let skill = skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
            let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
            Refusal(format!("there is no such skill\nhint: there are {}", names.join(", ")))
        })?;
        let file = text("file")?;
        let title = match &file {
            None => format!("Open the skill `{}`", skill.name),
            Some(file) => format!("Open `{}` of the skill `{}`", visible(&first_line(file, 80)), skill.name),
        };
        Ok(Prepared {
            title,
            kind: ToolKind::Read,
            locations: Vec::new(),
            content: Vec::new(),
            actions: Vec::new(),
            work: SkillWork { skill: skill.clone(), file },
        })
    })
}

/// Opens what was asked for.
pub(crate) async fn perform(work: SkillWork) -> Outcome {
    let mut raw = json!({ "skill": work.skill.name, "file": work.file.as_deref().map(|file| first_line(file, 200)) });
    let opened = blocking(move || match &work.file {
        None => Ok(open(&work.skill)),
        Some(file) => open_file(&work.skill, file),
    });
    match opened.await {
        Ok(Ok(text)) => {
            raw["lines"] = text.lines().count().into();
            Outcome { content: Some(vec![excerpt("", &text, 0)]), raw: Some(raw), ..Outcome::done(text) }
        }
        Ok(Err(why)) => Outcome::failed(why),
        Err(Refusal(why)) => Outcome::failed(why),
    }
}

fn open(skill: &Skill) -> String {
    let mut text = format!("Skill `{}`: {}\n\n{}\n", skill.name, skill.description, skill.body);
    let names = match &skill.files {
        Beside::Trusted(files) => files.iter().map(|(name, _)| name.clone()).collect(),
        Beside::Folder(folder) => listed(folder),
    };
    let names: Vec<String> = names.into_iter().filter(|name| name != FILE).take(MOST_FILES).collect();
    if !names.is_empty() {
        text.push_str("\nFiles beside it, to open with `file`:\n");
        text.extend(names.iter().map(|name| format!("- {}\n", visible(name))));
    }
    text
}

fn open_file(skill: &Skill, wanted: &str) -> Result<String, String> {
    let missing = || "the skill has no such file\nhint: open it without `file` to see which it has".to_owned();
    let bytes = match &skill.files {
        Beside::Trusted(files) => files.iter().find(|(name, _)| name == wanted).ok_or_else(missing)?.1.clone(),
        Beside::Folder(folder) => {
            // A link in the folder leads nowhere else.
            let files = canonicalize(folder).ok().and_then(|folder| Some((Files::open(&folder, &[]).ok()?, folder)));
            let (files, folder) = files.ok_or_else(missing)?;
            files.read_bytes(&folder.join(wanted), LARGEST_FILE).map_err(|_| missing())?
        }
    };
    if bytes.len() > LARGEST_FILE {
        return Err(format!("the file has more than {} KiB", LARGEST_FILE >> 10));
    }
    String::from_utf8(bytes).map_err(|_| "the file is not text in UTF-8".to_owned())
}

/// The files of a folder, from there, in order. Links are left out.
fn listed(folder: &Path) -> Vec<String> {
    let Some(folder) = canonicalize(folder).ok() else { return Vec::new() };
    let Ok(files) = Files::open(&folder, &[]) else { return Vec::new() };
    let mut names = Vec::new();
    let mut todo = vec![(folder.clone(), 0)];
    while let Some((directory, depth)) = todo.pop() {
        let Ok(listing) = files.list(&directory, 10 * MOST_FILES) else { continue };
        for entry in listing.entries {
            let path = directory.join(&entry.name);
            match entry.info.kind {
                EntryKind::Directory if depth < DEEPEST => todo.push((path, depth + 1)),
                EntryKind::File if names.len() < 10 * MOST_FILES => {
                    let name = path.strip_prefix(&folder).ok().and_then(Path::to_str);
                    names.extend(name.map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    names.sort();
    names
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn skill(folder: &str, text: &str) -> Result<Skill, String> {
        parse(folder, text.as_bytes(), Beside::Trusted(Vec::new()))
    }

    #[test]
    fn a_skill_is_read_and_mistakes_are_named() {
        let read = skill("x", "---\r\nname: 'release'\r\nother: 1\r\ndescription: \"How to\"\r\n---\r\n\r\nDo it.\r\n")
            .unwrap();
        assert_eq!(
            (read.name.as_str(), read.description.as_str(), read.body.as_str()),
            ("release", "How to", "Do it.")
        );
        assert_eq!(skill("folder", "---\ndescription: d\n---").unwrap().name, "folder");
        for folded in [
            "description: >-\n  How to\n  do it.\nname: x",
            "description:\n  How to\n\n  do it.",
            "description: |\n\tHow to do it.",
        ] {
            assert_eq!(skill("x", &format!("---\n{folded}\n---\n")).unwrap().description, "How to do it.", "{folded}");
        }
        for (text, named) in [
            ("Do it.", "does not begin with `---`"),
            ("---\ndescription: d\n", "no second `---`"),
            ("---\nname: x\n---\n", "no `description`"),
            ("---\nname: ../x\ndescription: d\n---\n", "its name"),
            (&format!("---\ndescription: d\n---\n{}", "x".repeat(MOST_BYTES)), "more than 64 KiB"),
        ] {
            let error = skill("x", text).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn what_the_model_is_told_of_all_skills_is_bounded() {
        assert_eq!(summary(&[]), "");
        let text = format!("---\ndescription: {}\n---\n", "long ".repeat(100));
        let skills: Vec<Skill> = (0..50).map(|number| skill(&format!("skill-{number}"), &text).unwrap()).collect();
        let told = summary(&skills);
        assert!(told.len() < SUMMARY + SUMMARY / 2, "{}", told.len());
        assert!(told.contains("`skill-0`: long") && told.contains("- also: skill-"), "{told}");
    }
}
