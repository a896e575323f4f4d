//! Whole answers of all APIs, from a scripted model.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asked;
mod hard;
mod snapshots;
mod tools;

use std::time::Instant;

use attache_testkit::model_server::{Answer as Says, ModelServer, Stop};
use serde_json::json;

use super::*;
use crate::model::retry::{Patience, Retry};
use crate::model::{Call, End, EndReason, Message, Part, Thought, ToolSpec, Usage};

const KEY: &str = "sk-test-secret-0123456789";
const PROVIDERS: [&str; 5] = ["openai", "anthropic", "gemini", "responses", "ollama"];

/// A model of a provider at a server.
fn model(provider: &str, server: &ModelServer) -> Remote {
    Remote::new(settings(provider, server)).unwrap()
}

fn settings(provider: &str, server: &ModelServer) -> Settings {
    // Names that one could take for those of others.
    let name = match provider {
        "anthropic" => "gpt-5.1",
        "openai" => "claude-sonnet-4",
        "responses" => "gpt-5.1",
        "ollama" => "gpt-oss:20b",
        _ => "gemini-2.5-flash",
    };
    Settings {
        // One of the person's own.
        api: (provider == "responses").then_some(Api::Responses),
        base_url: Some(server.url()),
        key: Some(Secret::from(KEY)),
        read_timeout: Some(Duration::from_secs(20)),
        ..Settings::new(provider, name)
    }
}

fn request(text: &str) -> Request {
    Request {
        system: "Be kind.".into(),
        messages: vec![Message::user(text)],
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        }],
        ..Request::default()
    }
}

/// All that a model answers, without what is counted and held back on the way.
async fn pieces(model: &impl Model, request: Request) -> Vec<Result<Piece, ModelError>> {
    let is_said = |piece: &Result<Piece, ModelError>| !matches!(piece, Ok(Piece::Usage(_) | Piece::Held));
    let all = model.ask(request).filter(move |piece| std::future::ready(is_said(piece))).collect();
    tokio::time::timeout(Duration::from_secs(60), all).await.unwrap()
}

/// What a model answers, in short: text and thoughts joined, calls, how it ended.
async fn story(model: &impl Model, request: Request) -> String {
    let mut story: Vec<String> = Vec::new();
    let mut join = |mark: &str, text: String| match story.last_mut() {
        Some(last) if last.starts_with(mark) && !mark.is_empty() => last.push_str(&text),
        _ => story.push(format!("{mark}{text}")),
    };
    for piece in pieces(model, request).await {
        match piece {
            Ok(Piece::Text(text)) => join("say ", text),
            Ok(Piece::Thought(text)) => join("think ", text),
            Ok(Piece::CallStarted { name, .. }) => join("", format!("name {name}")),
            Ok(Piece::CallGrew { .. } | Piece::Usage(_) | Piece::Held) => {}
            Ok(Piece::Call(call)) => join("", format!("call {} {}", call.name, call.arguments)),
            Ok(Piece::Retrying { attempt, reason, .. }) => join("", format!("retry {attempt}: {reason}")),
            Ok(Piece::End(end)) => join("", format!("end {:?}", end.reason)),
            Err(error) => join("", format!("error {:?}: {error}", error.kind)),
        }
    }
    story.join(" | ")
}

#[tokio::test]
async fn text_and_thoughts_stream() {
    for provider in PROVIDERS {
        let answer = Says::text("Grüße, 世界! 😀 Long enough for several events.").thought("Let me think about it.");
        let server = ModelServer::start(vec![answer.clone(), answer.write_size(3)]).await;
        let model = model(provider, &server);
        for _ in 0..2 {
            assert_eq!(
                story(&model, request("hi")).await,
                "think Let me think about it. | say Grüße, 世界! 😀 Long enough for several events. | end Done",
                "{provider}"
            );
        }
        assert!(pieces(&model, request("hi")).await.len() == 1, "the script is over");
    }
}

#[tokio::test]
async fn a_call_with_split_arguments_is_put_together() {
    for provider in PROVIDERS {
        let arguments = json!({"path": "/tmp/ünïcode.txt", "text": "some longer text"});
        let answer = Says::text("I look.").call("read", arguments.clone()).piece_size(2);
        let server = ModelServer::start(vec![answer]).await;
        let pieces = pieces(&model(provider, &server), request("hi")).await;
        let pieces: Vec<Piece> = pieces.into_iter().map(Result::unwrap).collect();
        let started = pieces.iter().position(|piece| matches!(piece, Piece::CallStarted { .. })).unwrap();
        let Piece::CallStarted { id, name } = &pieces[started] else { panic!() };
        assert_eq!(name, "read");
        let grown: Vec<&String> = pieces[started..]
            .iter()
            .filter_map(|piece| match piece {
                Piece::CallGrew { id: of, arguments } if of == id => Some(arguments),
                _ => None,
            })
            .collect();
        assert!(!grown.is_empty());
        assert!(grown.windows(2).all(|pair| pair[1].starts_with(pair[0].as_str()) && pair[1].len() > pair[0].len()));
        let Piece::Call(call) = &pieces[pieces.len() - 2] else { panic!("{pieces:?}") };
        assert_eq!(&call.id, id);
        assert_eq!(serde_json::from_str::<Value>(&call.arguments).unwrap(), arguments, "{provider}");
        assert!(matches!(pieces.last(), Some(Piece::End(_))));
    }
}

#[tokio::test]
async fn parallel_calls_have_ids_of_their_own() {
    for provider in PROVIDERS {
        let answer = Says::new()
            .call("read", json!({"path": "a"}))
            .call("read", json!({"path": "b"}))
            .call("list", json!({}))
            .piece_size(3);
        let server = ModelServer::start(vec![answer]).await;
        let model = model(provider, &server);
        let calls: Vec<Call> = pieces(&model, request("hi"))
            .await
            .into_iter()
            .filter_map(|piece| match piece.unwrap() {
                Piece::Call(call) => Some(call),
                _ => None,
            })
            .collect();
        let short: Vec<String> = calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
        assert_eq!(short, [r#"read {"path":"a"}"#, r#"read {"path":"b"}"#, "list {}"], "{provider}");
        let ids: std::collections::HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), 3, "{provider}: {ids:?}");
    }
}

#[tokio::test]
async fn ids_that_were_used_before_are_replaced() {
    for provider in PROVIDERS {
        let answer = Says::new().call("read", json!({})).call_id("call_0");
        let server = ModelServer::start(vec![answer]).await;
        let mut request = request("hi");
        let earlier = Call { id: "call_0".into(), name: "read".into(), arguments: "{}".into() };
        let tool = Message::Tool { id: "call_0".into(), name: "read".into(), parts: vec![], is_error: false };
        request.messages.push(Message::Assistant { text: String::new(), calls: vec![earlier], opaque: None });
        request.messages.push(tool);
        let pieces = pieces(&model(provider, &server), request).await;
        let Ok(Piece::CallStarted { id, .. }) = &pieces[0] else { panic!("{pieces:?}") };
        assert_ne!(id, "call_0", "{provider}");
    }
}

#[tokio::test]
async fn reasons_and_usage_come_with_the_end() {
    for provider in PROVIDERS {
        for (stop, reason) in
            [(Stop::Done, EndReason::Done), (Stop::Length, EndReason::MaxTokens), (Stop::Refusal, EndReason::Refusal)]
        {
            if provider == "ollama" && stop == Stop::Refusal {
                // It has no word for that.
                continue;
            }
            let cached = if provider == "ollama" { 0 } else { 800 };
            let answer = Says::text("Some words").stop(stop).usage(1000, cached, 42);
            let server = ModelServer::start(vec![answer]).await;
            let pieces = pieces(&model(provider, &server), request("hi")).await;
            let Some(Ok(Piece::End(end))) = pieces.last() else { panic!("{provider} {pieces:?}") };
            let usage = Usage { input: 1000, cached, output: 42, ..Usage::default() };
            assert_eq!(*end, End { reason, usage, opaque: None }, "{provider}");
        }
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![
            Says::status(429).header("retry-after", "1"),
            Says::status(503).header("retry-after-ms", "10"),
            Says::text("hello"),
        ])
        .await;
        let model = Retry::new(Arc::new(model(provider, &server)), Patience::default());
        let start = Instant::now();
        let story = story(&model, request("hi")).await;
        assert!(
            story.starts_with(&format!("retry 2: `{provider}` is rate limiting requests"))
                && story.contains(&format!("| retry 3: `{provider}` is overloaded"))
                && story.ends_with("| say hello | end Done"),
            "{story}"
        );
        assert!(start.elapsed() >= Duration::from_secs(1) && start.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn a_server_that_stays_broken_is_an_error_in_the_end() {
    for provider in PROVIDERS {
        let server = ModelServer::with(|_| Says::status(500)).await;
        let quick = Patience { attempts: 3, first: Duration::from_millis(2), ..Patience::default() };
        let model = Retry::new(Arc::new(model(provider, &server)), quick);
        let story = story(&model, request("hi")).await;
        assert_eq!(story.matches("retry ").count(), 2, "{story}");
        assert!(story.contains("error Server: ") && story.contains("(after 3 attempts)"), "{story}");
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test]
async fn refused_keys_are_named_and_never_shown() {
    for provider in PROVIDERS {
        let body = json!({"error": {"message": format!("bad key {KEY}"), "type": "x"}});
        let server = ModelServer::with(move |_| Says::status(401).body(body.clone())).await;
        let model = Retry::new(Arc::new(model(provider, &server)), Patience::default());
        let story = story(&model, request("hi")).await;
        assert!(story.starts_with(&format!("error Key: `{provider}` rejected the API key (401)")), "{story}");
        assert!(!story.contains("secret"), "{story}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_apart() {
    let said = [
        json!({"error": {"code": "context_length_exceeded", "message": "Your input exceeds the limit"}}),
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}),
        json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}),
    ];
    for (provider, body) in PROVIDERS.into_iter().zip(said) {
        let server = ModelServer::start(vec![Says::status(400).body(body)]).await;
        let story = story(&model(provider, &server), request("hi")).await;
        assert!(story.starts_with("error TooLong: the conversation is longer"), "{story}");
    }
}

#[tokio::test]
async fn a_cut_stream_is_an_error_before_and_after_the_first_piece() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![
            Says::text("0123456789").piece_size(2).end_after(0),
            Says::text("0123456789").piece_size(2).cut_after(0),
            Says::text("0123456789").piece_size(2).end_after(4),
            Says::text("0123456789").piece_size(2).cut_after(4),
            Says::text("0123456789").piece_size(2).error_after(4, "too much to do"),
            // Two of them send calls in one piece.
            Says::new().call("read", json!({"path": "a long path"})).piece_size(2).cut_after(match provider {
                "gemini" | "ollama" => 0,
                _ => 5,
            }),
        ])
        .await;
        let model = model(provider, &server);
        for _ in 0..2 {
            let story = story(&model, request("hi")).await;
            assert!(story.starts_with("error Server: "), "{provider}: {story}");
        }
        for _ in 0..3 {
            let story = story(&model, request("hi")).await;
            assert!(story.starts_with("say 0") && story.contains(" | error Server: "), "{provider}: {story}");
        }
        let story = story(&model, request("hi")).await;
        assert!(story.contains("error Server: ") && !story.contains("call read"), "{provider}: {story}");
    }
}

#[tokio::test]
async fn errors_within_a_stream_keep_their_sort() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![Says::text("x").error_after(0, "too much\u{7} to do")]).await;
        let story = story(&model(provider, &server), request("hi")).await;
        assert!(
            story.starts_with("error Server: ") && story.contains(": too much to do\nhint: "),
            "{provider}: {story}"
        );
    }
}

#[tokio::test]
async fn dropping_an_answer_closes_the_connection() {
    for provider in PROVIDERS {
        let answer = Says::text("0123456789".repeat(100)).piece_size(1).delay(Duration::from_millis(20));
        let server = ModelServer::start(vec![answer, Says::hang()]).await;
        let model = model(provider, &server);
        let mut reply = model.ask(request("hi"));
        let mut first = reply.next().await;
        while let Some(Ok(Piece::Usage(_))) = first {
            first = reply.next().await;
        }
        assert!(matches!(first, Some(Ok(Piece::Text(_)))));
        drop(reply);
        server.wait_for_closed(1).await;
        let mut reply = model.ask(request("hi"));
        tokio::select! {
            piece = reply.next() => panic!("{piece:?}"),
            () = server.wait_for_requests(2) => {}
        }
        drop(reply);
        server.wait_for_closed(2).await;
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![Says::hang(), Says::text("hello").piece_size(1).hang_after(4)]).await;
        let read_timeout = Some(Duration::from_millis(200));
        let model = Remote::new(Settings { read_timeout, ..settings(provider, &server) }).unwrap();
        for _ in 0..2 {
            let story = story(&model, request("hi")).await;
            assert!(story.contains("stopped in the middle of its answer"), "{provider}: {story}");
        }
    }
}
