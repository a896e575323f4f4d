//! Turns: what is in a prompt, and how a turn ends.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow, Over};
use crate::probe::agent::task::{Task, text};
use crate::probe::agent::words::{Feature, text_block};

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(super) const PROBES: &[Probe] = &[
    probe!("prompt/text", ALL, "Prompts the agent three times, one after the other.", three),
    probe!("prompt/thought-and-plan", ALL, "Has the agent think and plan.", thought_and_plan),
    probe!("prompt/refusal", ALL, "Has the model refuse.", |driver| ends(driver, Task::Refuse)),
    probe!("prompt/length", ALL, "Has the model stop for want of tokens.", |driver| ends(driver, Task::Length)),
    probe!("prompt/many-tools", ALL, "Has the agent use several tools in a turn.", many_tools),
    probe!("prompt/empty", ALL, "Prompts without content, with empty text, and with blanks.", empty),
    probe!(
        "prompt/resources",
        ALL,
        "Prompts with links to resources, and with a resource where that is offered.",
        resources
    ),
    probe!("prompt/image", ALL, "Prompts with a picture and a sound, offered or not.", media),
    probe!("prompt/unknown-content", ALL, "Prompts with content of a kind that nobody knows.", unknown_content),
    probe!("prompt/while-one-runs", ALL, "Prompts a session while it works.", while_one_runs),
    probe!("prompt/nothing-offered", ALL, "Asks for files and commands although nothing is offered.", nothing_offered),
];

async fn three(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for _ in 0..3 {
        driver.prompt(&session, &[Task::Say("hello, wörld 😀")]).await?;
    }
    driver.settle().await
}

async fn thought_and_plan(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.prompt(&session, &[Task::Think("where to begin"), Task::Say("hello")]).await?;
    driver.prompt(&session, &[Task::Plan, Task::Say("planned")]).await?;
    driver.settle().await
}

async fn ends(driver: &mut Driver, task: Task) -> Flow {
    let session = driver.begin().await?;
    driver.prompt(&session, &[task]).await?;
    driver.prompt(&session, &[Task::Say("after")]).await?;
    driver.settle().await
}

async fn many_tools(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let notes = driver.path("notes.txt");
    let tasks = [
        Task::Read(notes.clone()),
        Task::Write(driver.path("made.txt"), "made"),
        Task::Run("echo hello"),
        Task::Read(notes),
        Task::Say("all done"),
    ];
    driver.prompt(&session, &tasks).await?;
    driver.settle().await
}

async fn empty(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for blocks in [json!([]), json!([text_block("")]), json!([text_block(" \n ")])] {
        let turn = driver.send_blocks(&session, blocks).await?;
        driver.end(turn).await?;
    }
    driver.settle().await
}

/// A prompt that asks for a greeting, with something beside it.
async fn with_blocks(driver: &mut Driver, session: &str, blocks: &[Value]) -> Flow {
    let text = text(&[Task::Say("hello")], driver.options.style).ok_or(Over)?;
    let mut all = vec![text_block(&text)];
    all.extend_from_slice(blocks);
    let turn = driver.send_blocks(session, Value::Array(all)).await?;
    driver.end(turn).await
}

async fn resources(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let uri = format!("file://{}", driver.path("notes.txt"));
    let link =
        json!({ "type": "resource_link", "uri": uri, "name": "notes.txt", "mimeType": "text/plain", "size": 14 });
    with_blocks(driver, &session, &[link]).await?;
    let bare = json!({ "type": "resource_link", "uri": "https://example.com/page", "name": "page" });
    with_blocks(driver, &session, &[bare]).await?;
    if driver.offers(Feature::Embedded) {
        let resource =
            json!({ "type": "resource", "resource": { "uri": uri, "text": "one\ntwo\n", "mimeType": "text/plain" } });
        let blob = json!({ "type": "resource", "resource": { "uri": "file:///x.bin", "blob": "AAEC" } });
        with_blocks(driver, &session, &[resource, blob]).await?;
    }
    driver.settle().await
}

async fn media(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    with_blocks(driver, &session, &[json!({ "type": "image", "mimeType": "image/png", "data": PIXEL })]).await?;
    if driver.offers(Feature::Audio) {
        return driver.settle().await;
    }
    with_blocks(driver, &session, &[json!({ "type": "audio", "mimeType": "audio/wav", "data": "UklGRg==" })]).await?;
    driver.settle().await
}

async fn unknown_content(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    with_blocks(driver, &session, &[json!({ "type": "_attache", "data": 7 })]).await?;
    driver.prompt(&session, &[Task::Say("after")]).await?;
    driver.settle().await
}

async fn while_one_runs(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let first = driver.send_prompt(&session, &[Task::Slowly]).await?;
    driver.sees(&first, &["agent_message_chunk"]).await?;
    let second = driver.send_prompt(&session, &[Task::Say("second")]).await?;
    // Whatever becomes of the second: taken in, put in a queue, or refused. One cancel ends both.
    driver.cancel(&session).await?;
    driver.end(first).await?;
    driver.end(second).await?;
    driver.settle().await
}

async fn nothing_offered(driver: &mut Driver) -> Flow {
    driver.hello_offering(json!({})).await?;
    let session = driver.open().await?;
    let notes = driver.path("notes.txt");
    driver.prompt(&session, &[Task::Read(notes), Task::Say("read")]).await?;
    let made = driver.path("made.txt");
    driver.prompt(&session, &[Task::Write(made, "made"), Task::Say("written")]).await?;
    driver.prompt(&session, &[Task::Run("echo hello"), Task::Say("run")]).await?;
    driver.prompt(&session, &[Task::Ask, Task::Say("asked")]).await?;
    driver.settle().await
}
