//! An agent with tools, permission and a plan: it counts the words of a file, and asks before it writes the count down.
//!
//!     cargo run --example permission_client -- cargo run --quiet --example tools_agent

use attache::agent::{Ask, HandlerError};
use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::tool::{Location, ToolKind};
use attache::{Error, Prompt, Stop, Turn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    attache::serve(attache::agent_fn("word-counter", "1.0", count)).stdio().await
}

/// One turn: the prompt is the absolute path of a file.
async fn count(turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
    let path = prompt.text().trim().to_owned();
    let plan = |read, write| {
        vec![
            PlanEntry::new("Read the file", PlanPriority::High, read),
            PlanEntry::new("Write down how many words it has", PlanPriority::Medium, write),
        ]
    };
    turn.plan(plan(PlanStatus::InProgress, PlanStatus::Pending)).await?;

    // All that is known of a call is shown at once. `?` on any error is fine: the client is told no more than that
    // something went wrong, and the call is shown as failed.
    let reading = turn.tool(format!("Read {path}")).kind(ToolKind::Read).location(Location::new(path.as_str())).await?;
    let text = std::fs::read_to_string(&path)?;
    let words = text.split_whitespace().count();
    reading.push_text(format!("{words} words")).await?;
    reading.complete().await?;
    turn.plan(plan(PlanStatus::Completed, PlanStatus::InProgress)).await?;

    let note = format!("{path}.words");
    let writing =
        turn.tool(format!("Write {note}")).kind(ToolKind::Edit).location(Location::new(note.as_str())).await?;
    // Only a clear yes allows. When the person cancels the turn, this is a no.
    if !turn.ask(Ask::new(format!("Write {words} to {note}?")).about(&writing)).await?.is_allowed() {
        writing.cancel().await?;
        turn.text(format!("{path} has {words} words. I wrote nothing down.")).await?;
        return Ok(Stop::EndTurn);
    }
    std::fs::write(&note, format!("{words}\n"))?;
    writing.complete().await?;
    turn.plan(plan(PlanStatus::Completed, PlanStatus::Completed)).await?;
    turn.text(format!("{path} has {words} words, which is now written in {note}.")).await?;
    Ok(Stop::EndTurn)
}
