//! What becomes of what the agent asks permission for, by every kind of answer.

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::serve::Permission;
use crate::probe::agent::task::Task;

pub(super) const PROBES: &[Probe] = &[
    probe!("permission/allow", ALL, "Allows what the agent asks for.", |driver| answers(driver, Permission::Allow)),
    probe!("permission/reject", ALL, "Rejects what the agent asks for.", |driver| answers(driver, Permission::Reject)),
    probe!("permission/cancelled", ALL, "Answers the agent's question with `cancelled`.", |driver| {
        answers(driver, Permission::Cancel)
    }),
    probe!("permission/not-offered", ALL, "Answers with an option that was not offered.", |driver| {
        answers(driver, Permission::NotOffered)
    }),
    probe!("permission/error", ALL, "Answers the agent's question with an error.", |driver| {
        answers(driver, Permission::Fail)
    }),
    probe!("permission/late", ALL, "Lets the agent wait for its answer.", late),
    probe!("permission/no-answer", ALL, "Does not answer, and cancels the turn.", no_answer),
];

/// Answers all questions of two turns in one way.
async fn answers(driver: &mut Driver, how: Permission) -> Flow {
    let session = driver.begin().await?;
    driver.permission = how;
    driver.prompt(&session, &[Task::Run("echo hello"), Task::Say("run")]).await?;
    let path = driver.path("made.txt");
    driver.prompt(&session, &[Task::Write(path, "made"), Task::Say("written")]).await?;
    driver.settle().await
}

async fn late(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.permission = Permission::Hold;
    let turn = driver.send_prompt(&session, &[Task::Run("echo hello"), Task::Say("run")]).await?;
    if driver.during(&turn, |driver, _| !driver.held.is_empty()).await? {
        let time = driver.options.patience / 4;
        driver.listen(time).await?;
        driver.permission = Permission::Allow;
        driver.answer_held(Permission::Allow).await?;
    }
    driver.end(turn).await?;
    driver.settle().await
}

async fn no_answer(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.permission = Permission::Hold;
    let path = driver.path("made.txt");
    let turn = driver.send_prompt(&session, &[Task::Write(path, "made"), Task::Say("written")]).await?;
    if driver.during(&turn, |driver, _| !driver.held.is_empty()).await? {
        driver.cancel_turn(turn).await?;
    } else {
        driver.end(turn).await?;
    }
    driver.permission = Permission::Allow;
    driver.prompt(&session, &[Task::Say("after")]).await?;
    driver.settle().await
}
