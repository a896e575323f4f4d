//! Registries: lists of agents, with how to get them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::catalog;
use super::config::{Entry, is_name, is_variable};
use crate::connect::here;
use crate::exit::{Code, Failure};
use crate::visible::{one_line, visible};
use crate::{fetch, paths};

/// The public registry has some hundred kilobytes.
const MAX_SIZE: u64 = 8 * 1024 * 1024;

/// The copy of a registry that `agents refresh` keeps.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Where it came from: a path or a URL.
    from: String,
    /// When.
    time: String,
    registry: Box<RawValue>,
}

impl Kept {
    fn path() -> Result<PathBuf, Failure> {
        Ok(paths::state()?.join("registry.json"))
    }

    fn read() -> Result<Self, Failure> {
        let hint = "hint: `attache agents refresh FILE|URL` fetches one and keeps it";
        let content = fs::read(Kept::path()?).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::new(Code::NotFound, format!("no copy of a registry is kept\n{hint}")),
            _ => Failure::usage(format!("cannot read the copy of the registry: {error}\n{hint}")),
        })?;
        serde_json::from_slice(&content)
            .map_err(|_| Failure::usage(format!("the copy of the registry is damaged\n{hint}")))
    }
}

fn cannot(place: &str, what: &str) -> Failure {
    Failure::usage(format!("cannot read the registry `{}`: {}", visible(place), visible(what)))
}

/// A place that means the same wherever it is read from next time.
fn whole_place(place: &str) -> Result<String, Failure> {
    if place.contains("://") {
        return Ok(place.into());
    }
    let path = here()?.join(place).into_os_string();
    path.into_string().map_err(|_| cannot(place, "its path is not UTF-8"))
}

/// What a registry lists.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) agents: Vec<Listed>,
    /// How many entries were not understood.
    pub(crate) skipped: usize,
}

/// An agent as a registry lists it. All texts are someone else's.
#[derive(Debug, Deserialize)]
pub(crate) struct Listed {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) distribution: Distribution,
}

/// The ways to get an agent.
#[derive(Debug, Deserialize)]
pub(crate) struct Distribution {
    pub(crate) npx: Option<Package>,
    pub(crate) uvx: Option<Package>,
    #[serde(default)]
    pub(crate) binary: BTreeMap<String, Binary>,
}

/// A package that a package runner fetches and starts.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    package: String,
    /// Its program, where it has several.
    cmd: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// An archive that has to be unpacked.
#[derive(Debug, Deserialize)]
pub(crate) struct Binary {
    archive: String,
    cmd: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl Registry {
    /// Reads a registry from a file or a URL; without a place, the copy that is kept.
    pub(crate) async fn read(place: &str) -> Result<Registry, Failure> {
        if place.is_empty() {
            let kept = Kept::read()?;
            eprintln!(
                "note: as fetched from {} on {}",
                visible(&kept.from),
                visible(kept.time.get(..10).unwrap_or_default())
            );
            return Registry::parse(kept.registry.get().as_bytes()).map_err(Failure::usage);
        }
        let bytes = Registry::bytes(place).await?;
        Registry::parse(&bytes).map_err(|what| cannot(place, &what))
    }

    /// Reads a registry and keeps a copy of it: from a place, or from where the copy came from. Returns it with the place.
    pub(crate) async fn refresh(place: Option<&str>) -> Result<(Registry, String), Failure> {
        let from = match place {
            Some(place) => whole_place(place)?,
            None => Kept::read()?.from,
        };
        let bytes = Registry::bytes(&from).await?;
        let registry = Registry::parse(&bytes).map_err(|what| cannot(&from, &what))?;
        let raw = String::from_utf8(bytes).ok().and_then(|text| RawValue::from_string(text).ok());
        let raw = raw.ok_or_else(|| cannot(&from, "it is no JSON"))?;
        let kept = Kept { from: from.clone(), time: attache::trace::rfc3339(SystemTime::now()), registry: raw };
        let path = Kept::path()?;
        let text = serde_json::to_vec(&kept).map_err(|error| cannot(&from, &error.to_string()))?;
        paths::write_private(&path, &text)
            .map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
        Ok((registry, from))
    }

    async fn bytes(place: &str) -> Result<Vec<u8>, Failure> {
        let bytes = match place.contains("://") {
            true => fetch::document(place, MAX_SIZE).await.map_err(|what| cannot(place, &what))?,
            false => {
                let mut bytes = Vec::new();
                let file = File::open(place).map_err(|error| cannot(place, &error.to_string()))?;
                file.take(MAX_SIZE + 1).read_to_end(&mut bytes).map_err(|error| cannot(place, &error.to_string()))?;
                bytes
            }
        };
        match bytes.len() as u64 > MAX_SIZE {
            true => Err(cannot(place, "it is longer than 8 MiB")),
            false => Ok(bytes),
        }
    }

    /// An entry that is not understood is left out: the others are no worse for it.
    fn parse(bytes: &[u8]) -> Result<Registry, String> {
        #[derive(Deserialize)]
        struct Wire {
            agents: Vec<serde_json::Value>,
        }
        let wire: Wire = serde_json::from_slice(bytes).map_err(|error| format!("it is no registry: {error}"))?;
        let all = wire.agents.len();
        let agents: Vec<Listed> = wire
            .agents
            .into_iter()
            .filter_map(|agent| serde_json::from_value(agent).ok())
            .filter(Listed::is_sound)
            .collect();
        Ok(Registry { skipped: all - agents.len(), agents })
    }

    pub(crate) fn find(&self, id: &str) -> Result<&Listed, Failure> {
        self.agents.iter().find(|agent| agent.id == id).ok_or_else(|| {
            let near = catalog::suggestions(id, self.agents.iter().map(|agent| agent.id.as_str()));
            let hint = match near.is_empty() {
                true => "`attache agents list --registry …` has all of them".into(),
                false => format!("did you mean `{}`?", near.join("`, `")),
            };
            Failure::new(Code::NotFound, format!("no agent `{}` in the registry\nhint: {hint}", visible(id)))
        })
    }
}

impl Listed {
    /// Whether its id can be a name here, and nothing in it passes for an option of the package runner.
    fn is_sound(&self) -> bool {
        let packages = [&self.distribution.npx, &self.distribution.uvx].into_iter().flatten();
        let option = |word: &str| word.is_empty() || word.starts_with('-');
        let sound = |package: &Package| {
            !option(&package.package)
                && !package.cmd.as_deref().is_some_and(option)
                && package.env.keys().all(|name| is_variable(name))
        };
        is_name(&self.id) && packages.into_iter().all(sound)
    }

    /// The command that starts it here: by a package runner, or its program if that is installed.
    pub(crate) fn entry(&self) -> Result<Entry, Failure> {
        let Distribution { npx, uvx, binary } = &self.distribution;
        let binary = binary.get(&platform());
        let (command, env) = if let Some(package) = npx {
            (package.words(&["npx", "-y"], "--package"), &package.env)
        } else if let Some(package) = uvx {
            (package.words(&["uvx"], "--from"), &package.env)
        } else if let Some(binary) = binary {
            (self.installed(binary)?, &binary.env)
        } else {
            let what = format!("`{}` is not to be had for {}", self.id, platform());
            return Err(Failure::new(Code::NotFound, format!("{what}\nhint: {}", self.by_hand())));
        };
        let description = Some(one_line(&self.description)).filter(|text| !text.is_empty());
        Ok(Entry { command, env: env.clone(), description, ..Entry::default() })
    }

    fn installed(&self, binary: &Binary) -> Result<Vec<String>, Failure> {
        let program = binary.cmd.rsplit(['/', '\\']).next().unwrap_or_default();
        if program.is_empty() || catalog::on_path(program).is_none() {
            let what = format!("`{}` has to be installed by hand: it comes as an archive", self.id);
            let archive = one_line(&binary.archive);
            return Err(Failure::new(Code::NotFound, format!("{what}, {archive}\nhint: {}", self.by_hand())));
        }
        Ok(std::iter::once(program.to_owned()).chain(binary.args.iter().cloned()).collect())
    }

    fn by_hand(&self) -> String {
        format!("install it, then `attache agents add {} -- COMMAND`", self.id)
    }

    /// The ways to get it, in short.
    pub(crate) fn ways(&self) -> Vec<&'static str> {
        let Distribution { npx, uvx, binary } = &self.distribution;
        let ways = [("npx", npx.is_some()), ("uvx", uvx.is_some()), ("binary", binary.contains_key(&platform()))];
        ways.into_iter().filter(|(_, there)| *there).map(|(way, _)| way).collect()
    }
}

impl Package {
    fn words(&self, runner: &[&str], from: &str) -> Vec<String> {
        let mut words: Vec<String> = runner.iter().map(|word| (*word).into()).collect();
        match &self.cmd {
            Some(program) => words.extend([from.into(), self.package.clone(), program.clone()]),
            None => words.push(self.package.clone()),
        }
        words.extend(self.args.iter().cloned());
        words
    }
}

/// What registries call this machine.
fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    format!("{system}-{}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(agents: &str) -> Registry {
        Registry::parse(format!(r#"{{"version":"1.0.0","agents":[{agents}],"extensions":[]}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn packages_become_commands() {
        let rows = [
            (r#""npx":{"package":"@a/b@1.0.0","args":["--acp"]}"#, "npx -y @a/b@1.0.0 --acp"),
            (r#""npx":{"package":"@a/b@1","cmd":"b"}"#, "npx -y --package @a/b@1 b"),
            (r#""uvx":{"package":"b@1","args":["serve"]}"#, "uvx b@1 serve"),
            (r#""uvx":{"package":"b","cmd":"c","args":["x y"]}"#, "uvx --from b c x y"),
            (r#""uvx":{"package":"u"},"npx":{"package":"n","env":{"A":"1"}}"#, "npx -y n"),
        ];
        for (distribution, expected) in rows {
            let registry = registry(&format!(r#"{{"id":"x","name":"X","distribution":{{{distribution}}}}}"#));
            assert_eq!(registry.find("x").unwrap().entry().unwrap().command.join(" "), expected);
        }
    }

    #[test]
    fn an_archive_is_named_and_not_fetched() {
        let target =
            format!(r#""{}":{{"archive":"https://x.example/a.tgz","cmd":"./no-such-program-here"}}"#, platform());
        let registry = registry(&format!(r#"{{"id":"x","distribution":{{"binary":{{{target}}}}}}}"#));
        let failure = registry.find("x").unwrap().entry().unwrap_err();
        assert_eq!(failure.code, Code::NotFound);
        assert!(failure.message.contains("https://x.example/a.tgz"), "{failure}");
        assert!(failure.message.contains("attache agents add x -- COMMAND"), "{failure}");
    }

    #[test]
    fn entries_that_make_no_sense_are_left_out() {
        let good = r#"{"id":"good","distribution":{"npx":{"package":"p"}}}"#;
        let bad = [
            r#"{"id":"Bad Id","distribution":{}}"#,
            r#"{"id":"a","distribution":{"npx":{"package":"--call=evil"}}}"#,
            r#"{"id":"a","distribution":{"npx":{"package":"p","cmd":"-c"}}}"#,
            r#"{"id":"a","distribution":{"npx":{"package":"p","env":{"A=B":"x"}}}}"#,
            r#"{"id":"a"}"#,
            "7",
        ];
        let registry = registry(&format!("{good},{}", bad.join(",")));
        assert_eq!((registry.agents.len(), registry.skipped), (1, bad.len()));
        assert_eq!(registry.find("god").unwrap_err().code, Code::NotFound);
        assert!(Registry::parse(b"[]").is_err());
    }
}
