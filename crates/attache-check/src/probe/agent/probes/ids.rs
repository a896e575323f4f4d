//! Ids of requests, of every kind.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Answer, Driver, Flow};
use crate::probe::agent::serve::Permission;
use crate::probe::agent::task::Task;
use crate::record::Event;

pub(super) const PROBES: &[Probe] = &[
    probe!("ids/kinds", ALL, "Sends requests whose ids are strings and integers of every size.", kinds),
    probe!("ids/null", ALL, "Sends a request whose id is null.", null),
    probe!("ids/malformed", ALL, "Sends requests whose ids are no ids.", malformed),
    probe!("ids/same-text", ALL, "Sends requests with the ids 1 and \"1\" at once.", same_text),
    probe!("ids/same-twice", ALL, "Sends two requests with one id.", same_twice),
    probe!("ids/reused", ALL, "Uses an id again after its request was answered.", reused),
    probe!("ids/both-directions", ALL, "Asks with the id that the agent asks with.", both_directions),
];

fn ping(id: &Value) -> Value {
    json!({ "id": id, "method": "_attache.check/ping", "params": {} })
}

async fn kinds(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let ids = [
        json!("text"),
        json!(""),
        json!("1"),
        json!("with \"quotes\" \\ and\nlines"),
        json!("x".repeat(500)),
        json!(0),
        json!(-1),
        json!(4_294_967_296_i64),
        json!(9_007_199_254_740_993_i64),
        json!(i64::MAX),
        json!(i64::MIN),
    ];
    for id in &ids {
        driver.send(ping(id)).await?;
    }
    driver.answers_to(&ids).await?;
    driver.settle().await
}

async fn null(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.send(ping(&Value::Null)).await?;
    driver.answers_to(&[Value::Null]).await?;
    driver.settle().await
}

async fn malformed(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    for id in ["1.5", "1e300", "99999999999999999999", "true", "{}", "[1]"] {
        driver
            .send_line(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"_attache.check/ping\",\"params\":{{}}}}"
            ))
            .await?;
        // Some read fractions as ids. What they answer is for the rules; here it only has to be an answer.
        let deadline = tokio::time::Instant::now() + driver.options.patience;
        let is_answer = |message: &Value| message["method"].is_null() && message.get("id").is_some();
        if !driver.pump(deadline, |_, message| is_answer(message)).await? {
            let time = driver.options.patience;
            driver.wire.note(Event::Waited { time });
        }
    }
    driver.settle().await
}

async fn same_text(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let ids = [json!(1001), json!("1001")];
    for id in &ids {
        driver.send(ping(id)).await?;
    }
    driver.answers_to(&ids).await?;
    driver.settle().await
}

async fn same_twice(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let id = json!("twice");
    // Two of the same, so that nobody has to know which answer is whose.
    driver.send(ping(&id)).await?;
    driver.send(ping(&id)).await?;
    driver.answers_to(&[id.clone(), id]).await?;
    driver.settle().await
}

async fn reused(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    for _ in 0..3 {
        driver.send(ping(&json!("again"))).await?;
        driver.answers_to(&[json!("again")]).await?;
    }
    driver.settle().await
}

async fn both_directions(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.permission = Permission::Hold;
    let turn = driver.send_prompt(&session, &[Task::Run("echo hello")]).await?;
    if driver.during(&turn, |driver, _| !driver.held.is_empty()).await? {
        let id = driver.held.first().map_or(Value::Null, |ask| ask["id"].clone());
        // Our own ids are small numbers; those of running requests are not used again.
        let is_free = id.as_i64().is_none_or(|id| id > turn.id);
        if is_free && !id.is_null() {
            driver.send(ping(&id)).await?;
            let patience = driver.options.patience;
            if driver.answer_to(&id, patience).await? == Answer::Nothing {
                driver.note("The request with the agent's id was not answered.");
            }
        }
        driver.permission = Permission::Allow;
        driver.answer_held(Permission::Allow).await?;
    }
    driver.end(turn).await?;
    driver.settle().await
}
