//! How much a peer that means harm can make us hold: at most 64 MiB with the default settings.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Place, open_terminal};

/// What an attack may cost, in KiB.
const MOST: u64 = 64 << 10;
/// How long an attack goes on. Most took hundreds of mebibytes in that time.
const TIME: Duration = Duration::from_millis(1500);

/// The most memory that a command had at any time until it ended, or until the time was over, in KiB.
fn peak(mut command: Command, time: Duration) -> u64 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    let peak = watch(&mut child, time);
    let _ = child.kill();
    child.wait().unwrap();
    peak
}

/// The same with a person at a terminal, who answers nothing.
fn peak_at_terminal(mut command: Command, time: Duration) -> u64 {
    let (screen, ours) = open_terminal();
    let theirs = screen.as_raw_fd();
    // SAFETY: both calls may be made between fork and exec, and the descriptor is open until then.
    unsafe {
        command.pre_exec(move || match libc::setsid() >= 0 && libc::ioctl(theirs, libc::TIOCSCTTY, 0) >= 0 {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        });
    }
    command.stdout(screen.try_clone().unwrap()).stderr(screen.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    drop((command, screen));
    // Somebody has to take what is shown.
    let reader = std::thread::spawn(move || {
        let mut ours = fs::File::from(ours);
        let mut buffer = [0; 4096];
        while let Ok(1..) = ours.read(&mut buffer) {}
    });
    let peak = watch(&mut child, time);
    let _ = child.kill();
    child.wait().unwrap();
    let _ = reader.join();
    peak
}

fn watch(child: &mut std::process::Child, time: Duration) -> u64 {
    let (until, mut peak) = (Instant::now() + time, 0);
    while Instant::now() < until && child.try_wait().unwrap().is_none() {
        peak = peak.max(memory(child.id()));
        std::thread::sleep(Duration::from_millis(5));
    }
    peak
}

fn status(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// The most memory that a process of ours has had; in a run with the agent that is built in, that process and the run.
fn memory(run: u32) -> u64 {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |pid: u32| status(pid, "PPid:").map(|parent| parent as u32);
    let is_ours = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "attache\n");
    // Between the two there is a keeper.
    let agents = pids.filter(is_ours).filter(|pid| parent(*pid).and_then(parent) == Some(run));
    agents.chain([run]).filter_map(|pid| status(pid, "VmHWM:")).max().unwrap_or_default()
}

/// What a run takes that has nothing to do.
fn idle() -> u64 {
    static IDLE: OnceLock<u64> = OnceLock::new();
    *IDLE.get_or_init(|| {
        let place = Place::new();
        let idle = peak(place.attack(1, &[], &json!([{"sleep": 200}])), TIME);
        assert!(idle > 1000, "{idle} KiB");
        idle
    })
}

fn check(name: &str, peak: u64) {
    let growth = peak.saturating_sub(idle());
    assert!(growth <= MOST, "{name}: {} MiB more than an idle run", growth >> 10);
}

/// Plays the steps over and over, and reads no answer.
fn flood(place: &Place, options: &[&str], steps: Value) -> Command {
    place.attack(1, options, &json!([{"times": 2000, "steps": steps}, {"sleep": 60_000}]))
}

#[test]
fn files_that_are_read_and_not_taken() {
    let place = Place::new();
    place.write("project/big.txt", "x".repeat(8 << 20));
    let steps = json!([{"post": "fs/read_text_file", "params": {"path": "$cwd/big.txt"}}]);
    check("reads", peak(flood(&place, &["--permissions", "all"], steps), TIME));
}

#[test]
fn output_of_terminals_that_is_not_taken() {
    let place = Place::new();
    let fill =
        json!({"command": "sh", "args": ["-c", "head -c 4194304 /dev/zero | tr '\\0' x"], "outputByteLimit": 4194304});
    let full = json!([
        {"call": "terminal/create", "params": fill},
        {"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}},
    ]);
    let steps = json!([
        {"times": 4, "steps": full},
        {"times": 2000, "steps": [{"post": "terminal/output", "params": {"terminalId": "$terminal"}}]},
        {"sleep": 60_000},
    ]);
    check("terminal output", peak(place.attack(1, &["--permissions", "all"], &steps), TIME));
}

#[test]
fn many_full_terminals() {
    let place = Place::new();
    let fill =
        json!({"command": "sh", "args": ["-c", "head -c 4194304 /dev/zero | tr '\\0' x"], "outputByteLimit": 4194304});
    let full = json!([
        {"call": "terminal/create", "params": fill},
        {"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}},
    ]);
    let steps = json!([{"times": 128, "steps": full}, {"sleep": 60_000}]);
    check("full terminals", peak(place.attack(1, &["--permissions", "all"], &steps), TIME));
}

#[test]
fn metadata_of_updates() {
    let place = Place::new();
    let meta = json!({"x": "$big"});
    let chunk =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}, "_meta": meta});
    check("updates", peak(flood(&place, &[], json!([{"update": chunk}])), TIME));
    let call =
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "pending", "_meta": meta});
    check("tool calls", peak(flood(&place, &[], json!([{"update": call}])), TIME));
}

#[test]
fn tool_calls_that_are_never_ended() {
    let place = Place::new();
    let text = "$big".repeat(8);
    // As text, which the agent sends as it is: so many values would take their time to be made.
    let places = format!("[{}]", vec![r#"{"path":"/a"}"#; 100_000].join(","));
    for field in [format!(r#""rawOutput":"{text}""#), format!(r#""locations":{places}"#)] {
        let call = |number: usize| {
            let update = format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"t{number}","title":"x",{field}}}"#);
            let params = format!(r#"{{"sessionId":"s1","update":{update}}}"#);
            json!({"raw": format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#)})
        };
        let steps: Vec<Value> = (0..20).map(call).collect();
        check("tool calls", peak(flood(&place, &[], json!(steps)), TIME));
    }
}

#[test]
fn metadata_of_requests() {
    let place = Place::new();
    let meta = json!({"x": "$big"});
    let read = json!([{"post": "fs/read_text_file", "params": {"path": "$cwd/none", "_meta": meta}}]);
    check("requests", peak(flood(&place, &[], read), TIME));
    let ask = json!([{"post": "session/request_permission", "params": {
        "toolCall": {"toolCallId": "t", "title": "x", "_meta": meta},
        "options": [{"optionId": "y", "name": "y", "kind": "allow_once"}],
    }}]);
    check("questions without a person", peak(flood(&place, &[], ask), TIME));
}

#[test]
fn requests_behind_a_question() {
    let place = Place::new();
    let ask = json!([{"post": "session/request_permission", "params": {
        "toolCall": {"toolCallId": "t", "title": "x", "kind": "execute", "rawInput": {"command": "$big"}},
        "options": [{"optionId": "y", "name": "y", "kind": "allow_once"}],
    }}]);
    check("questions", peak_at_terminal(flood(&place, &[], ask), TIME));
    let write = json!([{"post": "fs/write_text_file", "params": {"path": "$cwd/x", "content": "$big"}}]);
    check("writes", peak_at_terminal(flood(&place, &[], write), TIME));
    let create = json!([{"post": "terminal/create", "params": {"command": "echo", "args": ["$big"]}}]);
    check("commands", peak_at_terminal(flood(&place, &[], create), TIME));
}

/// A model server that begins every answer like this and goes on with `more` for ever.
fn endless_server(beginning: &'static str, more: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || flood_connection(connection, beginning, more));
        }
    });
    format!("http://{address}/v1")
}

/// Ends when the other side does.
fn flood_connection(mut connection: TcpStream, beginning: &str, more: &[u8]) {
    let mut request = [0; 65_536];
    let _ = connection.read(&mut request);
    let much = more.repeat(65_536 / more.len());
    let mut sent = connection.write_all(beginning.as_bytes());
    while sent.is_ok() {
        sent = connection.write_all(&much);
    }
}

/// Asks a model server of this kind.
fn check_server(name: &str, beginning: &'static str, more: &'static [u8]) {
    let place = Place::new();
    let run = |url: &str| {
        let mut command = place.command(&["run", "hello"]);
        command.env("ATTACHE_MODEL", "openai:m").env("ATTACHE_BASE_URL", url).env("OPENAI_API_KEY", "k");
        command
    };
    static IDLE: OnceLock<u64> = OnceLock::new();
    let idle = *IDLE.get_or_init(|| {
        let quiet = "HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\n{}";
        peak(run(&endless_server(quiet, b"x")), TIME)
    });
    assert!(idle > 1000, "{idle} KiB");
    let growth = peak(run(&endless_server(beginning, more)), TIME).saturating_sub(idle);
    assert!(growth <= MOST, "{name}: {} MiB more than an idle run", growth >> 10);
}

#[test]
fn errors_of_model_servers_that_never_end() {
    check_server("error", "HTTP/1.1 500 No\r\ncontent-type: application/json\r\n\r\n{\"error\": \"", b"x");
    check_server("refusal", "HTTP/1.1 400 No\r\ncontent-type: text/plain\r\n\r\n", b"x");
    check_server("header", "HTTP/1.1 200 OK\r\nx: ", b"x");
}

#[test]
fn events_of_model_servers_that_never_end() {
    check_server("event", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", b"x");
    check_server("data", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"x\": \"", b"x");
    check_server("comments", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", b": x\n");
}
