//! Sessions: opened, listed, closed, deleted, several at once.

use attache_proto::Dialect;
use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::task::Task;
use crate::probe::agent::words::{self, Feature};

pub(super) const PROBES: &[Probe] = &[
    probe!(
        "sessions/odd-directories",
        ALL,
        "Opens sessions in directories that are relative, missing, empty or no directory.",
        odd_directories
    ),
    probe!("sessions/more-directories", ALL, "Opens sessions with additional directories.", more_directories),
    probe!(
        "sessions/mcp-servers",
        ALL,
        "Opens sessions with MCP servers that cannot be started or are not offered.",
        mcp_servers
    ),
    probe!("sessions/many", ALL, "Opens ten sessions at once.", many),
    probe!("sessions/two-turns", ALL, "Prompts three sessions at once.", two_turns),
    probe!("sessions/one-cancelled", ALL, "Cancels one of two sessions that work.", one_cancelled),
    probe!("sessions/list", ALL, "Lists sessions, with filters, page by page.", list),
    probe!("sessions/close", ALL, "Closes a session and goes on using it.", close),
    probe!("sessions/close-twice", ALL, "Closes a session twice.", close_twice),
    probe!("sessions/close-in-turn", ALL, "Closes a session in the middle of a turn.", close_in_turn),
    probe!("sessions/delete", ALL, "Deletes a session, twice, and lists the rest.", delete),
];

async fn odd_directories(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let missing = driver.path("no/such/directory");
    let file = driver.path("notes.txt");
    for cwd in ["relative/path", "", ".", "~", &missing, &file, "/"] {
        let params = words::opening(driver.dialect, cwd);
        driver.request("session/new", params).await?;
    }
    driver.settle().await
}

async fn more_directories(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.need(driver.offers(Feature::Directories))?;
    for more in [json!([driver.path("")]), json!([]), json!(["relative"]), json!(7)] {
        let mut params = words::opening(driver.dialect, driver.cwd());
        params["additionalDirectories"] = more;
        driver.request("session/new", params).await?;
    }
    driver.settle().await
}

async fn mcp_servers(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let missing = driver.path("no-such-program");
    let mut stdio = json!({ "name": "missing", "command": missing, "args": [], "env": [] });
    if driver.dialect != Dialect::V1 {
        stdio["type"] = "stdio".into();
    }
    let http = json!({ "type": "http", "name": "nowhere", "url": "http://127.0.0.1:9/mcp", "headers": [] });
    let unknown = json!({ "type": "_attache", "name": "unknown" });
    for servers in [json!([stdio]), json!([http]), json!([unknown]), json!([{ "name": "nothing" }])] {
        let mut params = words::opening(driver.dialect, driver.cwd());
        params["mcpServers"] = servers;
        driver.request("session/new", params).await?;
    }
    driver.settle().await
}

async fn many(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let mut ids = Vec::new();
    for _ in 0..10 {
        let params = words::opening(driver.dialect, driver.cwd());
        ids.push(driver.ask("session/new", params).await?);
    }
    let limit = driver.options.startup;
    for id in ids {
        driver.answer(id, limit).await?;
    }
    driver.settle().await
}

async fn two_turns(driver: &mut Driver) -> Flow {
    let mut turns = Vec::new();
    driver.hello().await?;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(driver.open().await?);
    }
    for session in &sessions {
        turns.push(driver.send_prompt(session, &[Task::Run("echo hello"), Task::Say("hello")]).await?);
    }
    for turn in turns {
        driver.end(turn).await?;
    }
    driver.settle().await
}

async fn one_cancelled(driver: &mut Driver) -> Flow {
    let slow = driver.begin().await?;
    let other = driver.open().await?;
    let turn = driver.send_prompt(&slow, &[Task::Slowly]).await?;
    driver.sees(&turn, &["agent_message_chunk"]).await?;
    let second = driver.send_prompt(&other, &[Task::Say("hello")]).await?;
    driver.cancel_turn(turn).await?;
    driver.end(second).await?;
    driver.prompt(&slow, &[Task::Say("after")]).await?;
    driver.settle().await
}

async fn list(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.need(driver.offers(Feature::List))?;
    driver.prompt(&session, &[Task::Say("hello")]).await?;
    for _ in 0..2 {
        let session = driver.open().await?;
        driver.prompt(&session, &[Task::Say("hello")]).await?;
    }
    let cwd = driver.cwd().to_owned();
    for filter in [json!({}), json!({ "cwd": cwd }), json!({ "cwd": driver.path("elsewhere") })] {
        pages(driver, filter).await?;
    }
    driver.request("session/list", json!({ "cursor": "no-such-cursor" })).await?;
    driver.request("session/list", json!({ "cursor": 7 })).await?;
    driver.request("session/list", json!({ "cwd": "relative" })).await?;
    driver.settle().await
}

/// Follows the cursor for a few pages.
async fn pages(driver: &mut Driver, mut filter: Value) -> Flow {
    for _ in 0..5 {
        let page = driver.request("session/list", filter.clone()).await?.result()?;
        match page["nextCursor"].as_str() {
            Some(cursor) => filter["cursor"] = cursor.into(),
            None => return Ok(()),
        }
    }
    Ok(())
}

async fn close(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.need(driver.offers(Feature::Close))?;
    driver.prompt(&session, &[Task::Say("hello")]).await?;
    driver.request("session/close", json!({ "sessionId": session })).await?.result()?;
    let prompt = json!({ "sessionId": session, "prompt": [words::text_block("hello")] });
    driver.request("session/prompt", prompt).await?;
    driver.notify("session/cancel", json!({ "sessionId": session })).await?;
    driver.open().await?;
    driver.settle().await
}

async fn close_twice(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.need(driver.offers(Feature::Close))?;
    for _ in 0..2 {
        driver.request("session/close", json!({ "sessionId": session })).await?;
    }
    driver.settle().await
}

async fn close_in_turn(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.need(driver.offers(Feature::Close))?;
    let turn = driver.send_prompt(&session, &[Task::Slowly]).await?;
    driver.sees(&turn, &["agent_message_chunk"]).await?;
    let id = driver.ask("session/close", json!({ "sessionId": session })).await?;
    driver.end(turn).await?;
    let limit = driver.options.turn;
    driver.answer(id, limit).await?;
    driver.listen(driver.options.patience / 4).await?;
    driver.settle().await
}

async fn delete(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.need(driver.offers(Feature::Delete))?;
    let other = driver.open().await?;
    for session in [&session, &other] {
        driver.prompt(session, &[Task::Say("hello")]).await?;
    }
    if driver.offers(Feature::Close) {
        driver.request("session/close", json!({ "sessionId": session })).await?;
    }
    for _ in 0..2 {
        driver.request("session/delete", json!({ "sessionId": session })).await?;
    }
    if driver.offers(Feature::List) {
        driver.request("session/list", json!({})).await?;
    }
    for (feature, replay) in [(Feature::Load, true), (Feature::Resume, false)] {
        if driver.offers(feature) {
            let (method, params) = words::reopening(driver.dialect, driver.cwd(), &session, replay);
            driver.request(method, params).await?;
        }
    }
    driver.prompt(&other, &[Task::Say("hello")]).await?;
    driver.settle().await
}
