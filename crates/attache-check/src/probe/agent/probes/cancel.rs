//! Cancelling, at every moment of a turn.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::serve::Permission;
use crate::probe::agent::task::Task;
use crate::probe::agent::turn::Turn;
use crate::probe::agent::words;

pub(super) const PROBES: &[Probe] = &[
    probe!("cancel/at-once", ALL, "Cancels a turn before anything came of it.", at_once),
    probe!("cancel/in-mid-text", ALL, "Cancels a turn while the agent speaks.", in_mid_text),
    probe!(
        "cancel/with-open-question",
        ALL,
        "Cancels a turn while the agent waits for permission.",
        with_open_question
    ),
    probe!(
        "cancel/answered-late",
        V1_AND_DRAFT,
        "Cancels a turn, and allows what it asked for after that.",
        answered_late
    ),
    probe!("cancel/in-tool", ALL, "Cancels a turn while a command runs.", in_tool),
    probe!("cancel/after-the-end", ALL, "Cancels a session that does nothing.", after_the_end),
    probe!("cancel/twice", ALL, "Cancels a turn twice.", twice),
    probe!("cancel/then-prompt", ALL, "Cancels a turn and prompts at once.", then_prompt),
    probe!(
        "cancel/unknown-session",
        ALL,
        "Cancels a session that does not exist, while another works.",
        unknown_session
    ),
    probe!("cancel/request", ALL, "Cancels the request of a prompt.", request),
    probe!("cancel/unknown-request", ALL, "Cancels requests that do not exist, or are answered.", unknown_request),
    probe!("cancel/other-requests", ALL, "Cancels requests that open, list and close.", other_requests),
];

/// A turn that takes its time, and has said something.
async fn slow(driver: &mut Driver, session: &str) -> Flow<Turn> {
    let turn = driver.send_prompt(session, &[Task::Slowly]).await?;
    driver.sees(&turn, &["agent_message_chunk"]).await?;
    Ok(turn)
}

/// Sees that the session works as before, and that nothing comes late.
async fn goes_on(driver: &mut Driver, session: &str) -> Flow {
    driver.prompt(session, &[Task::Say("after")]).await?;
    driver.settle().await
}

async fn at_once(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let turn = driver.send_prompt(&session, &[Task::Slowly]).await?;
    driver.cancel_turn(turn).await?;
    goes_on(driver, &session).await
}

async fn in_mid_text(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    // A turn may have ended in the moment in which it was cancelled, but not again and again.
    for _ in 0..3 {
        let turn = driver.send_prompt(&session, &[Task::Slowly]).await?;
        let (id, is_speaking) = (turn.id, driver.sees(&turn, &["agent_message_chunk"]).await?);
        driver.cancel_turn(turn).await?;
        if !is_speaking || driver.stop_reason(id, &session) == Some("cancelled") {
            break;
        }
    }
    goes_on(driver, &session).await
}

/// A turn that waits for permission; if the agent does not ask, it is left to end.
async fn asking(driver: &mut Driver, session: &str) -> Flow<Option<Turn>> {
    driver.permission = Permission::Hold;
    let turn = driver.send_prompt(session, &[Task::Run("echo hello"), Task::Say("run")]).await?;
    if driver.during(&turn, |driver, _| !driver.held.is_empty()).await? {
        return Ok(Some(turn));
    }
    driver.end(turn).await?;
    Ok(None)
}

async fn with_open_question(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    if let Some(turn) = asking(driver, &session).await? {
        driver.cancel_turn(turn).await?;
    }
    driver.permission = Permission::Allow;
    goes_on(driver, &session).await
}

async fn answered_late(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    if let Some(turn) = asking(driver, &session).await? {
        // The two cross on the wire: the person said yes before the cancel was known.
        driver.answer_held(Permission::Allow).await?;
        driver.cancel_turn(turn).await?;
    }
    driver.permission = Permission::Allow;
    goes_on(driver, &session).await
}

async fn in_tool(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let turn = driver.send_prompt(&session, &[Task::Run("sleep 30"), Task::Say("slept")]).await?;
    let is_running = |_: &Driver, message: &Value| {
        message["params"]["update"]["status"] == "in_progress" || message["method"] == "terminal/wait_for_exit"
    };
    // Not every agent says when a command begins; that the turn goes on for so long says as much.
    if driver.watch(&turn, is_running).await? == Some(false) {
        driver.end(turn).await?;
    } else {
        driver.cancel_turn(turn).await?;
    }
    goes_on(driver, &session).await
}

async fn after_the_end(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.cancel(&session).await?;
    driver.settle().await?;
    driver.prompt(&session, &[Task::Say("hello")]).await?;
    driver.cancel(&session).await?;
    driver.settle().await?;
    goes_on(driver, &session).await
}

async fn twice(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let turn = slow(driver, &session).await?;
    driver.cancel(&session).await?;
    driver.cancel_turn(turn).await?;
    goes_on(driver, &session).await
}

async fn then_prompt(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let turn = slow(driver, &session).await?;
    driver.cancel(&session).await?;
    let next = driver.send_prompt(&session, &[Task::Say("next")]).await?;
    driver.end(turn).await?;
    driver.end(next).await?;
    driver.settle().await
}

async fn unknown_session(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let turn = slow(driver, &session).await?;
    driver.notify("session/cancel", json!({ "sessionId": "no-such-session" })).await?;
    driver.settle().await?;
    driver.cancel_turn(turn).await?;
    goes_on(driver, &session).await
}

async fn request(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let turn = slow(driver, &session).await?;
    driver.notify("$/cancel_request", json!({ "requestId": turn.id })).await?;
    // To act on it is up to the agent.
    let id = turn.id;
    let deadline = tokio::time::Instant::now() + driver.options.patience / 2;
    if !driver.is_answered(id) {
        driver.pump(deadline, |driver, _| driver.is_answered(id)).await?;
    }
    driver.cancel_turn(turn).await?;
    goes_on(driver, &session).await
}

async fn unknown_request(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for id in [json!(1), json!(2), json!("no-such-request"), json!(999_999), Value::Null, json!(-1)] {
        driver.notify("$/cancel_request", json!({ "requestId": id })).await?;
    }
    driver.settle().await?;
    goes_on(driver, &session).await
}

async fn other_requests(driver: &mut Driver) -> Flow {
    driver.begin().await?;
    let params = words::opening(driver.dialect, driver.cwd());
    for (method, params) in [("session/new", params), ("_attache.check/ping", json!({}))] {
        let id = driver.ask(method, params).await?;
        driver.notify("$/cancel_request", json!({ "requestId": id })).await?;
        let limit = driver.options.startup;
        driver.answer(id, limit).await?;
    }
    driver.settle().await
}
