//! Passes bytes between a client and an agent, and writes down what they are.
//!
//! What comes is passed on first and looked at afterwards: the recording cannot change a byte, and holds nothing back.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use attache_proto::frame::{Frame, Splitter};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::Recorder;
use crate::record::{Event, Side};

/// The longest line that is written down; of longer ones only their number is.
const LONGEST_FRAME: usize = 16 << 20;

/// How much is read at a time: as much as a pipe holds.
const CHUNK: usize = 64 << 10;

/// The longest line of stderr that is held.
const LONGEST_STDERR: usize = 64 << 10;

/// Who left first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// The client has closed its end, and the agent its own, or its time to do so was over.
    ClientLeft,
    /// The agent has closed its end.
    AgentLeft,
}

/// A stream that is read.
type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// A stream that is written to.
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Passes bytes between a client and an agent until one of them leaves. When the client does, the agent may finish what it says for
/// as long as `grace`. The agent's stderr, if it is given, is written down and passed on to `log`.
pub async fn pass(
    client: (Reader, Writer),
    agent: (Reader, Writer),
    stderr: Option<Reader>,
    log: Writer,
    recorder: &mut Recorder,
    grace: Duration,
) -> io::Result<Passed> {
    let recorder = RefCell::new(recorder);
    let forth = pump(Side::Client, client.0, agent.1, &recorder);
    let back = pump(Side::Agent, agent.0, client.1, &recorder);
    let talk = lines(stderr, log, &recorder);
    let (mut forth, mut back, mut talk) = (std::pin::pin!(forth), std::pin::pin!(back), std::pin::pin!(talk));
    let mut is_silent = false;
    let passed = loop {
        tokio::select! {
            ended = &mut forth => {
                ended?;
                let rest = async {
                    loop {
                        tokio::select! {
                            ended = &mut back => break ended,
                            () = &mut talk, if !is_silent => is_silent = true,
                        }
                    }
                };
                // An agent that goes on after its time is ended by whoever started it.
                if let Ok(ended) = tokio::time::timeout(grace, rest).await {
                    ended?;
                }
                break Passed::ClientLeft;
            }
            ended = &mut back => {
                ended?;
                break Passed::AgentLeft;
            }
            () = &mut talk, if !is_silent => is_silent = true,
        }
    };
    // Its last words are in the pipe already.
    if !is_silent {
        let _ = tokio::time::timeout(Duration::from_millis(200), talk).await;
    }
    Ok(passed)
}

/// Passes on what one side sends, to its end. The way to the other side is closed then.
async fn pump(from: Side, mut reader: Reader, mut writer: Writer, recorder: &RefCell<&mut Recorder>) -> io::Result<()> {
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
        record(from, &mut splitter, recorder);
        if !is_taken {
            return Ok(());
        }
    }
    splitter.end();
    record(from, &mut splitter, recorder);
    recorder.borrow_mut().write(&Event::Closed { from });
    let _ = writer.shutdown().await;
    Ok(())
}

fn record(from: Side, splitter: &mut Splitter, recorder: &RefCell<&mut Recorder>) {
    while let Some(piece) = splitter.next_piece() {
        let event = match piece.frame {
            Some(Frame::Message(text)) => Event::Frame { from, text: text.to_owned() },
            Some(Frame::Junk(_)) => {
                Event::Junk { from, bytes: if piece.bytes.is_empty() { LONGEST_FRAME } else { piece.bytes.len() } }
            }
            None => continue,
        };
        recorder.borrow_mut().write(&event);
    }
}

/// Writes stderr down line by line, and passes it on.
async fn lines(stderr: Option<Reader>, mut log: Writer, recorder: &RefCell<&mut Recorder>) {
    let Some(stderr) = stderr else { return };
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut stderr).take(LONGEST_STDERR as u64);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let _ = log.write_all(&line).await;
                let _ = log.flush().await;
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                recorder.borrow_mut().write(&Event::Stderr { text });
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

    /// What both sides got, and the record as a transcript.
    async fn passed(said_by_client: &[u8], said_by_agent: &[u8]) -> (Vec<u8>, Vec<u8>, String, Passed) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.jsonl");
        let (client, near_client) = duplex(100);
        let (agent, near_agent) = duplex(100);
        let ends = |stream| {
            let (reader, writer) = split(stream);
            (Box::new(reader) as Reader, Box::new(writer) as Writer)
        };
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
        let log = Box::new(tokio::io::sink());
        let passing = async {
            let passed =
                pass(ends(near_client), ends(near_agent), Some(stderr), log, &mut recorder, Duration::from_secs(5))
                    .await;
            passed.unwrap()
        };
        let (to_client, to_agent, passed) =
            tokio::join!(talk(client, said_by_client), talk(agent, said_by_agent), passing);
        assert_eq!(recorder.failures(), 0);
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
}
