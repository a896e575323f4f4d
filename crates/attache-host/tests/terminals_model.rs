//! Terminals in any order of calls, with right and wrong ids and sessions: they answer as a small model does.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{future::Future, path::Path, time::Duration};

use attache::model::session::SessionId;
use attache::model::terminal::{
    CreateTerminalRequest, ExitStatus, KillTerminalRequest, ReleaseTerminalRequest, TerminalId, TerminalOutputRequest,
    WaitForTerminalExitRequest,
};
use attache_host::terminals::{Limits, TerminalError, Terminals};
use attache_testkit::Dice;
use tokio::task::JoinHandle;

const RUNS: u64 = 40;
const CALLS: usize = 40;
const RUNNING: usize = 4;
const KEPT: usize = 8;

/// What a command does if it is left alone.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Exits(i64),
    Dies,
    Stays,
}

#[derive(Debug)]
struct Model {
    id: TerminalId,
    session: SessionId,
    kind: Kind,
    is_killed: bool,
    is_released: bool,
    /// What was seen once stays.
    exit: Option<ExitStatus>,
}

impl Model {
    fn check_exit(&mut self, exit: ExitStatus) {
        if let Some(seen) = &self.exit {
            assert_eq!(*seen, exit);
        }
        let by_itself = match self.kind {
            Kind::Exits(code) => exit.exit_code == Some(code) && exit.signal.is_none(),
            Kind::Dies => exit.signal.as_deref() == Some("SIGUSR1"),
            Kind::Stays => false,
        };
        let by_us = self.is_killed && matches!(exit.signal.as_deref(), Some("SIGTERM" | "SIGKILL"));
        assert!(by_itself || by_us, "{exit:?} {self:?}");
        self.exit = Some(exit);
    }
}

struct Run {
    terminals: Terminals,
    models: Vec<Model>,
    waits: Vec<(usize, JoinHandle<Result<ExitStatus, TerminalError>>)>,
    dice: Dice,
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("still waiting")
}

impl Run {
    /// A session and an id, mostly ones that fit; and which terminal that is, if it is one.
    fn target(&mut self) -> (SessionId, TerminalId, Option<usize>) {
        if self.models.is_empty() || self.dice.one_in(8) {
            return ("one".into(), "terminal-999".into(), None);
        }
        let index = self.dice.below(self.models.len());
        let model = &self.models[index];
        let session = if self.dice.one_in(6) { "three".into() } else { model.session.clone() };
        let fits = session == model.session && !model.is_released;
        (session, model.id.clone(), fits.then_some(index))
    }

    fn create(&mut self) {
        let (kind, command) = match self.dice.below(4) {
            0 => (Kind::Stays, "printf out; exec sleep 1000"),
            1 => (Kind::Stays, "printf out; trap '' TERM; while :; do sleep 1000; done"),
            2 => (Kind::Exits(7), "printf out; exit 7"),
            _ => (Kind::Dies, "printf out; kill -USR1 $$"),
        };
        let session = SessionId::from(self.dice.pick(&["one", "two"]).to_owned());
        let request = CreateTerminalRequest::new(session.clone(), command);
        let kept = || self.models.iter().filter(|model| !model.is_released);
        let may_run = kept().filter(|model| model.exit.is_none()).count();
        let must_run = kept().filter(|model| model.kind == Kind::Stays && !model.is_killed).count();
        match self.terminals.create(&request, Path::new("/")) {
            Ok(response) => {
                assert!(must_run < RUNNING && kept().count() < KEPT);
                let id = response.terminal_id;
                assert!(self.models.iter().all(|model| model.id != id));
                self.models.push(Model { id, session, kind, is_killed: false, is_released: false, exit: None });
            }
            Err(TerminalError::TooManyKept { .. }) => assert_eq!(kept().count(), KEPT),
            Err(TerminalError::TooManyRunning { .. }) => assert!(may_run >= RUNNING),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn output(&mut self) {
        let (session, id, target) = self.target();
        let result = self.terminals.output(&TerminalOutputRequest::new(session, id));
        assert_eq!(result.is_ok(), target.is_some());
        let (Ok(answer), Some(index)) = (result, target) else { return };
        let model = &mut self.models[index];
        assert!(!answer.truncated && "out".starts_with(&answer.output));
        assert!(answer.exit_status.is_some() || model.exit.is_none());
        if let Some(exit) = answer.exit_status {
            model.check_exit(exit);
            assert!(answer.output == "out" || model.is_killed);
        }
    }

    async fn wait(&mut self) {
        let (session, id, target) = self.target();
        let wait = self.terminals.wait_for_exit(&WaitForTerminalExitRequest::new(session, id));
        match target {
            None => assert!(matches!(in_time(wait).await, Err(TerminalError::NotFound))),
            Some(index) if self.models[index].kind == Kind::Stays && !self.models[index].is_killed => {
                self.waits.push((index, tokio::spawn(wait)));
            }
            Some(index) => self.models[index].check_exit(in_time(wait).await.unwrap()),
        }
    }

    async fn kill(&mut self) {
        let (session, id, target) = self.target();
        let result = in_time(self.terminals.kill(&KillTerminalRequest::new(session.clone(), id.clone()))).await;
        assert_eq!(result.is_ok(), target.is_some());
        if let Some(index) = target {
            self.models[index].is_killed = true;
            let answer = self.terminals.output(&TerminalOutputRequest::new(session, id)).unwrap();
            self.models[index].check_exit(answer.exit_status.unwrap());
        }
    }

    fn release(&mut self) {
        let (session, id, target) = self.target();
        assert_eq!(self.terminals.release(&ReleaseTerminalRequest::new(session, id)).is_ok(), target.is_some());
        if let Some(index) = target {
            self.models[index].is_killed = true;
            self.models[index].is_released = true;
        }
    }

    fn end_session(&mut self) {
        let session = SessionId::from("two");
        self.terminals.end_session(&session);
        for model in self.models.iter_mut().filter(|model| model.session == session) {
            model.is_killed = true;
            model.is_released = true;
        }
    }
}

async fn check(seed: u64) {
    let terminals = Terminals::new(Limits { running: RUNNING, kept: KEPT, ..Limits::default() });
    let mut run = Run { terminals, models: Vec::new(), waits: Vec::new(), dice: Dice::new(seed + 1) };
    for _ in 0..CALLS {
        match run.dice.below(20) {
            0..6 => run.create(),
            6..11 => run.output(),
            11..14 => run.wait().await,
            14..16 => run.kill().await,
            16..19 => run.release(),
            _ => run.end_session(),
        }
        let listed: Vec<_> = run.terminals.list().iter().map(|view| view.id().clone()).collect();
        let kept: Vec<_> = run.models.iter().filter(|model| !model.is_released).map(|model| model.id.clone()).collect();
        assert_eq!(listed, kept, "seed {seed}");
    }
    // Whoever waits is answered when the terminals are gone.
    let Run { terminals, mut models, waits, .. } = run;
    drop(terminals);
    models.iter_mut().for_each(|model| model.is_killed = true);
    for (index, wait) in waits {
        models[index].check_exit(in_time(wait).await.unwrap().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminals_answer_as_the_model_does() {
    for seed in 0..RUNS {
        check(seed).await;
    }
}
