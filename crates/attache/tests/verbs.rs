//! Everything that the protocol knows has a verb of its own: nobody needs raw JSON, or [`attache::Connection::call`].

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache::proto::method::Method;

/// How each method is said, and how it is heard: by the client, by the agent. A method that is added to the protocol fails
/// the test until it has a row.
fn verbs(method: Method) -> (&'static [&'static str], &'static [&'static str]) {
    match method {
        Method::Initialize => (&["Client::connect"], &["serve"]),
        Method::Authenticate => (&["Connection::authenticate"], &["Authenticate::authenticate"]),
        Method::Logout => (&["Connection::logout"], &["Authenticate::logout"]),
        Method::AuthStatus => (&["Connection::auth_status"], &["Server::handles"]),
        Method::AuthStatusUpdate => (&["Event::Notification"], &["Context::auth_status_changed"]),
        Method::NewSession => (&["SessionBuilder::open"], &["Agent::open"]),
        Method::LoadSession => (&["SessionBuilder::load"], &["Restore::restore"]),
        Method::ResumeSession => (&["SessionBuilder::resume"], &["Restore::restore"]),
        Method::ForkSession => (&["SessionBuilder::fork"], &["Fork::fork"]),
        Method::ListSessions => (&["Connection::list_sessions"], &["List::list"]),
        Method::CloseSession => (&["Session::close"], &["Session::close"]),
        Method::DeleteSession => (&["Connection::delete_session"], &["Delete::delete"]),
        Method::ArchiveSession => (&["Connection::archive_session"], &["Server::handles"]),
        Method::UnarchiveSession => (&["Connection::unarchive_session"], &["Server::handles"]),
        Method::SessionStatus => (&["Connection::session_status"], &["Server::handles"]),
        Method::SetTitle => (&["Session::set_title", "Connection::set_session_title"], &["Server::handles"]),
        Method::SetMode | Method::SetModel | Method::SetConfigOption => {
            (&["Session::set_option"], &["Session::set_option", "Turn::option_change"])
        }
        Method::Prompt => (&["Session::prompt"], &["Session::prompt", "Turn::next_prompt"]),
        Method::Cancel => (&["Session::cancel", "Turn::cancel"], &["Turn::cancelled"]),
        Method::CancelToolCall => (&["Session::cancel_tool_call"], &["ToolCall::cancellable"]),
        Method::CancelTerminal => (&["Session::cancel_terminal"], &["ShownTerminal::cancellable"]),
        Method::ListProviders => (&["Connection::providers"], &["Server::handles"]),
        Method::SetProvider => (&["Connection::set_provider"], &["Server::handles"]),
        Method::DisableProvider => (&["Connection::disable_provider"], &["Server::handles"]),
        Method::SessionUpdate => (&["Turn::next", "Session::next"], &["SessionHandle::update"]),
        Method::RequestPermission => (&["Event::Permission"], &["Turn::ask"]),
        Method::ReadTextFile => (&["Event::ReadTextFile"], &["SessionHandle::read_text_file"]),
        Method::WriteTextFile => (&["Event::WriteTextFile"], &["SessionHandle::write_text_file"]),
        Method::CreateTerminal => (&["Event::CreateTerminal"], &["SessionHandle::terminal"]),
        Method::TerminalOutput => (&["Event::TerminalOutput"], &["Terminal::output"]),
        Method::WaitForTerminalExit => (&["Event::WaitForTerminalExit"], &["Terminal::wait"]),
        Method::KillTerminal => (&["Event::KillTerminal"], &["Terminal::kill"]),
        Method::ReleaseTerminal => (&["Event::ReleaseTerminal"], &["Terminal::release"]),
        Method::CreateElicitation => (&["Event::Elicitation"], &["SessionHandle::elicit", "Context::elicit"]),
        Method::CompleteElicitation => (&["Event::Notification"], &["SessionHandle::complete_elicitation"]),
        Method::McpMessage => (
            &["Event::McpMessage", "Connection::send_mcp"],
            &["SessionHandle::call_mcp", "Server::handles_notification"],
        ),
        Method::ProxyInitialize => (&["Connection::initialize_proxy"], &["Server::handles"]),
        Method::ProxySuccessor => (
            &["Event::ProxySuccessor", "Connection::call_proxy", "Connection::notify_proxy"],
            &[
                "Context::call_successor",
                "Context::notify_successor",
                "Server::handles",
                "Server::handles_notification",
            ],
        ),
        Method::CancelRequest => (&["Pending::cancel_token"], &["Context::cancel_token"]),
        other => panic!("{other:?} has no verb"),
    }
}

/// Where a type is written.
fn sources() -> String {
    fn read(directory: &std::path::Path, text: &mut String) {
        let mut entries: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                read(&path, text);
            } else {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut text = String::new();
    read(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
    text
}

#[test]
fn every_method_can_be_said_and_heard() {
    let sources = sources();
    let mut count = 0;
    for method in Method::ALL {
        let (client, agent) = verbs(*method);
        assert!(!client.is_empty() && !agent.is_empty());
        for verb in client.iter().chain(agent) {
            // The verb is there under its name, as a function or as an event.
            let name = verb.rsplit("::").next().unwrap();
            let is_there = match verb.starts_with("Event::") {
                true => sources.contains(&format!("\n    {name}(")),
                false => sources.contains(&format!("fn {name}(")) || sources.contains(&format!("fn {name}<")),
            };
            assert!(is_there, "{verb}, the verb of {method:?}, is not there");
            count += 1;
        }
    }
    assert!(count >= 90, "{count}");
}
