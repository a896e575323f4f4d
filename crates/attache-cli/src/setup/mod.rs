//! `attache setup`: from a new machine to an agent in an editor, in three questions.
//!
//! Everything is asked and planned first, then shown, then done all together; the test prompt comes last.

mod change;
mod editors;
mod model;
pub(crate) mod options;
mod questions;
mod settings;
mod trial;

use std::path::Path;

use attache_agent::{Config, Keys};
use serde_json::{Value, json};

use crate::agent;
use crate::connect::until_interrupted;
use crate::exit::{Code, Failure};
use crate::output::{Paint, Screen};
use crate::paths;
use crate::visible::{self, one_line, visible};
use change::{Change, Found};
use editors::{ByHand, EDITORS, Editor, NONE, Places, Plan, Program};
use model::{Answer, Key, Known, OFFLINE};
use options::Setup;
use questions::{Person, Row};

/// Asks, shows, changes and tests. Ctrl-C before the yes leaves everything as it was.
pub(crate) async fn run(options: Setup) -> Result<Code, Failure> {
    until_interrupted(set_up(&options)).await
}

async fn set_up(options: &Setup) -> Result<Code, Failure> {
    let (mut config, chosen) = agent::settings(None)?;
    // What the environment says is not what an editor gets.
    let in_file = Config::load(paths::config()?, paths::state()?).map_err(|error| Failure::usage(error.to_string()))?;
    (config.model, config.base_url) = (in_file.model, in_file.base_url);
    let person = Person::find();
    let known = Known::look(&config).await?;
    if person.is_none() {
        check_nothing_is_missing(&known, options)?;
    }
    let (places, program) = (Places::here()?, Program::here()?);
    let answer = known.answer(options, person.as_ref()).await?;
    let editors = which_editors(options, person.as_ref(), &places).await?;
    let settings = settings_change(&config, &answer)?;
    let plans: Vec<(&Editor, Plan)> =
        editors.iter().map(|editor| (*editor, (editor.plan)(&places, &program))).collect();
    let report = Report { options, answer: &answer, config: &config, plans: &plans };
    report.show_plan(settings.as_ref())?;
    if chosen == Some(agent::Chosen::Variable) {
        eprintln!("note: {} is set in this environment, and comes before agent.toml", agent::MODEL);
    }
    if program.is_passing() && !editors.is_empty() {
        eprintln!("warning: this program lies where a package runner keeps it for a while");
        eprintln!("hint: install it, and run the setup again, so that editors find it tomorrow");
    }
    if options.dry_run {
        report.print_files(settings.as_ref(), &[])?;
        return Ok(report.code());
    }
    let mut changes: Vec<&Change> = settings.iter().collect();
    changes.extend(plans.iter().filter_map(|(_, plan)| plan.change.as_ref()));
    let is_nothing = changes.is_empty() && !matches!(answer.key, Key::Keep(_));
    if is_nothing {
        eprintln!("nothing to change");
    } else if !options.yes {
        let Some(person) = &person else { return Err(Failure::usage("missing option `--yes`")) };
        if !person.agrees("\nMake these changes? [y] yes   [N] no: ").await? {
            return Err(Failure::new(Code::Agent, "nothing was changed"));
        }
    }
    let copies = change::make_all(&changes, &paths::state()?.join("backups"), || keep_key(&config, &answer))?;
    report.print_files(settings.as_ref(), &copies)?;
    if options.no_test {
        report.begin();
        return Ok(report.code());
    }
    if !options.json {
        eprintln!("asking {} for a word ...", one_line(&answer.id));
    }
    match trial::ask(&answer.id).await {
        Ok(answered) => {
            let ms = u64::try_from(answered.time.as_millis()).unwrap_or(u64::MAX);
            report.print_json(json!({ "step": "test", "status": "ok", "answer": answered.text, "ms": ms }))?;
            if !options.json {
                eprintln!("it answered in {:.1} s: {}", answered.time.as_secs_f64(), answered.text);
            }
            report.begin();
            Ok(report.code())
        }
        Err(why) => {
            report.print_json(json!({ "step": "test", "status": "failed", "error": why }))?;
            Err(trial::failure(&answer.id, &why))
        }
    }
}

/// Where nobody can be asked, the options have to say everything.
fn check_nothing_is_missing(known: &Known<'_>, options: &Setup) -> Result<(), Failure> {
    let mut missing = known.missing(options)?;
    if options.editor.is_empty() {
        missing.push("--editor");
    }
    if !options.yes && !options.dry_run {
        missing.push("--yes");
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    Err(Failure::usage(format!(
        "nobody is there to ask, and these options are missing: {}\nhint: attache setup --model anthropic --key-from \
         ANTHROPIC_API_KEY --editor zed --yes",
        missing.join(", ")
    )))
}

async fn which_editors(
    options: &Setup,
    person: Option<&Person>,
    places: &Places,
) -> Result<Vec<&'static Editor>, Failure> {
    let named = |names: &[String]| -> Vec<&'static Editor> {
        EDITORS.iter().filter(|editor| names.iter().any(|name| name == editor.name)).collect()
    };
    let Some(person) = person.filter(|_| options.editor.is_empty()) else { return Ok(named(&options.editor)) };
    let (here, elsewhere): (Vec<&Editor>, Vec<&Editor>) = EDITORS.iter().partition(|editor| (editor.is_here)(places));
    let row = |editor: &&Editor, about: &str| Row::new(editor.name, format!("{}{about}", editor.title));
    let mut rows: Vec<Row> = here.iter().map(|editor| row(editor, ", found here")).collect();
    rows.push(Row::new(NONE, "only the terminal"));
    rows.extend(elsewhere.iter().map(|editor| row(editor, "")));
    let chosen = person.choose_some("3 of 3: which editor?", &rows).await?;
    let names: Vec<String> = chosen.into_iter().map(|row| rows[row].name.clone()).collect();
    Ok(named(&names))
}

/// What becomes of agent.toml, if anything. A file that cannot be changed ends the setup: nothing works without it.
fn settings_change(config: &Config, answer: &Answer) -> Result<Option<Change>, Failure> {
    let same_url = |url: &Option<String>| url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
    let current = config.model.as_deref().and_then(|model| config.model_id(model).ok());
    if current.as_ref() == Some(&answer.id) && same_url(&config.base_url) == same_url(&answer.base_url) {
        return Ok(None);
    }
    let path = config.config_dir.join("agent.toml");
    let wrong = |what: String| {
        let url = answer.base_url.as_ref().map(|url| format!(" and `base_url = \"{url}\"`")).unwrap_or_default();
        let hint = format!("hint: write `model = \"{}\"`{url} into it yourself", answer.id);
        Failure::usage(format!("cannot change `{}`: {what}\n{hint}", path.display()))
    };
    let found = Found::read(&path).map_err(wrong)?;
    let text = settings::with_model(found.text(), &answer.id, answer.base_url.as_deref()).map_err(wrong)?;
    Ok(found.becomes(text, true))
}

fn keep_key(config: &Config, answer: &Answer) -> Result<(), Failure> {
    let Key::Keep(key) = &answer.key else { return Ok(()) };
    let kept = Keys::new(&config.config_dir).keep_for(answer.provider(), key.expose());
    kept.map_err(|error| Failure::usage(format!("nothing was changed: {error}")))
}

/// What is told of the setup: to a person, or as JSON.
struct Report<'a> {
    options: &'a Setup,
    answer: &'a Answer,
    config: &'a Config,
    plans: &'a [(&'static Editor, Plan)],
}

impl Report<'_> {
    /// Shows what would be changed.
    fn show_plan(&self, settings: Option<&Change>) -> Result<(), Failure> {
        let answer = self.answer;
        // Whoever is asked has to see what it is about.
        if self.options.json && (self.options.yes || self.options.dry_run) {
            return Ok(());
        }
        let mut text = format!("\nmodel: {}\n", one_line(&answer.id));
        text += &match &answer.key {
            Key::NotNeeded if answer.id == OFFLINE => String::new(),
            Key::NotNeeded => "key: none is needed\n".to_owned(),
            Key::There(None) => "key: the one that is kept\n".to_owned(),
            Key::There(Some(variable)) => format!("key: {variable} of the environment\n"),
            Key::Keep(_) => {
                let file = self.config.config_dir.join("keys.json");
                format!("key: kept in `{}`, which only you can read\n", file.display())
            }
        };
        for change in settings.into_iter().chain(self.plans.iter().filter_map(|(_, plan)| plan.change.as_ref())) {
            let diff = change.diff();
            text += &format!("\n{}", if self.options.dry_run { diff } else { painted(&diff) });
        }
        for (editor, plan) in self.plans {
            if plan.change.is_none() && plan.by_hand.is_none() {
                text += &format!("\n{}: `{}` is right as it is\n", editor.title, plan.path.display());
            }
            text += &visible(&plan.by_hand.as_ref().map(|by_hand| told(editor, plan, by_hand)).unwrap_or_default());
        }
        match self.options.dry_run {
            true => crate::print(&text),
            false => {
                eprint!("{text}");
                Ok(())
            }
        }
    }

    fn key_status(&self) -> &'static str {
        match (&self.answer.key, self.options.dry_run) {
            (Key::NotNeeded, _) => "not_needed",
            (Key::There(_), _) => "there",
            (Key::Keep(_), true) => "would_keep",
            (Key::Keep(_), false) => "kept",
        }
    }

    /// Tells what became of the model, the key and each file, or would. The copies are of those that were changed, in their order.
    fn print_files(&self, settings: Option<&Change>, copies: &[Option<std::path::PathBuf>]) -> Result<(), Failure> {
        let answer = self.answer;
        self.print_json(json!({ "step": "model", "model": answer.id, "base_url": answer.base_url }))?;
        self.print_json(json!({ "step": "key", "provider": answer.provider(), "status": self.key_status() }))?;
        let mut copies = copies.iter();
        let settings_path = self.config.config_dir.join("agent.toml");
        let files = std::iter::once(("settings", settings_path.as_path(), settings, None));
        let editors = self
            .plans
            .iter()
            .map(|(editor, plan)| (editor.name, plan.path.as_path(), plan.change.as_ref(), plan.by_hand.as_ref()));
        for (of, path, change, by_hand) in files.chain(editors) {
            let copy = change.and_then(|_| copies.next()).and_then(Option::as_deref);
            self.print_json(self.file(of, path, change, by_hand, copy))?;
            if !self.options.json && change.is_some() && !self.options.dry_run {
                let copy = copy.map(|copy| format!("; as it was: `{}`", copy.display())).unwrap_or_default();
                eprintln!("wrote `{}`{copy}", path.display());
            }
        }
        Ok(())
    }

    fn file(
        &self,
        of: &str,
        path: &Path,
        change: Option<&Change>,
        by_hand: Option<&ByHand>,
        copy: Option<&Path>,
    ) -> Value {
        let status = match (change, by_hand, self.options.dry_run) {
            (Some(_), _, true) => "would_write",
            (Some(_), _, false) => "written",
            (None, Some(_), _) => "by_hand",
            (None, None, _) => "unchanged",
        };
        let by_hand = by_hand
            .map(|by_hand| json!({ "place": by_hand.place, "text": by_hand.snippet, "because": by_hand.refused }));
        json!({
            "step": "file", "of": of, "path": path, "status": status, "diff": change.map(Change::diff), "backup": copy,
            "by_hand": by_hand,
        })
    }

    fn print_json(&self, value: Value) -> Result<(), Failure> {
        if self.options.json { crate::print(&(visible::json(&value) + "\n")) } else { Ok(()) }
    }

    /// Tells how to begin.
    fn begin(&self) {
        if self.options.json {
            return;
        }
        for (editor, plan) in self.plans {
            let first = if plan.by_hand.is_some() { "once you have added what is shown above: " } else { "" };
            eprintln!("{first}{}", editor.begin);
        }
        eprintln!("in a terminal: `attache`, or `attache run \"what does this project do?\"`");
    }

    /// Whether something could not be done here that usually can.
    fn code(&self) -> Code {
        let is_refused = |plan: &Plan| plan.by_hand.as_ref().is_some_and(|by_hand| by_hand.refused.is_some());
        if self.plans.iter().any(|(_, plan)| is_refused(plan)) { Code::Agent } else { Code::Done }
    }
}

/// A diff for stderr, with its colours if that has any.
fn painted(diff: &str) -> String {
    let screen = Screen::here();
    let paint = |line: &str| match line.chars().next() {
        Some('+') => screen.paint(Paint::Green, line),
        Some('-') => screen.paint(Paint::Red, line),
        Some('@') => screen.paint(Paint::Dim, line),
        _ => line.to_owned(),
    };
    diff.lines().map(|line| paint(line) + "\n").collect()
}

/// What a person has to add, and where.
fn told(editor: &Editor, plan: &Plan, by_hand: &ByHand) -> String {
    let why = match &by_hand.refused {
        Some(why) => format!("{}: `{}` is left alone: {why}\n", editor.title, plan.path.display()),
        None => String::new(),
    };
    format!("\n{why}Add this to {}:\n\n{}", by_hand.place, by_hand.snippet)
}
