//! The reference peers, which may have a defect, before the probes.

use std::time::Duration;

use attache::Protocol;
use attache_check::probe::agent::{Start, Style};
use attache_check::probe::client::{Scenario, Selection};
use attache_check::probe::{self, Peer};
use attache_check::record::Event;
use attache_check::rule::Dialects;
use attache_check::{Record, Side};
use attache_testkit::defect::Defect;

use super::agent;
use super::client::{self, Step};
use super::play::LIMIT;
use super::store::Store;

fn dialects(protocol: Protocol) -> Dialects {
    match protocol {
        Protocol::V1 => Dialects::V1,
        Protocol::V2Draft => Dialects::DRAFT,
        _ => Dialects::V2,
    }
}

/// What some probes record of an agent that may have a defect; all of them if none are named.
pub(crate) async fn probe_agent(protocol: Protocol, defect: &Defect, only: Vec<String>) -> Record {
    let (store, defect) = (Store::default(), defect.clone());
    let start = Start::connect(move || {
        let agent = defect.before(agent::spawn(store.clone(), false));
        async move { Ok(Peer::from_stream(agent)) }
    });
    let options = probe::agent::Options::new(Style::Lines).with(|options| {
        options.only = only;
        options.authenticate = Some("login".to_owned());
    });
    let runs = Box::pin(probe::agent::run(&start, dialects(protocol), &options)).await.unwrap();
    joined(runs.into_iter().map(|run| run.record))
}

/// What a scenario records of a client that may have a defect.
pub(crate) async fn probe_client(protocol: Protocol, defect: &Defect, scenario: &'static Scenario) -> Record {
    let (client, far) = tokio::io::duplex(1 << 20);
    let steps = vec![Step::Login, Step::New, Step::Prompt("hello"), Step::PromptWithAll("hello again")];
    let playing = tokio::spawn(client::run(client, protocol, steps, drop));
    let peer = Peer::from_stream(defect.before(far));
    let record = probe::client::serve(peer, Selection::One(scenario), probe::client::Options::unattended()).await;
    let _ = tokio::time::timeout(LIMIT, playing).await;
    record
}

/// Records of several connections in one.
fn joined(records: impl IntoIterator<Item = Record>) -> Record {
    let mut all = Record::default();
    for record in records {
        all.entries.extend(record.entries);
        all.push(Duration::ZERO, Event::Restarted);
    }
    all
}

/// What the probes record of a peer that may have a defect.
pub(crate) async fn probe(protocol: Protocol, side: Side, defect: &Defect) -> Record {
    if side == Side::Agent {
        return probe_agent(protocol, defect, Vec::new()).await;
    }
    let mut records = Vec::new();
    for scenario in probe::client::scenarios() {
        records.push(probe_client(protocol, defect, scenario).await);
    }
    joined(records)
}
