//! The agent of the benchmark, written with Attaché as its documentation shows.

use attache::agent::{Agent, HandlerError, OpenRequest, Opened, Server, Session, SessionHandle};
use attache::model::Patch;
use attache::model::capability::{Capability, SessionCapabilities};
use attache::model::config::{ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigValue, ConfigValueId};
use attache::model::content::{ContentBlock, ResourceContents};
use attache::model::initialize::Implementation;
use attache::{Prompt, Stop, Turn};
use futures_util::future::try_join_all;
use script::Script;

/// The agent, ready to be served.
pub fn server() -> Server<impl Agent> {
    let embedded = |session: &mut SessionCapabilities| session.prompt.embedded_context = Some(Capability::new());
    attache::serve(Bench).sessions(embedded)
}

struct Bench;

impl Agent for Bench {
    type Session = BenchSession;

    fn info(&self) -> Implementation {
        Implementation::new("bench", "1.0")
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<BenchSession>, HandlerError> {
        let session = BenchSession { mode: "a".into() };
        let options = session.options();
        Ok(Opened::from(session).options(options))
    }
}

struct BenchSession {
    mode: ConfigValueId,
}

impl BenchSession {
    fn options(&self) -> Vec<ConfigOption> {
        let values = vec![ConfigValue::new("a", "a"), ConfigValue::new("b", "b")];
        let mode = ConfigKind::Select(ConfigSelect::new(self.mode.clone(), values));
        vec![ConfigOption::new("mode", "Mode", mode).category(ConfigCategory::Mode)]
    }
}

impl Session for BenchSession {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        match prompt.blocks.iter().find_map(ContentBlock::as_text).and_then(Script::parse) {
            Some(Script::Chunks { count, size, is_flushed }) => {
                let text = script::text(size);
                for _ in 0..count {
                    turn.text(text.as_str()).await?;
                    if is_flushed {
                        turn.flush().await?;
                    }
                }
            }
            Some(Script::ToolUpdates { count, size }) => {
                let tool = turn.tool(script::TOOL).await?;
                let text = script::text(size);
                for _ in 0..count {
                    let content = Patch::Set(vec![ContentBlock::text(text.as_str()).into()]);
                    tool.update(tool.blank().with(|update| update.content = content)).await?;
                }
                tool.complete().await?;
            }
            Some(Script::Reads { outstanding, rounds }) => {
                for _ in 0..rounds {
                    let reads = (0..outstanding).map(|_| turn.read_text_file(script::PATH));
                    try_join_all(reads).await?;
                }
            }
            Some(Script::Size) => turn.text(resource_length(&prompt).to_string()).await?,
            None => {}
        }
        Ok(Stop::EndTurn)
    }

    async fn set_option(&mut self, _: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        if let ConfigSetting::Id(mode) = value {
            self.mode = mode;
        }
        Ok(self.options())
    }
}

fn resource_length(prompt: &Prompt) -> usize {
    let length = |block: &ContentBlock| match block {
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::Text(text) => Some(text.text.len()),
            _ => None,
        },
        _ => None,
    };
    prompt.blocks.iter().find_map(length).unwrap_or(0)
}
