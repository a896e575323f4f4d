//! Commands and jobs in every dialect, as processes of the agent's own.

use attache::Protocol;
use serde_json::{Value, json};

use crate::calling;
use crate::support::{Person, World, check};

fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("run_command", json!({"command": "echo out; echo err >&2; echo x > made.txt"})),
        ("run_command", json!({"command": "echo broken; exit 3"})),
        ("run_command", json!({"command": "sleep 60", "timeout_seconds": 1})),
        ("run_command", json!({"command": "echo ready; sleep 60", "background": true})),
        ("job_output", json!({"job": "job-1", "wait_seconds": 20})),
        ("stop_job", json!({"job": "job-1"})),
        ("job_output", json!({"job": "job-1"})),
    ]
}

async fn run(protocol: Protocol) -> (World, String) {
    let world = World::answering(calling(calls())).await;
    let seen = world.turn(Person::at(protocol), "run them").await;
    (world, seen)
}

#[tokio::test]
async fn commands_are_text_where_the_client_shows_no_terminals() {
    for protocol in [Protocol::V1, Protocol::V2Draft] {
        let (world, seen) = run(protocol).await;
        check(
            &seen,
            r#"
            tool run_command "echo out; echo err >&2; echo x > made.txt" execute: pending → in_progress → completed
              | ```console
              | out
              | err
              | ```
            usage
            permission "echo out; echo err >&2; echo x > made.txt" [allow_once, reject_once] → allow_once
            tool run_command "echo broken; exit 3" execute: pending → in_progress → failed
              | ```console
              | exit code 3
              |
              | broken
              | ```
            usage
            permission "echo broken; exit 3" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool run_command "sleep 60" execute: pending → in_progress → failed
              | ```console
              | the command did not end within 1 seconds, and was ended with everything it started
              | hint: `background` is for what runs long
              | ```
            usage
            permission "sleep 60" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool run_command "echo ready; sleep 60" execute: pending → in_progress → completed
              | ```console
              | started as `job-1`; `job_output` tells what it prints, `stop_job` ends it
              | ```
            usage
            permission "echo ready; sleep 60" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool job_output "Look at job-1" read: pending → in_progress → completed
              | ```console
              | `job-1` is running
              |
              | ready
              | ```
            usage
            tool stop_job "Stop job-1" execute: pending → in_progress → completed
              | ```console
              | `job-1` has ended: killed by SIGTERM
              |
              | (no new output)
              | ```
            usage
            tool job_output "Look at a job: job-1" read: pending → failed
              | there is no job `job-1`
              | hint: there are no jobs
            usage
            text Done.
            usage
            stop end_turn
            "#,
        );
        check(
            &world.files(),
            r#"
            made.txt "x\n"
            "#,
        );
        check(
            &world.results().join("\n"),
            r#"
            out
            err

            error: exit code 3

            broken

            error: the command did not end within 1 seconds, and was ended with everything it started
            hint: `background` is for what runs long
            started as `job-1`; `job_output` tells what it prints, `stop_job` ends it
            `job-1` is running

            ready

            `job-1` has ended: killed by SIGTERM

            (no new output)
            error: there is no job `job-1`
            hint: there are no jobs
            "#,
        );
    }
}

#[tokio::test]
async fn version_2_sees_them_in_terminals() {
    let (_world, seen) = run(Protocol::V2).await;
    check(
        &seen,
        r#"
        tool run_command "echo out; echo err >&2; echo x > made.txt" execute: pending → in_progress → completed
          in a terminal
        usage
        permission "echo out; echo err >&2; echo x > made.txt" [allow_once, reject_once] → allow_once
        terminal "echo out; echo err >&2; echo x > made.txt" exit 0
          | out
          | err
        tool run_command "echo broken; exit 3" execute: pending → in_progress → failed
          in a terminal
        usage
        permission "echo broken; exit 3" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        terminal "echo broken; exit 3" exit 3
          | broken
        tool run_command "sleep 60" execute: pending → in_progress → failed
          in a terminal
        usage
        permission "sleep 60" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        terminal "sleep 60" exit SIGTERM
        tool run_command "echo ready; sleep 60" execute: pending → in_progress → completed
          in a terminal
        usage
        permission "echo ready; sleep 60" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        terminal "echo ready; sleep 60" exit SIGTERM
          | ready
        tool job_output "Look at job-1" read: pending → in_progress → completed
          in a terminal
        usage
        tool stop_job "Stop job-1" execute: pending → in_progress → completed
          in a terminal
        usage
        tool job_output "Look at a job: job-1" read: pending → failed
          | there is no job `job-1`
          | hint: there are no jobs
        usage
        text Done.
        usage
        stop end_turn
        "#,
    );
}
