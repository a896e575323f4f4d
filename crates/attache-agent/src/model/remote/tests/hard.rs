//! Servers that are wrong, broken or hostile.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache_testkit::{HttpFixture, Response};

use super::*;

/// What a server that answers with these bytes is heard to say.
async fn hear(provider: &str, response: Response) -> String {
    let path = match provider {
        "openai" => "/v1/chat/completions",
        "anthropic" => "/v1/messages",
        "responses" => "/v1/responses",
        "ollama" => "/api/chat",
        _ => "/v1beta/models/m:streamGenerateContent",
    };
    let server = HttpFixture::start(vec![(path, response)]).await;
    let settings = Settings {
        base_url: Some(server.url("")),
        api: (provider == "responses").then_some(Api::Responses),
        key: Some(Secret::from(KEY)),
        read_timeout: Some(Duration::from_millis(500)),
        header_timeout: Some(Duration::from_millis(500)),
        ..Settings::new(provider, "m")
    };
    story(&Remote::new(settings).unwrap(), request("hi")).await
}

fn events(events: &str) -> Response {
    Response::bytes("text/event-stream", events)
}

#[tokio::test]
async fn an_end_without_done_is_an_end() {
    let chunk = r#"data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
    assert_eq!(hear("openai", events(&format!("{chunk}\n\n"))).await, "say hi | end Done");
    // Nor does it matter that the server then forgets to hang up.
    let server = ModelServer::start(vec![Says::text("hi").hang_after(4)]).await;
    let read_timeout = Some(Duration::from_millis(200));
    let model = Remote::new(Settings { read_timeout, ..settings("openai", &server) }).unwrap();
    assert_eq!(story(&model, request("hi")).await, "say hi | end Done");
    let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n";
    assert_eq!(hear("openai", events(chunk)).await, "say hi | end Done");
}

#[tokio::test]
async fn calls_of_peculiar_servers_are_understood() {
    let story = |deltas: &[&str]| {
        let chunks: String = deltas
            .iter()
            .map(|delta| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{delta}]}}}}]}}\n\n"))
            .collect();
        hear("openai", events(&format!("{chunks}data: [DONE]\n\n")))
    };
    let two = r#"name a | name b | call a {"x":1} | call b {"y":2} | end Done"#;
    // Two calls at the same index; no index at all; arguments that are an object; arguments by turns.
    let a = r#"{"index":0,"id":"1","function":{"name":"a","arguments":"{\"x\":1}"}}"#;
    let b = r#"{"index":0,"id":"2","function":{"name":"b","arguments":"{\"y\":2}"}}"#;
    assert_eq!(story(&[a, b]).await, two);
    let a = r#"{"id":"1","function":{"name":"a","arguments":{"x":1}}}"#;
    let b = r#"{"id":"2","function":{"name":"b","arguments":"{\"y\""}}"#;
    assert_eq!(story(&[a, b, r#"{"function":{"arguments":":2}"}}"#]).await, two);
    let a = r#"{"index":0,"id":"1","function":{"name":"a","arguments":"{\"x\""}}"#;
    let b = r#"{"index":1,"id":"2","function":{"name":"b","arguments":"{\"y\""}}"#;
    let rest = [r#"{"index":0,"function":{"arguments":":1}"}}"#, r#"{"index":1,"function":{"arguments":":2}"}}"#];
    assert_eq!(story(&[a, b, rest[0], rest[1]]).await, two);
    // The name in every event, an id without text, an index beyond all memory.
    let huge = r#"{"index":4294967295,"id":"","function":{"name":"a","arguments":"{}"}}"#;
    assert_eq!(story(&[huge]).await, "name a | call a {} | end Done");
    let huge = r#"{"index":18446744073709551615,"id":"z","function":{"name":"a"}},{"id":"q","function":{"name":"b"}}"#;
    assert_eq!(story(&[huge]).await, "name a | name b | call a {} | call b {} | end Done");
    let again = r#"{"index":0,"id":"1","function":{"name":"a","arguments":"{"}}"#;
    assert_eq!(story(&[again, &again.replace("{\"}", "}\"}")]).await, "name a | call a {} | end Done");
}

#[tokio::test]
async fn nonsense_is_an_error_and_not_an_answer() {
    for provider in PROVIDERS {
        for body in ["", "data: {not json\n\n", "data: [DONE]\n\n", "data: 7\n\n", "\u{feff}", "data: {}\n\n", "<html>"]
        {
            let story = hear(provider, events(body)).await;
            assert!(story.starts_with("error Server: "), "{provider} {body}: {story}");
        }
        let story = hear(provider, Response::bytes("text/event-stream", b"data: \xff\xfe\n\n".to_vec())).await;
        assert!(story.starts_with("error Server: "), "{provider}: {story}");
    }
}

#[tokio::test]
async fn numbers_that_are_too_large_are_only_numbers() {
    let big = u64::MAX;
    let openai = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":{big},\"completion_tokens\":1e300}}}}\n\ndata: [DONE]\n\n"
    );
    assert_eq!(hear("openai", events(&openai)).await, "say x | end Done");
    let anthropic = format!(
        "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"usage\":{{\"input_tokens\":{big},\"cache_read_input_tokens\":{big}}}}}}}\n\n\
         event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{big},\"delta\":{{\"type\":\"text_delta\",\"text\":\"x\"}}}}\n\n\
         event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"citations_delta\"}}}}\n\n\
         event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
    );
    assert_eq!(hear("anthropic", events(&anthropic)).await, "say x | end Done");
}

#[tokio::test]
async fn a_question_that_gemini_blocks_is_refused() {
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"},\"usageMetadata\":{\"promptTokenCount\":5}}\r\n\r\n";
    assert_eq!(hear("gemini", events(blocked)).await, "end Refusal");
    let malformed = "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}\r\n\r\n";
    assert!(hear("gemini", events(malformed)).await.starts_with("error Server: "));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for provider in PROVIDERS {
        let story = hear(provider, Response::redirect("http://127.0.0.1:1/elsewhere")).await;
        assert!(story.starts_with("error Request: ") && story.contains("answered with a redirect (302)"), "{story}");
    }
}

#[tokio::test]
async fn an_answer_of_endless_events_is_given_up() {
    let endless = events(&format!("data: {{\"nothing\":\"{}\"}}\n\n", "x".repeat(100_000))).endless();
    assert!(hear("openai", endless).await.starts_with("error Request: response from `m` exceeded 32 MiB"));
}

#[tokio::test]
async fn an_event_without_end_is_given_up() {
    let story = hear("openai", events(&format!("data: never a whole event{}", "x".repeat(60_000))).endless()).await;
    assert!(story.starts_with("error Request: one event of the response from `m` exceeded 8 MiB"), "{story}");
}

#[tokio::test]
async fn an_error_without_end_is_given_up() {
    let story = hear("openai", Response::status(500).body("oh no ").endless()).await;
    assert!(story.starts_with("error Server: "), "{story}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_secrets() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    // A provider that is elsewhere does not run here, whatever has its place.
    let server = format!("hint: does a server run at `{address}`, and is the base URL right?");
    for (provider, hint) in [("ollama", "hint: is `ollama` running?"), ("openai", &server)] {
        let base_url = Some(format!("http://{address}/v1"));
        let key = Some(Secret::from(KEY));
        let model = Remote::new(Settings { base_url, key, ..Settings::new(provider, "m") }).unwrap();
        let story = story(&model, request("hi")).await;
        assert!(story.starts_with(&format!("error NotRunning: `{address}` cannot be reached: ")), "{story}");
        assert!(story.contains(hint) && !story.contains("secret"), "{story}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_talked_to_as_if_it_had_it() {
    let server = ModelServer::start(vec![]).await;
    let base_url = Some(server.url().replace("http://", "https://"));
    let model = Remote::new(Settings { base_url, ..Settings::new("vllm", "m") }).unwrap();
    let story = story(&model, request("hi")).await;
    assert!(story.starts_with("error Server: `127.0.0.1:") && story.contains("cannot be reached: "), "{story}");
    assert!(story.contains("hint: if it does not speak TLS there, write `http://`"), "{story}");
}

/// A server that reads a request and answers with these bytes, again and again if it is to.
async fn raw(answer: Vec<u8>, times: usize) -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let written = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = written.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 65_536]).await;
            for _ in 0..times {
                if stream.write_all(&answer).await.is_err() {
                    break;
                }
                count.fetch_add(answer.len(), Ordering::Relaxed);
            }
        }
    });
    (url, written)
}

async fn hear_raw(provider: &str, url: String) -> String {
    let api = (provider == "responses").then_some(Api::Responses);
    let key = Some(Secret::from(KEY));
    let settings = Settings { base_url: Some(url), api, key, ..Settings::new(provider, "m") };
    story(&Remote::new(settings).unwrap(), request("hi")).await
}

#[tokio::test]
async fn a_server_with_tls_is_not_talked_to_as_if_it_had_none() {
    // What servers answer who expect TLS: an alert of it.
    let (url, _) = raw(vec![0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46], 1).await;
    let story = hear_raw("vllm", url).await;
    assert!(story.starts_with("error Server: `127.0.0.1:") && story.contains("does not answer in HTTP"), "{story}");
    assert!(story.contains("hint: if it speaks TLS there, write `https://`"), "{story}");
}

#[tokio::test]
async fn of_a_huge_error_little_is_read() {
    for provider in PROVIDERS {
        for head in ["content-length: 1048576000", "transfer-encoding: chunked"] {
            let head = format!("HTTP/1.1 500 Oh\r\n{head}\r\n\r\n").into_bytes();
            // One chunk of a thousand MiB, or a body without chunks.
            let start = if head.ends_with(b"chunked\r\n\r\n") { b"3e800000\r\n".to_vec() } else { Vec::new() };
            let body = vec![b'x'; 1 << 20];
            let (url, written) = raw_stream([head, start].concat(), body, 1000).await;
            let before = Instant::now();
            let story = hear_raw(provider, url).await;
            assert!(story.starts_with("error Server: "), "{provider}: {story}");
            assert!(before.elapsed() < Duration::from_secs(5), "{provider}");
            // What is in the buffers of the kernel is not ours.
            let written = written.load(Ordering::Relaxed);
            assert!(written < 16 << 20, "{provider}: {written}");
        }
    }
}

/// A server that sends a head, then a body over and over.
async fn raw_stream(head: Vec<u8>, body: Vec<u8>, times: usize) -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let written = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = written.clone();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 65_536]).await;
        let _ = stream.write_all(&head).await;
        for _ in 0..times {
            if stream.write_all(&body).await.is_err() {
                break;
            }
            count.fetch_add(body.len(), Ordering::Relaxed);
        }
    });
    (url, written)
}

#[tokio::test]
async fn a_long_event_is_read_and_one_that_is_too_long_is_refused_at_once() {
    let event = |length: usize| {
        let text = "x".repeat(length);
        events(&format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
        ))
    };
    let start = Instant::now();
    let story = hear("openai", event(7_000_000)).await;
    assert!(story.ends_with("xxx | end Done") && story.len() > 7_000_000);
    let story = hear("openai", event(16_000_000)).await;
    assert!(story.starts_with("error Request: one event of the response from `m` exceeded 8 MiB"), "{story}");
    // Quadratic time would be minutes.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test]
async fn what_is_around_the_text_does_not_count() {
    // 40 MiB on the wire, and little text in it.
    let event =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}}}}],\"pad\":\"{}\"}}\n\n", "p".repeat(100_000));
    let end = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let story = hear("openai", events(&(event.repeat(420) + end))).await;
    assert_eq!(story, format!("say {} | end Done", "a".repeat(420)));
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    for provider in PROVIDERS {
        let page = Response::html("<html><head><title>Sign in\u{1b}[2J here</title></head></html>");
        let story = hear(provider, page).await;
        assert!(story.starts_with("error Request: `127.0.0.1:"), "{provider}: {story}");
        assert!(
            story.contains("sent a web page in place of an answer: Sign in [2J here\nhint: is the base URL"),
            "{story}"
        );
        let story = hear(provider, Response::html("<title>Bad gateway</title>").endless()).await;
        assert!(story.contains("sent a web page in place of an answer: Bad gateway"), "{provider}: {story}");
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_an_error_with_its_words() {
    let error = r#" {"error":{"message":"out of memory","type":"server_error"}}"#;
    let story = hear("openai", Response::bytes("application/json", error)).await;
    let hint = "hint: look at the log of the server, or choose another model";
    assert_eq!(story, format!("error Server: `openai` returned a server error: out of memory\n{hint}"));
    let story = hear("openai", Response::bytes("application/json", r#"{"choices":[]}"#)).await;
    assert!(story.starts_with("error Request: ") && story.contains("without a stream"), "{story}");
    // Some servers call a stream so.
    let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(hear("openai", Response::bytes("application/json", chunk)).await, "say hi | end Done");
}

#[tokio::test]
async fn statuses_have_words_of_their_own() {
    for provider in PROVIDERS {
        for (status, start, part) in [
            (401, "error Key: ", "rejected the API key (401)"),
            (403, "error Key: ", "refused the request (403): the script wants this error"),
            (429, "error RateLimit: ", "is rate limiting requests: the script wants"),
            (500, "error Server: ", "returned a server error (500): the script wants"),
            (503, "error Server: ", "is overloaded: the script wants"),
        ] {
            let server = ModelServer::with(move |_| Says::status(status)).await;
            let story = story(&model(provider, &server), request("hi")).await;
            assert!(story.starts_with(start) && story.contains(part), "{provider} {status}: {story}");
        }
    }
}

#[tokio::test]
async fn signs_of_life_are_heard_but_not_for_ever() {
    // A comment every 100 ms, where silence may be 500 ms.
    let start = Instant::now();
    let slowly = events(": still here\n\n").endless().slow(14, Duration::from_millis(100));
    let story = hear("openai", slowly).await;
    assert!(story.contains("stopped in the middle of its answer"), "{story}");
    let time = start.elapsed();
    assert!(time > Duration::from_millis(2_000) && time < Duration::from_secs(20), "{time:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    let header_timeout = Some(Duration::from_millis(200));
    let model = Remote::new(Settings { base_url, header_timeout, ..Settings::new("vllm", "m") }).unwrap();
    let story = story(&model, request("hi")).await;
    assert!(story.contains("did not answer in time"), "{story}");
}

#[tokio::test]
async fn bad_keys_and_names_are_told() {
    let server = ModelServer::start(vec![]).await;
    let key = Some(Secret::from("line one\nline two"));
    let model = Remote::new(Settings { key, ..settings("openai", &server) }).unwrap();
    let story = story(&model, request("hi")).await;
    assert!(story.starts_with("error Request: the API key or base URL") && !story.contains("line"), "{story}");
    let fails = |settings: Settings| Remote::new(settings).unwrap_err();
    assert_eq!(fails(Settings::new("openai", "gpt-5.1")).kind, Failure::Key);
    assert_eq!(fails(Settings { key: Some(Secret::from("")), ..Settings::new("gemini", "x") }).kind, Failure::Key);
    assert!(fails(Settings::new("acme", "x")).message.contains("openrouter"));
    assert!(fails(Settings::new("ollama", "a b")).message.contains("invalid model name"));
    assert!(fails(Settings::new("ollama", "")).message.contains("invalid model name"));
}

#[test]
fn nothing_secret_is_shown_of_a_model() {
    let key = Some(Secret::from(KEY));
    let settings = Settings { key, ..Settings::new("openai", "gpt-5.1") };
    assert!(!format!("{settings:?}").contains("secret"));
    let remote = Remote::new(settings).unwrap();
    assert_eq!(format!("{remote:?}"), r#"Remote("openai:gpt-5.1")"#);
}
