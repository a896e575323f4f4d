//! One session: takes prompts and settings, and keeps what it was told.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use attache::agent::{HandlerError, Session, Turn};
use attache::model::Meta;
use attache::model::config::{ConfigId, ConfigOption, ConfigSetting};
use attache::model::elicitation::{
    CreateElicitationRequest, ElicitationAction, ElicitationMode, ElicitationUrl, SessionScope,
};
use attache::model::error::ErrorObject;
use attache::model::notice::NoticeSeverity;
use attache::model::tool::ToolCallStatus;
use attache::{Error, Prompt, Stop};

use crate::conversation::Conversation;
use crate::mcp;
use crate::model::metered::Total;
use crate::model::{Model, ModelError, Part};
use crate::model_list::OFFLINE;
use crate::model_list::news::{self, ModelTeller};
use crate::project::Watched;
use crate::slash::{self, BuiltIn, Called};
use crate::store::Entry;
use crate::turn::{self, Begins, Desk, NOT_DONE, Trouble};
use crate::{attachments, hooks, off_thread, settings, system_prompt, tools};

/// How long a person is left without a word.
const SOON: Duration = Duration::from_secs(1);

/// Under this name the end of a turn says which limit of what may be spent was reached, in words.
pub const LIMIT: &str = "attache/limit";

/// A session of the coding agent.
pub struct CodingSession {
    desk: Arc<Desk>,
    conversation: Conversation,
    has_title: bool,
    /// Whether the log says which model the session has.
    is_model_kept: bool,
    commands: Watched,
    /// Tells the client of models that come to be known.
    models: ModelTeller,
    /// What the person should know, told with the first prompt.
    notices: Vec<String>,
    /// What was told of instructions that are not sent, so that it is told once.
    told: Vec<String>,
    /// What the person has taken back since the last prompt, for the model.
    undone: Vec<String>,
    place: Place,
}

/// Where a session begins.
pub(crate) struct Begin {
    pub(crate) conversation: Conversation,
    pub(crate) has_title: bool,
    /// Whether the log says which model the session has.
    pub(crate) is_model_kept: bool,
    /// What the person should know, told with the first prompt.
    pub(crate) notices: Vec<String>,
}

/// The place of a session in the list of those that are open. It is given back however the session ends.
pub(crate) struct Place(Option<Box<dyn FnOnce() + Send>>);

impl Place {
    /// A place that is given back like this.
    pub(crate) fn new(leave: impl FnOnce() + Send + 'static) -> Self {
        Place(Some(Box::new(leave)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(leave) = self.0.take() {
            leave();
        }
    }
}

impl CodingSession {
    pub(crate) fn new(desk: Desk, begin: Begin, commands: Watched, models: ModelTeller, place: Place) -> Self {
        CodingSession {
            desk: Arc::new(desk),
            conversation: begin.conversation,
            has_title: begin.has_title,
            is_model_kept: begin.is_model_kept,
            commands,
            models,
            notices: begin.notices,
            told: Vec::new(),
            undone: Vec::new(),
            place,
        }
    }

    /// Keeps which model the session has, so that it goes on with it whatever others begin with by then. What is built in
    /// stands in for a model, and makes way for one.
    async fn keep_model(&mut self) -> Result<(), Error> {
        let model = self.desk.settings.now().model;
        if !self.is_model_kept && model != OFFLINE {
            self.is_model_kept = true;
            self.desk.log.keep(Entry::Set { option: "model".into(), value: model }).await?;
        }
        Ok(())
    }

    /// The turn itself. Dropped when it is cancelled: what it leaves open is closed by [`Session::prompt`].
    async fn work(&mut self, turn: &Turn, prompt: &Prompt) -> Result<Stop, Trouble> {
        let desk = self.desk.clone();
        desk.tools.commands.check_roots().await?;
        let id = turn.prompt_id().map_or_else(|| desk.log.fresh_id("prompt"), |id| id.as_str().into());
        desk.log.keep(Entry::Prompt { id, content: prompt.blocks.clone() }).await?;
        let text = prompt.text();
        desk.log.sync().await?;
        self.commands.look(desk.log.handle()).await?;
        let said = text.clone();
        let called = self.commands.now().called(&text);
        let is_about_something = !text.trim().is_empty() && !matches!(called, Some(Called::BuiltIn(..)));
        if !self.has_title && is_about_something {
            self.has_title = true;
            desk.log.title(&tools::first_line(&text, 60)).await?;
        }
        let text = match called {
            None => None,
            Some(Called::Prompt(text)) => Some(text),
            Some(Called::BuiltIn(command, rest)) => match self.built_in(command, &rest).await? {
                Does::Ask(text) => Some(text),
                Does::Say(text) => {
                    desk.log.say_all(text).await?;
                    return Ok(Stop::EndTurn);
                }
                Does::Nothing(why) => return say_not_done(&desk, turn, why).await,
            },
        };
        wait_for_servers(&desk).await?;
        self.tell_notices().await?;
        // A prompt of an MCP server stands for the words that call it.
        let given = match text.is_none().then_some(desk.tools.servers.prompt(&said)) {
            Some(prompt) => prompt.await,
            None => None,
        };
        let given = match given {
            Some(Err(why)) => return say_not_done(&desk, turn, format!("{why}\n")).await,
            given => given.and_then(Result::ok),
        };
        if text.is_none()
            && given.is_none()
            && let Some(name) = slash::unknown(&said)
        {
            let why = format!("There is no command `/{name}`. `/help` lists those that there are.\n");
            return say_not_done(&desk, turn, why).await;
        }
        let blocks = match text {
            None if given.is_none() => Cow::Borrowed(prompt.blocks.as_slice()),
            // What is attached stays.
            text => {
                let attached = prompt.blocks.iter().filter(|block| block.as_text().is_none()).cloned();
                Cow::Owned(text.map(Into::into).into_iter().chain(attached).collect())
            }
        };
        look_at_models(&desk).await?;
        self.keep_model().await?;
        let model = open_model(&desk).await?;
        let mut parts = attachments::parts(&blocks, model.info());
        parts.splice(0..0, mcp::for_model(given.unwrap_or_default(), model.info()));
        parts.extend(mcp::for_model(mentioned(&desk, &said).await?, model.info()));
        parts.splice(0..0, self.undone.drain(..).map(Part::text));
        desk.checkpoints.begin_turn().await;
        self.conversation.task = typed(&blocks);
        self.conversation.say_prompt(&desk, model.info(), parts).await?;
        let mut stop = turn::run(&desk, &mut self.conversation, turn, Begins::WithPrompt).await?;
        let Some(mut text) = hooks::end_of_turn(&desk).await? else { return Ok(stop) };
        // Once: what a hook says a second time is for the person, and so is what it says where the model cannot go on.
        // What is built in follows commands, and a hook gives none.
        if stop == Stop::EndTurn && model.info().provider != "offline" {
            self.conversation.say(&desk, crate::model::Message::user(text)).await?;
            stop = turn::run(&desk, &mut self.conversation, turn, Begins::AfterHook).await?;
            match hooks::end_of_turn(&desk).await? {
                Some(again) => text = again,
                None => return Ok(stop),
            }
        }
        desk.log.notice(NoticeSeverity::Warning, text).await?;
        Ok(stop)
    }

    /// Does what a built-in command says.
    async fn built_in(&mut self, command: BuiltIn, rest: &str) -> Result<Does, Trouble> {
        let desk = self.desk.clone();
        Ok(Does::Say(match command {
            BuiltIn::Help => format!(
                "Commands:\n\n{}\nOwn commands are Markdown files in `{}`, or in `{}` of a project that you trust.\n",
                self.commands.now().list(),
                self.commands.directory().display(),
                slash::project_folder()
            ),
            BuiltIn::Plan if rest.is_empty() => {
                return Ok(Does::Nothing("Say what to plan: `/plan add a test for the parser`\n".into()));
            }
            BuiltIn::Plan => {
                set(&desk, "mode", "architect").await?;
                desk.log.handle().options(desk.settings.options()).await?;
                return Ok(Does::Ask(format!("Make a plan, and change nothing yet: {rest}")));
            }
            BuiltIn::Init => return Ok(Does::Ask(slash::INIT.into())),
            BuiltIn::Compact if self.conversation.messages.is_empty() => "There is nothing to compact yet.\n".into(),
            BuiltIn::Compact => {
                let model = open_model(&desk).await?;
                match turn::compact(&desk, &mut self.conversation, &*model).await? {
                    true => "The model works with a summary of the conversation from here on.\n".into(),
                    false => "There is nothing to compact yet.\n".into(),
                }
            }
            BuiltIn::Undo if rest.is_empty() || rest == "all" => {
                let report = desk.checkpoints.undo(&desk.tools.workspace, rest == "all").await;
                self.undone.extend(report.note);
                report.text
            }
            BuiltIn::Undo => {
                let ways = "Say `/undo` for what the agent changed in its last turn with changes, or `/undo all` for \
                            what changed while its commands ran, too.\n";
                return Ok(Does::Nothing(ways.into()));
            }
            BuiltIn::Diff if rest.is_empty() || rest == "last" => {
                desk.checkpoints.diff(&desk.tools.workspace, rest == "last").await
            }
            BuiltIn::Diff => {
                let ways = "Say `/diff` for the whole session, or `/diff last` for its last turn with changes.\n";
                return Ok(Does::Nothing(ways.into()));
            }
            BuiltIn::Permissions => return Ok(permissions(&desk, rest).await.into()),
            BuiltIn::Model if rest.is_empty() => {
                look_at_models(&desk).await?;
                let now = desk.settings.now().model;
                let mut text = format!("The model is `{now}`. To choose from:\n\n");
                for (id, about) in desk.settings.models() {
                    text.push_str(&format!("- `{id}` {about}\n"));
                }
                text
            }
            BuiltIn::Model => {
                look_at_models(&desk).await?;
                return Ok(choose_model(&desk, rest).await?.into());
            }
            BuiltIn::Mcp => return Ok(servers(&desk, rest).await?.into()),
            BuiltIn::Status => self.status().await,
        }))
    }

    async fn status(&mut self) -> String {
        let values = self.desk.settings.now();
        let info = open_model(&self.desk).await.map(|model| model.info().context);
        let mut text = format!("- Session: `{}`\n", self.desk.log.handle().id().as_str());
        text.push_str(&format!("- Directory: `{}`\n", self.desk.place.cwd.display()));
        text.push_str(&format!("- Mode: {}\n", settings::Words::word(values.mode)));
        text.push_str(&format!("- Model: `{}`\n", values.model));
        if let Ok(context) = info {
            let used = self.conversation.used();
            text.push_str(&format!(
                "- Context: {used} of {context} tokens, {} messages\n",
                self.conversation.messages.len()
            ));
        }
        text.push_str(&spent(&self.desk.models.meter().session()));
        let subagents = self.desk.models.meter().subagents();
        if subagents.tokens() > 0 {
            let usage = subagents.usage;
            text.push_str(&format!("- Sub-agents: {} tokens in, {} out\n", usage.input, usage.output));
        }
        text.push_str(&format!("- Sandbox: {}\n", self.desk.tools.commands.sandbox_state_now().await));
        if !self.desk.tools.skills.is_empty() {
            let names: Vec<&str> = self.desk.tools.skills.iter().map(|skill| skill.name.as_str()).collect();
            text.push_str(&format!("- Skills: {}\n", names.join(", ")));
        }
        for hook in self.desk.hooks.list() {
            text.push_str(&format!("- Hook: {hook}\n"));
        }
        for problem in self.desk.gate.problems().await {
            text.push_str(&format!("- Rules: {problem}\n"));
        }
        text
    }

    /// Tells what the person should know: of rules, of trust, of MCP servers.
    async fn tell_notices(&mut self) -> Result<(), Error> {
        // A file can become a link while the session goes on.
        let place = self.desk.place.clone();
        let refused = off_thread(move || system_prompt::refused_instructions(&place)).await;
        self.notices.extend(refused.iter().filter(|notice| !self.told.contains(notice)).cloned());
        self.told = refused;
        for notice in std::mem::take(&mut self.notices) {
            self.desk.log.notice(NoticeSeverity::Warning, notice).await?;
        }
        tell_of_servers(&self.desk).await?;
        // Not when the session is opened: a client may still set how commands are confined.
        if let Some(warning) = self.desk.tools.commands.take_warning().await {
            self.desk.log.notice(NoticeSeverity::Warning, warning).await?;
        }
        Ok(())
    }

    /// Leaves nothing open, and writes down how the turn ended.
    async fn end(&mut self, result: Result<Result<Stop, Trouble>, Error>) -> Result<Stop, Error> {
        let desk = self.desk.clone();
        let (status, why) = match &result {
            Err(_) => (ToolCallStatus::Cancelled, "cancelled by the person"),
            Ok(_) => (ToolCallStatus::Failed, "the turn ended before there was a result"),
        };
        let mut closed = self.conversation.close(&desk, status.clone(), why).await;
        let left_open = std::mem::take(&mut *crate::lock(&desk.unended));
        for unended in left_open {
            closed = closed.and(desk.log.show_end(unended.end(status.clone())).await);
        }
        desk.checkpoints.end_turn(&desk.tools.workspace).await;
        for notice in desk.checkpoints.take_notices().await {
            let _ = desk.log.notice(NoticeSeverity::Warning, notice).await;
        }
        let result = match result {
            Err(_) => Ok(Stop::Cancelled),
            Ok(result) => result.map_err(|trouble| trouble.into_error(&desk)),
        };
        let stop = result.as_ref().map_or("error", |stop| stop.as_str()).to_owned();
        let result = closed.and(turn::tell_rest(&desk, self.conversation.used()).await).and(result);
        desk.log.keep(Entry::TurnEnded { stop }).await?;
        desk.log.sync().await?;
        result
    }
}

impl Session for CodingSession {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        let desk = self.desk.clone();
        desk.models.meter().begin_turn();
        let mut servers = desk.tools.servers.changes();
        let result = {
            let mut work = std::pin::pin!(self.work(&turn, &prompt));
            loop {
                tokio::select! {
                    // First, so that nothing is begun any more: to the work, a question that is cancelled is only a no.
                    biased;
                    () = turn.cancelled() => break Err(Error::Cancelled),
                    // Nothing is done for a session that another server may go on with.
                    error = desk.log.lost() => break Ok(Err(error.into())),
                    result = &mut work => break Ok(result),
                    // A server that dies in the middle of a turn is told about when it does.
                    Ok(()) = servers.changed() => if let Err(error) = tell_of_servers(&desk).await {
                        break Ok(Err(error.into()));
                    },
                    change = turn.option_change() => {
                        let Some((id, value)) = change.option().cloned().zip(change.value().cloned()) else { continue };
                        let options = set_option(&desk, &id, &value).await;
                        change.reply(options).await?;
                    }
                }
            }
        };
        // However the work noticed it.
        let result = if turn.is_cancelled() { Err(Error::Cancelled) } else { result };
        let result = match result {
            Ok(Err(trouble)) => Ok(turn::stopped_by_limit(&desk, trouble).await),
            result => result,
        };
        if let Some(usage) = turn::of_turn(&desk) {
            turn.end_usage(usage);
        }
        if let Some(meta) = limit(&desk, &result) {
            turn.end_meta(meta);
        }
        Ok(self.end(result).await?)
    }

    async fn set_option(&mut self, option: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        Ok(set_option(&self.desk, &option, &value).await?)
    }

    async fn close(self) {
        self.commands.stop();
        drop(self.models);
        let _ = self.desk.log.sync().await;
        self.desk.log.leave().await;
        drop(self.place);
        self.desk.tools.commands.close();
        // Nobody else has it between turns; whoever had, would end the servers by dropping it.
        if let Some(desk) = Arc::into_inner(self.desk) {
            desk.tools.servers.close().await;
        }
    }
}

/// Which limit a turn has reached, for whoever set it: the one that stopped it, or that of the run, also if the turn came to
/// its end.
fn limit(desk: &Desk, result: &Result<Result<Stop, Trouble>, Error>) -> Option<Meta> {
    let meter = desk.models.meter();
    let reached = match result {
        Ok(Ok(Stop::MaxTokens | Stop::MaxTurnRequests)) => meter.reached(),
        Ok(Ok(Stop::EndTurn)) if meter.turn().requests > 0 => meter.reached_in_run(),
        _ => None,
    };
    Meta::new(&serde_json::json!({ LIMIT: reached?.words() }).to_string()).ok()
}

/// What a built-in command comes to.
enum Does {
    /// The model is asked this.
    Ask(String),
    /// This is said.
    Say(String),
    /// It cannot be done as it was said: why.
    Nothing(String),
}

/// What was done is said, and why it was not.
impl From<Result<String, String>> for Does {
    fn from(said: Result<String, String>) -> Self {
        match said {
            Ok(text) => Does::Say(text),
            Err(why) => Does::Nothing(why),
        }
    }
}

/// Says why a command does nothing, also to whoever only looks at how the turn ended.
async fn say_not_done(desk: &Desk, turn: &Turn, why: String) -> Result<Stop, Trouble> {
    let meta = Meta::new(&serde_json::json!({ NOT_DONE: why.trim_end() }).to_string());
    turn.end_meta(meta.expect("it is an object"));
    desk.log.say_all(why).await?;
    Ok(Stop::EndTurn)
}

/// What the person wrote themselves.
pub(crate) fn typed(blocks: &[attache::model::content::ContentBlock]) -> String {
    blocks.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n")
}

/// The model that is set.
async fn open_model(desk: &Desk) -> Result<Arc<dyn Model>, ModelError> {
    desk.models.open_aside(&desk.settings.now().model).await
}

/// Chooses a model, and says what came of it.
async fn choose_model(desk: &Desk, id: &str) -> Result<Result<String, String>, Error> {
    if !is_to_choose(desk, id) {
        let id = tools::first_line(id, 80);
        return Ok(Err(format!("There is no model `{id}` to choose. `/model` lists those that there are.\n")));
    }
    match set(desk, "model", id).await {
        Ok(()) => {
            desk.log.handle().options(desk.settings.options()).await?;
            Ok(Ok(format!("The model is `{id}` now.\n")))
        }
        Err(error) => Ok(Err(format!("{}\n", error.message))),
    }
}

/// Whether a model can be chosen: one that is offered, or one of a provider that gives no list.
fn is_to_choose(desk: &Desk, id: &str) -> bool {
    desk.settings.models().iter().any(|(known, _)| known == id) || desk.models.may_be_unlisted(id)
}

/// Waits a moment for what the model's provider says of it, if it is being asked, and tells of models that are new.
async fn look_at_models(desk: &Desk) -> Result<(), Error> {
    desk.models.wait_for_list(&desk.settings.now().model, SOON).await;
    news::offer(&desk.models, &desk.settings, desk.log.handle()).await
}

/// What the session has spent, as a line for people; nothing if no model was asked.
fn spent(total: &Total) -> String {
    if total.requests == 0 {
        return String::new();
    }
    let usage = total.usage;
    let cost = match (total.cost, total.unpriced) {
        (Some(cost), 0) => format!(", {:.4} USD", cost.dollars()),
        (Some(cost), count) => format!(", {:.4} USD without {count} requests of unknown price", cost.dollars()),
        (None, _) => String::new(),
    };
    let (requests, input, cached, output) = (total.requests, usage.input, usage.cached, usage.output);
    format!("- Spent: {input} tokens in ({cached} cached), {output} out, {requests} requests{cost}\n")
}

/// Waits until all MCP servers are there or have failed. Says so when that takes long.
async fn wait_for_servers(desk: &Desk) -> Result<(), Error> {
    let servers = &desk.tools.servers;
    if tokio::time::timeout(SOON, servers.ready()).await.is_err() {
        desk.log.notice(NoticeSeverity::Info, "Waiting for MCP servers to connect").await?;
        servers.ready().await;
    }
    Ok(())
}

/// Tells what the person should know of MCP servers and has not been told.
async fn tell_of_servers(desk: &Desk) -> Result<(), Error> {
    for notice in desk.tools.servers.notices() {
        let severity = if notice.is_problem { NoticeSeverity::Warning } else { NoticeSeverity::Info };
        desk.log.notice(severity, notice.text).await?;
    }
    Ok(())
}

/// What the resources say that a prompt mentions.
async fn mentioned(desk: &Desk, text: &str) -> Result<Vec<Part>, Error> {
    let mentioned = desk.tools.servers.mentioned(text).await;
    for problem in mentioned.problems {
        desk.log.notice(NoticeSeverity::Warning, problem).await?;
    }
    Ok(mentioned.parts)
}

/// Lists MCP servers, or does something with one.
async fn servers(desk: &Desk, rest: &str) -> Result<Result<String, String>, Error> {
    let servers = &desk.tools.servers;
    let line = |why: String| why + "\n";
    Ok(match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
        ("", _) => {
            wait_for_servers(desk).await?;
            Ok(servers.report())
        }
        ("restart", name) if !name.is_empty() => {
            let restarted = servers.restart(name.trim());
            restarted.map(|()| format!("`{}` is being restarted.\n", name.trim())).map_err(line)
        }
        ("login", name) if !name.is_empty() => {
            let told =
                |()| format!("You are logged in to `{}`. Its tools come as soon as it is connected.\n", name.trim());
            log_in(desk, name.trim()).await?.map(told).map_err(line)
        }
        ("logout", name) if !name.is_empty() => match servers.logout(name.trim()).await {
            Ok(true) => {
                let _ = servers.restart(name.trim());
                Ok(format!("You are logged out of `{}`.\n", name.trim()))
            }
            Ok(false) => Ok(format!("You were not logged in to `{}`.\n", name.trim())),
            Err(why) => Err(line(why)),
        },
        _ => Err("Say what to do: `/mcp`, `/mcp login NAME`, `/mcp logout NAME`, `/mcp restart NAME`\n".into()),
    })
}

/// Logs in to an MCP server: the person is shown where, and is waited for.
async fn log_in(desk: &Desk, name: &str) -> Result<Result<(), String>, Error> {
    let login = match desk.tools.servers.begin_login(name).await {
        Ok(login) => login,
        Err(why) => return Ok(Err(why)),
    };
    desk.log
        .say_all(format!("Open this address in a browser of this machine to log in:\n\n{}\n\n", login.address()))
        .await?;
    let id = desk.log.fresh_id("login");
    let scope = SessionScope::new(desk.log.handle().id().clone());
    let url = ElicitationUrl::new(id.as_str(), login.address(), scope);
    let question = format!("Log in to the MCP server `{name}`?");
    let request = CreateElicitationRequest::new(question, ElicitationMode::Url(url));
    // A client that cannot open addresses has shown it. One that can is asked to; without a yes, nobody is waited for.
    let is_visiting = AtomicBool::new(false);
    let refused = async {
        if let Ok(answer) = desk.log.handle().elicit(request).await {
            if !matches!(answer.action, ElicitationAction::Accept(_)) {
                return;
            }
            is_visiting.store(true, Relaxed);
        }
        std::future::pending().await
    };
    let finished = tokio::select! {
        biased;
        finished = login.finish() => finished,
        () = refused => return Ok(Err("You are not logged in.".into())),
    };
    if let Err(error) = finished {
        return Ok(Err(format!("The login to `{name}` failed: {error}")));
    }
    if is_visiting.load(Relaxed) {
        desk.log.handle().complete_elicitation(id).await?;
    }
    Ok(desk.tools.servers.restart(name))
}

async fn set_option(desk: &Desk, id: &ConfigId, value: &ConfigSetting) -> Result<Vec<ConfigOption>, ErrorObject> {
    let ConfigSetting::Id(value) = value else {
        return Err(ErrorObject::wrong_params("value: not one of the values of this option"));
    };
    set(desk, id.as_str(), value.as_str()).await?;
    Ok(desk.settings.options())
}

/// Sets an option by its words, with all that follows from it.
async fn set(desk: &Desk, id: &str, word: &str) -> Result<(), ErrorObject> {
    if id == "model" && is_to_choose(desk, word) {
        let opened = desk.models.open_aside(word).await;
        opened.map_err(|error| ErrorObject::new(ErrorObject::INVALID_PARAMS, error.message))?;
        desk.settings.add_model(word);
    }
    desk.settings.set_word(id, word).map_err(|unset| {
        ErrorObject::wrong_params(match unset {
            settings::Unset::NoSuchOption => "configId: there is no such option",
            settings::Unset::NoSuchValue => "value: not one of the values of this option",
        })
    })?;
    if id == "sandbox" {
        desk.tools.commands.set_sandbox(desk.settings.now().sandbox);
    }
    let entry = Entry::Set { option: id.into(), value: word.into() };
    desk.log.keep(entry).await.map_err(|error| error.to_peer())
}

/// `/permissions`: the rules there are, by number; `remove N` takes one back that was remembered for the project.
async fn permissions(desk: &Desk, rest: &str) -> Result<String, String> {
    let rules = desk.gate.rules().await;
    if let Some(number) = rest.strip_prefix("remove") {
        let number = number.trim().parse().ok().and_then(|number: usize| number.checked_sub(1));
        let Some((number, rule)) = number.and_then(|number| Some((number, rules.get(number)?))) else {
            return Err("Say which, by its number: `/permissions remove 1`\n".into());
        };
        return match desk.gate.forget(number).await {
            Ok(Some(others)) => {
                let others = others.iter().map(|other| format!("It still applies: {other} ({})\n", other.origin));
                Ok(format!("Removed: {rule}\n\n{}", others.collect::<String>()).trim_end().to_owned() + "\n")
            }
            Ok(None) => Err(format!(
                "`{rule}` is not kept for this project; it stands in {}. `attache permissions remove {}` in a terminal \
                 removes it.\n",
                rule.origin,
                number + 1
            )),
            Err(error) => Err(format!("{error}\n")),
        };
    }
    if rules.is_empty() {
        return Ok(
            "There are no rules. Choose \"Always\" when you are asked, and one is kept for this project.\n".into()
        );
    }
    let lines = rules.iter().enumerate();
    let lines: String = lines.map(|(i, rule)| format!("{}. {rule} ({})\n", i + 1, rule.origin)).collect();
    Ok(format!("{lines}\n`/permissions remove NUMBER` takes back what was kept for this project.\n"))
}

impl From<ErrorObject> for Trouble {
    fn from(error: ErrorObject) -> Self {
        Trouble::Peer(Error::Refused(error))
    }
}
