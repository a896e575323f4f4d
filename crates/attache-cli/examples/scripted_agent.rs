//! For tests: an agent that does as its options say, and answers a prompt with its text.
//!
//! `--die start|session|turn` ends without a word; `--junk` prints what is no message; `--hang` never answers; `--auth
//! agent|terminal|both` wants a login; `--state FILE` is there while somebody is logged in; `--login FILE` is the login
//! in a terminal; `--pid FILE` tells the process id; `--show NAME` tells a variable of the environment as its version.
#![allow(clippy::print_stdout, reason = "what is no message is printed to see what comes of it")]

use std::fs;
use std::path::PathBuf;
use std::process::exit;

use attache::agent::{Agent, Authenticate, OpenRequest, Opened, Session, SessionHandle};
use attache::model::{
    AgentAuthMethod, AuthMethod, AuthMethodId, Command, ConfigCategory, ConfigKind, ConfigOption, ConfigSelect,
    ConfigValue, ErrorObject, Implementation, TerminalAuthMethod,
};
use attache::{Error, Prompt, Stop, Turn};

#[derive(Default)]
struct Scripted {
    auth: String,
    state: PathBuf,
    dies: String,
    version: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut agent = Scripted::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("an option has a value");
        match &*word {
            "--die" => agent.dies = value(),
            "--junk" => println!("Welcome to \u{1b}[31mjunk\u{7}"),
            "--hang" => std::thread::sleep(std::time::Duration::from_secs(60)),
            "--auth" => agent.auth = value(),
            "--state" => agent.state = value().into(),
            "--login" => {
                println!("logging in");
                fs::write(value(), "").expect("the file can be written");
                return Ok(());
            }
            "--pid" => fs::write(value(), std::process::id().to_string()).expect("the file can be written"),
            "--show" => agent.version = Some(std::env::var(value()).unwrap_or_default()),
            other => panic!("there is no option {other}"),
        }
    }
    agent.may_die("start");
    let wants_login = !agent.auth.is_empty();
    let server = attache::serve(agent);
    if wants_login { server.authenticates().stdio().await } else { server.stdio().await }
}

impl Scripted {
    fn may_die(&self, when: &str) {
        if self.dies == when {
            eprintln!("cannot go on \u{1b}[2J");
            exit(7);
        }
    }
}

impl Agent for Scripted {
    type Session = Scripted;

    fn info(&self) -> Implementation {
        Implementation::new("scripted\u{1b}[2J", self.version.as_deref().unwrap_or("1.0"))
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<Scripted>, Error> {
        self.may_die("session");
        if !self.auth.is_empty() && !self.state.exists() {
            return Err(ErrorObject::auth_required(&self.methods()).into());
        }
        let values = vec![ConfigValue::new("ask", "Ask"), ConfigValue::new("auto", "Auto")];
        let mode = ConfigKind::Select(ConfigSelect::new("ask", values));
        Ok(Opened {
            session: Scripted { dies: self.dies.clone(), ..Scripted::default() },
            options: vec![ConfigOption {
                category: Some(ConfigCategory::Mode),
                ..ConfigOption::new("mode", "Mode", mode)
            }],
            commands: vec![Command::new("help", "Helps").into()],
        })
    }
}

impl Session for Scripted {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, Error> {
        self.may_die("turn");
        turn.text(prompt.text()).await?;
        Ok(Stop::EndTurn)
    }
}

impl Authenticate for Scripted {
    fn methods(&self) -> Vec<AuthMethod> {
        let agent = AgentAuthMethod {
            description: Some("Just do\u{202e} it".into()),
            ..AgentAuthMethod::new("key", "API key")
        };
        let args = vec!["--login".into(), self.state.display().to_string()];
        let terminal = TerminalAuthMethod { args, ..TerminalAuthMethod::new("term", "In a terminal") };
        match &*self.auth {
            "agent" => vec![AuthMethod::Agent(agent)],
            "terminal" => vec![AuthMethod::Terminal(terminal)],
            _ => vec![AuthMethod::Agent(agent), AuthMethod::Terminal(terminal)],
        }
    }

    async fn authenticate(&self, _: AuthMethodId) -> Result<(), Error> {
        fs::write(&self.state, "").map_err(|_| ErrorObject::internal("no state").into())
    }

    async fn logout(&self) -> Result<(), Error> {
        let _ = fs::remove_file(&self.state);
        Ok(())
    }
}
