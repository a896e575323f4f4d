//! Sessions that are opened again: what was live, and what is replayed.

use serde_json::json;

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::task::Task;
use crate::probe::agent::words::{self, Feature};

pub(super) const PROBES: &[Probe] = &[
    probe!("history/load", ALL, "Closes a session and loads it.", |driver| closed(driver, Feature::Load)),
    probe!("history/resume", ALL, "Closes a session and resumes it.", |driver| closed(driver, Feature::Resume)),
    probe!("history/load-anew", ALL, "Ends the agent and loads the session in a new one.", |driver| {
        restarted(driver, Feature::Load)
    }),
    probe!("history/resume-anew", ALL, "Ends the agent and resumes the session in a new one.", |driver| {
        restarted(driver, Feature::Resume)
    }),
    probe!("history/load-open", ALL, "Loads a session that is open.", load_open),
    probe!("history/load-cancelled", ALL, "Loads a session whose last turn was cancelled.", load_cancelled),
    probe!("history/load-elsewhere", ALL, "Loads a session in a directory that it was not opened in.", load_elsewhere),
    probe!("history/unknown-cursor", V2, "Resumes a session from a place that nobody knows.", unknown_cursor),
];

/// A session with a history: text, a thought, a tool, several turns.
async fn with_history(driver: &mut Driver, feature: Feature) -> Flow<String> {
    driver.hello().await?;
    driver.need(driver.offers(feature))?;
    let session = driver.open().await?;
    driver.prompt(&session, &[Task::Say("hello, wörld")]).await?;
    // Not every style can say all of it.
    let notes = driver.path("notes.txt");
    driver.prompt(&session, &[Task::Read(notes), Task::Run("echo hello"), Task::Say("read and run")]).await?;
    driver.prompt(&session, &[Task::Plan, Task::Say("planned")]).await?;
    driver.settle().await?;
    Ok(session)
}

/// Opens a session again and goes on with it.
async fn reopen(driver: &mut Driver, session: &str, feature: Feature) -> Flow {
    let (method, params) = words::reopening(driver.dialect, driver.cwd(), session, feature == Feature::Load);
    let id = driver.ask(method, params).await?;
    let limit = driver.options.startup;
    driver.answer(id, limit).await?.result()?;
    driver.settle().await?;
    driver.prompt(session, &[Task::Say("after")]).await?;
    driver.settle().await
}

async fn closed(driver: &mut Driver, feature: Feature) -> Flow {
    let session = with_history(driver, feature).await?;
    if driver.offers(Feature::Close) {
        driver.request("session/close", json!({ "sessionId": session })).await?;
    }
    reopen(driver, &session, feature).await
}

async fn restarted(driver: &mut Driver, feature: Feature) -> Flow {
    let session = with_history(driver, feature).await?;
    driver.restart().await?;
    driver.hello().await?;
    if driver.offers(Feature::List) {
        driver.request("session/list", json!({})).await?;
    }
    reopen(driver, &session, feature).await
}

async fn load_open(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.need(driver.offers(Feature::Load))?;
    let session = driver.open().await?;
    driver.prompt(&session, &[Task::Say("hello")]).await?;
    reopen(driver, &session, Feature::Load).await
}

async fn load_cancelled(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.need(driver.offers(Feature::Load))?;
    let session = driver.open().await?;
    let turn = driver.send_prompt(&session, &[Task::Slowly]).await?;
    driver.sees(&turn, &["agent_message_chunk"]).await?;
    driver.cancel_turn(turn).await?;
    driver.settle().await?;
    driver.restart().await?;
    driver.hello().await?;
    reopen(driver, &session, Feature::Load).await
}

async fn load_elsewhere(driver: &mut Driver) -> Flow {
    let session = with_history(driver, Feature::Load).await?;
    driver.restart().await?;
    driver.hello().await?;
    let (method, params) = words::reopening(driver.dialect, "/", &session, true);
    driver.request(method, params).await?;
    driver.settle().await
}

async fn unknown_cursor(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let session = driver.open().await?;
    driver.prompt(&session, &[Task::Say("hello")]).await?;
    for cursor in [json!({ "type": "_attache" }), json!({}), json!("start")] {
        let (method, mut params) = words::reopening(driver.dialect, driver.cwd(), &session, true);
        params["replayFrom"] = cursor;
        driver.request(method, params).await?;
    }
    driver.settle().await
}
