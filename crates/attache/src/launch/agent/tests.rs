//! When the pipes of an agent end, by a clock that stands still.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

struct Agent {
    stdout: DuplexStream,
    stdin: DuplexStream,
    exit: watch::Sender<Exit>,
}

fn tell(exit: &watch::Sender<Exit>) {
    let status = ExitStatus { code: Some(1), signal: None };
    exit.send_replace(Some(Arc::new(AgentExit { status, stderr_tail: String::new() })));
}

fn agent() -> (Agent, Output<DuplexStream>, Input<DuplexStream>) {
    let (exit, told) = watch::channel(None);
    let ((stdout, ours), (stdin, our_stdin)) = (duplex(64), duplex(64));
    let (output, input) = pipes(ours, our_stdin, told);
    (Agent { stdout, stdin, exit }, output, input)
}

/// How long it takes until stdout ends, and what it brought.
async fn read_to_end(mut output: Output<DuplexStream>) -> (Duration, String) {
    let start = Instant::now();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    (start.elapsed(), text)
}

/// Timers of the runtime are exact to a millisecond.
#[track_caller]
fn check(seen: Duration, expected: Duration) {
    assert!(seen >= expected && seen <= expected + Duration::from_millis(2), "{seen:?}, expected {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn stdout_of_an_agent_that_exits_ends_at_once() {
    let (mut agent, output, _input) = agent();
    agent.stdout.write_all(b"last words").await.unwrap();
    tell(&agent.exit);
    drop(agent.stdout);
    assert_eq!(read_to_end(output).await, (Duration::ZERO, "last words".into()));
}

#[tokio::test(start_paused = true)]
async fn stdout_that_somebody_holds_open_ends_when_nothing_comes_any_more() {
    let (mut agent, output, _input) = agent();
    agent.stdout.write_all(b"last words").await.unwrap();
    tell(&agent.exit);
    let (time, text) = read_to_end(output).await;
    check(time, IDLE_LIMIT);
    assert_eq!(text, "last words");
}

#[tokio::test(start_paused = true)]
async fn stdout_that_somebody_keeps_writing_to_ends_in_bounded_time() {
    let (mut agent, output, _input) = agent();
    tell(&agent.exit);
    let writing = tokio::spawn(async move {
        while agent.stdout.write_all(b"x").await.is_ok() {
            sleep(IDLE_LIMIT / 2).await;
        }
    });
    let (time, text) = read_to_end(output).await;
    check(time, DRAIN_LIMIT);
    assert_eq!(text.len() as u128, 2 * DRAIN_LIMIT.as_millis() / IDLE_LIMIT.as_millis());
    writing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_pipe_waits_for_a_reader_that_has_no_room() {
    let (mut agent, mut output, _input) = agent();
    tell(&agent.exit);
    // The exit is noticed before all that was written is there.
    let is_pending = poll_fn(|cx| {
        let mut byte = [0];
        Poll::Ready(Pin::new(&mut output).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending())
    });
    assert!(is_pending.await);
    agent.stdout.write_all(b"last words").await.unwrap();
    sleep(2 * DRAIN_LIMIT).await;
    assert_eq!(read_to_end(output).await, (Duration::ZERO, "last words".into()));
}

#[tokio::test(start_paused = true)]
async fn stdout_that_ends_first_waits_for_the_exit_in_bounded_time() {
    let (agent, output, _input) = agent();
    drop(agent.stdout);
    let late = Duration::from_millis(300);
    let exit = agent.exit;
    tokio::spawn(async move {
        sleep(late).await;
        tell(&exit);
    });
    check(read_to_end(output).await.0, late);

    let (agent, output, _input) = self::agent();
    drop(agent.stdout);
    check(read_to_end(output).await.0, DRAIN_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_silent_is_waited_for() {
    let (mut agent, mut output, _input) = agent();
    let writing = tokio::spawn(async move {
        sleep(100 * DRAIN_LIMIT).await;
        agent.stdout.write_all(b"done").await.unwrap();
        agent
    });
    let mut bytes = [0; 4];
    output.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"done");
    drop(writing);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_told_after_the_end_of_stdout() {
    let (agent, output, mut input) = agent();
    drop(agent.stdin);
    let reading = tokio::spawn(read_to_end(output));
    let start = Instant::now();
    sleep(IDLE_LIMIT).await;
    // Nobody has told of the exit yet.
    assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut input).poll_write(cx, b"x").is_pending())).await);
    tell(&agent.exit);
    reading.await.unwrap();
    assert_eq!(input.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    check(start.elapsed(), 2 * IDLE_LIMIT);

    let (agent, _output, mut input) = self::agent();
    drop(agent.stdin);
    let start = Instant::now();
    assert!(input.write(b"x").await.is_err());
    check(start.elapsed(), WRITE_ERROR_DELAY);
}
