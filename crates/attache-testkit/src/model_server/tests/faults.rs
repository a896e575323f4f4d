//! Answers that fail on purpose, requests that no provider would take, and clients that leave.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ANTHROPIC, GEMINI, OPENAI, answered, ask, data, events, post, question};
use crate::http::BODY_LIMIT;
use crate::model_server::{Answer, ModelServer};
use crate::raw_client::{connect, read, send};

const ALL: [&str; 3] = [OPENAI, ANTHROPIC, GEMINI];

#[tokio::test]
async fn when_the_answers_run_out_the_server_says_so() {
    let server = ModelServer::start(vec![]).await;
    for path in ALL {
        let reply = ask(&server, path).await;
        assert_eq!(reply.status, 500);
        let message = reply.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().starts_with("the script ended"), "{message}");
    }
}

#[tokio::test]
async fn errors_are_worded_as_each_provider_does() {
    let answer = || Answer::status(429).header("retry-after", "1");
    let reply = answered(OPENAI, answer()).await;
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (429, "1"));
    assert_eq!(reply.json()["error"]["type"], "rate_limit_error");
    let reply = answered(ANTHROPIC, answer()).await.json();
    assert_eq!((&reply["type"], &reply["error"]["type"]), (&json!("error"), &json!("rate_limit_error")));
    let reply = answered(GEMINI, answer()).await.json();
    assert_eq!((&reply["error"]["code"], &reply["error"]["status"]), (&json!(429), &json!("RESOURCE_EXHAUSTED")));
    let reply = answered(OPENAI, Answer::status(503).body(json!({"my": "own"}))).await;
    assert_eq!((reply.status, reply.json()), (503, json!({"my": "own"})));
}

#[tokio::test]
async fn a_character_of_several_bytes_is_split_between_writes() {
    for path in ALL {
        let reply = answered(path, Answer::text("Grüße 🎉").piece_size(100)).await;
        assert!(reply.text().contains("Grüße 🎉"));
        assert!(reply.chunks.iter().any(|chunk| std::str::from_utf8(chunk).is_err()), "{path}");
        let reply = answered(path, Answer::text("Grüße 🎉").piece_size(100).write_size(1)).await;
        assert!(reply.chunks.iter().all(|chunk| chunk.len() == 1) && reply.text().contains("Grüße 🎉"));
    }
}

#[tokio::test]
async fn a_cut_stream_ends_in_the_middle_of_an_event() {
    for path in ALL {
        let whole = answered(path, Answer::text("abc").piece_size(1)).await.text();
        let reply = answered(path, Answer::text("abc").piece_size(1).cut_after(2)).await;
        assert!(!reply.is_whole && reply.status == 200);
        let text = reply.text();
        assert!(whole.starts_with(&text) && text.len() < whole.len());
        assert_eq!((text.matches("data:").count(), text.ends_with('\n')), (3, false), "{path}");
        assert!(!answered(path, Answer::text("abc").cut_after(99)).await.is_whole);
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_looks_whole_to_http() {
    for path in ALL {
        let reply = answered(path, Answer::text("abc").piece_size(1).end_after(2)).await;
        assert!(reply.is_whole);
        assert_eq!(reply.text().matches("data:").count(), 2);
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_worded_as_each_provider_does() {
    let answer = || Answer::text("abc").error_after(1, "too busy");
    let chat = data(&answered(OPENAI, answer()).await, "\n");
    assert_eq!((chat.len(), &chat[1]["error"]["message"]), (2, &json!("too busy")));
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}});
    assert_eq!(events(&answered(ANTHROPIC, answer()).await, "\n")[1], ("error".to_owned(), error));
    let gemini = data(&answered(GEMINI, answer()).await, "\r\n");
    assert_eq!(gemini[1]["error"]["status"], "UNAVAILABLE");
}

#[tokio::test]
async fn garbage_stands_where_it_was_put() {
    let answer = Answer::text("ab").piece_size(1).raw_after(0, ": hello\n\n").raw_after(2, "data: {no\n\n");
    let text = answered(OPENAI, answer.raw_after(99, "bye\n\n")).await.text();
    let places: Vec<usize> = text
        .split("\n\n")
        .enumerate()
        .filter(|(_, line)| !line.starts_with("data: {\""))
        .map(|(place, _)| place)
        .collect();
    assert_eq!(places, [0, 3, 6, 7, 8], "{text}");
    assert!(text.ends_with("data: [DONE]\n\nbye\n\n"));
}

#[tokio::test(start_paused = true)]
async fn events_wait_for_one_another() {
    let start = tokio::time::Instant::now();
    let delay = Duration::from_secs(1);
    assert!(answered(OPENAI, Answer::text("ab").piece_size(1).delay(delay)).await.is_whole);
    // Five events have four pauses.
    assert_eq!(start.elapsed().as_secs(), 4);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_whatever_it_waited_for() {
    let slow = Answer::text("abc").delay(Duration::from_secs(3600));
    let huge = Answer::text("x".repeat(16_000_000)).piece_size(4_000_000);
    let answers = vec![Answer::hang(), Answer::text("abc").hang_after(2), slow, huge];
    let count = answers.len();
    let server = ModelServer::start(answers).await;
    for number in 1..=count {
        let mut client = open(&server).await;
        server.wait_for_requests(number).await;
        // The head has come; what follows, if anything, is not read.
        let mut head = [0; 15];
        client.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        assert_eq!(server.connections_closed(), number - 1);
        drop(client);
        server.wait_for_closed(number).await;
    }
    assert_eq!(server.connections_closed(), count);
}

#[tokio::test]
async fn a_hanging_or_cut_answer_may_also_be_whole() {
    let mut body = question(OPENAI);
    body["stream"] = json!(false);
    let server = ModelServer::start(vec![Answer::text("abc").cut_after(0), Answer::hang()]).await;
    assert!(!post(&server, OPENAI, &body).await.is_whole);
    let body = body.to_string();
    let mut client = connect(&server.url()).await;
    let head = format!("POST {OPENAI} HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write_all((head + &body).as_bytes()).await.unwrap();
    server.wait_for_requests(2).await;
    drop(client);
    server.wait_for_closed(1).await;
}

#[tokio::test]
async fn what_no_provider_would_take_is_refused() {
    let user = json!({"role": "user", "content": "hi"});
    let call = json!({"id": "one", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let asked = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "one", "content": "ok"});
    let chat = |messages: Value| json!({"model": "m", "messages": messages});
    let use_block = json!({"type": "tool_use", "id": "one", "name": "read", "input": {}});
    let done_block = json!({"type": "tool_result", "tool_use_id": "one", "content": "ok"});
    let used = json!({"role": "assistant", "content": [use_block]});
    let done = json!({"role": "user", "content": [done_block]});
    let messages = |messages: Value| json!({"model": "m", "max_tokens": 1, "messages": messages});
    let rows = [
        (OPENAI, json!([1]), "not an object"),
        (OPENAI, json!({"model": "m"}), "`messages` has to be"),
        (OPENAI, json!({"messages": [user]}), "`model` is missing"),
        (OPENAI, chat(json!([user, asked])), "the call `one` has no result"),
        (OPENAI, chat(json!([user, asked, user, result])), "the call `one` has no result"),
        (OPENAI, chat(json!([user, result])), "there is no call `one`"),
        (OPENAI, chat(json!([user, asked, result, result])), "there is no call `one`"),
        (ANTHROPIC, json!({"model": "m", "messages": [user]}), "`max_tokens` is missing"),
        (ANTHROPIC, messages(json!([user, used, user])), "the call `one` has no result"),
        (ANTHROPIC, messages(json!([user, used, done, used, done])), "two calls have the id `one`"),
        (GEMINI, json!({"contents": []}), "`contents` has to be"),
        ("/models/m:streamGenerateContent", json!({"contents": [{}]}), "only with `alt=sse`"),
    ];
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    for (path, body, reason) in rows {
        let reply = post(&server, path, &body).await;
        let message = reply.json()["error"]["message"].clone();
        assert!(reply.status == 400 && message.as_str().unwrap().contains(reason), "{path} {body}: {message}");
    }
    assert!(server.requests().is_empty());
    assert_eq!(post(&server, OPENAI, &chat(json!([user, asked, result, user]))).await.status, 200);
}

#[tokio::test]
async fn what_is_no_request_is_answered_too() {
    let server = ModelServer::start(vec![]).await;
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(70_000));
    let rows = [
        ("nonsense\r\n\r\n", 400),
        ("GET / HTTP/9\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nnonsense\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: many\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffff\r\n", 413),
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: 16777217\r\n\r\n", 413),
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: 5\r\n\r\n{\"a\":", 400),
        ("POST /v1/messages HTTP/1.1\r\n\r\n", 400),
        ("GET /v1/messages HTTP/1.1\r\n\r\n", 404),
        ("POST /elsewhere HTTP/1.1\r\n\r\n", 404),
        (long.as_str(), 431),
    ];
    for (request, status) in rows {
        assert_eq!(send(&server.url(), request).await.status, status, "{:.80}", request);
    }
}

#[tokio::test]
async fn bodies_are_taken_up_to_their_limit() {
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    let empty = question(OPENAI).to_string().len();
    for (spare, status) in [(0, 200), (1, 413)] {
        let mut body = question(OPENAI);
        let pad = BODY_LIMIT - empty - ",\"pad\":\"\"".len() + spare;
        body["pad"] = json!("x".repeat(pad));
        assert_eq!(post(&server, OPENAI, &body).await.status, status);
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn clients_that_say_half_of_it_or_nothing_do_no_harm() {
    let server = ModelServer::start(vec![Answer::text("ok")]).await;
    let silent = connect(&server.url()).await;
    let mut halfway = connect(&server.url()).await;
    halfway.write_all(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99\r\n\r\nhalf").await.unwrap();
    drop(halfway);
    assert_eq!(ask(&server, OPENAI).await.status, 200);
    drop(silent);
    assert_eq!(server.connections_closed(), 0);
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections_and_its_port() {
    let server = ModelServer::start(vec![Answer::hang()]).await;
    let client = open(&server).await;
    server.wait_for_requests(1).await;
    let url = server.url();
    drop(server);
    assert!(!read(client).await.is_whole);
    let address = url.strip_prefix("http://").unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Asks and does not read the answer.
async fn open(server: &ModelServer) -> TcpStream {
    let body = question(OPENAI).to_string();
    let mut client = connect(&server.url()).await;
    let head = format!("POST {OPENAI} HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write_all((head + &body).as_bytes()).await.unwrap();
    client
}
