//! What a handler fails with reaches the agent's author, and of it the client hears what is meant for it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, HandlerError, OpenRequest, Opened, Server, Session, SessionHandle};
use attache::model::config::{ConfigId, ConfigKind, ConfigOption, ConfigSetting, ConfigSwitch};
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::{Prompt, Report, Stop, Turn};
use attache_testkit::RawPeer;

/// An agent that fails in the way that it is told to.
struct Failing;

impl Agent for Failing {
    type Session = Failing;

    fn info(&self) -> Implementation {
        Implementation::new("failing", "1")
    }

    async fn open(&self, request: OpenRequest, _: SessionHandle) -> Result<Opened<Failing>, HandlerError> {
        if request.cwd == "/secret" {
            return Err(HandlerError::new("no room in /secret"));
        }
        let fast = ConfigKind::Boolean(ConfigSwitch::new(true));
        Ok(Opened::from(Failing).options(vec![ConfigOption::new("fast", "Fast", fast)]))
    }
}

impl Session for Failing {
    async fn prompt(&mut self, _: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        match prompt.text().as_str() {
            "shown" => Err(HandlerError::new("text for the client").shown()),
            "meant" => Err(ErrorObject::new(7, "meant for the client").into()),
            "cancelled" => Err(attache::Error::Cancelled.into()),
            _ => {
                std::fs::read_to_string("/no/such/file")?;
                Ok(Stop::EndTurn)
            }
        }
    }

    async fn set_option(&mut self, _: ConfigId, _: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        Err(HandlerError::new("no such setting"))
    }
}

fn server() -> Server<Failing> {
    attache::serve(Failing)
        .extension("_x/fail", async |(): (), _| Err::<(), _>(HandlerError::new("out of \x1b[2Jcheese")))
}

/// Has everything fail once.
async fn play(server: Server<Failing>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(server.connect(reader, writer));
    let mut peer = RawPeer::new(near);
    let prompt = |id: u8, text: &str, error: &str| {
        format!(
            "--> {{'id':{id},'method':'session/prompt','params':{{'sessionId':'$s','prompt':[{{'type':'text','text':'{text}'}}]}}}}
             <-- {{'id':{id},'error':{{'message':'{error}'}}}}\n"
        )
    };
    let script = [
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0}
         --> {'id':1,'method':'session/new','params':{'cwd':'/secret','mcpServers':[]}}
         <-- {'id':1,'error':{'message':'Internal error'}}
         --> {'id':2,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':2,'result':{'sessionId':'$s'}}\n",
        &prompt(3, "shown", "text for the client"),
        &prompt(4, "meant", "meant for the client"),
        &prompt(5, "cancelled", "*"),
        &prompt(6, "file", "Internal error"),
        "--> {'id':7,'method':'session/set_config_option','params':{'sessionId':'$s','configId':'fast','type':'boolean','value':false}}
         <-- {'id':7,'error':{'message':'Internal error'}}
         --> {'method':'_x/fail','params':null}
         --> {'id':8,'method':'_x/fail','params':null}
         <-- {'id':8,'error':{'message':'Internal error'}}",
    ];
    peer.play(&script.concat()).await;
    peer.close().await;
    assert!(peer.next().await.is_none());
}

/// What is seen by nobody else, once.
const REPORTED: [&str; 5] = [
    "handler of `session/new` failed: no room in /secret",
    "handler of `session/prompt` failed: No such file or directory (os error 2)",
    "handler of `session/set_config_option` failed: no such setting",
    "handler of `_x/fail` failed: out of \x1b[2Jcheese",
    "handler of `_x/fail` failed: out of \x1b[2Jcheese",
];

#[tokio::test]
async fn what_the_client_is_not_told_is_reported() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    let server = server().on_report(move |report| {
        if matches!(report, Report::HandlerFailed { .. }) {
            seen.lock().unwrap().push(report.to_string());
        }
    });
    play(server).await;
    assert_eq!(*reports.lock().unwrap(), REPORTED);
}

const MARK: &str = "ATTACHE_TEST_MARK";

/// The program whose stderr is read, started by the test below and idle otherwise.
#[tokio::test]
async fn program_that_fails() {
    if std::env::var_os(MARK).is_some() {
        play(server()).await;
    }
}

#[test]
fn without_a_reporter_it_goes_to_stderr() {
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "program_that_fails", "--nocapture"]).env(MARK, "1");
    let output = program.output().unwrap();
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.trim_end(), REPORTED.join("\n").replace('\x1b', ""));
}
