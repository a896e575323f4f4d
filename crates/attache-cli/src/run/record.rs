//! What a run came to: every event is recorded, printed and added up.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use crate::event::{
    self, Agent, Answer, Change, ContextUsage, Event, FileOperation, Level, Line, Permissions, Start, Status, Text,
    Tool, ToolCall, Usage,
};
use crate::exit::{Code, Failure};
use crate::journal::{self, Journal};
use crate::output::Printer;
use crate::pen::{Ink, Messages, Pen, PipeClosed};
use crate::signals::Signals;

/// How much text is kept for the result. What is more was printed, or is in the journal.
const KEPT_TEXT: usize = 8 << 20;

/// How many tool calls, and how many files, are kept for the result.
const KEPT_ROWS: usize = 1000;

/// How much is held back while a person is asked. Then nothing more is taken from the agent.
const HELD: usize = 1 << 20;

/// How much of a title is kept.
const KEPT_TITLE: usize = 500;

/// Takes the events of a run.
pub(crate) struct Record {
    pub(crate) run: String,
    began: Instant,
    journal: Journal,
    printer: Printer,
    pen: Pen,
    /// What is to be printed when there is room.
    pending: VecDeque<Ink>,
    pending_bytes: usize,
    /// The messages that are printed beside it, with `-o acp`.
    pub(crate) messages: Option<Messages>,
    last_message: Option<String>,
    is_text_broken: bool,
    is_text_open: bool,
    text: String,
    is_text_truncated: bool,
    agent: Agent,
    session: Option<String>,
    context: Option<ContextUsage>,
    pub(crate) permissions: Permissions,
    calls: Vec<Call>,
    by_id: HashMap<String, usize>,
    files: BTreeSet<String>,
    /// How the agent is confined, once that is known.
    pub(crate) sandbox: Option<event::Sandbox>,
}

/// A tool call, as far as it matters for the result.
struct Call {
    row: ToolCall,
    paths: Vec<String>,
    changed: Vec<String>,
}

impl Record {
    pub(crate) fn new(
        agent: &str,
        identity: Option<String>,
        cwd: &std::path::Path,
        printer: Printer,
        pen: Pen,
        is_kept: bool,
    ) -> (Self, Vec<Event>) {
        let now = SystemTime::now();
        let run = journal::new_run(now);
        let (journal, error) = if is_kept { Journal::begin(&run) } else { (Journal::none(), None) };
        let mut first = vec![Event::Start(Start {
            schema: event::VERSION,
            attache: env!("CARGO_PKG_VERSION").into(),
            run: run.clone(),
            time: attache::trace::rfc3339(now),
            agent: agent.into(),
            identity,
            cwd: cwd.display().to_string(),
        })];
        if let Some(error) = error {
            first.push(Event::notice(Level::Warning, format!("this run is not recorded: {error}")));
        }
        let record = Record {
            run,
            began: Instant::now(),
            journal,
            printer,
            pen,
            pending: VecDeque::new(),
            pending_bytes: 0,
            messages: None,
            last_message: None,
            is_text_broken: false,
            is_text_open: false,
            text: String::new(),
            is_text_truncated: false,
            agent: Agent { agent: agent.into(), ..Agent::default() },
            session: None,
            context: None,
            permissions: Permissions::default(),
            calls: Vec::new(),
            by_id: HashMap::new(),
            files: BTreeSet::new(),
            sandbox: None,
        };
        (record, first)
    }

    /// Takes an event. It is recorded at once, and printed by [`flush`](Record::flush).
    pub(crate) fn add(&mut self, event: Event) {
        let gap = self.fold(&event);
        let line = Line { ms: self.elapsed(), event };
        let ink = self.printer.event(&line, gap);
        self.print(ink);
        if let Err(error) = self.journal.add(&line) {
            let event = Event::notice(Level::Warning, format!("the rest of this run is not recorded: {error}"));
            let ink = self.printer.event(&Line { ms: self.elapsed(), event }, "");
            self.print(ink);
        }
    }

    /// Tells a person that nothing came for a while.
    pub(crate) fn idle(&mut self, idle: Duration) {
        let ink = self.printer.idle(idle);
        self.print(ink);
    }

    /// Clears the screen for somebody else's words.
    pub(crate) fn clear(&mut self) {
        let ink = self.printer.clear();
        self.print(ink);
    }

    /// Goes on below a question that was withdrawn.
    pub(crate) fn leave_question(&mut self) {
        self.print(vec![Ink::err("\n")]);
    }

    fn print(&mut self, ink: Vec<Ink>) {
        self.pending_bytes += ink.iter().map(Ink::size).sum::<usize>();
        self.pending.extend(ink);
    }

    /// Whether there is something to print. Nothing more should be taken then.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty() || self.messages.as_ref().is_some_and(Messages::is_full)
    }

    /// Whether as much waits to be printed as is held for a person who is being asked.
    pub(crate) fn is_full(&self) -> bool {
        self.pending_bytes > HELD || self.messages.as_ref().is_some_and(Messages::is_full)
    }

    /// Prints what there is to print, and then, if it `holds`, leaves the screen to a question: returns when all that came
    /// before it is written, and nothing else is until [`release`](Record::release). It can be cancelled and called again.
    pub(crate) async fn flush_and_hold(&mut self, holds: bool) -> Result<(), PipeClosed> {
        if !holds {
            return self.flush().await;
        }
        self.clear();
        self.flush().await?;
        self.pen.written().await?;
        if let Some(messages) = &self.messages {
            messages.hold().await;
        }
        Ok(())
    }

    /// The question is answered: what was held is printed.
    pub(crate) fn release(&self) {
        if let Some(messages) = &self.messages {
            messages.release();
        }
    }

    /// Prints what there is to print; waits for a slow reader. It can be cancelled and called again.
    pub(crate) async fn flush(&mut self) -> Result<(), PipeClosed> {
        while !self.pending.is_empty() {
            let room = self.pen.room().await?;
            let ink = self.pending.pop_front();
            self.pending_bytes -= ink.as_ref().map_or(0, Ink::size);
            room.send(ink);
        }
        match &self.messages {
            Some(messages) => messages.room().await,
            None => Ok(()),
        }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Adds an event up. Returns what stands between its text and the text before it.
    fn fold(&mut self, event: &Event) -> &'static str {
        match event {
            Event::Agent(agent) => self.agent = agent.clone(),
            Event::Session(session) => self.session = Some(session.id.clone()),
            Event::Text(text) => return self.add_text(text),
            Event::Thought(_) | Event::Plan(_) => self.is_text_broken = true,
            Event::Tool(tool) => {
                self.is_text_broken = true;
                self.add_tool(tool);
            }
            Event::File(file) if file.operation == FileOperation::Write && file.error.is_none() => {
                self.add_files([file.path.clone()]);
            }
            Event::Usage(usage) => {
                let cost = usage.cost.clone().or_else(|| self.context.take().and_then(|context| context.cost));
                self.context = Some(ContextUsage { cost, ..usage.clone() });
            }
            Event::Permission(permission) => {
                // Some agents tell of a tool call only by asking for it.
                self.is_text_broken = true;
                self.permissions.asked += 1;
                match permission.answer {
                    Answer::Allowed => self.permissions.allowed += 1,
                    Answer::Denied => self.permissions.denied += 1,
                    Answer::Cancelled => {}
                }
            }
            _ => {}
        }
        ""
    }

    fn add_text(&mut self, text: &Text) -> &'static str {
        if text.text.is_empty() {
            return "";
        }
        let is_other = text.message_id.is_some() && self.last_message.is_some() && text.message_id != self.last_message;
        let is_fresh = std::mem::take(&mut self.is_text_broken) || is_other;
        if text.message_id.is_some() {
            self.last_message.clone_from(&text.message_id);
        }
        let gap = match (is_fresh && !self.text.is_empty(), self.is_text_open) {
            (false, _) => "",
            (true, true) => "\n\n",
            (true, false) => "\n",
        };
        self.is_text_open = !text.text.ends_with('\n');
        for piece in [gap, &text.text] {
            let room = KEPT_TEXT.saturating_sub(self.text.len());
            let end = if piece.len() <= room { piece.len() } else { piece.floor_char_boundary(room) };
            self.is_text_truncated |= end < piece.len();
            self.text.push_str(&piece[..end]);
        }
        gap
    }

    fn add_tool(&mut self, tool: &Tool) {
        let index = match self.by_id.get(&tool.id) {
            Some(index) => *index,
            None if self.calls.len() >= KEPT_ROWS => return,
            None => {
                let row = ToolCall {
                    id: tool.id.clone(),
                    title: String::new(),
                    kind: "other".into(),
                    status: "pending".into(),
                };
                self.by_id.insert(tool.id.clone(), self.calls.len());
                self.calls.push(Call { row, paths: Vec::new(), changed: Vec::new() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[index];
        if let Some(title) = &tool.title {
            call.row.title = title.chars().take(KEPT_TITLE).collect();
        }
        for (kept, new) in [(&mut call.row.kind, &tool.kind), (&mut call.row.status, &tool.status)] {
            if let Some(new) = new {
                kept.clone_from(new);
            }
        }
        if let Some(paths) = &tool.paths {
            call.paths = paths.iter().take(KEPT_ROWS).cloned().collect();
        }
        if let Some(changes) = &tool.changes {
            call.changed.extend(changes.iter().flat_map(|change: &Change| change.paths.clone()));
            call.changed.truncate(KEPT_ROWS);
        }
        if call.row.status == "completed" {
            let mut files = std::mem::take(&mut call.changed);
            if files.is_empty() && matches!(&*call.row.kind, "edit" | "delete" | "move") {
                files.clone_from(&call.paths);
            }
            self.add_files(files);
        }
    }

    fn add_files(&mut self, files: impl IntoIterator<Item = String>) {
        for file in files {
            if self.files.len() < KEPT_ROWS {
                self.files.insert(file);
            }
        }
    }

    /// Ends the run: prints and records the result, and returns the exit code. A reader of stdout that does not read is
    /// waited for until a signal comes.
    pub(crate) async fn finish(mut self, end: End, signals: &mut Signals) -> Code {
        self.release();
        let code = end.failure.as_ref().map_or(end.code, |failure| failure.code);
        let status = match code {
            Code::Done => Status::Done,
            Code::Agent => Status::Error,
            Code::Usage => Status::Usage,
            Code::Timeout => Status::Timeout,
            Code::Login => Status::LoginRequired,
            Code::Denied => Status::Denied,
            Code::Refused if end.stop_reason.as_deref() == Some("refusal") => Status::Refused,
            Code::Refused => Status::Limit,
            Code::NotFound => Status::NotFound,
            Code::Died => Status::AgentDied,
            Code::Interrupted | Code::Terminated => Status::Cancelled,
        };
        let result = event::Result {
            status,
            exit_code: code as u8,
            stop_reason: end.stop_reason,
            text: std::mem::take(&mut self.text),
            text_truncated: self.is_text_truncated,
            session_id: self.session.take(),
            run: self.run.clone(),
            agent: std::mem::take(&mut self.agent),
            usage: end.usage,
            cost: self.context.as_ref().and_then(|context| context.cost.clone()),
            context: self.context.take(),
            permissions: self.permissions,
            tool_calls: self.calls.drain(..).map(|call| call.row).collect(),
            files_changed: std::mem::take(&mut self.files).into_iter().collect(),
            sandbox: self.sandbox.take(),
            duration_ms: self.elapsed(),
            error: end.failure.map(|failure| event::Error::new(&failure.message)),
        };
        let line = Line { ms: result.duration_ms, event: Event::Result(Box::new(result)) };
        let _ = self.journal.add(&line);
        if let Event::Result(result) = &line.event {
            let ink = self.printer.result(&line, result);
            self.print(ink);
        }
        let last_words = async {
            let _ = self.flush().await;
            if let Some(messages) = &self.messages {
                let _ = messages.until(0).await;
            }
            self.pen.finish().await;
        };
        let is_hurried = matches!(code, Code::Interrupted | Code::Terminated);
        tokio::select! {
            () = last_words => {}
            _ = signals.next() => {}
            () = tokio::time::sleep(LAST_WORDS), if is_hurried => {}
        }
        code
    }
}

/// How long a reader of stdout has to take the result after a signal.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How a run ended.
#[derive(Default)]
pub(crate) struct End {
    pub(crate) code: Code,
    pub(crate) failure: Option<Failure>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Option<Usage>,
}
