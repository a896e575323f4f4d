//! One connection of the agent that probes a client: which scenario each prompt gets.

use super::driver::AgentDriver;
use super::options::Options;
use super::scenario::{Kind, Scenario, Setup, scenarios};
use super::scenarios::session::plain;
use crate::probe::Peer;
use crate::record::Record;
use crate::rule::Dialects;

/// Which scenarios a connection plays.
#[derive(Debug, Clone, Copy)]
pub enum Selection {
    /// One, for each prompt.
    One(&'static Scenario),
    /// All that fit into any connection, one after the other, each prompt the next.
    All,
}

/// What is played when there is nothing else.
const NOTHING: Scenario = Scenario {
    name: "nothing",
    dialects: Dialects::ALL,
    kind: Kind::Turn,
    what: "Nothing happens.",
    play: |agent| Box::pin(plain(agent)),
};

/// Serves a client until it leaves, and gives the record of what both did.
pub async fn serve(client: Peer, selection: Selection, options: Options) -> Record {
    let setup = match selection {
        Selection::One(Scenario { kind: Kind::Connection(setup), .. }) => *setup,
        _ => Setup::default(),
    };
    let mut agent = AgentDriver::new(client, setup, options);
    let mut played = 0;
    while let Some(prompt) = agent.next_prompt().await {
        let (scenario, intro) = next(selection, &agent, played);
        agent.play(prompt, scenario, &intro).await;
        played += 1;
    }
    agent.finish().await
}

/// The scenario for the next prompt, and what the person is told of it.
fn next(selection: Selection, agent: &AgentDriver, played: usize) -> (&'static Scenario, String) {
    let fits = |scenario: &&Scenario| scenario.dialects.includes(agent.dialect());
    let all: Vec<&Scenario> = match selection {
        Selection::One(scenario) if fits(&scenario) => return (scenario, said(scenario)),
        Selection::One(scenario) => {
            return (&NOTHING, format!("Scenario `{}` has no meaning in this version of the protocol.", scenario.name));
        }
        Selection::All => {
            let of_turns = scenarios().iter().filter(|scenario| matches!(scenario.kind, Kind::Turn | Kind::Refusal));
            // There is nothing after the agent has left, so one way to leave is enough.
            let last = scenarios().iter().find(|scenario| scenario.kind == Kind::Last);
            of_turns.chain(last).filter(fits).collect()
        }
    };
    let Some(scenario) = all.get(played) else {
        return (
            &NOTHING,
            "All scenarios have been played. Close the session or the editor to get the verdict.".to_owned(),
        );
    };
    let next =
        all.get(played + 1).map_or_else(|| "It is the last.".to_owned(), |next| format!("Next: `{}`.", next.name));
    (scenario, format!("{} of {}: {} {next}\n\n", played + 1, all.len(), said(scenario)))
}

fn said(scenario: &Scenario) -> String {
    format!("Scenario `{}`. {}", scenario.name, scenario.what)
}
