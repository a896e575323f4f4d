//! Counts what the models of a session take: every request, whoever makes it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::price::Cost;
use super::{Failure, Model, ModelError, ModelInfo, Piece, Reply, Request, Usage};
use crate::tokens;

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
        self.usage = self.usage.plus(spent.usage);
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

/// What may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// In money, as far as prices are known.
    pub cost: Option<Cost>,
    /// In tokens, in and out.
    pub tokens: Option<u64>,
}

impl Budget {
    /// The limit that so much has reached. `whose` has spent it, and `names` are what the limits are called.
    fn reached(&self, spent: &Total, whose: &str, names: [&str; 2]) -> Option<Reached> {
        let [tokens_name, cost_name] = names;
        let used = spent.tokens();
        if let Some(most) = self.tokens.filter(|most| used >= *most) {
            return Some(Reached::Tokens(format!("{whose} has used {used} tokens, and `{tokens_name}` is {most}")));
        }
        let (most, cost) = (self.cost?, spent.cost?);
        (cost >= most).then(|| {
            let (cost, most) = (cost.dollars(), most.dollars());
            Reached::Cost(format!("{whose} has cost {cost:.4} USD, and `{cost_name}` is {most} USD"))
        })
    }
}

/// What a session has spent, and may spend.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    budget: Budget,
    /// What it may spend from when it was opened here.
    run_budget: Budget,
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    session: Total,
    turn: Total,
    /// What it took since it was opened here.
    run: Total,
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
        Meter { budget, run_budget: Budget::default(), sums: Mutex::new(Sums { session, ..Sums::default() }) }
    }

    /// The same with limits for what is spent from now on.
    pub(crate) fn for_run(self, run_budget: Budget) -> Self {
        Meter { run_budget, ..self }
    }

    /// Counts a request.
    fn add(&self, spent: Spent, is_subagent: bool) {
        let mut sums = crate::lock(&self.sums);
        if is_subagent {
            sums.subagents.add(&spent);
        }
        sums.session.add(&spent);
        sums.turn.add(&spent);
        sums.run.add(&spent);
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
        self.reached_in_run().or_else(|| self.budget.reached(&session, "the session", ["max_tokens_total", "max_cost"]))
    }

    /// The limit for what is spent since the session was opened here, if it was reached.
    pub(crate) fn reached_in_run(&self) -> Option<Reached> {
        let run = crate::lock(&self.sums).run;
        self.run_budget.reached(&run, "the run", ["--max-tokens", "--max-cost"])
    }

    /// What the person has to know before a model is asked whose price nobody knows: once.
    pub(crate) fn warning(&self, model: &ModelInfo) -> Option<String> {
        let name = match (self.run_budget.cost, self.budget.cost) {
            (Some(_), _) => "--max-cost",
            (None, Some(_)) => "max_cost",
            (None, None) => return None,
        };
        if model.price.is_some() || is_free(model) {
            return None;
        }
        let was_told = std::mem::replace(&mut crate::lock(&self.sums).is_told, true);
        let id = model.id();
        let tokens = if name.starts_with('-') { "--max-tokens" } else { "max_tokens_total" };
        (!was_told).then(|| {
            format!(
                "the price of `{id}` is not known, so `{name}` does not limit it\n\
                 hint: `{tokens}` does; `price` in `[models.\"{id}\"]` of agent.toml says what it costs"
            )
        })
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
        let sent = tokens::of_instructions(&request) + tokens::of_messages(&request.messages);
        let (meter, info) = (self.meter.clone(), self.info().clone());
        let is_subagent = self.is_subagent;
        let (reply, attempt, came) = (self.model.ask(request), Attempt::At(None), Came::default());
        Counted { reply, meter, info, is_subagent, sent, attempt, came }.boxed()
    }
}

/// An answer that is counted, also when it breaks off or nobody waits for its end any more.
struct Counted {
    reply: Reply,
    meter: Arc<Meter>,
    info: ModelInfo,
    is_subagent: bool,
    /// About how many tokens the request has.
    sent: u64,
    attempt: Attempt,
    came: Came,
}

/// Whether there is a request that may cost something.
#[derive(Debug, Clone, Copy)]
enum Attempt {
    /// There is, since this moment, which may be still to come. `None` if nothing was sent yet.
    At(Option<Instant>),
    /// It is counted, or failed before anything came.
    Over,
}

/// What has come of an answer.
#[derive(Debug, Default)]
struct Came {
    /// Whether anything has.
    is_some: bool,
    /// What the provider has counted.
    counted: Usage,
    /// How many bytes the model wrote, without the call that it is writing.
    bytes: usize,
    /// How many bytes that call has so far.
    call: usize,
}

impl Came {
    fn see(&mut self, piece: &Piece) {
        self.is_some = true;
        match piece {
            Piece::Text(text) | Piece::Thought(text) => self.bytes += text.len(),
            Piece::CallGrew { arguments, .. } => self.call = arguments.len(),
            Piece::Call(call) => {
                self.bytes += call.arguments.len();
                self.call = 0;
            }
            Piece::Usage(usage) => self.counted = *usage,
            Piece::CallStarted { .. } | Piece::Held | Piece::Retrying { .. } | Piece::End(_) => {}
        }
    }

    /// What an answer took that did not come to its end, or whose provider does not count: as the provider counted it, and
    /// by our own estimate what it did not count, or not yet.
    fn usage(&self, sent: u64) -> Usage {
        let written = tokens::of_bytes(self.bytes + self.call);
        let input = if self.counted.input == 0 { sent } else { self.counted.input };
        Usage { input, output: self.counted.output.max(written), ..self.counted }
    }
}

impl Counted {
    fn add(&self, usage: Usage) {
        let cost = self.info.price.map(|price| price.cost(&usage));
        self.meter.add(Spent { model: self.info.id(), usage, cost }, self.is_subagent);
    }

    /// Counts an attempt that brought something and broke off. One that brought nothing failed, and costs nothing.
    fn break_off(&mut self, next: Attempt) {
        let came = std::mem::take(&mut self.came);
        if came.is_some {
            self.add(came.usage(self.sent));
        }
        self.attempt = next;
    }
}

impl Stream for Counted {
    type Item = Result<Piece, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Attempt::At(since @ None) = &mut self.attempt {
            *since = Some(Instant::now());
        }
        loop {
            let piece = ready!(self.reply.poll_next_unpin(context));
            match &piece {
                Some(Ok(Piece::End(end))) => {
                    // Not every server counts.
                    let is_counted = end.usage.input > 0 || end.usage.output > 0;
                    self.add(if is_counted { end.usage } else { self.came.usage(self.sent) });
                    self.attempt = Attempt::Over;
                }
                // Whoever waits for an attempt that was not made yet has nothing to pay for.
                Some(Ok(Piece::Retrying { after, .. })) => self.break_off(Attempt::At(Some(Instant::now() + *after))),
                Some(Ok(piece)) => self.came.see(piece),
                Some(Err(_)) | None if matches!(self.attempt, Attempt::At(_)) => self.break_off(Attempt::Over),
                Some(Err(_)) | None => {}
            }
            if !matches!(piece, Some(Ok(Piece::Usage(_)))) {
                return Poll::Ready(piece);
            }
        }
    }
}

/// Whoever drops an answer has cancelled it. What was sent is paid for all the same.
impl Drop for Counted {
    fn drop(&mut self) {
        if let Attempt::At(Some(since)) = self.attempt
            && (self.came.is_some || since <= Instant::now())
        {
            self.add(self.came.usage(self.sent));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::time::Duration;

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

    /// A model that says these pieces and then nothing more, not even that it is over.
    struct Hangs(ModelInfo, Vec<Result<Piece, ModelError>>);

    impl Model for Hangs {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn ask(&self, _: Request) -> Reply {
            futures_util::stream::iter(self.1.clone()).chain(futures_util::stream::pending()).boxed()
        }
    }

    /// What is counted of an answer that somebody cancels after so many pieces.
    async fn cancelled(pieces: Vec<Result<Piece, ModelError>>, taken: usize) -> Vec<Usage> {
        let meter = Arc::new(Meter::default());
        let info = ModelInfo { provider: "acme".into(), ..super::super::offline::Offline::new().info().clone() };
        let hanging = Metered::new(Arc::new(Hangs(info, pieces)), meter.clone());
        // A message of a hundred tokens, and the four around it.
        let request = Request { messages: vec![crate::model::Message::user("x".repeat(400))], ..Request::default() };
        let mut reply = hanging.ask(request);
        for _ in 0..taken {
            assert!(!matches!(reply.next().await, Some(Ok(Piece::Usage(_)))), "it is for us alone");
        }
        assert!(futures_util::poll!(reply.next()).is_pending(), "the rest is awaited");
        drop(reply);
        meter.take_unkept().into_iter().map(|spent| spent.usage).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_cancelled_or_broke_off_is_counted_as_far_as_it_is_known() {
        let usage = |input, output| Usage { input, output, ..Usage::default() };
        let text = || Ok(Piece::Text("y".repeat(40)));
        let counted = |input, output| Ok(Piece::Usage(usage(input, output)));
        let retrying = || {
            Ok(Piece::Retrying {
                after: Duration::from_secs(5),
                reason: String::new(),
                attempt: 2,
                of: 5,
                left: Duration::ZERO,
            })
        };
        let failed = || Err(ModelError::new(Failure::Server, "no"));
        let grew = || Ok(Piece::CallGrew { id: "1".into(), arguments: "z".repeat(80) });
        // Nothing but the request is known.
        assert_eq!(cancelled(vec![], 0).await, [usage(104, 0)]);
        assert_eq!(cancelled(vec![text(), text()], 2).await, [usage(104, 20)]);
        assert_eq!(cancelled(vec![text(), grew()], 2).await, [usage(104, 30)]);
        // The provider has counted; what it has not is estimated.
        assert_eq!(cancelled(vec![counted(900, 1), text()], 1).await, [usage(900, 10)]);
        assert_eq!(cancelled(vec![text(), counted(900, 50)], 1).await, [usage(900, 50)]);
        // Attempts that broke off count one by one; one that was not made yet does not.
        assert_eq!(cancelled(vec![text(), retrying()], 2).await, [usage(104, 10)]);
        assert_eq!(cancelled(vec![text(), retrying(), text()], 3).await, [usage(104, 10), usage(104, 10)]);
        assert_eq!(cancelled(vec![retrying()], 1).await, []);
        // One that failed at once costs nothing, and one that broke off for good does.
        assert_eq!(cancelled(vec![failed()], 1).await, []);
        assert_eq!(cancelled(vec![text(), failed()], 2).await, [usage(104, 10)]);
    }

    #[tokio::test]
    async fn a_limit_holds_against_a_model_that_is_cancelled_again_and_again() {
        let meter = Arc::new(Meter::new(Budget { tokens: Some(1_000), ..Budget::default() }, Total::default()));
        let info = ModelInfo { provider: "acme".into(), ..super::super::offline::Offline::new().info().clone() };
        let hanging = Metered::new(Arc::new(Hangs(info, Vec::new())), meter.clone());
        let mut asked = 0;
        while meter.reached().is_none() {
            let request = Request { system: "x".repeat(400), ..Request::default() };
            let mut reply = hanging.ask(request);
            assert!(futures_util::poll!(reply.next()).is_pending());
            asked += 1;
        }
        assert_eq!(asked, 10);
        // One that nobody has waited for was not sent.
        drop(model(None, &Arc::new(Meter::default())).ask(Request::default()));
        assert_eq!(meter.session().requests, 10);
    }

    #[tokio::test]
    async fn a_server_that_does_not_count_is_held_to_limits_by_our_estimate() {
        let price = Price::per_million(1.0, 10.0, None, None);
        for budget in [
            Budget { tokens: Some(1_000), ..Budget::default() },
            Budget { cost: Cost::from_dollars(0.001), ..Budget::default() },
        ] {
            let meter = Arc::new(Meter::new(budget, Total::default()));
            let info =
                ModelInfo { provider: "acme".into(), price, ..super::super::offline::Offline::new().info().clone() };
            let silent = Metered::new(Arc::new(Takes(info, Usage::default())), meter.clone());
            // A hundred tokens in, and one out.
            let request = || Request { system: "x".repeat(400), ..Request::default() };
            for _ in 0..10 {
                assert_eq!(meter.reached(), None, "{budget:?}");
                assert_eq!(silent.ask(request()).filter(|piece| std::future::ready(piece.is_err())).count().await, 0);
            }
            assert!(meter.reached().is_some(), "{budget:?}");
            assert_eq!(meter.session().usage, Usage { input: 1_000, output: 10, ..Usage::default() });
        }
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
        // What a session took before it was opened here is not of the run.
        let before = Total { requests: 1, usage: Usage { input: 5_000, ..Usage::default() }, ..Total::default() };
        for (budget, named) in [
            (
                Budget { tokens: Some(1_500), ..Budget::default() },
                "the run has used 2200 tokens, and `--max-tokens` is 1500",
            ),
            (
                Budget { cost: Cost::from_dollars(0.003), ..Budget::default() },
                "the run has cost 0.0040 USD, and `--max-cost` is 0.003 USD",
            ),
        ] {
            let meter = Arc::new(Meter::new(Budget::default(), before).for_run(budget));
            let model = model(price, &meter);
            assert_eq!((ask(&model).await, ask(&model).await), (None, None));
            let error = ask(&model).await.unwrap();
            assert!(error.contains(named), "{error}");
            assert_eq!(meter.session().requests, 3);
        }
        let meter = Arc::new(Meter::new(Budget { cost: Some(Cost(1)), tokens: None }, Total::default()));
        let unpriced = model(None, &meter);
        assert!(
            meter
                .warning(unpriced.info())
                .unwrap()
                .contains("is not known, so `max_cost` does not limit it\nhint: `max_tokens_total` does")
        );
        assert_eq!(meter.warning(unpriced.info()), None, "once");
    }
}
