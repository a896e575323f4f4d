//! `attache chat`: a screen to sit down at, with any agent.
//!
//! What is shown is a function of values ([`app`], and the crate `attache-tui`); each session has a task of its own
//! ([`worker`]); here is the loop that brings keys and news in and pictures out.

mod app;
mod catalog;
mod keep;
mod mentions;
pub(crate) mod options;
mod outside;
mod plain;
mod screen;
mod tab;
pub(crate) mod worker;

use std::future::poll_fn;
use std::io::{self, IsTerminal, Write};
use std::task::Poll;
use std::time::{Duration, Instant};

use attache::model::session::SessionId;
use attache::trace::Tap;
use attache_tui::keymap::KeyMap;
use crossterm::event::EventStream;
use futures_core::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::agents::AgentSpec;
use crate::cli::{Permissions, SandboxKind};
use crate::connect;
use crate::exit::{Code, Failure};
use crate::project::Project;
use crate::signals::{Pauses, Signal, Signals};
use app::{App, Deed, Outside};
use keep::Settings;
use options::Chat;
use screen::{Mode, Screen};
use worker::{Begin, Plan, Setting, WAITING_NEWS};

pub(crate) use screen::theme;

/// News makes no more pictures than this: more cannot be seen.
const FRAME: Duration = Duration::from_millis(16);

/// How much news is taken in before keys are looked at again.
const NEWS_AT_ONCE: usize = 64;

/// How many keys are thrown away at most when a question comes up: there is an end, however fast they come.
const MOST_DISCARDED: usize = 10_000;

/// How often spinners and clocks move, and the size of the terminal is looked at.
const BEAT: Duration = Duration::from_millis(120);

/// How often what is being written is kept.
const SAVE: Duration = Duration::from_secs(1);

/// How long agents have to leave when we do.
const GOODBYE: Duration = Duration::from_secs(2);

/// Sits down with an agent, and returns the exit code.
pub(crate) async fn run(args: Chat) -> Result<Code, Failure> {
    // A person who sits down sees at once that something happens: the screen comes before all that takes time.
    // A terminal that can do nothing but print is talked to line by line.
    let is_plain = args.plain || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let screen = match is_plain {
        true => None,
        false => Some(first_screen(&args)?),
    };
    let resumed = args.resume.as_deref().map(crate::ids::session).transpose()?;
    let cwd = match &resumed {
        Some(id) => crate::ids::directory(id, args.start.cwd.as_deref())?,
        None => connect::directory(args.start.cwd.as_deref())?,
    };
    let settings = Settings::read()?;
    let keys =
        KeyMap::with(settings.keys.clone()).map_err(|error| Failure::usage(format!("keys of chat.toml: {error}")))?;
    let directories = args.add_dir.iter().map(|path| connect::directory(Some(&cwd.join(path))));
    let directories = directories.collect::<Result<Vec<_>, _>>()?;
    let project = Project::find(&cwd)?;
    let is_agent_named = args.start.agent.is_some() || !args.command.is_empty();
    // A session that is known here knows its agent.
    let recorded = match !is_agent_named && (resumed.is_some() || args.continue_last) {
        true => crate::journal::last_start(resumed.as_deref(), &cwd)?,
        false => None,
    };
    let mut spec = match &recorded {
        Some((start, _)) => {
            let identity = start.identity.as_deref().unwrap_or(&start.agent);
            catalog::spec_of(&start.agent, identity, &cwd, &project)?
        }
        None => crate::agents::resolve(args.start.agent.as_deref(), &args.command, &project)?,
    };
    spec.pass_env.extend_from_slice(&args.start.env);
    spec.notices.extend(connect::moved_to(&cwd, args.start.cwd.as_deref()));
    let mut chosen = Vec::new();
    if let Some(model) = &args.model {
        if spec.is_built_in {
            // It can be any model there, and what the agent offers follows from it.
            spec.env.insert(crate::agent::MODEL.into(), crate::agent::model_id(model)?);
        } else {
            chosen.push((Setting::Model, model.clone()));
        }
    }
    chosen.extend(args.mode.iter().map(|mode| (Setting::Mode, mode.clone())));
    chosen.extend(args.set.iter().map(|(key, value)| (Setting::Option(key.clone()), value.clone())));
    tell_permissions(&mut spec, args.permissions);
    crate::run::options::check_sandbox(args.start.sandbox, &mut spec)?;
    if crate::run::options::is_turned_off(args.start.sandbox, &spec, &args.set) {
        chosen.push((Setting::Option("sandbox".into()), "off".into()));
    }
    let begin = match (resumed, recorded, args.continue_last) {
        (Some(id), ..) | (None, Some((_, id)), _) => Begin::Load(id.as_str().into()),
        (None, None, true) => Begin::Load(crate::run::last_session(&spec, &cwd)?.as_str().into()),
        (None, None, false) => Begin::New,
    };
    let open = |path: &std::path::PathBuf| {
        Tap::file(path).map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))
    };
    let trace = args.start.trace.as_ref().map(open).transpose()?;
    let plan = Plan {
        spec,
        cwd,
        directories,
        permissions: args.permissions,
        sandbox: args.start.sandbox,
        protocol: args.start.protocol,
        settings: chosen,
        trace,
        begin,
    };
    let is_named = args.start.agent.is_some()
        || !args.command.is_empty()
        || args.resume.is_some()
        || args.continue_last
        || args.prompt.is_some()
        || std::env::var_os("ATTACHE_AGENT").is_some();
    let Some(mut screen) = screen else { return plain::run(plan, args.prompt).await };
    if settings.mouse && !args.mouse {
        screen.set_mouse(true).map_err(no_screen)?;
    }
    let (news, incoming) = mpsc::channel(WAITING_NEWS);
    let mut app = App::new(plan.clone(), keys, theme(settings.background.map(Into::into)), news);
    app.set_bell(settings.bell.unwrap_or(true));
    app.set_first_prompt(args.prompt);
    match is_named {
        true => app.open(plan),
        false => app.choose(),
    }
    let mut signals = Signals::new().map_err(|error| Failure::usage(error.to_string()))?;
    let mut pauses = Pauses::new().map_err(no_screen)?;
    let ended = Loop { app, screen, incoming, drawn: None, is_keyboard_stale: false, image: None }
        .turn(&mut signals, &mut pauses)
        .await;
    match ended {
        // Closed by the person, and nobody is there to be told.
        Err(_) if !io::stdout().is_terminal() => Ok(Code::Terminated),
        ended => ended.map_err(|error| Failure::new(Code::Usage, format!("the terminal does not work: {error}"))),
    }
}

/// Takes the terminal, and shows where a person will write.
fn first_screen(args: &Chat) -> Result<Screen, Failure> {
    let mode = if args.inline { Mode::Inline } else { Mode::Full };
    let mut screen = Screen::take(mode, args.mouse).map_err(no_screen)?;
    screen.draw(|frame| app::render_first(frame, &theme(None))).map_err(no_screen)?;
    Ok(screen)
}

fn no_screen(error: io::Error) -> Failure {
    Failure::usage(format!("cannot show a screen: {error}\nhint: `attache run` works without a terminal"))
}

/// How to go on with a session that is left.
fn way_back(spec: &AgentSpec, session: &SessionId) -> String {
    let mut words: Vec<String> = ["attache", "chat", "--resume", session.as_str()].map(String::from).to_vec();
    match spec.named {
        true => drop(words.splice(2..2, ["-a".to_owned(), spec.name.clone()])),
        false => words.extend(["--".to_owned()].into_iter().chain(spec.command_words())),
    }
    // The agent chose the id, and the person may paste the command into a shell.
    let command = attache::process::Command::from(words).to_string();
    let id = crate::visible::one_line(session.as_str());
    format!("session {id}; to go on with it: {}", crate::visible::one_line(&command))
}

/// Our own agent judges what it does, and is told how strictly. That goes before what its mode says, `ask` included.
fn tell_permissions(spec: &mut AgentSpec, permissions: Option<Permissions>) {
    if let Some(permissions) = permissions.filter(|_| spec.is_built_in) {
        spec.add_option("--permissions", permissions);
    }
}

type Image = Result<(String, Vec<u8>), String>;

struct Loop {
    app: App,
    screen: Screen,
    incoming: mpsc::Receiver<(worker::WorkerId, worker::News)>,
    /// When the last picture was drawn.
    drawn: Option<Instant>,
    /// Whether something has come up by itself, for which no key can be meant that was typed before.
    is_keyboard_stale: bool,
    /// The image of the clipboard, when it was asked for.
    image: Option<oneshot::Receiver<Image>>,
}

impl Loop {
    /// Until the person leaves; then everything is put away, whatever it ended with.
    async fn turn(mut self, signals: &mut Signals, pauses: &mut Pauses) -> io::Result<Code> {
        let ended = self.serve(signals, pauses).await;
        self.app.save_draft();
        if ended.is_ok() && self.screen.mode() == Mode::Inline {
            let lines = self.app.finished_lines(self.screen.size().width);
            let _ = self.screen.print_above(&lines);
        }
        let Loop { app, screen, mut incoming, .. } = self;
        drop(screen);
        // Workers see that nobody is there any more, and let their agents go politely.
        let mut waiting = app.tabs.len();
        let left = app.tabs.iter().filter(|tab| tab.has_talked());
        let left = left.filter_map(|tab| Some(way_back(&tab.plan.spec, tab.session.as_ref()?)));
        let left: Vec<String> = left.collect();
        // Whoever could not talk to the only agent there is told so by the exit code.
        let failed = match app.tabs.as_slice() {
            [tab] if tab.session.is_none() => tab.failed,
            _ => None,
        };
        drop(app);
        let goodbye = async {
            while waiting > 0 {
                match incoming.recv().await {
                    Some((_, worker::News::Closed | worker::News::Dead(_) | worker::News::NotOpened(_))) => {
                        waiting -= 1
                    }
                    Some(_) => {}
                    None => break,
                }
            }
        };
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
        for line in left {
            // A terminal that is gone has nobody who wants to come back.
            let _ = writeln!(io::stderr(), "{line}");
        }
        match (ended, failed) {
            (Ok(Code::Done), Some(code)) => Ok(code),
            (ended, _) => ended,
        }
    }

    async fn serve(&mut self, signals: &mut Signals, pauses: &mut Pauses) -> io::Result<Code> {
        let mut input = EventStream::new();
        screen::keep_resizes_from_keys();
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut save = tokio::time::interval(SAVE);
        save.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        self.draw()?;
        // Whether something is to be seen that is not drawn yet.
        let mut is_stale = false;
        loop {
            let next_frame = self.drawn.map_or_else(Instant::now, |drawn| drawn + FRAME);
            tokio::select! {
                biased;
                key = poll_fn(|context| std::pin::Pin::new(&mut input).poll_next(context)) => match key {
                    // A key is seen at once.
                    Some(Ok(event)) => {
                        self.app.input(event);
                        self.draw()?;
                        is_stale = false;
                    }
                    Some(Err(error)) => return Err(error),
                    None => return Ok(Code::Terminated),
                },
                signal = signals.next() => return Ok(match signal {
                    Signal::Interrupt => Code::Interrupted,
                    Signal::Terminate => Code::Terminated,
                }),
                // From somewhere else: on this terminal Ctrl-Z is a key.
                () = pauses.next() => self.app.suspend(),
                () = sleep_until(next_frame.into()), if is_stale => {
                    self.draw()?;
                    is_stale = false;
                }
                news = self.incoming.recv() => {
                    let mut next = news;
                    let mut taken = 0;
                    while let Some((id, news)) = next {
                        self.app.take(id, news);
                        taken += 1;
                        next = if taken < NEWS_AT_ONCE { self.incoming.try_recv().ok() } else { None };
                    }
                    is_stale = true;
                }
                image = arrived(&mut self.image) => {
                    self.image = None;
                    self.app.pasted_image(image);
                    is_stale = true;
                }
                _ = beat.tick() => {
                    let is_animated = self.app.is_animated();
                    self.app.beat();
                    is_stale |= self.app.refresh_offer() || is_animated || self.screen.is_resized();
                }
                _ = save.tick() => self.app.save_draft(),
            }
            if std::mem::take(&mut self.is_keyboard_stale) {
                self.discard_waiting(&mut input).await;
            }
            let mut deeds = self.app.take_deeds().into_iter();
            let mut is_over = false;
            for deed in deeds.by_ref() {
                match deed {
                    Deed::Quit => is_over = true,
                    Deed::Redraw => self.screen.redraw()?,
                    Deed::ToggleMouse => {
                        let has_mouse = !self.screen.has_mouse();
                        self.screen.set_mouse(has_mouse)?;
                        let words = match has_mouse {
                            true => "the wheel scrolls here; with Shift held, the terminal selects text",
                            false => "the mouse is left to the terminal",
                        };
                        self.app.toast(crate::event::Level::Info, words);
                    }
                    Deed::Copy(text) => self.screen.send(&outside::clipboard(&text))?,
                    Deed::Bell => self.screen.send("\x07")?,
                    Deed::PasteImage => self.image = Some(outside::clipboard_image()),
                    Deed::Outside(outside) => {
                        drop(input);
                        // Whoever read keys was woken, and that is forgotten here: else it is taken for the first key.
                        let _ = crossterm::event::poll(Duration::ZERO);
                        let is_over = tokio::select! {
                            done = self.go_outside(outside) => done.map(|()| false)?,
                            () = terminated(signals) => true,
                        };
                        if is_over {
                            self.screen.resume()?;
                            return Ok(Code::Terminated);
                        }
                        input = EventStream::new();
                    }
                }
                is_stale = true;
            }
            if is_over {
                return Ok(Code::Done);
            }
        }
    }

    /// Takes in what was typed before the last picture was on the screen.
    async fn discard_waiting(&mut self, input: &mut EventStream) {
        poll_fn(|context| {
            for _ in 0..MOST_DISCARDED {
                match std::pin::Pin::new(&mut *input).poll_next(context) {
                    Poll::Ready(Some(Ok(event))) => self.app.discard(event),
                    _ => break,
                }
            }
            Poll::Ready(())
        })
        .await;
    }

    fn draw(&mut self) -> io::Result<()> {
        let Loop { app, screen, .. } = self;
        if self.drawn.is_some() && screen.is_resized() {
            screen.redraw()?;
        }
        match screen.mode() {
            Mode::Full => screen.draw(|frame| app.render(frame))?,
            Mode::Inline => {
                let lines = app.finished_lines(screen.size().width);
                screen.print_above(&lines)?;
                screen.draw(|frame| app.render_inline(frame))?;
            }
        }
        self.drawn = Some(Instant::now());
        self.is_keyboard_stale |= app.drawn();
        Ok(())
    }

    /// Leaves the terminal to another program, which the person has asked for by a key.
    async fn go_outside(&mut self, what: Outside) -> io::Result<()> {
        self.screen.suspend();
        match what {
            Outside::EditMessage(text) => match outside::edit(&text).await {
                Ok(text) => self.app.edited(&text),
                Err(error) => self.app.toast(crate::event::Level::Error, format!("cannot edit it: {error}")),
            },
            Outside::EditFile(path, line) => {
                if let Err(error) = outside::open(&path, line).await {
                    self.app.toast(crate::event::Level::Error, format!("cannot open it: {error}"));
                }
            }
            Outside::Page { text, digest } => match crate::client::pager::show(text).await {
                Ok(()) => self.app.paged(&digest),
                Err(error) => {
                    self.app.toast(crate::event::Level::Error, format!("cannot start the pager: {error}"));
                }
            },
            Outside::Login(id, plan, method) => {
                let opening = connect::Opening::new(&plan.spec, &plan.cwd, plan.protocol);
                let is_confined = plan.sandbox.is_some_and(|kind| kind != SandboxKind::Off);
                let done = match is_confined {
                    true => Err(crate::auth::login_in_sandbox()),
                    false => crate::auth::in_terminal(&opening, &method, true).await,
                };
                self.app.logged_in(id, done.map_err(|failure| failure.message));
            }
            Outside::Suspend => outside::stop(),
        }
        // Nobody saw a question meanwhile: it is to be read anew.
        self.app.hide_questions();
        self.screen.resume()?;
        self.draw()
    }
}

/// Waits until somebody wants us to end. Ctrl-C is for whoever has the terminal.
async fn terminated(signals: &mut Signals) {
    while signals.next().await != Signal::Terminate {}
}

async fn arrived(image: &mut Option<oneshot::Receiver<Image>>) -> Image {
    match image {
        Some(image) => image.await.unwrap_or_else(|_| Err("the clipboard did not answer".into())),
        None => std::future::pending().await,
    }
}
