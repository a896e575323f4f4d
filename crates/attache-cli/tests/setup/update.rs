//! `attache update --check`, with a server of this machine.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::Home;
use super::support::Ran;

/// Answers one request after the other with these, and returns what `attache update --check` makes of the first.
fn asked(answers: &[String], options: &[&str]) -> Ran {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/attache/releases/latest", listener.local_addr().unwrap());
    let answers = answers.to_vec();
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            // The client hangs up on what is too long.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let ran = Home::new().run(&[&["update", "--check", "--from", &address], options].concat());
    server.join().unwrap();
    ran
}

fn elsewhere(place: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn document(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}")
}

#[test]
fn a_newer_version_is_told_with_its_page() {
    let ran = asked(&[elsewhere("/attache/releases/tag/v999.1.2")], &[]);
    ran.check(1, &["attache 999.1.2 is out; this is ", "/attache/releases/tag/v999.1.2\n"], &[]);
    // A repository that has moved, and a mirror that describes the release.
    let page = r#"{"tag_name":"v999.0.0","html_url":"https://mirror.example/v999"}"#;
    let ran = asked(&[elsewhere("/moved/releases/latest"), document(page)], &["--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let told = &ran.json()[0];
    assert_eq!((&told["newest"], &told["newer"]), (&"999.0.0".into(), &true.into()));
    assert_eq!(
        (&told["current"], &told["page"]),
        (&env!("CARGO_PKG_VERSION").into(), &"https://mirror.example/v999".into())
    );
}

#[test]
fn the_newest_version_says_so() {
    for tag in [concat!("v", env!("CARGO_PKG_VERSION")), "v0.0.1", concat!(env!("CARGO_PKG_VERSION"), "-rc.1")] {
        let ran = asked(&[elsewhere(&format!("/attache/releases/tag/{tag}"))], &[]);
        ran.check(0, &["is the newest version"], &[]);
    }
}

#[test]
fn what_is_no_release_is_told_with_exit_code_2() {
    let endless = document(&" ".repeat(2 << 20));
    let rows = [
        (document("<html>no releases</html>"), "there is no release there"),
        (document("{\"tag_name\":\"\u{1b}[2J\"}"), "there is no release there"),
        (endless, "there is no release there"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(), "the server answered 404"),
        ("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".into(), "the server points nowhere"),
        (elsewhere("http://192.0.2.1/releases"), "only https is fetched"),
        (elsewhere("ftp://127.0.0.1/x"), "only https is fetched"),
    ];
    for (answer, what) in rows {
        asked(&[answer], &[]).check(2, &[], &["cannot ask `http://127.0.0.1:", what]);
    }
    let around = elsewhere("/attache/releases/latest");
    asked(&vec![around; 5], &[]).check(2, &[], &["it points elsewhere more than 5 times"]);
    let home = Home::new();
    home.run(&["update", "--check", "--from", "http://192.0.2.1/"]).check(2, &[], &["only https is fetched"]);
    // Nothing is asked unless it is said.
    home.run(&["update"]).check(2, &[], &["--check"]);
}
