//! Whose sessions are whose: of one name, and of a group.

use serde_json::{Value, json};

use crate::rig::{Server, Wire, client, token};
use crate::support::Home;

/// What one has opened another can neither see nor touch; both agents alike: the built-in one, and any program.
fn check_principals(options: &[&str]) {
    let home = Home::new();
    let (anna, bert) = (token(&home, "anna"), token(&home, "bert"));
    let server = Server::start(&home, options);
    let work = home.path("work");
    let work = work.to_str().unwrap();
    let (url, other_url) = (server.url("ws"), server.url("http"));
    let (anna, bert) = (client(&url, &anna), client(&other_url, &bert));
    let mut hers = Wire::connect(&anna, &url, &[]);
    let session = hers.new_session(1, work)["result"]["sessionId"].as_str().unwrap().to_owned();
    // A session is listed when something was said in it.
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "help" }] });
    assert_eq!(hers.call(2, "session/prompt", prompt.clone())["result"]["stopReason"], "end_turn");
    let mut his = Wire::connect(&bert, &other_url, &[]);
    let ids = |answer: &Value| -> Vec<String> {
        let sessions = answer["result"]["sessions"].as_array().unwrap_or_else(|| panic!("{answer}"));
        sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&hers.call(3, "session/list", json!({}))), [session.as_str()]);
    assert_eq!(ids(&his.call(3, "session/list", json!({}))), Vec::<String>::new());
    for (index, method) in
        ["session/load", "session/resume", "session/prompt", "session/delete", "session/fork"].iter().enumerate()
    {
        let mut params = prompt.clone();
        params["cwd"] = work.into();
        params["mcpServers"] = json!([]);
        let answer = his.call(10 + index as u64, method, params);
        // A session that is not there counts as deleted; that hers is still there is seen below.
        assert!(answer["error"].is_object() || *method == "session/delete", "{method}: {answer}");
        assert!(!answer.to_string().contains("help"), "{answer}");
    }
    // On a connection of her own, she has it again, after she has let it go.
    drop(hers);
    let mut again = Wire::connect(&anna, &other_url, &[]);
    let load = json!({ "sessionId": session, "cwd": work, "mcpServers": [] });
    let answer = again.call(1, "session/load", load);
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn what_one_has_opened_another_cannot_see_in_the_built_in_agent() {
    check_principals(&[]);
}

#[test]
fn what_one_has_opened_another_cannot_see_in_any_other_agent() {
    check_principals(&["--sandbox", "off", "--", env!("CARGO_BIN_EXE_attache"), "agent", "--model", "offline"]);
}

/// A bridge gives requests other numbers: what is asked and what is answered belong together all the same.
#[test]
fn what_one_has_opened_another_cannot_see_in_an_agent_of_another_version() {
    let agent =
        ["--protocol", "1", "--sandbox", "off", "--", env!("CARGO_BIN_EXE_attache"), "agent", "--model", "offline"];
    check_principals(&agent);
}

/// Tokens of one group have the same sessions; those of the same name without it, or of another group, do not.
fn check_groups(options: &[&str]) {
    let home = Home::new();
    let token_of = |words: &[&str]| {
        let ran = home.run(&[&["serve", "token", "add"], words].concat());
        ran.check(0, &[], &["shown once"]);
        ran.out.trim().to_owned()
    };
    let in_team = token_of(&["anna", "--group", "team"]);
    let mate = token_of(&["bert", "--group", "team"]);
    // A name that is the group's own is nobody's membership.
    let others = [&["anna"][..], &["carl", "--group", "others"], &["team"]].map(token_of);
    let listed = home.run(&["serve", "token", "list"]).out;
    let names: Vec<&str> = listed.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(names, ["anna (group team)", "bert (group team)", "anna", "carl (group others)", "team"]);
    let mut server = Server::start(&home, options);
    let work = home.path("work");
    let work = work.to_str().unwrap();
    let url = server.url("ws");
    let mut hers = Wire::connect(&client(&url, &in_team), &url, &[]);
    let connected = server.line();
    assert_eq!((&connected["principal"], &connected["group"]), (&json!("anna"), &json!("team")), "{connected}");
    let session = hers.new_session(1, work)["result"]["sessionId"].as_str().unwrap().to_owned();
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "help" }] });
    assert_eq!(hers.call(2, "session/prompt", prompt.clone())["result"]["stopReason"], "end_turn");
    drop(hers);
    let is_listed = |wire: &mut Wire| {
        let answer = wire.call(3, "session/list", json!({}));
        answer["result"]["sessions"].as_array().unwrap().iter().any(|listed| listed["sessionId"] == session.as_str())
    };
    let load = json!({ "sessionId": session, "cwd": work, "mcpServers": [] });
    for token in &others {
        let mut wire = Wire::connect(&client(&url, token), &url, &[]);
        assert!(!is_listed(&mut wire));
        assert!(wire.call(4, "session/load", load.clone())["error"].is_object());
        wire.call(5, "session/delete", json!({ "sessionId": session }));
    }
    let mut his = Wire::connect(&client(&url, &mate), &url, &[]);
    assert!(is_listed(&mut his));
    let answer = his.call(4, "session/load", load);
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(his.call(5, "session/prompt", prompt)["result"]["stopReason"], "end_turn");
}

#[test]
fn a_group_shares_its_sessions_in_the_built_in_agent() {
    check_groups(&[]);
}

#[test]
fn a_group_shares_its_sessions_in_any_other_agent() {
    check_groups(&["--sandbox", "off", "--", env!("CARGO_BIN_EXE_attache"), "agent", "--model", "offline"]);
}
