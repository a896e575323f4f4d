//! The terminals that probes offer. What an agent under test wants to run is not run: a few commands are played, and every other
//! is not found. Their output comes at its time, so a command can be waited for, and killed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

/// The most terminals that are kept.
const MOST: usize = 64;

/// The longest that a played command takes.
const LONGEST: Duration = Duration::from_secs(3600);

/// The terminals of a connection.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    created: usize,
    alive: BTreeMap<String, Terminal>,
}

#[derive(Debug)]
struct Terminal {
    /// What comes, and when.
    output: Vec<(Instant, String)>,
    ends: Instant,
    exit: Value,
    limit: usize,
    /// The requests that wait for its end.
    waiting: Vec<Value>,
}

impl Terminals {
    /// Starts a command; none if there are too many.
    pub(super) fn create(&mut self, params: &Value) -> Option<Value> {
        if self.alive.len() >= MOST {
            return None;
        }
        self.created += 1;
        let id = format!("term_{}", self.created);
        let args = params["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let words: Vec<&str> = params["command"].as_str().into_iter().chain(args).collect();
        let limit = params["outputByteLimit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let mut play = Play { now: Instant::now(), output: Vec::new(), code: 0 };
        play.words(&words, 0);
        let terminal = Terminal {
            output: play.output,
            ends: play.now,
            exit: json!({ "exitCode": play.code, "signal": null }),
            limit: limit.unwrap_or(1 << 20),
            waiting: Vec::new(),
        };
        self.alive.insert(id.clone(), terminal);
        Some(json!({ "terminalId": id }))
    }

    /// Whether all terminals were released.
    pub(super) fn is_empty(&self) -> bool {
        self.alive.is_empty()
    }

    /// What a terminal shows now.
    pub(super) fn output(&self, id: &str) -> Option<Value> {
        let terminal = self.alive.get(id)?;
        let now = Instant::now();
        let text: String = terminal.output.iter().filter(|(at, _)| *at <= now).map(|(_, text)| text.as_str()).collect();
        let start = text.ceil_char_boundary(text.len().saturating_sub(terminal.limit));
        let mut shown = json!({ "output": &text[start..], "truncated": start > 0 });
        if terminal.ends <= now {
            shown["exitStatus"] = terminal.exit.clone();
        }
        Some(shown)
    }

    /// Lets a request wait for the end of a terminal; whether there is such a terminal.
    pub(super) fn wait(&mut self, id: &str, request: Value) -> bool {
        self.alive.get_mut(id).map(|terminal| terminal.waiting.push(request)).is_some()
    }

    /// Kills a command; whether there is such a terminal.
    pub(super) fn kill(&mut self, id: &str) -> bool {
        let Some(terminal) = self.alive.get_mut(id) else { return false };
        let now = Instant::now();
        if terminal.ends > now {
            terminal.output.retain(|(at, _)| *at <= now);
            terminal.ends = now;
            terminal.exit = json!({ "exitCode": null, "signal": "SIGKILL" });
        }
        true
    }

    /// Forgets a terminal. Gives the requests that waited for its end, with the answer to them; none if there is no such terminal.
    pub(super) fn release(&mut self, id: &str) -> Option<Vec<(Value, Value)>> {
        self.kill(id);
        let terminal = self.alive.remove(id)?;
        Some(terminal.waiting.into_iter().map(|request| (request, terminal.exit.clone())).collect())
    }

    /// When the next command ends that somebody waits for.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.alive.values().filter(|terminal| !terminal.waiting.is_empty()).map(|terminal| terminal.ends).min()
    }

    /// The requests that waited for commands that have ended, with the answers to them.
    pub(super) fn take_ended(&mut self) -> Vec<(Value, Value)> {
        let now = Instant::now();
        let ended = self.alive.values_mut().filter(|terminal| terminal.ends <= now);
        ended
            .flat_map(|terminal| {
                let exit = terminal.exit.clone();
                std::mem::take(&mut terminal.waiting).into_iter().map(move |request| (request, exit.clone()))
            })
            .collect()
    }
}

/// A command that is played.
struct Play {
    now: Instant,
    output: Vec<(Instant, String)>,
    code: i64,
}

impl Play {
    fn line(&mut self, line: &str, depth: usize) {
        for command in line.split([';', '\n']).flat_map(|part| part.split("&&")) {
            let command = command.trim().replace(['"', '\''], "");
            let words: Vec<&str> = command.split_whitespace().collect();
            if !words.is_empty() {
                self.words(&words, depth + 1);
            }
        }
    }

    fn words(&mut self, words: &[&str], depth: usize) {
        let (program, args) = words.split_first().map_or(("", &[][..]), |(program, args)| (*program, args));
        let name = program.rsplit('/').next().unwrap_or(program);
        self.code = 0;
        match (name, args) {
            ("echo" | "printf", args) => self.say(format!("{}\n", args.join(" "))),
            ("true" | "", _) => {}
            ("false", _) => self.code = 1,
            ("exit", [code]) => self.code = code.parse().unwrap_or(2),
            ("sleep", [seconds]) => {
                let seconds = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                self.now += seconds.unwrap_or_default().min(LONGEST);
            }
            ("sh" | "bash" | "zsh" | "dash", [flag, line, ..])
                if flag.starts_with('-') && flag.ends_with('c') && depth < 4 =>
            {
                self.line(line, depth);
            }
            // A command with its arguments in one text: agents do that, too.
            (_, []) if program.contains(char::is_whitespace) && depth < 4 => self.line(program, depth),
            _ => {
                self.say(format!("{name}: command not found\n"));
                self.code = 127;
            }
        }
    }

    fn say(&mut self, text: String) {
        self.output.push((self.now, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn commands_are_played_and_can_be_killed() {
        let mut terminals = Terminals::default();
        terminals.create(&json!({ "command": "sh", "args": ["-c", "echo one; sleep 5; echo two; exit 3"] }));
        assert!(terminals.wait("term_1", json!(7)));
        assert_eq!(terminals.output("term_1").unwrap(), json!({ "output": "one\n", "truncated": false }));
        tokio::time::sleep_until(terminals.next_end().unwrap()).await;
        assert_eq!(terminals.take_ended(), [(json!(7), json!({ "exitCode": 3, "signal": null }))]);
        assert_eq!(terminals.output("term_1").unwrap()["output"], "one\ntwo\n");

        terminals.create(&json!({ "command": "sleep 60" }));
        assert!(terminals.wait("term_2", json!(8)) && terminals.kill("term_2"));
        assert_eq!(terminals.take_ended()[0].1["signal"], "SIGKILL");
        assert_eq!(terminals.release("term_2"), Some(vec![]));
        assert!(!terminals.kill("term_2") && terminals.release("term_2").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn output_is_cut_at_its_start_between_characters() {
        let mut terminals = Terminals::default();
        terminals.create(&json!({ "command": "echo", "args": ["äöü"], "outputByteLimit": 4 }));
        assert_eq!(terminals.output("term_1").unwrap()["output"], "ü\n");
        assert_eq!(terminals.output("term_1").unwrap()["truncated"], true);
    }
}
