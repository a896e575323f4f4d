//! Who it is that the agent works for, and what it asks them.

use serde_json::json;

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::serve::Elicitation;
use crate::probe::agent::task::Task;
use crate::probe::agent::words::{self, Feature};

pub(super) const PROBES: &[Probe] = &[
    probe!("auth/unknown-method", ALL, "Authenticates by a method that does not exist.", unknown_method),
    probe!("auth/logout", ALL, "Logs out, where that is offered.", logout),
    probe!("elicitation/accept", ALL, "Answers the agent's questions.", |driver| answers(driver, Elicitation::Accept)),
    probe!("elicitation/decline", ALL, "Declines to answer the agent's questions.", |driver| {
        answers(driver, Elicitation::Decline)
    }),
    probe!("elicitation/cancel", ALL, "Cancels the agent's questions.", |driver| answers(driver, Elicitation::Cancel)),
    probe!("elicitation/unknown", ALL, "Answers the agent's questions with what it cannot know.", |driver| {
        answers(driver, Elicitation::Unknown)
    }),
    probe!("elicitation/form-only", V1, "Offers forms, and no web pages.", |driver| {
        offering(driver, json!({ "elicitation": { "form": {} } }))
    }),
    probe!("elicitation/no-mode", V1, "Offers questions, and no way to ask them.", |driver| {
        offering(driver, json!({ "elicitation": {} }))
    }),
];

async fn unknown_method(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.request(words::login(driver.dialect), json!({ "methodId": "no-such-method" })).await?;
    // An agent without methods need not know the request.
    if driver.greeting["authMethods"].as_array().is_some_and(|methods| !methods.is_empty()) {
        driver.request(words::login(driver.dialect), json!({})).await?;
    }
    driver.settle().await
}

async fn logout(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    // It might be somebody's login that ends: only what was logged in for this run is logged out.
    driver.need(driver.options.authenticate.is_some() && driver.offers(Feature::Logout))?;
    driver.request(words::logout(driver.dialect), json!({})).await?;
    let params = words::opening(driver.dialect, driver.cwd());
    driver.request("session/new", params).await?;
    driver.settle().await
}

async fn answers(driver: &mut Driver, how: Elicitation) -> Flow {
    let session = driver.begin().await?;
    driver.elicitation = how;
    driver.prompt(&session, &[Task::Ask, Task::Say("asked")]).await?;
    driver.settle().await
}

async fn offering(driver: &mut Driver, offered: serde_json::Value) -> Flow {
    driver.hello_offering(offered).await?;
    let session = driver.open().await?;
    driver.prompt(&session, &[Task::Ask, Task::Say("asked")]).await?;
    driver.settle().await
}
