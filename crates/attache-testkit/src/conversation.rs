//! Any conversation between an agent and a client, in every pair of dialects: for property tests and the fuzzer.
//!
//! An agent that is made of [`AgentSession`](attache_proto::conversation::AgentSession)s and a client that is made of
//! [`ClientSession`](attache_proto::conversation::ClientSession)s talk to each other, directly or through a [`Bridge`]. The
//! data decides who does what next: which frame is delivered, what the client asks, what the agent says.

mod agent;
mod client;

use std::collections::{HashMap, VecDeque};

use attache_proto::Dialect;
use attache_proto::bridge::Bridge;
use attache_proto::model::config::ConfigOption;
use attache_proto::model::session::SessionId;

use agent::Agent;
use client::Client;

/// Plays the conversation that the data describes.
///
/// # Panics
///
/// When a turn does not end exactly once, a question is not answered exactly once, a session requires action at rest, an
/// update is lost or comes out of order or after the end of its turn, the two ends disagree about an option, or either end
/// breaks a rule.
pub fn conversation(data: &[u8]) {
    let mut choices = Choices(data);
    let dialects = [Dialect::V1, Dialect::V2Draft, Dialect::V2];
    let client = dialects[choices.below(3).unwrap_or(0)];
    let agent = dialects[choices.below(3).unwrap_or(0)];
    let is_bridged = choices.is_one_in(2) || client != agent;
    // An agent of version 1 may be taken for one of version 2 at first.
    let hint = if choices.is_one_in(3) && agent == Dialect::V1 { Dialect::V2 } else { agent };
    let loses_agent = choices.is_one_in(4) && is_bridged;
    let mut play = Play {
        client: Client::new(client, choices.is_one_in(2)),
        agent: Agent::new(agent, choices.below(8).unwrap_or(0)),
        bridge: is_bridged.then(|| Bridge::new(hint)),
        wires: Default::default(),
        ledger: Ledger::default(),
    };
    play.client.greet();
    play.deliver_all();
    while play.step(&mut choices).is_some() {}
    if loses_agent { play.lose_agent(client != agent) } else { play.come_to_rest() }
}

/// Decisions, one byte each; `None` when the data has come to its end.
struct Choices<'d>(&'d [u8]);

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(usize::from(*first) % bound)
    }

    fn is_one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == Some(0)
    }

    /// One of some things; `None` also when there are none.
    fn pick<T>(&mut self, mut things: Vec<T>) -> Option<T> {
        if things.is_empty() { None } else { Some(things.swap_remove(self.below(things.len())?)) }
    }
}

/// What both ends are held to.
#[derive(Default)]
struct Ledger {
    /// The pieces that the agent has said in each session. Each piece is its number.
    pieces: HashMap<SessionId, u64>,
    /// What the agent has written to the one tool call of each session that has content.
    output: HashMap<SessionId, String>,
    /// How many pieces were said in the session when the turn of a prompt ended.
    ended: HashMap<u32, u64>,
}

/// Frames on their way: from the client, to the agent, from the agent, to the client.
type Wires = [VecDeque<String>; 4];
const FROM_CLIENT: usize = 0;
const TO_AGENT: usize = 1;
const FROM_AGENT: usize = 2;
const TO_CLIENT: usize = 3;

struct Play {
    client: Client,
    agent: Agent,
    bridge: Option<Bridge>,
    wires: Wires,
    ledger: Ledger,
}

impl Play {
    /// Does one thing, whichever comes next in the data.
    fn step(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        match choices.below(8)? {
            0..4 => {
                let busy = (0..4).filter(|wire| !self.wires[*wire].is_empty()).collect();
                choices.pick(busy).map(|wire| self.deliver(wire));
            }
            4 | 5 => self.client.act(choices)?,
            _ => self.agent.act(choices, &mut self.ledger)?,
        }
        self.collect();
        Some(())
    }

    /// Puts what both ends have written on the wires.
    fn collect(&mut self) {
        let is_direct = self.bridge.is_none();
        put(&mut self.wires[if is_direct { TO_AGENT } else { FROM_CLIENT }], &mut self.client.out);
        put(&mut self.wires[if is_direct { TO_CLIENT } else { FROM_AGENT }], &mut self.agent.out);
    }

    /// Delivers the next frame of a wire.
    fn deliver(&mut self, wire: usize) -> bool {
        let Some(frame) = self.wires[wire].pop_front() else { return false };
        let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
        match (wire, &mut self.bridge) {
            (FROM_CLIENT, Some(bridge)) => bridge.handle_client(&frame, &mut to_agent, &mut to_client),
            (FROM_AGENT, Some(bridge)) => bridge.handle_agent(&frame, &mut to_agent, &mut to_client),
            (TO_AGENT, _) => self.agent.handle(&frame, &mut self.ledger),
            (_, _) => self.client.handle(&frame, &self.ledger),
        }
        put(&mut self.wires[TO_AGENT], &mut to_agent);
        put(&mut self.wires[TO_CLIENT], &mut to_client);
        self.collect();
        true
    }

    fn deliver_all(&mut self) {
        self.collect();
        while (0..4).any(|wire| self.deliver(wire)) {}
    }

    /// Everybody finishes what was begun, and then nothing is left.
    fn come_to_rest(mut self) {
        self.deliver_all();
        self.client.assert_states();
        // Each round ends a turn or answers a question at least.
        while self.agent.finish(&mut self.ledger) | self.client.finish() {
            self.deliver_all();
            self.client.assert_states();
        }
        self.client.assert_at_rest();
        self.agent.assert_at_rest();
        for (id, options) in self.client.options() {
            if let Some(agents) = self.agent.options(&id) {
                assert_eq!(values(&options), values(&agents), "options of {id}");
            }
        }
        for (id, heard, output) in self.client.heard() {
            assert_eq!(heard, self.ledger.pieces.get(&id).copied().unwrap_or_default(), "pieces of {id}");
            // A session that was restored may have been told only the last of it.
            let said = self.ledger.output.get(&id).map(String::as_str).unwrap_or_default();
            assert!(output.is_none_or(|output| output == said), "output of {id}");
        }
    }

    /// The agent dies, and nobody waits for it.
    fn lose_agent(mut self, is_translated: bool) {
        self.wires[TO_AGENT].clear();
        // What it said last is lost, and the ends of turns with it.
        self.wires[FROM_AGENT].clear();
        self.ledger.ended.clear();
        if let Some(bridge) = &mut self.bridge {
            let mut to_client = Vec::new();
            bridge.handle_agent_gone(&mut to_client);
            put(&mut self.wires[TO_CLIENT], &mut to_client);
        }
        while self.deliver(FROM_CLIENT) || self.deliver(TO_CLIENT) {}
        self.client.finish();
        self.client.assert_nothing_waits();
        if is_translated {
            self.client.assert_at_rest();
        }
    }
}

/// Puts the lines of a buffer on a wire.
fn put(wire: &mut VecDeque<String>, out: &mut Vec<u8>) {
    let text = String::from_utf8(std::mem::take(out)).expect("frames are UTF-8");
    wire.extend(text.lines().map(str::to_owned));
}

/// The values of options by what they are for, whatever their ids.
fn values(options: &[ConfigOption]) -> Vec<String> {
    use attache_proto::model::config::ConfigKind;
    let value = |option: &ConfigOption| match &option.kind {
        ConfigKind::Select(select) => format!("{:?} {}", option.category, select.current),
        other => format!("{:?} {other:?}", option.category),
    };
    let mut values: Vec<String> = options.iter().map(value).collect();
    values.sort();
    values
}
