//! Files that the client reads and writes.

use attache::Protocol::V1;
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::json;

use super::{Row, agent, client, first_sending, is_update, refuse, remove, request};

pub(crate) fn rows() -> Vec<Row> {
    let reading = "fs/read_text_file";
    vec![
        agent("files/offered", V1, reading_at_once()),
        agent("envelope/params", V1, Defect::in_params("fs/write_text_file", |params| remove(params, "content"))),
        agent("files/absolute", V1, Defect::in_params(reading, |params| params["path"] = "a.txt".into())),
        agent("files/line-positive", V1, Defect::in_params(reading, |params| params["line"] = 0.into())),
        client("envelope/results", V1, Defect::in_results(reading, |result| remove(result, "content"))),
        client("files/limit", V1, Defect::in_results(reading, |result| result["content"] = "a\nb\nc\n".into())),
        client("files/line", V1, overlooking_the_line()),
        client("files/write-creates", V1, creating_nothing()),
    ]
}

/// Does not get to see from which line on a file is asked for.
fn overlooking_the_line() -> Defect {
    Defect::new(|_, way, mut message| {
        if way == Way::ToPeer && message["method"] == "fs/read_text_file" {
            remove(&mut message["params"], "line");
        }
        vec![Flow::message(way, message)]
    })
}

/// Reads a file before it says something, whoever the client is.
fn reading_at_once() -> Defect {
    first_sending(
        |message| is_update(message, "agent_message_chunk"),
        |message| {
            let session = &message["params"]["sessionId"];
            request("read", "fs/read_text_file", json!({"sessionId": session, "path": "/project/a.txt"}))
        },
    )
}

fn creating_nothing() -> Defect {
    Defect::altering(|memory, message| {
        let asked = memory.answered(Way::FromPeer, message);
        if asked.is_some_and(|asked| {
            asked["method"] == "fs/write_text_file" && asked["params"]["path"] == "/project/new.txt"
        }) {
            refuse(message, -32002);
        }
    })
}
