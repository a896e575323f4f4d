//! A client with a permission dialog: starts an agent, sends what you type, and asks you before the agent may do something.
//!
//!     cargo run --example permission_client -- gemini --acp
#![allow(clippy::print_stdout, reason = "what a person reads goes there")]

use std::io::{BufRead, Write};

use attache::client::{PermissionAsk, Session};
use attache::model::update::SessionUpdate;
use attache::{Client, Error, Event};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    if command.is_empty() {
        println!("usage: permission_client AGENT [ARGUMENT …]");
        return Ok(());
    }
    let agent = Client::new("permission-client", "1.0").launch(command).await?;
    let session = agent.session(std::env::current_dir().unwrap_or_else(|_| "/".into())).open().await?;
    while let Some(prompt) = type_in("> ") {
        match take_turn(&session, prompt).await {
            // Nothing more can be sent.
            Err(error @ Error::Closed(_)) => return Err(error),
            // One turn has failed; the session goes on.
            Err(error) => println!("\nerror: {}", harmless(&error.to_string())),
            Ok(()) => {}
        }
    }
    agent.shutdown().await;
    Ok(())
}

/// Sends a prompt and shows what the agent does until its turn has ended.
async fn take_turn(session: &Session, prompt: String) -> Result<(), Error> {
    let mut turn = session.prompt(prompt).await?;
    while let Some(event) = turn.next().await? {
        match event {
            Event::Update(update) => show(&update),
            Event::Permission(question) => decide(question).await?,
            // Files, commands and forms are not offered, so nothing else should come. Whatever does is declined.
            other => other.decline().await?,
        }
    }
    println!();
    if let Some(stop) = turn.stop() {
        println!("[{stop}]");
    }
    Ok(())
}

fn show(update: &SessionUpdate) {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => print!("{}", harmless(chunk.content.as_text().unwrap_or_default())),
        SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
            if let Some(title) = call.title.set() {
                println!("\n* {}", harmless(title));
            }
        }
        _ => {}
    }
    let _ = std::io::stdout().flush();
}

/// Shows the question and the answers that the agent offers. Anything but a number that is there is a no.
async fn decide(question: PermissionAsk) -> Result<(), Error> {
    let title = question.title.clone();
    let title = title.or_else(|| question.tool_call().and_then(|call| call.title.set().cloned()));
    println!("\n? {}", harmless(title.as_deref().unwrap_or("The agent asks for permission")));
    for (index, option) in question.options.iter().enumerate() {
        println!("  {}) {}", index + 1, harmless(&option.name));
    }
    let choice = type_in("Your choice: ").and_then(|line| line.trim().parse::<usize>().ok());
    let chosen = choice.and_then(|number| question.options.get(number.checked_sub(1)?));
    match chosen.map(|option| option.option_id.clone()) {
        Some(option) => question.select(option).await,
        None => question.reject().await,
    }
}

/// What an agent chose, without control characters that could paint over the screen.
fn harmless(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() || *char == '\n' || *char == '\t').collect()
}

/// A line from the keyboard; `None` at its end.
fn type_in(prompt: &str) -> Option<String> {
    print!("{prompt}");
    std::io::stdout().flush().ok()?;
    let mut line = String::new();
    (std::io::stdin().lock().read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}
