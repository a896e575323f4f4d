//! A session of the reference agent: does what the lines of its prompts say.

use std::time::Duration;

use attache::agent::{HandlerError, Session, SessionHandle, Turn};

use attache::model::config::{ConfigId, ConfigOption, ConfigSetting};
use attache::model::content::{ContentBlock, ImageContent, MessageId};
use attache::model::elicitation::{
    CreateElicitationRequest, ElicitationAction, ElicitationForm, ElicitationMode, ElicitationUrl, SessionScope,
};
use attache::model::error::ErrorObject;
use attache::model::form::{BooleanProperty, ElicitationProperty, ElicitationSchema, StringProperty};
use attache::model::notice::NoticeSeverity;
use attache::model::plan::{PlanContent, PlanEntry, PlanItems, PlanPriority, PlanStatus, PlanUpdate};
use attache::model::state::{BackgroundTerminal, BackgroundWork};
use attache::model::terminal::ExitStatus;
use attache::model::update::{Cost, MessageChunk, MessageUpdate, SessionUpdate, UsageUpdate};
use attache::{Error, Prompt, Stop};

use super::script::{Line, lines};
use super::store::{Store, commands};

/// How often slow text goes on, and how much there is of it.
const PACE: Duration = Duration::from_millis(200);
const SLOW_WORDS: usize = 150;

/// A session of the reference agent.
pub(crate) struct ReferenceSession {
    pub(super) store: Store,
    pub(super) handle: SessionHandle,
}

/// Whether the script goes on.
enum Next {
    Go,
    Stop(Stop),
}

impl ReferenceSession {
    /// An id that no other thing of the session has, also after it was restored.
    pub(super) fn next_id(&self, what: &str) -> String {
        self.store.with(self.handle.id().as_str(), |kept| {
            kept.ids += 1;
            format!("{what}-{}", kept.ids)
        })
    }

    /// Keeps an update, to be told again.
    pub(super) fn keep(&self, update: SessionUpdate) {
        self.store.with(self.handle.id().as_str(), |kept| kept.history.push(update));
    }

    /// Tells an update and keeps it.
    pub(super) async fn tell(&self, update: SessionUpdate) -> Result<(), Error> {
        self.keep(update.clone());
        self.handle.update(update).await
    }

    /// Says a message in two pieces.
    async fn say(&self, text: &str) -> Result<(), Error> {
        let id = MessageId::from(self.next_id("message"));
        let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        for piece in [&text[..half], &text[half..]] {
            let chunk = MessageChunk::new(ContentBlock::text(piece)).message_id(id.clone());
            self.tell(SessionUpdate::AgentMessageChunk(chunk)).await?;
        }
        Ok(())
    }

    async fn perform(&self, turn: &Turn, line: Line) -> Result<Next, HandlerError> {
        match line {
            Line::Say(text) => self.say(&text).await?,
            Line::Think(text) => {
                let id = MessageId::from(self.next_id("thought"));
                let chunk = MessageChunk::new(ContentBlock::text(text)).message_id(id);
                self.tell(SessionUpdate::AgentThoughtChunk(chunk)).await?;
            }
            Line::Call(name, arguments) => match self.call(turn, &name, &arguments).await {
                // The client did not do what the tool needs: the call has failed, and not the prompt.
                Err(error)
                    if matches!(error.source().downcast_ref(), Some(Error::Refused(_) | Error::BadAnswer { .. })) => {}
                result => result?,
            },
            Line::Remember(_) => {}
            Line::Recall => self.say(&format!("remembered {}", self.remembered().join(" "))).await?,
            Line::Slowly => {
                for word in 0..SLOW_WORDS {
                    turn.text(format!("word {word}\n")).await?;
                    tokio::time::sleep(PACE).await;
                }
            }
            Line::Stop(why) if why == "refusal" => return Ok(Next::Stop(Stop::Refusal)),
            Line::Stop(why) if why == "length" => return Ok(Next::Stop(Stop::MaxTokens)),
            Line::Stop(_) => return Ok(Next::Stop(Stop::EndTurn)),
            Line::Do(word, rest) => self.perform_word(turn, word, rest).await?,
        }
        Ok(Next::Go)
    }

    async fn perform_word(&self, turn: &Turn, word: &str, rest: String) -> Result<(), HandlerError> {
        match word {
            "plan" => self.plan().await?,
            "usage" => {
                let usage = UsageUpdate::new(1000u64, 8000u64).cost(Cost::new(0.25, "USD"));
                turn.usage(usage).await?;
            }
            "notice" => turn.notice(NoticeSeverity::Warning, rest).await?,
            "compact" => {
                let compaction = turn.compact().await?;
                compaction.push(ContentBlock::text("What was ")).await?;
                compaction.push(ContentBlock::text("said before.")).await?;
                compaction.complete(None).await?;
                let failing = turn.compact().await?;
                failing.fail("nothing to compact").await?;
            }
            "form" => self.form(turn, rest).await?,
            "url" => self.url(turn, rest).await?,
            "mode" => {
                self.store.with(self.handle.id().as_str(), |kept| kept.settings.set("mode", &rest.into()))?;
                turn.options(self.options()).await?;
            }
            "options" => turn.options(self.options()).await?,
            "commands" => turn.commands(commands()).await?,
            "title" => {
                self.store.with(self.handle.id().as_str(), |kept| kept.title = Some(rest.clone()));
                turn.title(rest).await?;
            }
            "fail" => return Err(HandlerError::new("this was to fail")),
            "image" => {
                let id = MessageId::from(self.next_id("message"));
                let image = ContentBlock::from(ImageContent::new("iVBORw0KGgo=", "image/png"));
                self.tell(SessionUpdate::AgentMessageChunk(MessageChunk::new(image).message_id(id))).await?;
            }
            "wait" => tokio::time::sleep(Duration::from_secs(rest.parse().unwrap_or(1))).await,
            "background" => {
                let terminal = turn.show_terminal("sleep 60", self.cwd()).await?;
                let work: BackgroundWork = BackgroundTerminal::new(terminal.id().clone()).into();
                turn.background(vec![work]).await?;
                turn.text("it goes on").await?;
                terminal.exit(ExitStatus::new().exit_code(0)).await?;
                turn.background(Vec::new()).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn plan(&self) -> Result<(), Error> {
        let plan = |first, second| {
            let entries = vec![
                PlanEntry::new("Look", PlanPriority::High, first),
                PlanEntry::new("Change", PlanPriority::Medium, second),
            ];
            SessionUpdate::PlanUpdate(PlanUpdate::new(PlanContent::Items(PlanItems::new("plan", entries))))
        };
        self.tell(plan(PlanStatus::InProgress, PlanStatus::Pending)).await?;
        self.tell(plan(PlanStatus::Completed, PlanStatus::Completed)).await
    }

    /// Shows a plan of the entries that a model would give.
    pub(super) async fn plan_of(&self, entries: &[serde_json::Value]) -> Result<(), Error> {
        let entries = entries.iter().map(|entry| {
            let content = entry["content"].as_str().unwrap_or_default();
            PlanEntry::new(
                content,
                PlanPriority::Medium,
                PlanStatus::from(entry["status"].as_str().unwrap_or("pending")),
            )
        });
        let items = PlanItems::new("plan", entries.collect::<Vec<_>>());
        self.tell(SessionUpdate::PlanUpdate(PlanUpdate::new(PlanContent::Items(items)))).await
    }

    pub(super) async fn form(&self, turn: &Turn, question: String) -> Result<(), HandlerError> {
        let name = ElicitationProperty::from(StringProperty::new().title("Name"));
        let is_new = ElicitationProperty::from(BooleanProperty::new().title("New"));
        let schema = ElicitationSchema::new().properties([("name".into(), name), ("new".into(), is_new)]);
        let schema = schema.required(vec!["name".into()]);
        let form = ElicitationForm::new(schema, SessionScope::new(turn.id().clone()));
        self.elicit(turn, CreateElicitationRequest::new(question, ElicitationMode::Form(form))).await.map(drop)
    }

    async fn url(&self, turn: &Turn, question: String) -> Result<(), HandlerError> {
        let id = self.next_id("question");
        let url = ElicitationUrl::new(id.as_str(), "https://example.com/allow", SessionScope::new(turn.id().clone()));
        let request = CreateElicitationRequest::new(question, ElicitationMode::Url(url));
        if self.elicit(turn, request).await? {
            turn.complete_elicitation(id).await?;
        }
        Ok(())
    }

    /// Puts a question to the person, where the client can; says whether they answered.
    async fn elicit(&self, turn: &Turn, request: CreateElicitationRequest) -> Result<bool, HandlerError> {
        let answer = match turn.elicit(request).await {
            Err(Error::NotOffered(_) | Error::Refused(_)) => return Ok(false),
            answer => answer?,
        };
        Ok(matches!(answer.action, ElicitationAction::Accept(_)))
    }

    /// The words after `remember` in what the person has said.
    fn remembered(&self) -> Vec<String> {
        let history = self.store.with(self.handle.id().as_str(), |kept| kept.history.clone());
        let said = history.into_iter().filter_map(|update| match update {
            SessionUpdate::UserMessage(message) => message.content.set().cloned(),
            _ => None,
        });
        let texts = said.flatten().filter_map(|block| block.as_text().map(str::to_owned));
        let words = texts.flat_map(|text| lines(&text)).filter_map(|line| match line {
            Line::Remember(word) => Some(word),
            _ => None,
        });
        words.collect()
    }

    pub(super) fn cwd(&self) -> String {
        self.store.with(self.handle.id().as_str(), |kept| kept.cwd.clone())
    }

    fn options(&self) -> Vec<ConfigOption> {
        self.store.with(self.handle.id().as_str(), |kept| kept.settings.options())
    }

    async fn run(&self, turn: &Turn, script: Vec<Line>) -> Result<Stop, HandlerError> {
        if script.is_empty() {
            self.say("done").await?;
        }
        let last = script.last().cloned();
        for line in script {
            if turn.is_cancelled() {
                return Ok(Stop::Cancelled);
            }
            if let Next::Stop(stop) = self.perform(turn, line).await? {
                return Ok(stop);
            }
        }
        if !turn.is_cancelled() && last.is_some_and(|last| !matches!(last, Line::Say(_))) {
            self.say("done").await?;
        }
        Ok(Stop::EndTurn)
    }
}

impl Session for ReferenceSession {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        if !prompt.blocks.iter().all(is_served) {
            return Err(ErrorObject::wrong_params("prompt: such content is not served").into());
        }
        let id = turn.prompt_id().cloned().unwrap_or_else(|| self.next_id("prompt").into());
        self.keep(SessionUpdate::UserMessage(MessageUpdate::new(id).content(prompt.blocks.clone())));
        let script = lines(&prompt.text());
        match turn.unless_cancelled(self.run(&turn, script)).await {
            Ok(result) => result,
            Err(_) => Ok(Stop::Cancelled),
        }
    }

    async fn set_option(&mut self, option: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        self.store.with(self.handle.id().as_str(), |kept| kept.settings.set(option.as_str(), &value))?;
        Ok(self.options())
    }
}

/// Whether the agent takes such content.
fn is_served(block: &ContentBlock) -> bool {
    matches!(
        block,
        ContentBlock::Text(_) | ContentBlock::ResourceLink(_) | ContentBlock::Image(_) | ContentBlock::Resource(_)
    )
}
