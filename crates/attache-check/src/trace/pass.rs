//! Passes bytes between a client and an agent, and writes down what they are.
//!
//! What comes is passed on first and looked at afterwards: the recording cannot change a byte, and holds nothing back.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

use attache_proto::frame::{Frame, Splitter};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};

use super::Recorder;
use crate::record::{Event, Side};

/// The longest line that is written down; of longer ones only their number is.
const LONGEST_FRAME: usize = 16 << 20;

/// How much is read at a time: as much as a pipe holds.
const CHUNK: usize = 64 << 10;

/// The longest line of stderr that is held.
const LONGEST_STDERR: usize = 64 << 10;

/// How long an agent may go on that was asked to stop.
const STOPPING: Duration = Duration::from_secs(2);

/// Who left first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// The client has closed its end, or it is over; and the agent has closed its own, or its time to do so is over.
    ClientLeft,
    /// The agent has closed its end.
    AgentLeft,
}

/// A stream that is read.
type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// A stream that is written to.
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// What both directions know.
struct Passing<'r> {
    recorder: RefCell<&'r mut Recorder>,
    /// When the agent last said something.
    heard: Cell<Instant>,
    is_client_gone: Cell<bool>,
}

impl Passing<'_> {
    fn write(&self, event: &Event) {
        self.recorder.borrow_mut().write(event);
    }

    fn closed(&self, from: Side) {
        if from == Side::Agent || !self.is_client_gone.replace(true) {
            self.write(&Event::Closed { from });
        }
    }
}

/// Passes bytes between a client and an agent until one of them leaves. When the client does, the agent may go on until it has said
/// nothing for as long as `grace`. When `stop` is done, the agent is told that the client has left, and has two seconds. The lines that
/// the agent writes to stderr, if it is given, are written down and passed on to `log`.
pub async fn pass(
    client: (Reader, Writer),
    agent: (Reader, Writer),
    stderr: Option<Reader>,
    log: Sender<Vec<u8>>,
    recorder: &mut Recorder,
    grace: Duration,
    stop: impl Future<Output = ()>,
) -> io::Result<Passed> {
    let passing = Passing {
        recorder: RefCell::new(recorder),
        heard: Cell::new(Instant::now()),
        is_client_gone: Cell::new(false),
    };
    // Dropped to close the agent's stdin.
    let mut forth = Some(Box::pin(pump(Side::Client, client.0, agent.1, &passing)));
    let back = pump(Side::Agent, agent.0, client.1, &passing);
    let talk = lines(stderr, log, &passing);
    let (mut back, mut talk, mut stop) = (std::pin::pin!(back), std::pin::pin!(talk), std::pin::pin!(stop));
    let (mut is_silent, mut stopped_at) = (false, None);
    let passed = loop {
        let end = || stopped_at.map_or(passing.heard.get() + grace, |at: Instant| at + STOPPING);
        tokio::select! {
            ended = async { forth.as_mut().expect("polled only if there is one").await }, if forth.is_some() => {
                forth = None;
                passing.heard.set(Instant::now());
                ended?;
            }
            ended = &mut back => {
                ended?;
                break if forth.is_some() { Passed::AgentLeft } else { Passed::ClientLeft };
            }
            () = &mut talk, if !is_silent => is_silent = true,
            () = &mut stop, if stopped_at.is_none() => {
                stopped_at = Some(Instant::now());
                forth = None;
                passing.closed(Side::Client);
            }
            // An agent that goes on after its time is ended by whoever started it.
            () = sleep_until(end()), if forth.is_none() => if end() <= Instant::now() {
                break Passed::ClientLeft;
            }
        }
    };
    // Its last words are in the pipe already.
    if !is_silent {
        let _ = tokio::time::timeout(Duration::from_millis(200), talk).await;
    }
    Ok(passed)
}

/// Passes on what one side sends, to its end. The way to the other side is closed then.
async fn pump(from: Side, mut reader: Reader, mut writer: Writer, passing: &Passing<'_>) -> io::Result<()> {
    let mut splitter = Splitter::new(None, LONGEST_FRAME);
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = reader.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        // A side that takes nothing any more has left; what the other one still says is written down all the same.
        let passed_on = async {
            writer.write_all(&buffer[..count]).await?;
            writer.flush().await
        };
        let is_taken = passed_on.await.is_ok();
        splitter.feed(&buffer[..count]);
        record(from, &mut splitter, passing);
        if from == Side::Agent {
            passing.heard.set(Instant::now());
        }
        if !is_taken {
            if from == Side::Agent {
                passing.closed(Side::Client);
            }
            return Ok(());
        }
    }
    splitter.end();
    record(from, &mut splitter, passing);
    passing.closed(from);
    let _ = writer.shutdown().await;
    Ok(())
}

fn record(from: Side, splitter: &mut Splitter, passing: &Passing<'_>) {
    while let Some(piece) = splitter.next_piece() {
        let event = match piece.frame {
            Some(Frame::Message(text)) => Event::Frame { from, text: text.to_owned() },
            Some(Frame::Junk(_)) => {
                Event::Junk { from, bytes: if piece.bytes.is_empty() { LONGEST_FRAME } else { piece.bytes.len() } }
            }
            None => continue,
        };
        passing.write(&event);
    }
}

/// Writes stderr down line by line, and passes it on.
async fn lines(stderr: Option<Reader>, log: Sender<Vec<u8>>, passing: &Passing<'_>) {
    let Some(stderr) = stderr else { return };
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut stderr).take(LONGEST_STDERR as u64);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                // Nobody may be listening; it is written down all the same.
                let _ = log.send(std::mem::take(&mut line)).await;
                passing.heard.set(Instant::now());
                passing.write(&Event::Stderr { text });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{duplex, split};

    use super::*;
    use crate::record::Record;
    use crate::trace::Recording;

    fn ends(stream: tokio::io::DuplexStream) -> (Reader, Writer) {
        let (reader, writer) = split(stream);
        (Box::new(reader), Box::new(writer))
    }

    /// What both sides got, and the record as a transcript.
    async fn passed(said_by_client: &[u8], said_by_agent: &[u8]) -> (Vec<u8>, Vec<u8>, String, Passed) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.jsonl");
        let (client, near_client) = duplex(100);
        let (agent, near_agent) = duplex(100);
        let mut recorder = Recorder::open(&path, Recording::default()).unwrap();
        let talk = async |stream, said: &[u8]| {
            let (mut reader, mut writer) = split(stream);
            let mut heard = Vec::new();
            let saying = async {
                writer.write_all(said).await.unwrap();
                writer.shutdown().await.unwrap();
            };
            let ((), read) = tokio::join!(saying, reader.read_to_end(&mut heard));
            read.unwrap();
            heard
        };
        let stderr: Reader = Box::new(std::io::Cursor::new(b"warning\nno end".to_vec()));
        let (log, mut logged) = tokio::sync::mpsc::channel(10);
        let passing = async {
            let (client, agent, grace) = (ends(near_client), ends(near_agent), Duration::from_secs(5));
            pass(client, agent, Some(stderr), log, &mut recorder, grace, std::future::pending()).await.unwrap()
        };
        let (to_client, to_agent, passed) =
            tokio::join!(talk(client, said_by_client), talk(agent, said_by_agent), passing);
        assert_eq!(recorder.failures(), 0);
        assert_eq!(logged.recv().await.as_deref(), Some(&b"warning\n"[..]));
        assert_eq!(logged.recv().await.as_deref(), Some(&b"no end"[..]));
        let record = Record::from_trace(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (to_client, to_agent, record.to_transcript(), passed)
    }

    #[tokio::test]
    async fn not_a_byte_is_changed_and_all_of_it_is_written_down() {
        let client = b"{\"jsonrpc\" : \"2.0\",\"id\":0,\"method\":\"initialize\"}\r\n\n\n  {}\n".repeat(50);
        let agent = b"\xef\xbb\xbfbanner \x1b[31m\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\nno line end"
            .repeat(50);
        let (to_client, to_agent, transcript, _) = passed(&client, &agent).await;
        assert!(to_client == agent && to_agent == client);
        assert_eq!(transcript.matches("'method':'initialize'}").count(), 50);
        assert_eq!(transcript.matches("(junk from agent, ").count(), 101);
        for once in ["(stderr) warning\n", "(stderr) no end\n", "(closed by client)\n", "(closed by agent)\n"] {
            assert_eq!(transcript.matches(once).count(), 1, "{once}");
        }
    }

    /// An agent that says something every 40 seconds, and the transcript of what is recorded of it when its client has left.
    async fn left_alone(times: usize, grace: u64, stop: impl Future<Output = ()>) -> (String, Duration) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.jsonl");
        let (client, near_client) = duplex(1000);
        let (mut agent, near_agent) = duplex(1000);
        let (_reader, mut writer) = split(client);
        writer.shutdown().await.unwrap();
        let mut recorder = Recorder::open(&path, Recording::default()).unwrap();
        let talking = async move {
            for _ in 0..times {
                tokio::time::sleep(Duration::from_secs(40)).await;
                if agent.write_all(b"{\"id\":1}\n").await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_secs(1_000_000)).await;
        };
        let (log, _logged) = tokio::sync::mpsc::channel(10);
        let (client, agent, grace) = (ends(near_client), ends(near_agent), Duration::from_secs(grace));
        let begin = Instant::now();
        tokio::select! {
            passed = pass(client, agent, None, log, &mut recorder, grace, stop) => assert_eq!(passed.unwrap(), Passed::ClientLeft),
            () = talking => panic!("the agent went on for ever"),
        }
        (Record::from_trace(&std::fs::read_to_string(&path).unwrap()).unwrap().to_transcript(), begin.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_may_go_on_without_its_client_as_long_as_it_says_something() {
        let (transcript, time) = left_alone(5, 60, std::future::pending()).await;
        assert_eq!(transcript, format!("(closed by client)\n{}", "<== {\"id\":1}\n".repeat(5)));
        assert_eq!(time.as_secs(), 5 * 40 + 60);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_is_stopped_is_told_that_its_client_has_left() {
        let (transcript, time) = left_alone(5, 600, tokio::time::sleep(Duration::from_secs(50))).await;
        assert_eq!(transcript, "(closed by client)\n<== {\"id\":1}\n");
        assert_eq!(time.as_secs(), 52);
    }
}
