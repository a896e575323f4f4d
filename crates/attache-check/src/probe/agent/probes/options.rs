//! Configuration options, and modes.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::task::Task;
use crate::probe::agent::words;

/// How many values of an option are set, at most: some agents have hundreds of models.
const MOST_VALUES: usize = 8;

pub(super) const PROBES: &[Probe] = &[
    probe!("options/each-value", ALL, "Sets each option to each of its values.", each_value),
    probe!("options/unknown", ALL, "Sets options and values that do not exist.", unknown),
    probe!("options/no-booleans", V1, "Offers no boolean options.", no_booleans),
    probe!("options/in-turn", ALL, "Sets an option in the middle of a turn.", in_turn),
    probe!("options/modes", V1_AND_DRAFT, "Sets each mode, and one that does not exist.", modes),
];

/// The values that an option can be set to, those in groups included.
fn values(option: &Value) -> Vec<Value> {
    if option["type"] == "boolean" {
        return vec![json!(false), json!(true)];
    }
    let entries = option["options"].as_array().into_iter().flatten();
    let values = entries.flat_map(|entry| match entry["options"].as_array() {
        Some(group) => group.iter().collect(),
        None => vec![entry],
    });
    values.map(|value| value["value"].clone()).take(MOST_VALUES).collect()
}

async fn each_value(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let (session, opened) = driver.open_with_result().await?;
    for option in opened["configOptions"].as_array().into_iter().flatten() {
        let Some(id) = words::option_id(driver.dialect, option) else { continue };
        let before = option["currentValue"].clone();
        for value in values(option).into_iter().chain([before]) {
            let params = words::setting(driver.dialect, &session, id, &value);
            driver.request("session/set_config_option", params).await?;
        }
    }
    driver.settle().await?;
    driver.prompt(&session, &[Task::Say("after")]).await?;
    driver.settle().await
}

async fn unknown(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let (session, opened) = driver.open_with_result().await?;
    let mut wrong = vec![words::setting(driver.dialect, &session, "no-such-option", &json!("x"))];
    for option in opened["configOptions"].as_array().into_iter().flatten().take(3) {
        let Some(id) = words::option_id(driver.dialect, option) else { continue };
        wrong.push(words::setting(driver.dialect, &session, id, &json!("no-such-value")));
        let mut odd = words::setting(driver.dialect, &session, id, &json!({ "a": 1 }));
        odd["type"] = "_attache".into();
        wrong.push(odd);
    }
    wrong.push(json!({ "sessionId": session }));
    for params in wrong {
        driver.request("session/set_config_option", params).await?;
    }
    driver.settle().await
}

async fn no_booleans(driver: &mut Driver) -> Flow {
    driver.hello_offering(json!({})).await?;
    let (session, opened) = driver.open_with_result().await?;
    let first = opened["configOptions"].as_array().and_then(|options| options.first());
    if let Some((option, id)) = first.and_then(|option| Some((option, words::option_id(driver.dialect, option)?))) {
        for value in values(option) {
            let params = words::setting(driver.dialect, &session, id, &value);
            driver.request("session/set_config_option", params).await?;
        }
    }
    driver.settle().await
}

async fn in_turn(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let (session, opened) = driver.open_with_result().await?;
    let options = opened["configOptions"].as_array().cloned().unwrap_or_default();
    let option = options.iter().find_map(|option| Some((words::option_id(driver.dialect, option)?, option)));
    let Some((id, option)) = option else { return driver.need(false) };
    let turn = driver.send_prompt(&session, &[Task::Slowly]).await?;
    driver.sees(&turn, &["agent_message_chunk"]).await?;
    let mut asked = Vec::new();
    for value in values(option) {
        asked
            .push(driver.ask("session/set_config_option", words::setting(driver.dialect, &session, id, &value)).await?);
    }
    let time = driver.options.patience / 4;
    driver.listen(time).await?;
    driver.cancel_turn(turn).await?;
    let limit = driver.options.patience;
    for id in asked {
        driver.answer(id, limit).await?;
    }
    driver.settle().await
}

async fn modes(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let (session, opened) = driver.open_with_result().await?;
    let modes = opened["modes"]["availableModes"].as_array().cloned().unwrap_or_default();
    driver.need(!modes.is_empty())?;
    let ids = modes.iter().take(MOST_VALUES).map(|mode| mode["id"].clone());
    for id in ids.chain([json!("no-such-mode"), opened["modes"]["currentModeId"].clone()]) {
        driver.request("session/set_mode", json!({ "sessionId": session, "modeId": id })).await?;
    }
    driver.settle().await
}
