//! Commands that run in the background.

use serde_json::json;

use super::*;

fn job(line: &str) -> Value {
    json!({"command": line, "background": true})
}

#[tokio::test]
async fn a_job_tells_what_is_new_until_it_ends() {
    let place = Place::new(SandboxMode::Off);
    let line = "echo one; while ! [ -e go ]; do sleep 0.01; done; echo two; exit 4";
    let (text, is_error) = place.text("run_command", job(line)).await;
    assert!(text.starts_with("started as `job-1`") && !is_error, "{text}");
    let look = json!({"job": "job-1", "wait_seconds": 20});
    let first = place.text("job_output", look.clone()).await;
    assert_eq!(first, ("`job-1` is running\n\none\n".into(), false));
    let nothing = place.text("job_output", json!({"job": "job-1"})).await;
    assert_eq!(nothing, ("`job-1` is running\n\n(no new output)".into(), false));
    std::fs::write(place.cwd().join("go"), "").unwrap();
    let mut rest = String::new();
    while !rest.contains("has ended") {
        rest.push_str(&place.text("job_output", look.clone()).await.0);
    }
    assert!(rest.contains("two\n") && rest.contains("`job-1` has ended: exit code 4"), "{rest}");
    let again = place.text("job_output", look).await;
    assert_eq!(again, ("`job-1` has ended: exit code 4\n\n(no new output)".into(), false));
}

#[tokio::test]
async fn a_job_needs_permission_to_start_and_none_to_be_watched() {
    let place = Place::new(SandboxMode::Off);
    assert_eq!(place.prepare("run_command", job("sleep 100")).await.unwrap().actions.len(), 1);
    place.text("run_command", job("sleep 100")).await;
    assert!(place.prepare("job_output", json!({"job": "job-1"})).await.unwrap().actions.is_empty());
    assert!(place.prepare("stop_job", json!({"job": "job-1"})).await.unwrap().actions.is_empty());
    let refusal = place.prepare("job_output", json!({"job": "job-7"})).await.unwrap_err();
    assert_eq!(refusal, "there is no job `job-7`\nhint: there are job-1");
}

#[tokio::test]
async fn a_job_that_is_stopped_ends_with_all_it_started() {
    let place = Place::new(SandboxMode::On);
    place.text("run_command", job(TREE)).await;
    let pids = pids(&place.cwd()).await;
    let (text, is_error) = place.text("stop_job", json!({"job": "job-1"})).await;
    assert!(text.starts_with("`job-1` has ended: killed by SIG") && !is_error, "{text}");
    are_gone(&pids).await;
    assert!(place.prepare("stop_job", json!({"job": "job-1"})).await.unwrap_err().contains("there are no jobs"));
}

#[tokio::test]
async fn jobs_end_with_the_session() {
    for is_closed in [true, false] {
        let place = Place::new(SandboxMode::Off);
        place.text("run_command", job(TREE)).await;
        let pids = pids(&place.cwd()).await;
        let Place { directory, commands } = place;
        if is_closed {
            commands.close();
        } else {
            drop(commands);
        }
        are_gone(&pids).await;
        drop(directory);
    }
}

#[tokio::test]
async fn there_are_only_so_many_jobs_and_ended_ones_make_room() {
    let place = Place::new(SandboxMode::Off);
    for number in 1..=8 {
        let line = if number == 3 { "while ! [ -e go ]; do sleep 0.01; done" } else { "sleep 1000" };
        assert!(!place.text("run_command", job(line)).await.1);
    }
    let (text, is_error) = place.text("run_command", job("sleep 1000")).await;
    assert!(is_error && text.starts_with("8 jobs are running already\nhint: "), "{text}");
    std::fs::write(place.cwd().join("go"), "").unwrap();
    let (text, _) = place.text("job_output", json!({"job": "job-3", "wait_seconds": 20})).await;
    assert!(text.starts_with("`job-3` has ended: exit code 0"), "{text}");
    assert!(place.text("run_command", job("sleep 1000")).await.0.contains("job-9"));
    assert!(place.prepare("job_output", json!({"job": "job-3"})).await.is_err());
}
