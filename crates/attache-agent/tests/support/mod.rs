//! A world for the coding agent: a folder with a project, a model, and a client with a person at it.
//!
//! Shared by several test binaries, each of which uses a part of it.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chat;
mod person;
mod transcript;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::Protocol;
use attache_agent::{CodingAgent, Config, SandboxMode};
use attache_testkit::model_server::{Answer, ModelServer};

pub(crate) use chat::Chat;
pub(crate) use person::{Hook, Person, Says};
pub(crate) use transcript::check;

/// Every dialect of the protocol.
pub(crate) const DIALECTS: [Protocol; 3] = [Protocol::V1, Protocol::V2Draft, Protocol::V2];

/// No turn of a test takes longer.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// A folder with a project, settings and a state, and the model that works there.
pub(crate) struct World {
    _directory: tempfile::TempDir,
    /// All of it, with `project`, `config` and `state` in it.
    pub(crate) root: PathBuf,
    /// How agents are set up here.
    pub(crate) config: Config,
    server: Option<ModelServer>,
}

impl World {
    /// With the model that is built in.
    pub(crate) fn offline() -> Self {
        World::new("offline:rules", None)
    }

    /// With a model that gives these answers, one a request.
    pub(crate) async fn answering(answers: Vec<Answer>) -> Self {
        World::of("openai:scripted", answers).await
    }

    /// The same for the model of a provider: `openai:…`, `anthropic:…`, `gemini:…`.
    pub(crate) async fn of(model: &str, answers: Vec<Answer>) -> Self {
        World::new(model, Some(ModelServer::start(answers).await))
    }

    /// With a model on any server.
    pub(crate) fn new(model: &str, server: Option<ModelServer>) -> Self {
        // As the programs do that this agent is part of.
        attache::process::use_keeper();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["project", "config", "state"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let mut config = Config::new(root.join("config"), root.join("state"));
        config.model = Some(model.into());
        config.base_url = server.as_ref().map(ModelServer::url);
        // Tests that are about lists of models ask for them.
        config.lists_models = false;
        config.local_servers.clear();
        // A test in a container may have none, and what commands do in it has tests of its own.
        config.sandbox = SandboxMode::Off;
        config.patience.first = Duration::from_millis(2);
        World { _directory: directory, root, config, server }
    }

    /// The folder of the project.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The model's server.
    pub(crate) fn model(&self) -> &ModelServer {
        self.server.as_ref().unwrap()
    }

    /// Puts a file into the project.
    pub(crate) fn put(&self, path: &str, content: &str) {
        self.put_at(&format!("project/{path}"), content);
    }

    /// Puts a file anywhere: `config/AGENTS.md`, say.
    pub(crate) fn put_at(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Trusts the project as it is now.
    pub(crate) fn trust(&self) {
        let trust = attache_host::trust::Trust::new(self.config.state_dir.join("trust.toml"));
        trust.trust(&attache_host::trust::Contents::read(&self.project()).unwrap()).unwrap();
    }

    /// What is in the project, a line a file: `a/b.txt "its text"`.
    pub(crate) fn files(&self) -> String {
        let mut lines = Vec::new();
        list(&self.project(), &self.project(), &mut lines);
        lines.sort();
        lines.join("\n")
    }

    /// Starts an agent, and a client of it for this person.
    pub(crate) async fn connect(&self, person: Person) -> Chat {
        let agent = CodingAgent::new(self.config.clone()).await.unwrap();
        Chat::connect(agent.server(), person, &self.root).await
    }

    /// The same with a session in the project.
    pub(crate) async fn open(&self, person: Person) -> Chat {
        let mut chat = self.connect(person).await;
        chat.open(&self.project()).await;
        chat
    }

    /// One turn in a new session: its transcript.
    pub(crate) async fn turn(&self, person: Person, prompt: &str) -> String {
        self.open(person).await.turn(prompt).await
    }

    /// What the model was told of its calls, as of its last request.
    pub(crate) fn results(&self) -> Vec<String> {
        let requests = self.model().requests();
        let results = requests.last().map(|request| request.tool_results()).unwrap_or_default();
        results.iter().map(|text| transcript::tidy(text, &self.root)).collect()
    }
}

fn list(top: &Path, directory: &Path, lines: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(top, &path, lines);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            lines.push(format!("{} {text:?}", path.strip_prefix(top).unwrap().display()));
        }
    }
}
