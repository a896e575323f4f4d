//! What errors of servers become.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use reqwest::header::HeaderValue;
use serde_json::json;

use super::*;

fn who() -> Who {
    Who {
        provider: "openai".into(),
        name: "gpt-x".into(),
        host: "api.example.com".into(),
        key: Some(Secret::from("sk-test-1234567890abcdef")),
        secrets: vec![Secret::from("header-secret")],
        key_variable: Some("OPENAI_API_KEY".into()),
    }
}

fn check(status: u16, body: &str, kind: Failure, says: &str) {
    let error = who().status(status, &HeaderMap::new(), body).error;
    assert_eq!(error.kind, kind, "{status} {body} {error}");
    assert!(error.to_string().contains(says), "{error}");
    assert!(!error.to_string().contains("1234567890"), "{error}");
}

#[test]
fn statuses_and_errors_are_sorted() {
    use Failure::*;
    check(401, r#"{"error":{"message":"Incorrect API key provided: sk-test-**cdef"}}"#, Key, "OPENAI_API_KEY");
    check(403, "", Key, "hint:");
    check(403, r#"{"error":{"message":"not in your region"}}"#, Key, "(403): not in your region\nhint:");
    check(400, r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]"#, Key, "key");
    check(429, r#"{"error":{"message":"slow down"}}"#, RateLimit, "slow down");
    check(429, r#"{"error":{"code":"insufficient_quota","message":"check your plan"}}"#, Request, "credit");
    check(402, r#"{"error":{"message":"buy more"}}"#, Request, "credit");
    check(404, r#"{"error":{"message":"model 'x' not found"}}"#, Request, "no model `gpt-x`");
    check(413, "", TooLong, "longer");
    check(400, r#"{"error":{"code":"context_length_exceeded","message":"too big"}}"#, TooLong, "too big");
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 3 > 2"}}"#,
        TooLong,
        "3 > 2",
    );
    check(400, r#"{"error":{"message":"The input token count (9) exceeds the maximum"}}"#, TooLong, "9");
    check(400, r#"{"error":{"message":"bad field"}}"#, Request, "(400): bad field");
    check(422, r#"{"detail":"extra field"}"#, Request, "extra field");
    check(403, r#"{"error":{"message":"no access to header-secret in this region"}}"#, Key, "(403): no access to … in");
    check(500, "<html>oops</html>", Server, "(500): it sent a web page");
    check(502, "<!DOCTYPE html><html><TITLE>Bad\n gateway</title>", Server, "(502): it sent a web page: Bad gateway");
    check(529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, Server, "overloaded");
    check(503, "", Server, "overloaded");
    check(302, "", Request, "redirect");
    check(500, r#"{"error":"context size"}"#, Server, "context size");
}

/// Whatever fails for now says what to do: wait, or look at one's own server.
#[test]
fn failures_that_may_pass_have_a_way_out() {
    let later = "hint: ask again later, or choose another model";
    let own = "hint: look at the log of the server, or choose another model";
    let there = who();
    let here = Who { host: "127.0.0.1:8080".into(), ..who() };
    let status = |who: &Who, status| who.status(status, &HeaderMap::new(), "").error.to_string();
    for (told, expected) in [
        (status(&there, 429), format!("`openai` is rate limiting requests\n{later}")),
        (status(&there, 503), format!("`openai` is overloaded\n{later}")),
        (status(&there, 529), format!("`openai` is overloaded\n{later}")),
        (status(&there, 500), format!("`openai` returned a server error (500)\n{later}")),
        (status(&here, 429), format!("`openai` is rate limiting requests\n{later}")),
        (status(&here, 502), format!("`openai` returned a server error (502)\n{own}")),
        (there.late().error.to_string(), format!("`api.example.com` did not answer in time\n{later}")),
        (here.late().error.to_string(), format!("`127.0.0.1:8080` did not answer in time\n{own}")),
        (there.silence().error.to_string(), format!("`api.example.com` stopped in the middle of its answer\n{later}")),
        (here.silence().error.to_string(), format!("`127.0.0.1:8080` stopped in the middle of its answer\n{own}")),
    ] {
        assert_eq!(told, expected);
    }
}

#[test]
fn errors_in_the_middle_of_a_stream_are_sorted() {
    for (error, kind) in [
        (json!({"type": "overloaded_error", "message": "x"}), Failure::Server),
        (json!({"type": "rate_limit_error", "message": "x"}), Failure::RateLimit),
        (json!({"code": 502, "message": "x"}), Failure::Server),
        (json!({"code": 429, "status": "RESOURCE_EXHAUSTED"}), Failure::RateLimit),
        (json!({"type": "invalid_request_error", "message": "x"}), Failure::Request),
        (json!("words"), Failure::Server),
        (json!({"code": 99999999999u64}), Failure::Server),
        (json!([]), Failure::Server),
    ] {
        assert_eq!(who().event(&error).error.kind, kind, "{error}");
    }
}

#[test]
fn the_words_of_a_server_are_cleaned() {
    let body = json!({ "error": { "message": format!("a\u{1b}[2J\n b {} Bearer abc sk-other key=sk-test-12 {}", "sk-test-1234567890abcdef", "x".repeat(9000)) } });
    let message = who().status(400, &HeaderMap::new(), &body.to_string()).error.message;
    assert!(!message.contains("sk-") && !message.contains('\u{1b}') && !message.contains("Bearer"), "{message}");
    assert!(message.chars().count() < 400, "{message}");
}

#[test]
fn waits_are_read_from_headers_and_bodies() {
    let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
    for (name, value, wait) in [
        ("retry-after", "7", Some(7_000)),
        ("retry-after", "1.5", Some(1_500)),
        ("retry-after-ms", "250", Some(250)),
        ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT", Some(60_000)),
        ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("retry-after", "-1", None),
        ("retry-after", "soon", None),
        ("retry-after", "1e300", None),
        ("retry-after", "NaN", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        assert_eq!(asked_by_headers(&headers, now), wait.map(Duration::from_millis), "{name}: {value}");
    }
    let body = r#"{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"34s"}]}}"#;
    let error = who().status(429, &HeaderMap::new(), body).error;
    assert_eq!(error.retry_after, Some(Duration::from_secs(34)));
}

#[test]
fn what_a_model_lacks_is_noticed() {
    for (status, said, expected) in [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", Some(Lack::Tools)),
        (404, "No endpoints found that support tool use.", Some(Lack::Tools)),
        (500, "tools param requires --jinja flag", Some(Lack::Tools)),
        (400, "\"auto\" tool choice requires --enable-auto-tool-choice", Some(Lack::Tools)),
        (400, "Invalid schema for function 'read' in tools[0]", None),
        (400, "response_format of type json_schema is not supported", Some(Lack::Schema)),
        (400, "bad", None),
        (400, "Your organization must be verified to generate reasoning summaries.", Some(Lack::Summaries)),
        (404, "there is no such path", Some(Lack::OwnApi)),
        (404, "model 'x' not found", None),
        (401, "does not support tools", None),
    ] {
        let body = json!({ "error": { "message": said } }).to_string();
        assert_eq!(who().status(status, &HeaderMap::new(), &body).lack, expected, "{said}");
    }
}
