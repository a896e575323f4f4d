//! A chat line by line, without a screen: for screen readers and very simple terminals.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use attache::model::content::ContentBlock;
use attache::model::session::SessionId;
use attache::proto::view::{Entry, MessageRole};
use attache::{SessionView, Stop};
use attache_tui::theme::Theme;
use attache_tui::transcript;
use tokio::sync::mpsc;

use super::screen;
use super::worker::{News, Order, Outlet, Plan, WAITING_NEWS, Worker};
use crate::agents::AgentSpec;
use crate::client::ask::Asker;
use crate::event::{self, Answer};
use crate::exit::{Code, Failure};
use crate::signals::{Signal, Signals};
use crate::tty::Tty;

/// Talks until the end of input.
pub(super) async fn run(plan: Plan, first: Option<String>) -> Result<Code, Failure> {
    let tty = Tty::open().map_err(|_| {
        Failure::usage("a chat needs a terminal, and there is none here\nhint: `attache run \"…\"` needs none")
    })?;
    screen::use_plain_theme();
    let mut signals = Signals::new().map_err(|error| Failure::usage(error.to_string()))?;
    let root = plan.cwd.display().to_string();
    let spec = plan.spec.clone();
    let (news, incoming) = mpsc::channel(WAITING_NEWS);
    let worker = Worker::start(plan, Outlet { id: 0, news });
    let mut plain = Plain {
        tty: Arc::new(tty),
        worker,
        incoming,
        view: SessionView::with_limit(16 << 20),
        printed: 0,
        said: None,
        root,
        theme: screen::theme(None),
        reasons: VecDeque::new(),
        first,
        spec,
        session: None,
        unwritten: RefCell::new(None),
    };
    plain.say(&format!(
        "Starting {}. Write a line and press Enter; Ctrl-C cancels, twice it leaves, as do Ctrl-D and /quit.",
        plain.spec.name
    ));
    let done = plain.talk(&mut signals).await;
    let unwritten = plain.unwritten.take();
    plain.leave().await;
    match (done, unwritten) {
        (Ok(Code::Done), Some(error)) => Err(Failure::usage(format!("cannot write to stdout: {error}"))),
        (done, _) => done,
    }
}

struct Plain {
    tty: Arc<Tty>,
    worker: Worker,
    incoming: mpsc::Receiver<(u64, News)>,
    view: SessionView,
    /// The first entry that was not read out yet.
    printed: usize,
    /// The last message that was, and how long it was then.
    said: Option<(usize, usize)>,
    root: String,
    theme: Theme,
    /// Why the person said no, for the agent to read next.
    reasons: VecDeque<String>,
    /// What the command line asks.
    first: Option<String>,
    spec: AgentSpec,
    session: Option<SessionId>,
    /// Why something could not be written.
    unwritten: RefCell<Option<io::Error>>,
}

/// What a piece of news leads to.
enum Next {
    /// More news.
    More,
    /// The person may write.
    Ready,
    Dead(Failure),
    /// A signal came while a question stood, which is answered by no.
    Signal(Signal),
}

impl Plain {
    async fn talk(&mut self, signals: &mut Signals) -> Result<Code, Failure> {
        if let Some(code) = self.until_ready(signals).await? {
            return Ok(code);
        }
        loop {
            let line = match self.reasons.pop_front().or_else(|| self.first.take()) {
                Some(line) => Some(line),
                None => match self.next_line(signals).await? {
                    Ok(line) => line,
                    Err(code) => return Ok(code),
                },
            };
            let Some(line) = line.filter(|line| line.trim() != "/quit") else { break };
            if line.is_empty() {
                continue;
            }
            let blocks = vec![ContentBlock::text(line)];
            self.view.user_prompt(&blocks);
            self.printed = self.end();
            self.view.begin_turn();
            let _ = self.worker.orders.send(Order::Prompt(blocks));
            if let Some(code) = self.until_ready(signals).await? {
                return Ok(code);
            }
        }
        Ok(Code::Done)
    }

    /// Lets the agent go politely, and says how to come back.
    async fn leave(mut self) {
        let _ = self.worker.orders.send(Order::Close);
        let goodbye = async {
            while let Some((_, news)) = self.incoming.recv().await {
                if matches!(news, News::Closed | News::Dead(_) | News::NotOpened(_)) {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(super::GOODBYE, goodbye).await;
        if let Some(id) = &self.session {
            self.say(&super::way_back(&self.spec, id));
        }
    }

    /// Waits for a line, and reads out meanwhile what happens between turns. The exit code if a signal comes first.
    async fn next_line(&mut self, signals: &mut Signals) -> Result<Result<Option<String>, Code>, Failure> {
        let tty = self.tty.clone();
        let mut asking = std::pin::pin!(tty.ask("\n> "));
        let mut is_told = false;
        loop {
            tokio::select! {
                line = &mut asking => return line.map(Ok).map_err(|error| Failure::usage(error.to_string())),
                signal = signals.next() => {
                    // It may have been meant for a turn that ended just before. The terminal has forgotten what was typed.
                    if signal == Signal::Terminate || std::mem::replace(&mut is_told, true) {
                        return Ok(Err(code_of(signal)));
                    }
                    self.say("\nNothing is under way. Ctrl-C once more leaves, and so does Ctrl-D.");
                    let _ = self.tty.show("> ").await;
                }
                news = self.incoming.recv() => {
                    let Some((_, news)) = news else { return Ok(Err(Code::Done)) };
                    match self.take(news, signals).await {
                        Next::Dead(failure) => return Err(failure),
                        Next::Signal(signal) => return Ok(Err(code_of(signal))),
                        Next::More | Next::Ready => {}
                    }
                    // Nothing is under way that would end it.
                    self.read_out(true);
                    // It came after the turn that it is about.
                    if let Some(reason) = self.reasons.pop_front() {
                        return Ok(Ok(Some(reason)));
                    }
                }
            }
        }
    }

    /// Reads out what happens until the person may write again.
    async fn until_ready(&mut self, signals: &mut Signals) -> Result<Option<Code>, Failure> {
        let mut is_cancelled = false;
        loop {
            let signal = tokio::select! {
                signal = signals.next() => signal,
                news = self.incoming.recv() => {
                    let Some((_, news)) = news else { return Ok(Some(Code::Done)) };
                    match self.take(news, signals).await {
                        Next::More => continue,
                        Next::Ready => {
                            if is_cancelled {
                                // They were for the turn that the person has stopped.
                                self.reasons.clear();
                            }
                            return Ok(None);
                        }
                        Next::Dead(failure) => return Err(failure),
                        Next::Signal(signal) => signal,
                    }
                }
            };
            if is_cancelled || signal == Signal::Terminate {
                return Ok(Some(code_of(signal)));
            }
            is_cancelled = true;
            self.say("Cancelling; once more leaves.");
            let _ = self.worker.orders.send(Order::Cancel);
        }
    }

    async fn take(&mut self, news: News, signals: &mut Signals) -> Next {
        match news {
            News::Opened { id, unset, .. } => {
                self.session = Some(id);
                for text in &unset {
                    self.say(text);
                }
                if !unset.is_empty()
                    && let Some(first) = self.first.take()
                {
                    self.say(&format!("Not everything is set as you wanted it, so this was not sent: {first}"));
                }
                return Next::Ready;
            }
            News::Update(update) => {
                self.view.apply(&update);
                self.read_out(false);
            }
            News::Told(event) => self.tell(&event),
            News::TurnEnded { stop, .. } => {
                self.view.end_turn(&stop.unwrap_or(Stop::EndTurn));
                self.read_out(true);
                return Next::Ready;
            }
            News::TurnFailed(message) => {
                self.view.end_turn(&Stop::Cancelled);
                self.read_out(true);
                self.say(&message);
                return Next::Ready;
            }
            News::Refused(message) => self.say(&message),
            News::Reason(reason) => self.reasons.push_back(reason),
            News::Permission { question, mut reply } => {
                self.read_out(false);
                let answer = tokio::select! {
                    // Without an answer it is no.
                    signal = signals.next() => return Next::Signal(signal),
                    answer = self.tty.permission(&question) => Some(answer),
                    () = reply.closed() => None,
                };
                if let Some(answer) = answer {
                    let _ = reply.send(answer);
                }
            }
            News::Elicitation { request, mut reply } => {
                let answer = tokio::select! {
                    signal = signals.next() => return Next::Signal(signal),
                    answer = self.tty.elicitation(&request) => Some(answer),
                    () = reply.closed() => None,
                };
                if let Some(answer) = answer {
                    let _ = reply.send(answer);
                }
            }
            // The session goes on; what failed has been said.
            News::LoginNeeded { .. } if self.session.is_some() => {}
            News::LoginNeeded { words, .. } => {
                let words = format!("the agent wants a login first: {words}\nhint: `attache login`");
                return Next::Dead(Failure::new(Code::Login, words));
            }
            News::Dead(failure) | News::NotOpened(failure) => return Next::Dead(failure),
            News::Closed => return Next::Dead(Failure::new(Code::Died, "the session is closed")),
            _ => {}
        }
        Next::More
    }

    /// Says what was done here for the agent.
    fn tell(&self, event: &event::Event) {
        match event {
            event::Event::Notice(notice) => self.say(&notice.text),
            event::Event::Permission(permission) => {
                let word = match permission.answer {
                    Answer::Allowed => "allowed",
                    Answer::Denied => "denied",
                    Answer::Cancelled => "cancelled",
                };
                self.say(&format!("{word}: {} ({})", permission.what, permission.reason));
            }
            _ => {}
        }
    }

    fn end(&self) -> usize {
        self.view.first_place() + self.view.timeline().len()
    }

    /// Reads out the entries that are finished, in order, each once.
    fn read_out(&mut self, is_over: bool) {
        let mut place = self.printed.max(self.view.first_place());
        // An agent may go on with what was read out, after its turn.
        if let Some((last, length)) = self.said.take_if(|(last, _)| *last + 1 == place)
            && let Some(Entry::Message(message)) = self.view.entry(last)
        {
            let text = message.text();
            if let Some(more) = text.get(length..).filter(|more| !more.is_empty()) {
                self.say(more);
            }
            self.said = Some((last, text.len()));
        }
        while place < self.end() {
            let is_last = place + 1 == self.end();
            let is_open = match self.view.entry(place) {
                Some(Entry::ToolCall(call)) => !call.status.is_final(),
                Some(Entry::Message(message)) => is_last && message.role != MessageRole::User,
                _ => false,
            };
            if is_open && !is_over {
                break;
            }
            let lines = transcript::block_in(&self.view, place, self.tty.columns(), &self.theme, &self.root);
            let text: Vec<String> = lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
            self.say(&text.join("\n"));
            self.said = match self.view.entry(place) {
                Some(Entry::Message(message)) => Some((place, message.text().len())),
                _ => None,
            };
            place += 1;
        }
        self.printed = place;
    }

    fn say(&self, text: &str) {
        // The person goes on, if they want to; in the end it is told.
        if let Err(error) = writeln!(io::stdout(), "{}", crate::visible::visible(text)) {
            self.unwritten.borrow_mut().get_or_insert(error);
        }
    }
}

fn code_of(signal: Signal) -> Code {
    match signal {
        Signal::Interrupt => Code::Interrupted,
        Signal::Terminate => Code::Terminated,
    }
}
