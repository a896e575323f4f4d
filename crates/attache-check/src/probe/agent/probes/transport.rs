//! Slow reading, long lines, and the end of the connection.

use std::time::Duration;

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow, Over};
use crate::probe::agent::task::{Task, text};
use crate::probe::agent::words::text_block;

const MIB: usize = 1 << 20;

pub(super) const PROBES: &[Probe] = &[
    probe!("transport/slow-reading", ALL, "Does not read for a second while the agent speaks.", slow_reading),
    probe!("transport/pieces", ALL, "Sends messages a few bytes at a time, and several at once.", pieces),
    probe!("transport/long-prompt", ALL, "Prompts with 4 MiB of text.", long_prompt),
    probe!("transport/long-line", ALL, "Sends a line of 40 MiB.", long_line),
    probe!("transport/goodbye", ALL, "Closes the connection after the agent was greeted.", goodbye),
    probe!("transport/goodbye-in-turn", ALL, "Closes the connection in the middle of a turn.", goodbye_in_turn),
    probe!("transport/goodbye-first", ALL, "Closes the connection without a word.", goodbye_first),
    probe!("transport/goodbye-in-line", ALL, "Closes the connection in the middle of a line.", goodbye_in_line),
];

async fn slow_reading(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let other = driver.open().await?;
    let first = driver.send_prompt(&session, &[Task::Slowly]).await?;
    let second = driver.send_prompt(&other, &[Task::Run("echo hello"), Task::Say("hello")]).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    driver.end(second).await?;
    driver.cancel_turn(first).await?;
    driver.settle().await
}

async fn pieces(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let line =
        |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "_attache.check/ping", "params": {} }).to_string();
    // They are written down as lines, and sent in pieces.
    let patience = driver.options.patience;
    for id in ["piece-1", "piece-2"] {
        driver.wire.note(sent(&line(id)));
        for piece in format!("{}\n", line(id)).as_bytes().chunks(7) {
            driver.wire.send_bytes(piece, patience).await.map_err(|_| Over)?;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let ids = ["whole-1", "whole-2", "whole-3"];
    ids.iter().for_each(|id| driver.wire.note(sent(&line(id))));
    let all: String = ids.iter().map(|id| line(id) + "\n").collect();
    driver.wire.send_bytes(all.as_bytes(), patience).await.map_err(|_| Over)?;
    driver.answers_to(&["piece-1", "piece-2", "whole-1", "whole-2", "whole-3"].map(Value::from)).await?;
    driver.settle().await
}

fn sent(line: &str) -> crate::record::Event {
    crate::record::Event::Frame { from: crate::record::Side::Client, text: line.to_owned() }
}

async fn long_prompt(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let script = text(&[Task::Say("hello")], driver.options.style).ok_or(Over)?;
    let long = "All work and no play. ".repeat(4 * MIB / 22);
    let turn = driver.send_blocks(&session, json!([text_block(&long), text_block(&script)])).await?;
    driver.end(turn).await?;
    driver.settle().await
}

async fn long_line(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    // A notification: it is not kept in the record, so no answer could be told from one to nothing.
    let mut line = b"{\"jsonrpc\":\"2.0\",\"method\":\"_attache.check/hint\",\"params\":{\"long\":\"".to_vec();
    line.resize(40 * MIB, b'x');
    line.extend_from_slice(b"\"}}\n");
    driver.send_junk(&line).await?;
    let id = driver.ask("_attache.check/ping", json!({})).await?;
    let limit = driver.options.startup;
    driver.answer(id, limit).await?;
    driver.settle().await
}

async fn goodbye(driver: &mut Driver) -> Flow {
    driver.begin().await?;
    driver.leave().await;
    Ok(())
}

async fn goodbye_in_turn(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let turn = driver.send_prompt(&session, &[Task::Slowly]).await?;
    driver.sees(&turn, &["agent_message_chunk"]).await?;
    driver.leave().await;
    Ok(())
}

async fn goodbye_first(driver: &mut Driver) -> Flow {
    driver.leave().await;
    Ok(())
}

async fn goodbye_in_line(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let half = b"{\"jsonrpc\":\"2.0\",\"id\":\"half\",\"method\":\"_attache.check/ping\",\"par";
    driver.send_junk(half).await?;
    driver.leave().await;
    Ok(())
}
