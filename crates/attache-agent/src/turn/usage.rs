//! What a session's requests took: written down, shown, and held to a limit.

use attache::model::Patch;
use attache::model::notice::NoticeSeverity;
use attache::model::unstable::Usage;
use attache::model::update::{Cost, SessionUpdate, UsageUpdate};
use attache::{Error, Stop};

use super::{Desk, Trouble};
use crate::model::Model;
use crate::model::metered::Reached;
use crate::store::Entry;

/// Tells how full the context is, and what the session has cost so far.
pub(super) async fn tell(desk: &Desk, used: u64, model: &dyn Model) -> Result<(), Error> {
    let context = model.info().context;
    *crate::lock(&desk.context_told) = Some((used, context));
    keep_spent(desk).await?;
    show(desk, used, context).await
}

/// Tells what a request took that was made beside the conversation. The context is as full as it was.
pub(super) async fn tell_beside(desk: &Desk) -> Result<(), Error> {
    let told = *crate::lock(&desk.context_told);
    match (keep_spent(desk).await?, told) {
        (true, Some((used, context))) => show(desk, used, context).await,
        _ => Ok(()),
    }
}

/// Tells what was spent since it was last told: on an answer that failed or was cancelled.
pub(crate) async fn tell_rest(desk: &Desk, used: u64) -> Result<(), Error> {
    if !keep_spent(desk).await? {
        return Ok(());
    }
    match desk.models.open_aside(&desk.settings.now().model).await {
        Ok(model) => tell(desk, used, &*model).await,
        Err(_) => Ok(()),
    }
}

async fn show(desk: &Desk, used: u64, context: u64) -> Result<(), Error> {
    let cost = desk.models.meter().session().cost;
    let update = UsageUpdate::new(used, context).with(|update| {
        update.cost = cost.map_or(Patch::Keep, |cost| Patch::Set(Cost::new(cost.dollars(), "USD")));
    });
    desk.log.show(SessionUpdate::Usage(update)).await
}

/// Writes down what was spent since the last time. Tells whether that was anything.
async fn keep_spent(desk: &Desk) -> Result<bool, Error> {
    let unkept = desk.models.meter().take_unkept();
    let is_some = !unkept.is_empty();
    for spent in unkept {
        desk.log.keep(Entry::Spent(spent)).await?;
    }
    Ok(is_some)
}

/// Whether the session has spent what it may; the person is told which limit it is.
pub(super) async fn limit_reached(desk: &Desk, model: &dyn Model) -> Result<Option<Stop>, Error> {
    let meter = desk.models.meter();
    if let Some(warning) = meter.warning(model.info()) {
        desk.log.notice(NoticeSeverity::Warning, warning).await?;
    }
    match meter.reached().filter(|_| model.info().provider != "offline") {
        Some(reached) => Ok(Some(stop(desk, &reached).await?)),
        None => Ok(None),
    }
}

/// How a turn ends whose next request was refused because of a limit: a text, a summary or the like that is asked for beside
/// the conversation. Other troubles stay what they are.
pub(crate) async fn stopped_by_limit(desk: &Desk, trouble: Trouble) -> Result<Stop, Trouble> {
    let reached = desk.models.meter().reached();
    match (&trouble, reached) {
        (Trouble::Model(error), Some(reached)) if error.message == reached.words() => Ok(stop(desk, &reached).await?),
        _ => Err(trouble),
    }
}

/// Tells the person which limit it is that ends the turn.
async fn stop(desk: &Desk, reached: &Reached) -> Result<Stop, Error> {
    desk.log.notice(NoticeSeverity::Warning, format!("Stopped: {}.", reached.words())).await?;
    Ok(match reached {
        Reached::Tokens(_) => Stop::MaxTokens,
        Reached::Cost(_) => Stop::MaxTurnRequests,
    })
}

/// What the turn took, for its end; nothing if no model was asked.
pub(crate) fn of_turn(desk: &Desk) -> Option<Usage> {
    let turn = desk.models.meter().turn();
    let usage = turn.usage;
    let some = |count: u64| Some(count).filter(|count| *count > 0);
    (turn.requests > 0).then(|| {
        Usage::new(turn.tokens(), usage.input, usage.output).with(|told| {
            told.cached_read_tokens = some(usage.cached);
            told.cached_write_tokens = some(usage.written);
        })
    })
}
