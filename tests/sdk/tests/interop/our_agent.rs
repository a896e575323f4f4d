//! An agent made with Attaché. It does what `their_agent.rs` does, with the same words.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use attache::agent::{
    Agent, Ask, Authenticate, Context, Decision, Delete, HandlerError, List, OpenRequest, Opened, Restore, Session,
};
use attache::agent::{Server, SessionHandle};
use attache::model::auth::{AgentAuthMethod, AuthMethod, AuthMethodId};
use attache::model::command::{Command, CommandInput, TextInput};
use attache::model::config::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigValue,
};
use attache::model::content::ContentBlock;
use attache::model::diff::Diff;
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo};
use attache::model::tool::{Location, ToolCallContent, ToolKind};
use attache::model::update::{MessageChunk, SessionUpdate, UsageUpdate};
use attache::{Error, Prompt, Stop, Turn};
use serde::{Deserialize, Serialize};

/// What an extension says: a number.
#[derive(Serialize, Deserialize)]
pub(crate) struct Number {
    pub(crate) n: u64,
}

/// The agent, ready to be served.
pub(crate) fn server() -> Server<OurAgent> {
    let agent = OurAgent::default();
    let notes = agent.notes.clone();
    attache::serve(agent)
        .restores()
        .lists()
        .deletes()
        .authenticates()
        .extension("_test/double", async |Number { n }, _| Ok(Number { n: n * 2 }))
        .extension("_test/note", move |Number { n }, _| {
            notes.fetch_add(n, Ordering::Relaxed);
            async { Ok(()) }
        })
}

#[derive(Default)]
pub(crate) struct OurAgent {
    is_logged_in: AtomicBool,
    old_is_gone: AtomicBool,
    notes: Arc<AtomicU64>,
}

pub(crate) struct Chat {
    mode: String,
    notes: Arc<AtomicU64>,
}

impl OurAgent {
    fn opened(&self) -> Opened<Chat> {
        let chat = Chat { mode: "ask".into(), notes: self.notes.clone() };
        let input = CommandInput::from(TextInput::new("query"));
        let command = Command::new("web", "Search").input(input);
        Opened::from(chat).options(options("ask")).commands(vec![command.into()])
    }
}

fn options(mode: &str) -> Vec<ConfigOption> {
    let values = vec![ConfigValue::new("ask", "Ask"), ConfigValue::new("code", "Code")];
    let kind = ConfigKind::Select(ConfigSelect::new(mode, values));
    vec![ConfigOption::new("mode", "Mode", kind).category(ConfigCategory::Mode)]
}

impl Agent for OurAgent {
    type Session = Chat;

    fn info(&self) -> Implementation {
        Implementation::new("ours", "1")
    }

    async fn open(&self, request: OpenRequest, _: SessionHandle) -> Result<Opened<Chat>, HandlerError> {
        if request.cwd == "/locked" && !self.is_logged_in.load(Ordering::Relaxed) {
            return Err(ErrorObject::auth_required(&self.methods()).into());
        }
        Ok(self.opened())
    }
}

impl Restore for OurAgent {
    async fn restore(
        &self,
        session: SessionId,
        _: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> Result<Opened<Chat>, HandlerError> {
        if session.as_str() != "old" || self.old_is_gone.load(Ordering::Relaxed) {
            return Err(ErrorObject::session_not_found(&session).into());
        }
        if replay {
            let said = |id: &str, text: &str| MessageChunk::new(ContentBlock::text(text)).message_id(id);
            handle.update(SessionUpdate::UserMessageChunk(said("m1", "hi"))).await?;
            handle.update(SessionUpdate::AgentMessageChunk(said("m2", "hello"))).await?;
        }
        Ok(self.opened())
    }
}

impl List for OurAgent {
    async fn list(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        let old = SessionInfo::new("old", "/work").title("Old");
        let is_gone = self.old_is_gone.load(Ordering::Relaxed);
        Ok(ListSessionsResponse::new(if is_gone { Vec::new() } else { vec![old] }))
    }
}

impl Delete for OurAgent {
    async fn delete(&self, _: SessionId) -> Result<(), HandlerError> {
        self.old_is_gone.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Authenticate for OurAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AgentAuthMethod::new("key", "Key").into()]
    }

    async fn authenticate(&self, _: AuthMethodId, _: Context) -> Result<(), HandlerError> {
        self.is_logged_in.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn logout(&self) -> Result<(), HandlerError> {
        self.is_logged_in.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Session for Chat {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        match prompt.text().as_str() {
            "hello" => {
                turn.thought("hm").await?;
                turn.text("Hello").await?;
                turn.text(", world").await?;
            }
            "mode" => turn.text(self.mode.as_str()).await?,
            "switch" => {
                self.mode = "code".into();
                turn.options(options("code")).await?;
            }
            "notes" => turn.text(self.notes.load(Ordering::Relaxed).to_string()).await?,
            "plan" => {
                for status in [PlanStatus::Pending, PlanStatus::Completed] {
                    let look = PlanEntry::new("Look", PlanPriority::High, status);
                    turn.plan(vec![look, PlanEntry::new("Leap", PlanPriority::Low, PlanStatus::Pending)]).await?;
                }
                turn.usage(UsageUpdate::new(7, 100)).await?;
                turn.title("Planning").await?;
            }
            "tool" => return Ok(tool(&turn).await?),
            "files" => {
                let content = turn.read_lines("/project/in", Some(2), Some(3)).await?;
                turn.write_text_file("/project/out", content.to_uppercase()).await?;
            }
            "terminal" => {
                let terminal = turn.terminal("cargo", ["test"]).await?;
                let output = terminal.output().await?.output;
                terminal.kill().await?;
                let signal = terminal.wait().await?.signal.unwrap_or_default();
                terminal.release().await?;
                turn.text(format!("{output} {signal}")).await?;
            }
            "wait" => {
                turn.text("cancel me").await?;
                turn.cancelled().await;
                turn.text("stopped").await?;
            }
            "extension" => {
                #[derive(Serialize)]
                #[serde(rename_all = "camelCase")]
                struct Params<'a> {
                    session_id: &'a str,
                    n: u64,
                }
                let session_id = turn.id().as_str();
                let Number { n } = turn.call_extension("_test/ask", &Params { session_id, n: 1 }).await?;
                turn.text(format!("got {n}")).await?;
                turn.notify_extension("_test/note", &Params { session_id, n: 3 }).await?;
                match turn.call_extension::<Number>("_test/nothing", &Params { session_id, n: 0 }).await {
                    Err(Error::Refused(error)) => turn.text(format!("refused {}", error.code)).await?,
                    other => turn.text(format!("not refused: {}", other.is_ok())).await?,
                }
            }
            "fail" => return Err(ErrorObject::new(-32050, "out of luck").into()),
            other => turn.text(format!("what is {other}?")).await?,
        }
        Ok(Stop::EndTurn)
    }

    async fn set_option(&mut self, option: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        match value {
            ConfigSetting::Id(value) if option.as_str() == "mode" && ["ask", "code"].contains(&value.as_str()) => {
                self.mode = value.as_str().into();
                Ok(options(&self.mode))
            }
            _ => Err(ErrorObject::wrong_params("there is no such value").into()),
        }
    }
}

async fn tool(turn: &Turn) -> Result<Stop, Error> {
    let tool = turn.tool("Edit a file").await?;
    tool.kind(ToolKind::Edit).await?;
    tool.locations(vec![Location::new("/project/a").line(3)]).await?;
    let decision = turn.ask(Ask::new("Edit a file?").tool_call(tool.blank())).await?;
    let said = match decision {
        Decision::Allowed(_) => "allowed",
        Decision::Rejected(_) => "rejected",
        Decision::Cancelled => "cancelled",
    };
    turn.text(said).await?;
    if !decision.is_allowed() {
        tool.fail().await?;
        return Ok(Stop::Refusal);
    }
    tool.in_progress().await?;
    tool.push_text("done").await?;
    tool.push(ToolCallContent::from(Diff::text("/project/a", Some("x\n".into()), "y\n"))).await?;
    tool.complete().await?;
    Ok(Stop::EndTurn)
}
