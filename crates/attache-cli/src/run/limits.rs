//! `--max-cost` and `--max-tokens`: what a run may use up, by what the agent reports. The built-in agent holds them itself,
//! and counts from the run's start; of others, what they report is of the whole session.

use attache::model::Meta;

use crate::cli::Run;
use crate::event::{ContextUsage, Usage};

/// What a run may use up.
#[derive(Debug, Default)]
pub(super) struct Limits {
    cost: Option<f64>,
    tokens: Option<u64>,
    /// Whether the agent told what they are compared with.
    is_cost_told: bool,
    are_tokens_told: bool,
    /// Whether the agent was told the limits, and ends its turns by them.
    is_held_by_agent: bool,
}

impl Limits {
    pub(super) fn new(args: &Run, is_held_by_agent: bool) -> Self {
        Limits { cost: args.max_cost, tokens: args.max_tokens, is_held_by_agent, ..Limits::default() }
    }

    /// Which limit is passed by what the agent says of its session, as a sentence.
    pub(super) fn passed(&mut self, usage: &ContextUsage) -> Option<String> {
        // A cost below nothing is none that was told.
        let cost = usage.cost.as_ref().filter(|cost| cost.amount >= 0.0);
        self.is_cost_told |= cost.is_some();
        self.are_tokens_told = true;
        if self.is_held_by_agent {
            return None;
        }
        let cost = cost.and_then(|cost| {
            let limit = self.cost.filter(|limit| cost.amount > *limit)?;
            let currency = crate::visible::one_line(&cost.currency);
            Some(format!("the session has cost {} {currency}, more than --max-cost {limit}", cost.amount))
        });
        cost.or_else(|| self.passed_by_tokens(usage.used, "in its context"))
    }

    /// Which limit is passed by what the agent says of its turn, as a sentence.
    pub(super) fn passed_by_turn(&self, usage: &Usage) -> Option<String> {
        if self.is_held_by_agent { None } else { self.passed_by_tokens(usage.total_tokens, "in this turn") }
    }

    /// The limit that the agent says it has reached with a turn, if it was told any.
    pub(super) fn named_by_agent(&self, end: Option<&Meta>) -> Option<String> {
        let limit = end?.get(attache_agent::LIMIT).filter(|_| self.is_held_by_agent)?;
        limit.parse().ok()
    }

    /// The limits that could not be held because the agent tells nothing of the kind, as a sentence. Who set one must not
    /// think that it held.
    pub(super) fn unchecked(&self, usage: Option<&Usage>) -> Option<String> {
        // It says by itself what it cannot hold.
        if self.is_held_by_agent {
            return None;
        }
        let cost = self.cost.filter(|_| !self.is_cost_told).map(|_| "--max-cost");
        let tokens = self.tokens.filter(|_| !self.are_tokens_told && usage.is_none()).map(|_| "--max-tokens");
        let options: Vec<&str> = cost.into_iter().chain(tokens).collect();
        match options[..] {
            [] => None,
            ["--max-cost"] => Some("the agent does not tell what it costs: --max-cost limited nothing".into()),
            _ => Some(format!("the agent does not tell what it uses: {} limited nothing", options.join(" and "))),
        }
    }

    fn passed_by_tokens(&self, tokens: u64, place: &str) -> Option<String> {
        let limit = self.tokens.filter(|limit| tokens > *limit)?;
        Some(format!("the agent used {tokens} tokens {place}, more than --max-tokens {limit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Cost;

    #[test]
    fn a_limit_is_passed_when_more_is_reported() {
        let mut limits = Limits { cost: Some(0.25), tokens: Some(100), ..Limits::default() };
        assert!(limits.unchecked(None).unwrap().contains("--max-cost and --max-tokens limited nothing"));
        let mut usage = |used, amount: Option<f64>| {
            let cost = amount.map(|amount| Cost { amount, currency: "USD".into() });
            limits.passed(&ContextUsage { used, size: 1000, cost })
        };
        assert_eq!(usage(100, Some(0.25)), None);
        assert_eq!(usage(100, None), None);
        assert_eq!(usage(0, Some(0.5)).unwrap(), "the session has cost 0.5 USD, more than --max-cost 0.25");
        assert_eq!(usage(101, None).unwrap(), "the agent used 101 tokens in its context, more than --max-tokens 100");
        assert_eq!(limits.unchecked(None), None);
        let mut limits = Limits { cost: Some(0.25), ..Limits::default() };
        for amount in [-5.0, f64::NAN] {
            let cost = Some(Cost { amount, currency: "USD".into() });
            assert_eq!(limits.passed(&ContextUsage { used: 0, size: 0, cost }), None);
        }
        assert!(limits.unchecked(None).unwrap().contains("what it costs: --max-cost limited nothing"));
        assert_eq!(Limits::default().passed(&ContextUsage { used: u64::MAX, size: 0, cost: None }), None);
    }
}
