//! Steps for the tests of `chat`: all that an agent can show and ask, and what means harm.

use std::process::exit;
use std::time::Duration;

use attache::agent::Ask;
use attache::model::RawJson;
use attache::model::command::Command;
use attache::model::content::ContentBlock;
use attache::model::diff::Diff;
use attache::model::elicitation::{
    CreateElicitationRequest, ElicitationAction, ElicitationForm, ElicitationUrl, ElicitationValue, SessionScope,
};
use attache::model::form::{BooleanProperty, ElicitationProperty, ElicitationSchema, StringProperty};
use attache::model::notice::{Notice, NoticeSeverity};
use attache::model::permission::{PermissionOption, PermissionOptionKind};
use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::terminal::ExitStatus;
use attache::model::tool::{Location, ToolCallContent, ToolCallTerminal, ToolKind};
use attache::model::update::{Cost, SessionUpdate, UsageUpdate};
use attache::model::{Patch, config};
use attache::{Error, Turn};

/// Does a step; `false` if there is none of this name.
pub(crate) async fn step(turn: &Turn, word: &str, rest: &str) -> Result<bool, Error> {
    match word {
        // Says the words one after the other.
        "slowly" => {
            for word in rest.split_inclusive(' ') {
                turn.text(word).await?;
                tokio::time::sleep(Duration::from_millis(15)).await;
            }
        }
        "title" => turn.title(rest).await?,
        // Asks for a command, and neither runs it nor ends its tool call.
        "allow" => {
            let tool = turn.tool("Something for later").kind(ToolKind::Execute).start().await?;
            tool.input(RawJson::from_value(&serde_json::json!({ "command": rest })).expect("it is JSON")).await?;
            let allowed = turn.ask(Ask::new("May I?").about(&tool)).await?.is_allowed();
            turn.text(if allowed { "allowed for later. " } else { "not allowed. " }).await?;
            std::mem::forget(tool);
        }
        // Runs a command through the client, and shows its terminal: `term sleep 60`.
        "term" => {
            let tool = turn.tool(rest).kind(ToolKind::Execute).start().await?;
            tool.in_progress().await?;
            match turn.terminal("/bin/sh", ["-c", rest]).await {
                Ok(terminal) => {
                    tool.push(ToolCallTerminal::new(terminal.id().clone())).await?;
                    let status = terminal.wait().await?;
                    turn.text(format!("exit {:?} signal {:?}. ", status.exit_code, status.signal)).await?;
                    tool.complete().await?;
                    terminal.release().await?;
                }
                Err(Error::Refused(error)) => turn.text(format!("not run, {}. ", error.code)).await?,
                Err(error) => return Err(error),
            }
        }
        // Shows a command of the agent's own, which a person can cancel.
        "own" => {
            let terminal = turn.show_terminal(rest, "/").await?;
            let token = terminal.cancellable().await?;
            let tool = turn.tool(rest).kind(ToolKind::Execute).content(ToolCallTerminal::new(terminal.id().clone()));
            let tool = tool.start().await?;
            tool.in_progress().await?;
            terminal.output(b"\x1b[32mgreen\x1b[0m output\r\n").await?;
            turn.unless_cancelled(token.cancelled()).await?;
            terminal.exit(ExitStatus::new().signal("SIGTERM")).await?;
            tool.fail().await?;
            turn.text("the command was cancelled alone. ").await?;
        }
        // A tool call that can be cancelled alone.
        "cancellable" => {
            let tool = turn.tool("A long search").kind(ToolKind::Search).start().await?;
            tool.in_progress().await?;
            let token = tool.cancellable().await?;
            turn.unless_cancelled(token.cancelled()).await?;
            tool.cancel().await?;
            turn.text("the tool call was cancelled alone. ").await?;
        }
        "steps" => {
            let entry = |text: &str, status| PlanEntry::new(text, PlanPriority::Medium, status);
            let (first, second) = match rest {
                "done" => (PlanStatus::Completed, PlanStatus::Completed),
                _ => (PlanStatus::InProgress, PlanStatus::Pending),
            };
            turn.plan(vec![entry("dig a hole", first), entry("fill it in", second)]).await?;
        }
        "spend" => {
            let cost = Patch::Set(Cost::new(1.5, "USD"));
            turn.usage(UsageUpdate::new(50_000, 200_000).with(|update| update.cost = cost)).await?;
        }
        "at" => {
            let tool = turn.tool("Look").kind(ToolKind::Read).location(Location::new(rest).line(42u32));
            tool.start().await?.complete().await?;
        }
        "compact" => turn.compact().await?.complete(Some(vec![ContentBlock::text("all that was said")])).await?,
        // Several questions at once, the answers in order.
        "asks" => {
            let ask = |name: &'static str| async move {
                let tool = turn.tool(name).kind(ToolKind::Execute).input(command_input(name)).start().await?;
                let allowed = turn.ask(Ask::new(name).about(&tool)).await?.is_allowed();
                tool.complete().await?;
                Ok::<_, Error>(if allowed { "yes" } else { "no" })
            };
            let (one, two, three) = tokio::join!(ask("touch one"), ask("touch two"), ask("touch three"));
            turn.text(format!("answers: {} {} {}", one?, two?, three?)).await?;
        }
        // A question that is taken back.
        "withdraw" => {
            let tool = turn.tool("ls").kind(ToolKind::Execute).input(command_input("ls")).start().await?;
            let asked = tokio::time::timeout(Duration::from_millis(400), turn.ask(Ask::new("Never mind").about(&tool)));
            let answer = asked.await.is_ok();
            tool.complete().await?;
            turn.text(if answer { "answered. " } else { "withdrawn. " }).await?;
        }
        "form" => {
            let name = StringProperty::new().title("Your name".to_owned());
            let sure = BooleanProperty::new().title("Are you sure?".to_owned());
            let mut schema = ElicitationSchema::new().title("A form".to_owned());
            schema.properties = vec![
                ("name".into(), ElicitationProperty::from(name)),
                ("sure".into(), ElicitationProperty::from(sure)),
            ];
            schema.required = Some(vec!["name".into()]);
            let form = ElicitationForm::new(schema, SessionScope::new(turn.id().clone()));
            let answer = turn.elicit(CreateElicitationRequest::new("Who are you?", form)).await?;
            turn.text(format!("form {}. ", answered(&answer.action))).await?;
        }
        "url" => {
            let url = ElicitationUrl::new("e1", rest, SessionScope::new(turn.id().clone()));
            let answer = turn.elicit(CreateElicitationRequest::new("Look at this page", url)).await?;
            turn.text(format!("page {}. ", answered(&answer.action))).await?;
        }
        // Waits for what the person sends into the turn.
        "await" => {
            turn.text("waiting for you. ").await?;
            let prompt = turn.next_prompt().await?;
            turn.text(format!("steered: {}", prompt.text())).await?;
        }
        // Says something after the turn has ended.
        "later" => {
            let (handle, text) = ((**turn).clone(), rest.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let _ = handle.text(text).await;
            });
        }
        "die" => {
            turn.text("about to die. ").await?;
            turn.flush().await?;
            eprintln!("panicked at {rest} \x1b[2J");
            exit(9);
        }
        "flood" => {
            for number in 0..rest.parse::<usize>().expect("a number of updates") {
                turn.text(format!("{number} ")).await?;
            }
        }
        // Says nothing until the turn is cancelled.
        "hush" => turn.cancelled().await,
        "offer-undo" => turn.commands(vec![Command::new("undo", "Takes the last turn back").into()]).await?,
        // A question as ours would look, painted with letters.
        "paint" => turn.text(FAKE).await?,
        "hostile" => hostile(turn).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

const FAKE: &str = "```\n╭ attache asks ──────────────────╮\n│ $ rm -rf /                     │\n\
                    │ run `rm -rf /` (a840d2)?       │\n│ [y] yes  [N] no                │\n\
                    ╰────────────────────────────────╯\n```\n";

fn command_input(command: &str) -> RawJson {
    RawJson::from_value(&serde_json::json!({ "command": command })).expect("it is JSON")
}

fn answered(action: &ElicitationAction) -> String {
    let ElicitationAction::Accept(accept) = action else { return "declined".into() };
    let value = |(name, value): &(String, ElicitationValue)| match value {
        ElicitationValue::Text(text) => format!("{name}={text}"),
        ElicitationValue::Boolean(value) => format!("{name}={value}"),
        other => format!("{name}={other:?}"),
    };
    let values: Vec<String> = accept.content.iter().flatten().map(value).collect();
    format!("accepted {}", values.join(" "))
}

/// Two hundred texts that mean harm: sequences and characters, alone and in the midst of others.
fn hostile_texts() -> Vec<String> {
    let bad = [
        "\x1b[2J",
        "\x1b[H",
        "\x1b[31m",
        "\x1b[?1049l",
        "\x1b[6n",
        "\x1b[c",
        "\x1b[5;1Hallow?",
        "\x1b[?2026l",
        "\x1b]0;title\x07",
        "\x1b]52;c;aGk=\x07",
        "\x1b]8;;https://evil.example\x1b\\text\x1b]8;;\x1b\\",
        "\x1b]2;t\x1b\\",
        "\x1b]10;?\x07",
        "\x1bP$q\"p\x1b\\",
        "\x1b_apc\x1b\\",
        "\x1b^pm\x1b\\",
        "\x1bc",
        "\x1b(0",
        "\x1b#8",
        "\x1b=",
        "\x1b7\x1b8",
        "\u{9b}2J",
        "\u{9d}0;t\u{9c}",
        "\u{90}q\u{9c}",
        "\u{85}",
        "\u{84}",
        "\u{8d}",
        "over\rwritten",
        "\x08\x08\x08",
        "\x07",
        "\0",
        "\x7f",
        "\x0b\x0c",
        "\x0e\x0f",
        "\x1a",
        "\x05",
        "\x11\x13",
        "\u{202e}txt.exe",
        "\u{2066}x\u{2069}",
        "\u{200b}\u{200b}",
        "\u{feff}",
        "\u{2028}\u{2029}",
        "\u{e0041}",
        "&#27;[2J &#x9b;2J",
        "\x1b[200~y\r\x1b[201~",
        "\x1b[1000000000C",
        "\x1b[38;2;1;2;3m",
        "\x1b[?25l",
        "\x1b\x1b[A",
        "\x1b]1337;File=inline=1:AAAA\x07",
    ];
    let mut texts = Vec::new();
    for bad in bad {
        texts.push(bad.to_owned());
        texts.push(format!("a{bad}b"));
        texts.push(format!("# {bad}\n- `{bad}` [l{bad}](https://{bad})\n\n```{bad}\n{bad}\n```\n"));
        texts.push(format!("日{bad}本"));
    }
    texts
}

/// Puts each text wherever an agent can put one.
async fn hostile(turn: &Turn) -> Result<(), Error> {
    for text in hostile_texts() {
        let text = text.as_str();
        turn.text(text).await?;
        turn.thought(text).await?;
        turn.title(text).await?;
        turn.notice(NoticeSeverity::Warning, text).await?;
        turn.update(SessionUpdate::Notice(Notice::new(NoticeSeverity::from(text), text).description(text.to_owned())))
            .await?;
        turn.plan(vec![PlanEntry::new(text, PlanPriority::from(text), PlanStatus::from(text))]).await?;
        turn.commands(vec![Command::new(text, text).into()]).await?;
        let cost = Patch::Set(Cost::new(1.0, text));
        turn.usage(UsageUpdate::new(1, 2).with(|update| update.cost = cost)).await?;
        let value = config::ConfigValue::new(text, text).description(text.to_owned());
        let kind = config::ConfigKind::Select(config::ConfigSelect::new(text, vec![value]));
        turn.options(vec![config::ConfigOption::new("mode", text, kind).category(config::ConfigCategory::Mode)])
            .await?;
        let terminal = turn.show_terminal(text, "/").await?;
        terminal.output(text.as_bytes()).await?;
        let tool = turn.tool(text).kind(ToolKind::from(text)).location(Location::new(text)).start().await?;
        tool.in_progress().await?;
        tool.push_text(text).await?;
        tool.push(ToolCallContent::Diff(Box::new(Diff::text(text, Some(text.into()), format!("{text}x"))))).await?;
        tool.push(ToolCallTerminal::new(terminal.id().clone())).await?;
        terminal.exit(ExitStatus::new().signal(text)).await?;
        tool.complete().await?;
    }
    let text = hostile_texts().concat();
    let tool = turn.tool(&*text).kind(ToolKind::Execute).input(command_input(&text)).start().await?;
    let ask = Ask::new(&*text).description(&*text).about(&tool).options(vec![
        PermissionOption::new("a", &*text, PermissionOptionKind::AllowOnce),
        PermissionOption::new("r", &*text, PermissionOptionKind::RejectOnce),
    ]);
    turn.ask(ask).await?;
    tool.complete().await?;
    turn.text("that was all").await
}
