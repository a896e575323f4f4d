//! Masks the secrets in a text that look like secrets: known forms of tokens, private keys, passwords of addresses, and what is
//! assigned to a name that says so.

use std::borrow::Cow;
use std::ops::Range;

use super::names::{is_secret_header, is_secret_if_random, is_secret_in_text};

/// What stands in the place of a secret.
pub(super) const LEFT_OUT: &str = "…";

/// The longest name before an equals sign that is looked at, and how much of a token is.
const LONGEST_NAME: usize = 64;

/// The beginnings of tokens, and how many bytes follow at least.
const PREFIXES: [(&[u8], usize); 24] = [
    (b"sk-", 5),
    (b"sk_live_", 8),
    (b"sk_test_", 8),
    (b"rk_live_", 8),
    (b"ghp_", 10),
    (b"gho_", 10),
    (b"ghu_", 10),
    (b"ghs_", 10),
    (b"ghr_", 10),
    (b"github_pat_", 10),
    (b"glpat-", 10),
    (b"xoxa-", 8),
    (b"xoxb-", 8),
    (b"xoxp-", 8),
    (b"xoxr-", 8),
    (b"xoxs-", 8),
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"AIza", 20),
    (b"npm_", 20),
    (b"pypi-", 20),
    (b"hf_", 20),
    (b"gsk_", 20),
    (b"xai-", 20),
];

/// A text without the secrets that can be told by their looks.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let Some(first) = secret(text, 0) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let (mut written, mut next) = (0, Some(first));
    while let Some(range) = next {
        out.push_str(&text[written..range.start]);
        out.push_str(LEFT_OUT);
        written = range.end;
        // Behind a user and a password, the address goes on.
        let rest = if text[written..].starts_with('@') { in_address(text, written + 1) } else { None };
        next = rest.or_else(|| secret(text, written));
    }
    out.push_str(&text[written..]);
    Cow::Owned(out)
}

/// Where the next secret is.
fn secret(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = from;
    let mut none_before = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let found = match byte {
            _ if is_word(byte) => {
                if let Some(found) = token(bytes, at, &mut none_before) {
                    return Some(found);
                }
                at += bytes[at..].iter().position(|byte| !is_word(*byte)).unwrap_or(bytes.len() - at);
                continue;
            }
            b':' if bytes[at..].starts_with(b"://") => in_address(text, at + 3),
            b':' | b'=' => assigned(text, at),
            b'-' if at > 0 && bytes[at - 1] == b'-' => None,
            b'-' if bytes[at..].starts_with(b"-----BEGIN ") => private_key(text, at),
            b'-' if bytes[at..].starts_with(b"--") => option(text, at),
            _ => None,
        };
        if found.as_ref().is_some_and(|found| found.start >= from && !found.is_empty()) {
            return found;
        }
        at += 1;
    }
    None
}

/// Whether what begins here was masked before.
fn is_left_out(bytes: &[u8], at: usize) -> bool {
    bytes[at..].starts_with(LEFT_OUT.as_bytes())
}

/// The bytes that words are made of. Every byte of a text is looked up.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

/// Of what tokens are made. Bytes of letters beyond ASCII are not.
fn is_token(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
}

fn run(bytes: &[u8], from: usize, is_in: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|byte| !is_in(*byte)).map_or(bytes.len(), |length| from + length)
}

/// A token that begins with this word: it has a known beginning, or it is said to be one.
fn token(bytes: &[u8], at: usize, none_before: &mut usize) -> Option<Range<usize>> {
    let rest = &bytes[at..];
    match rest[0] {
        b'B' | b'b' => return after_scheme(bytes, at),
        b'e' if rest.starts_with(b"eyJ") => return json_web_token(bytes, at, none_before),
        b's' | b'r' | b'g' | b'x' | b'A' | b'n' | b'p' | b'h' => {}
        _ => return None,
    }
    let (prefix, least) = PREFIXES.iter().find(|(prefix, _)| rest.starts_with(prefix))?;
    let start = at + prefix.len();
    let is_part = |byte| is_word(byte) || byte == b'-';
    let head = start..run(&bytes[..bytes.len().min(start + LONGEST_NAME)], start, is_part);
    // `sk-spinner` is none.
    let is_random = bytes[head.clone()].iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    (head.len() >= *least && is_random).then(|| at..run(bytes, head.end, is_part))
}

/// `Bearer …` and `Basic …`: what follows, if it is no word of prose.
fn after_scheme(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let is = |scheme: &[u8]| bytes.get(at..at + scheme.len()).is_some_and(|word| word.eq_ignore_ascii_case(scheme));
    let scheme = [&b"bearer "[..], b"basic "].into_iter().find(|scheme| is(scheme))?;
    let start = run(bytes, at + scheme.len(), |byte| byte == b' ');
    let end = run(bytes, start, is_token);
    looks_random(&bytes[start..end]).then_some(start..end)
}

/// Whether this is no word of prose: it has a digit, a sign in it, a capital behind a small letter, or is very long.
fn looks_random(word: &[u8]) -> bool {
    let has_sign =
        word.len() > 1 && word[1..word.len() - 1].iter().any(|byte| matches!(byte, b'_' | b'+' | b'/' | b'='));
    let has_capital = word.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    word.len() >= 20 || word.len() >= 4 && (has_sign || has_capital || word.iter().any(u8::is_ascii_digit))
}

/// Three parts with dots between them. The first two are JSON objects: the first begins like one. No token begins before `none_before`.
fn json_web_token(bytes: &[u8], at: usize, none_before: &mut usize) -> Option<Range<usize>> {
    if at < *none_before {
        return None;
    }
    let is_part = |byte| is_word(byte) || byte == b'-';
    let first = run(bytes, at, is_part);
    if bytes.get(first) != Some(&b'.') {
        // What begins later in this part ends with it.
        *none_before = first;
        return None;
    }
    (first - at >= 8).then(|| at..run(bytes, first, |byte| is_part(byte) || byte == b'.'))
}

/// A private key, to its end or that of the text.
fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    const END: &str = "PRIVATE KEY-----";
    // What stands between is the algorithm, or nothing.
    let name = run(text.as_bytes(), at + "-----BEGIN ".len(), |byte| byte.is_ascii_uppercase() || byte == b' ');
    let kind = &text[at..name];
    if !kind.ends_with("PRIVATE KEY") || !text[name..].starts_with("-----") {
        return None;
    }
    let body = name + "-----".len();
    let end = text[body..].find(END).map_or(text.len(), |found| body + found + END.len());
    Some(at..end)
}

/// The value of `--token VALUE`, and of its likes.
fn option(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name = run(&bytes[..bytes.len().min(at + LONGEST_NAME)], at, |byte| is_word(byte) || byte == b'-');
    if bytes.get(name) != Some(&b' ') || !is_secret_option(&text[at..name]) {
        return None;
    }
    let start = run(bytes, name, |byte| byte == b' ');
    if bytes.get(start) == Some(&b'-') || is_left_out(bytes, start) {
        return None;
    }
    Some(unquoted(bytes, start, value_end(bytes, start)))
}

/// Whether the argument after this one is a secret.
pub(super) fn is_secret_option(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    argument.starts_with('-')
        && !name.contains('=')
        && (is_secret_in_text(name)
            || matches!(name, "token" | "secret" | "key" | "pass" | "auth" | "header" | "cookie"))
}

/// What is assigned with a colon or an equals sign at `at`, if the name before it says that it is a secret.
fn assigned(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_colon = bytes[at] == b':';
    // `a == b`, `a => b`, `a::b`, `a := b`.
    if matches!(bytes.get(at + 1), Some(b'=' | b'>' | b':'))
        || at > 0 && matches!(bytes[at - 1], b'=' | b'!' | b':' | b'<' | b'>')
    {
        return None;
    }
    let mut end = at;
    let back = |end: &mut usize, is_in: &dyn Fn(u8) -> bool| {
        while *end > 0 && is_in(bytes[*end - 1]) && at - *end < LONGEST_NAME {
            *end -= 1;
        }
    };
    back(&mut end, &|byte| byte == b' ');
    let has_space = end < at;
    back(&mut end, &|byte| matches!(byte, b'"' | b'\'' | b'\\'));
    let mut begin = end;
    back(&mut begin, &|byte| is_word(byte) || byte == b'-');
    let name = text[begin..end].trim_start_matches('-');
    if name.len() < 3 {
        return None;
    }
    if is_colon && !has_space && is_secret_header(name) {
        let start = run(bytes, at + 1, |byte| matches!(byte, b' ' | b'"' | b'\'' | b'\\'));
        if is_left_out(bytes, start) {
            return None;
        }
        let stop = run(bytes, start, |byte| !matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'\\' | b','));
        return Some(start..stop);
    }
    let is_flag = text[begin..end].starts_with("--") && is_secret_option(&text[begin..end]);
    let is_sure = is_flag || is_secret_in_text(name);
    if !is_sure && !is_secret_if_random(name) {
        return None;
    }
    let start = run(bytes, at + 1, |byte| byte == b' ');
    let quote = run(bytes, start, |byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\'));
    if is_left_out(bytes, quote) {
        return None;
    }
    let value = unquoted(bytes, start, value_end(bytes, start));
    let is_random = looks_random(&bytes[value.clone()]);
    // Prose and types: `password: string`, `the api key: it is …`. What is assigned without a space is a value.
    let is_value = is_sure && (quote > start || !is_colon && !has_space && start == at + 1);
    (is_value || is_random).then_some(value)
}

/// Where a value ends: at its closing quote, or at a space or a sign.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let quote = run(bytes, start, |byte| byte == b'\\');
    match bytes.get(quote) {
        Some(mark @ (b'"' | b'\'' | b'`')) => {
            let end = run(bytes, quote + 1, |byte| byte != *mark && byte != b'\n');
            // A quote that was escaped is closed by one that is escaped.
            end - bytes[quote + 1..end].iter().rev().take(quote - start).take_while(|byte| **byte == b'\\').count()
        }
        _ => run(bytes, start, |byte| {
            !byte.is_ascii_whitespace()
                && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'&' | b'<' | b'>' | b')' | b'}' | b']' | b'\\')
        }),
    }
}

fn unquoted(bytes: &[u8], start: usize, end: usize) -> Range<usize> {
    run(bytes, start, |byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\')).min(end)..end
}

/// The user and the password of an address that begins behind its scheme, else what follows its question mark.
fn in_address(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_in = |byte: u8| {
        !byte.is_ascii_whitespace()
            && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b')' | b']' | b'}' | b'\\' | b'|')
    };
    // Another address may follow in the same word: that one is looked at by itself.
    let end =
        (start..bytes.len()).find(|at| !is_in(bytes[*at]) || bytes[*at..].starts_with(b"://")).unwrap_or(bytes.len());
    let address = &text[start..end];
    let (place, query) = address.split_at(address.find('?').unwrap_or(address.len()));
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    // Its names are not shown either: `?KEY` has none. It goes on to the end of the word.
    let query = || match query.len() > 1 && query[1..] != *LEFT_OUT {
        true => Some(start + place.len() + 1..run(bytes, end, is_in)),
        false => None,
    };
    if let Some(user) = host.rfind('@') {
        return if &host[..user] == LEFT_OUT { query() } else { Some(start..start + user) };
    }
    // A password with a slash or a question mark in it: what is before it is no port.
    let port = host.split_once(':').map(|(_, port)| port);
    let is_host = host.starts_with('[') || port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let is_cut = address[host.len()..].rfind('@');
    if let Some(cut) = is_cut
        && (!is_host || port.is_some() && !path[..cut.min(path.len())].ends_with('/'))
    {
        return Some(start..start + host.len() + cut);
    }
    query().or_else(|| in_fragment(start, address))
}

/// What a fragment says that has values, such as `#access_token=…`.
fn in_fragment(start: usize, address: &str) -> Option<Range<usize>> {
    let at = address.find('#').filter(|at| address[*at..].contains('='))?;
    Some(start + at + 1..start + address.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_masked() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
        let rows = [
            ("Authorization: Bearer sk-stderr-SECRET1 OPENAI_API_KEY=sk-stderr2", "Authorization: …"),
            ("sent Bearer abc123def, then more", "sent Bearer …, then more"),
            ("basic dXNlcjpwYXNz=", "basic …"),
            ("OPENAI_API_KEY=sk-stderr2 next", "OPENAI_API_KEY=… next"),
            ("export DB_PASSWORD='a b' && GH_TOKEN=\"x\"", "export DB_PASSWORD='…' && GH_TOKEN=\"…\""),
            ("key sk-ant-api03-abcdef.", "key …."),
            ("ghp_0123456789abcdef github_pat_0123456789ab glpat-0123456789ab", "… … …"),
            ("xoxb-123456789-abc,AKIAIOSFODNN7EXAMPLE", "…,…"),
            (&format!("jwt {jwt}!"), "jwt …!"),
            ("password=hunter2&x=1", "password=…&x=1"),
            ("password: hunter2", "password: …"),
            ("{\"apiKey\":\"abc\",\"b\":1}", "{\"apiKey\":\"…\",\"b\":1}"),
            ("{\\\"apiKey\\\":\\\"abc\\\",\\\"b\\\":1}", "{\\\"apiKey\\\":\\\"…\\\",\\\"b\\\":1}"),
            ("curl -H 'X-Api-Key: abc' https://u:p@h/a", "curl -H 'X-Api-Key: …' https://…@h/a"),
            ("curl --token abc --api-key=def -v", "curl --token … --api-key=… -v"),
            ("https://user:sk-META4@host/x?key=sk-META5", "https://…@host/x?…"),
            ("https://u:se/cr?et@host/", "https://…@host/"),
            ("see https://u:12/34@host/.", "see https://…@host/."),
            ("https://h/cb#access_token=abc", "https://h/cb#…"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest", "…\nrest"),
            ("-----BEGIN PRIVATE KEY-----\nabc", "…"),
            ("passwords: 'ä', password='ä'", "passwords: '…', password='…'"),
            ("client_secret = \"abc\"", "client_secret = \"…\""),
        ];
        for (text, expected) in rows {
            assert_eq!(masked(text), expected, "{text}");
            // What was masked stays as it is.
            assert_eq!(masked(expected), expected, "{text} again");
        }
    }

    #[test]
    fn prose_and_code_stay_as_they_are() {
        for text in [
            "",
            "my password is …",
            "The token: it is read from the environment. Bearer tokens are used; basic authentication is not.",
            "let key = map.get(token); if token == other {}",
            "fn f(password: string, token: &str) -> Token { key: value }",
            "for key in keys: print(key=value, tokens=5)",
            "inputTokens: 5, maxTokens=100, totalTokens: 12345678",
            "https://docs.rs/a/1.2.3#x http://localhost:3000/@vite/client https://unpkg.com/react@18.2/ file:///a/b.rs",
            "std::env::var a::b key => value sk-SK sk- eyJ ghp_ --token",
            "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
            "a=b:c==d é=ü 'monkey=1' x.key=1 === ::: --- \\ \" ' ://",
            "time=2026-11-15T09:30:00.125Z level=info session=5f3c",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn no_text_takes_longer_than_its_length_does() {
        for piece in [
            "--a",
            "eyJ-",
            "a://",
            "a://b@",
            "-----BEGIN ",
            "api_key:",
            "Cookie: …",
            "bearer ",
            "password=\"…",
            "sk-",
            "{\"",
            "-",
        ] {
            let text = piece.repeat((1 << 20) / piece.len());
            let begin = std::time::Instant::now();
            masked(&text);
            // A second or so in a debug build; what is quadratic takes many minutes.
            assert!(begin.elapsed().as_secs() < 30, "{piece}: {:?}", begin.elapsed());
        }
    }

    #[test]
    fn any_text_can_be_masked() {
        // Every piece of what has all the signs in it, so that something ends in the middle of everything.
        let text = "ä--token 'ö' Authorization: Bearer ü9 password=\\\"ß\\\" https://ä:ö/ü@ß?é#è=1 -----BEGIN PRIVATE KEY-----é eyJé.a.b sk-éaaaaaa";
        let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for begin in &places {
            for end in places.iter().filter(|end| *end >= begin) {
                masked(&text[*begin..*end]);
            }
        }
    }
}
