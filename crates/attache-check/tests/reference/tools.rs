//! The tools of the reference agent, by the names that scripts for coding agents have.

use attache::agent::{Ask, HandlerError, ToolCall, ToolCallBuilder, Turn};
use attache::model::RawJson;
use attache::model::content::ContentBlock;
use attache::model::diff::Diff;
use attache::model::terminal::{CreateTerminalRequest, ExitStatus};
use attache::model::tool::{Location, ToolCallContent, ToolCallStatus, ToolCallTerminal, ToolCallUpdate, ToolKind};
use attache::model::update::SessionUpdate;
use serde_json::Value;

use super::session::ReferenceSession;

impl ReferenceSession {
    /// Calls a tool. What it cannot do makes the call fail, and not the turn.
    pub(super) async fn call(&self, turn: &Turn, name: &str, arguments: &Value) -> Result<(), HandlerError> {
        let path = self.absolute(arguments["path"].as_str().unwrap_or("file.txt"));
        match name {
            "read_file" => self.read(turn, path, arguments).await,
            "write_file" => {
                let content = arguments["content"].as_str().unwrap_or_default().to_owned();
                self.write(turn, name, path, None, content).await
            }
            "edit_file" => {
                let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
                self.write(turn, name, path, Some(text("old_text")), text("new_text")).await
            }
            "run_command" => self.run_command(turn, arguments["command"].as_str().unwrap_or("true")).await,
            "update_plan" => {
                let entries = arguments["entries"].as_array().map_or(&[][..], Vec::as_slice);
                Ok(self.plan_of(entries).await?)
            }
            "ask_user" => self.form(turn, arguments["question"].as_str().unwrap_or("What?").to_owned()).await,
            "run_both" if turn.client().capabilities.terminal => self.run_both(turn).await,
            _ => {
                let call = self.start(turn, &format!("Call {name}"), name, ToolKind::Think).await?;
                call.push_text("no such tool").await?;
                Ok(call.fail().await?)
            }
        }
    }

    fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.cwd().trim_end_matches('/')) }
    }

    fn builder(&self, turn: &Turn, title: &str, name: &str, kind: ToolKind) -> ToolCallBuilder {
        turn.tool(title).id(self.next_id("call")).name(name).kind(kind)
    }

    async fn start(&self, turn: &Turn, title: &str, name: &str, kind: ToolKind) -> Result<ToolCall, HandlerError> {
        self.show(self.builder(turn, title, name, kind), title, name).await
    }

    /// Starts a call, and keeps it for those to whom it is told again.
    async fn show(&self, builder: ToolCallBuilder, title: &str, name: &str) -> Result<ToolCall, HandlerError> {
        let call = builder.await?;
        let ended = ToolCallUpdate::new(call.id().clone()).title(title).name(name).status(ToolCallStatus::Completed);
        self.keep(SessionUpdate::ToolCallUpdate(ended.into()));
        Ok(call)
    }

    async fn read(&self, turn: &Turn, path: String, arguments: &Value) -> Result<(), HandlerError> {
        let title = format!("Read {path}");
        let location = Location::new(path.as_str()).line(1u32);
        let input = RawJson::from_value(arguments)?;
        let builder = self.builder(turn, &title, "read_file", ToolKind::Read).location(location).input(input);
        let call = self.show(builder, &title, "read_file").await?;
        call.in_progress().await?;
        let number = |key: &str| arguments[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let text = match turn.client().capabilities.fs.read_text_file {
            true => turn.read_lines(path, number("line"), number("limit")).await,
            false => Ok("what the agent itself has read".to_owned()),
        };
        match text {
            Ok(text) => {
                call.push_text(text).await?;
                Ok(call.complete().await?)
            }
            Err(attache::Error::Refused(_)) => Ok(call.fail().await?),
            Err(error) => Err(error.into()),
        }
    }

    async fn write(
        &self,
        turn: &Turn,
        name: &str,
        path: String,
        old: Option<String>,
        new: String,
    ) -> Result<(), HandlerError> {
        let title = format!("Write {path}");
        let diff = ToolCallContent::from(Diff::text(path.as_str(), old, new.as_str()));
        let location = Location::new(path.as_str());
        let builder = self.builder(turn, &title, name, ToolKind::Edit).location(location).content(diff);
        let call = self.show(builder, &title, name).await?;
        if !turn.ask(Ask::new(format!("Write {path}?")).about(&call)).await?.is_allowed() {
            return Ok(call.cancel().await?);
        }
        call.in_progress().await?;
        let written = match turn.client().capabilities.fs.write_text_file {
            true => turn.write_text_file(path, new).await,
            false => Ok(()),
        };
        match written {
            Ok(()) => {
                call.output(RawJson::from_value(&serde_json::json!({"written": true}))?).await?;
                Ok(call.complete().await?)
            }
            Err(attache::Error::Refused(_)) => Ok(call.fail().await?),
            Err(error) => Err(error.into()),
        }
    }

    async fn run_command(&self, turn: &Turn, command: &str) -> Result<(), HandlerError> {
        let call = self.start(turn, &format!("Run {command}"), "run_command", ToolKind::Execute).await?;
        if !turn.ask(Ask::new(format!("Run {command}?")).about(&call)).await?.is_allowed() {
            return Ok(call.cancel().await?);
        }
        call.in_progress().await?;
        if turn.client().capabilities.terminal {
            self.run_there(turn, call, command).await
        } else {
            self.run_here(turn, call, command).await
        }
    }

    /// Has the client run a command.
    async fn run_there(&self, turn: &Turn, call: ToolCall, command: &str) -> Result<(), HandlerError> {
        let request = CreateTerminalRequest::new(turn.id().clone(), command).cwd(self.cwd()).output_byte_limit(1000u64);
        let terminal = turn.create_terminal(request).await?;
        call.push(ToolCallContent::from(ToolCallTerminal::new(terminal.id().clone()))).await?;
        if command.starts_with("sleep") {
            terminal.kill().await?;
        }
        let status = terminal.wait().await?;
        terminal.output().await?;
        terminal.release().await?;
        let is_good = status.exit_code == Some(0);
        Ok(if is_good { call.complete().await } else { call.fail().await }?)
    }

    /// Has the client run two commands at once.
    async fn run_both(&self, turn: &Turn) -> Result<(), HandlerError> {
        let call = self.start(turn, "Run both", "run_both", ToolKind::Execute).await?;
        let (one, other) = (turn.terminal("true", ["1"]).await?, turn.terminal("true", ["2"]).await?);
        for terminal in [one, other] {
            terminal.wait().await?;
            terminal.release().await?;
        }
        Ok(call.complete().await?)
    }

    /// Shows a command that runs here.
    async fn run_here(&self, turn: &Turn, call: ToolCall, command: &str) -> Result<(), HandlerError> {
        let terminal = turn.show_terminal(command, self.cwd()).await?;
        call.push(ToolCallContent::from(ToolCallTerminal::new(terminal.id().clone()))).await?;
        terminal.output(b"running\r\n").await?;
        if command.starts_with("sleep") {
            let token = call.cancellable().await?;
            let other = terminal.cancellable().await?;
            tokio::select! {
                () = token.cancelled() => {
                    terminal.exit(ExitStatus::new().signal("SIGTERM")).await?;
                    return Ok(call.cancel().await?);
                }
                () = other.cancelled() => {}
                () = tokio::time::sleep(std::time::Duration::from_secs(60)) => {}
            }
        }
        terminal.exit(ExitStatus::new().exit_code(0)).await?;
        call.push(ToolCallContent::from(ContentBlock::text("it ran"))).await?;
        Ok(call.complete().await?)
    }
}
