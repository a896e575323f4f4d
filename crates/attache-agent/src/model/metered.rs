//! Counts what the models of a session take: every request, whoever makes it.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::price::Cost;
use super::{Failure, Model, ModelError, ModelInfo, Piece, Reply, Request, Usage};

/// What one request took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The model, as `provider:name`.
    pub model: String,
    /// In tokens.
    pub usage: Usage,
    /// In money; `None` where the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Sums of what was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) requests: u64,
    pub(crate) usage: Usage,
    /// `None` if no price was known.
    pub(crate) cost: Option<Cost>,
    /// The requests whose price was not known.
    pub(crate) unpriced: u64,
}

impl Total {
    pub(crate) fn add(&mut self, spent: &Spent) {
        self.requests += 1;
        let Usage { input, cached, output, written } = spent.usage;
        self.usage.input = self.usage.input.saturating_add(input);
        self.usage.cached = self.usage.cached.saturating_add(cached);
        self.usage.output = self.usage.output.saturating_add(output);
        self.usage.written = self.usage.written.saturating_add(written);
        match spent.cost {
            Some(cost) => self.cost = Some(self.cost.unwrap_or_default().plus(cost)),
            None => self.unpriced += 1,
        }
    }

    /// All tokens.
    pub(crate) fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }
}

/// What a session may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) cost: Option<Cost>,
    pub(crate) tokens: Option<u64>,
}

/// What a session has spent, and may spend.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    budget: Budget,
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    session: Total,
    turn: Total,
    /// What sub-agents took of it since the session was opened.
    subagents: Total,
    /// What is not in the log yet.
    unkept: Vec<Spent>,
    /// Whether the person knows that a price is not known.
    is_told: bool,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reached {
    Tokens(String),
    Cost(String),
}

impl Reached {
    /// What the person is told.
    pub(crate) fn words(&self) -> &str {
        match self {
            Reached::Tokens(words) | Reached::Cost(words) => words,
        }
    }
}

impl Meter {
    /// A meter that has counted this much already.
    pub(crate) fn new(budget: Budget, session: Total) -> Self {
        Meter { budget, sums: Mutex::new(Sums { session, ..Sums::default() }) }
    }

    /// Counts a request.
    fn add(&self, spent: Spent, is_subagent: bool) {
        let mut sums = crate::lock(&self.sums);
        if is_subagent {
            sums.subagents.add(&spent);
        }
        sums.session.add(&spent);
        sums.turn.add(&spent);
        sums.unkept.push(spent);
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&self) {
        crate::lock(&self.sums).turn = Total::default();
    }

    /// What the session has spent so far.
    pub(crate) fn session(&self) -> Total {
        crate::lock(&self.sums).session
    }

    /// What the turn has spent so far.
    pub(crate) fn turn(&self) -> Total {
        crate::lock(&self.sums).turn
    }

    /// What sub-agents have spent since the session was opened.
    pub(crate) fn subagents(&self) -> Total {
        crate::lock(&self.sums).subagents
    }

    /// What has to be written down.
    pub(crate) fn take_unkept(&self) -> Vec<Spent> {
        std::mem::take(&mut crate::lock(&self.sums).unkept)
    }

    /// The limit that was reached, if any.
    pub(crate) fn reached(&self) -> Option<Reached> {
        let session = self.session();
        if let Some(most) = self.budget.tokens.filter(|most| session.tokens() >= *most) {
            let used = session.tokens();
            let words = format!("the session has used {used} tokens, and `max_tokens_total` is {most}");
            return Some(Reached::Tokens(words));
        }
        let (most, cost) = (self.budget.cost?, session.cost?);
        (cost >= most).then(|| {
            let (cost, most) = (cost.dollars(), most.dollars());
            Reached::Cost(format!("the session has cost {cost:.4} USD, and `max_cost` is {most} USD"))
        })
    }

    /// What the person has to know before a model is asked whose price nobody knows: once.
    pub(crate) fn warning(&self, model: &ModelInfo) -> Option<String> {
        if self.budget.cost.is_none() || model.price.is_some() || is_free(model) {
            return None;
        }
        let was_told = std::mem::replace(&mut crate::lock(&self.sums).is_told, true);
        let id = model.id();
        (!was_told).then(|| format!("`max_cost` does not count `{id}`: its price is not known"))
    }
}

/// Whether it is no language model, and takes nothing.
fn is_free(model: &ModelInfo) -> bool {
    model.provider == "offline"
}

/// A model whose requests are counted.
pub(crate) struct Metered {
    model: Arc<dyn Model>,
    meter: Arc<Meter>,
    is_subagent: bool,
}

impl Metered {
    pub(crate) fn new(model: Arc<dyn Model>, meter: Arc<Meter>) -> Self {
        Metered { model, meter, is_subagent: false }
    }

    /// The same for a sub-agent, which is also counted apart.
    pub(crate) fn for_subagent(self) -> Self {
        Metered { is_subagent: true, ..self }
    }
}

impl Model for Metered {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn ask(&self, request: Request) -> Reply {
        if is_free(self.info()) {
            return self.model.ask(request);
        }
        if let Some(reached) = self.meter.reached() {
            let error = ModelError::new(Failure::Request, reached.words());
            return futures_util::stream::iter([Err(error)]).boxed();
        }
        let (meter, info, is_subagent) = (self.meter.clone(), self.info().clone(), self.is_subagent);
        let count = move |piece: &Result<Piece, ModelError>| {
            if let Ok(Piece::End(end)) = piece {
                let cost = info.price.map(|price| price.cost(&end.usage));
                meter.add(Spent { model: info.id(), usage: end.usage, cost }, is_subagent);
            }
        };
        self.model.ask(request).inspect(count).boxed()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::model::End;
    use crate::model::price::Price;

    /// A model that takes the same each time.
    struct Takes(ModelInfo, Usage);

    impl Model for Takes {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn ask(&self, _: Request) -> Reply {
            let end = End { usage: self.1, ..End::default() };
            futures_util::stream::iter([Ok(Piece::Text("x".into())), Ok(Piece::End(end))]).boxed()
        }
    }

    fn model(price: Option<Price>, meter: &Arc<Meter>) -> Metered {
        let info = ModelInfo { provider: "acme".into(), price, ..super::super::offline::Offline::new().info().clone() };
        let usage = Usage { input: 1_000, output: 100, ..Usage::default() };
        Metered::new(Arc::new(Takes(info, usage)), meter.clone())
    }

    async fn ask(model: &Metered) -> Option<String> {
        let pieces: Vec<_> = model.ask(Request::default()).collect().await;
        pieces.into_iter().find_map(|piece| piece.err().map(|error| error.message))
    }

    #[tokio::test]
    async fn every_request_is_counted_and_written_down_once() {
        let meter = Arc::new(Meter::default());
        let priced = model(Price::per_million(1.0, 10.0, None, None), &meter);
        let unpriced = model(None, &meter);
        assert_eq!((ask(&priced).await, ask(&unpriced).await), (None, None));
        let total = meter.session();
        assert_eq!((total.requests, total.unpriced, total.tokens()), (2, 1, 2_200));
        assert_eq!(total.cost.unwrap().dollars(), 0.002);
        assert_eq!(meter.take_unkept().len(), 2);
        assert!(meter.take_unkept().is_empty());
        meter.begin_turn();
        ask(&priced).await;
        assert_eq!((meter.turn().requests, meter.session().requests), (1, 3));
        assert_eq!(meter.subagents(), Total::default());
        ask(&priced.for_subagent()).await;
        assert_eq!((meter.subagents().tokens(), meter.turn().requests, meter.session().requests), (1_100, 2, 4));
    }

    #[tokio::test]
    async fn a_limit_is_named_and_nothing_is_asked_beyond_it() {
        let price = Price::per_million(1.0, 10.0, None, None);
        for (budget, named) in [
            (Budget { tokens: Some(1_500), ..Budget::default() }, "`max_tokens_total` is 1500"),
            (Budget { cost: Cost::from_dollars(0.003), ..Budget::default() }, "`max_cost` is 0.003 USD"),
        ] {
            let meter = Arc::new(Meter::new(budget, Total::default()));
            let model = model(price, &meter);
            assert_eq!((ask(&model).await, ask(&model).await), (None, None));
            let error = ask(&model).await.unwrap();
            assert!(error.contains(named), "{error}");
            assert_eq!(meter.session().requests, 2);
        }
        let meter = Arc::new(Meter::new(Budget { cost: Some(Cost(1)), tokens: None }, Total::default()));
        let unpriced = model(None, &meter);
        assert!(meter.warning(unpriced.info()).unwrap().contains("its price is not known"));
        assert_eq!(meter.warning(unpriced.info()), None, "once");
    }
}
