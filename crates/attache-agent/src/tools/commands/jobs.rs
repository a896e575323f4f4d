//! Commands that run in the background.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::own::Started;
use super::report::{self, Written};
use super::screen::Screen;
use super::{Commands, JOBS, Terms};
use crate::tools::{Live, Outcome, Refusal, fenced};

/// How long a look goes on after the first new output, so that it brings more than the first bytes.
const MOMENT: Duration = Duration::from_millis(200);

/// The jobs of a session, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    created: u64,
    list: Vec<Arc<Job>>,
}

impl Jobs {
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Makes room for one more. One that has ended goes; its output is gone then.
    fn make_room(&mut self) -> Result<(), Refusal> {
        if self.list.len() >= JOBS {
            let Some(ended) = self.list.iter().position(|job| job.started.run.exit_status().is_some()) else {
                return Err(Refusal(format!("{JOBS} jobs are running already\nhint: end one of them with `stop_job`")));
            };
            self.list.remove(ended);
        }
        Ok(())
    }
}

/// A command that runs in the background, or has.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: String,
    started: Started,
    screen: tokio::sync::Mutex<Screen>,
    /// Up to where the model has read its output.
    read: AtomicU64,
}

impl Commands {
    pub(super) fn find_job(&self, name: &str) -> Result<Arc<Job>, Refusal> {
        let jobs = self.jobs();
        if let Some(job) = jobs.list.iter().find(|job| job.name == name) {
            return Ok(job.clone());
        }
        let names: Vec<&str> = jobs.list.iter().map(|job| job.name.as_str()).collect();
        let hint = match names.as_slice() {
            [] => "there are no jobs".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        Err(Refusal(format!("there is no job `{}`\nhint: {hint}", report::title(name))))
    }

    pub(super) async fn start_job(
        &self,
        line: String,
        cwd: &Path,
        terms: &Terms,
        live: &Live,
    ) -> Result<Outcome, Refusal> {
        let job = self.add_job(&line, cwd, terms).await?;
        let screen = job.screen.lock().await;
        screen.begin(live, &line, cwd).await;
        let text = format!("started as `{}`; `job_output` tells what it prints, `stop_job` ends it", job.name);
        let mut outcome = Outcome::done(text);
        if screen.terminal().is_none() {
            outcome.content = Some(report::as_content(&outcome));
        }
        Ok(outcome)
    }

    /// Starts a job if there is room.
    async fn add_job(&self, line: &str, cwd: &Path, terms: &Terms) -> Result<Arc<Job>, Refusal> {
        self.jobs().make_room()?;
        let started = self.start(line, cwd, terms, true).await?;
        let mut jobs = self.jobs();
        // Others may have been started meanwhile. Then this one ends here.
        jobs.make_room()?;
        jobs.created += 1;
        let job = Arc::new(Job {
            name: format!("job-{}", jobs.created),
            started,
            screen: Screen::new(self.shows_terminals().then(|| self.terminal_id())).into(),
            read: AtomicU64::new(0),
        });
        jobs.list.push(job.clone());
        Ok(job)
    }

    pub(super) async fn look(&self, name: &str, wait: Duration, live: &Live) -> Result<Outcome, Refusal> {
        let job = self.find_job(name)?;
        let mut view = job.started.run.view();
        let until = Instant::now() + wait;
        let has_news = |view: &attache_host::commands::View| {
            view.exit_status().is_some() || !view.output_since(job.read.load(Relaxed)).text.is_empty()
        };
        while !has_news(&view) {
            match timeout_at(until, view.changed()).await {
                Ok(true) if has_news(&view) => tokio::time::sleep_until(until.min(Instant::now() + MOMENT)).await,
                Ok(true) => {}
                Ok(false) | Err(_) => break,
            }
        }
        Ok(self.tell(&job, live).await)
    }

    pub(super) async fn stop_job(&self, name: &str, live: &Live) -> Result<Outcome, Refusal> {
        let job = self.find_job(name)?;
        job.started.run.kill().await;
        let outcome = self.tell(&job, live).await;
        self.jobs().list.retain(|other| !Arc::ptr_eq(other, &job));
        Ok(outcome)
    }

    /// What is new of a job, for the model and for people.
    async fn tell(&self, job: &Job, live: &Live) -> Outcome {
        let view = &job.started.run.view();
        let mut screen = job.screen.lock().await;
        screen.embed(live).await;
        // First the status, then the output: if it has ended, the output is all of it.
        let status = view.exit_status();
        if screen.terminal().is_some() {
            screen.show(live, view).await;
        }
        if let Some(status) = &status {
            screen.end(live, view, status).await;
        }
        let from = job.read.load(Relaxed);
        let part = view.output_since(from);
        job.read.store(part.end(), Relaxed);
        let written = Written { is_truncated: part.start > from, text: part.text };
        let text = written.for_model(&self.setup.spill).await;
        let state = match &status {
            None => format!("`{}` is running", job.name),
            Some(status) => format!("`{}` has ended: {}", job.name, report::in_words(status)),
        };
        let note = job.started.note.filter(|_| status.is_some_and(|status| status.exit_code != Some(0)));
        let note = note.map(|note| format!("\n{}", note.about(&text))).unwrap_or_default();
        let text = if text.is_empty() { "(no new output)".to_owned() } else { text };
        let told = format!("{state}{note}\n\n{text}");
        let content = screen.terminal().is_none().then(|| vec![fenced("console", &told)]);
        Outcome { content, ..Outcome::done(told) }
    }
}
