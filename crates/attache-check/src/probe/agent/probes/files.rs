//! Files and commands of the client.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::task::Task;

pub(super) const PROBES: &[Probe] = &[
    probe!("files/read", ALL, "Has the agent read a file.", read),
    probe!(
        "files/read-missing",
        ALL,
        "Has the agent read files that are not there, or not in its directory.",
        read_missing
    ),
    probe!("files/write", ALL, "Has the agent write a new file and an old one, and read them.", write),
    probe!("files/only-read", V1, "Offers to read files, and nothing else.", |driver| {
        partly(driver, json!({ "fs": { "readTextFile": true } }))
    }),
    probe!("files/only-write", V1, "Offers to write files, and nothing else.", |driver| {
        partly(driver, json!({ "fs": { "writeTextFile": true, "readTextFile": false } }))
    }),
    probe!("files/only-terminal", V1, "Offers terminals, and nothing else.", |driver| {
        partly(driver, json!({ "terminal": true }))
    }),
    probe!("terminals/run", ALL, "Has the agent run commands that end by themselves.", run),
    probe!("terminals/kill", ALL, "Has the agent give a command up.", kill),
    probe!("terminals/two", ALL, "Has two sessions run commands at once.", two),
];

async fn read(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let notes = driver.path("notes.txt");
    driver.prompt(&session, &[Task::Read(notes), Task::Say("read")]).await?;
    driver.settle().await
}

async fn read_missing(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for path in ["missing.txt", "no/such/directory/missing.txt", ""] {
        let path = driver.path(path);
        driver.prompt(&session, &[Task::Read(path), Task::Say("read")]).await?;
    }
    driver.settle().await
}

async fn write(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let (made, notes) = (driver.path("made.txt"), driver.path("notes.txt"));
    driver.prompt(&session, &[Task::Write(made.clone(), "made"), Task::Read(made), Task::Say("written")]).await?;
    let tasks =
        [Task::Read(notes.clone()), Task::Write(notes.clone(), "changed"), Task::Read(notes), Task::Say("changed")];
    driver.prompt(&session, &tasks).await?;
    driver.settle().await
}

/// Asks for files and commands although not all of them are offered.
async fn partly(driver: &mut Driver, offered: Value) -> Flow {
    driver.hello_offering(offered).await?;
    let session = driver.open().await?;
    let (made, notes) = (driver.path("made.txt"), driver.path("notes.txt"));
    driver.prompt(&session, &[Task::Read(notes), Task::Say("read")]).await?;
    driver.prompt(&session, &[Task::Write(made, "made"), Task::Say("written")]).await?;
    driver.prompt(&session, &[Task::Run("echo hello"), Task::Say("run")]).await?;
    driver.settle().await
}

async fn run(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for command in ["echo hello", "sleep 0.2", "false"] {
        driver.prompt(&session, &[Task::Run(command), Task::Say("run")]).await?;
    }
    driver.settle().await
}

async fn kill(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.prompt(&session, &[Task::RunShortly("sleep 30"), Task::Say("given up")]).await?;
    driver.settle().await
}

async fn two(driver: &mut Driver) -> Flow {
    let one = driver.begin().await?;
    let other = driver.open().await?;
    let first = driver.send_prompt(&one, &[Task::Run("sleep 0.3"), Task::Say("run")]).await?;
    let second = driver.send_prompt(&other, &[Task::Run("echo hello"), Task::Say("run")]).await?;
    driver.end(second).await?;
    driver.end(first).await?;
    driver.settle().await
}
