//! Files through the client: its editor's unsaved text is what is read and changed, and it is asked for nothing else.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attache::model::RawJson;
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileResponse, WriteTextFileResponse};
use attache::{Client, Event, Prompt, Protocol, Stop, Turn};
use attache_agent::model::Part;
use attache_agent::tools::files;
use attache_agent::workspace::Workspace;
use serde_json::{Value, json};

/// An editor with buffers, which are not on the disk yet.
#[derive(Default)]
struct Editor {
    reads: bool,
    writes: bool,
    buffers: BTreeMap<String, String>,
    /// What it was asked for.
    asked: Vec<String>,
    refuses: bool,
    /// What a person types as soon as a file has been read.
    typed: Option<String>,
}

/// Has an agent call tools, one after the other, with this editor as its client. Gives what the model is told.
async fn run(project: &Path, editor: &mut Editor, calls: &[(&str, Value)]) -> Vec<String> {
    let directory: PathBuf = project.to_owned();
    let agent = attache::agent_fn("files", "1", move |turn: Turn, prompt: Prompt| {
        let directory = directory.clone();
        async move {
            let workspace = Workspace::open(&directory, &[], Some((*turn).clone())).unwrap();
            let calls: Vec<(String, Value)> = serde_json::from_str(&prompt.text()).unwrap();
            let mut told = Vec::new();
            for (tool, arguments) in calls {
                told.push(match files::prepare(&workspace, &tool, &arguments).await.unwrap() {
                    Err(refusal) => format!("!{refusal}"),
                    Ok(prepared) => {
                        let outcome = files::perform(&workspace, prepared.work).await;
                        let Part::Text { text } = &outcome.parts[0] else { panic!() };
                        format!("{}{text}", if outcome.is_error { "!" } else { "" })
                    }
                });
            }
            turn.text(serde_json::to_string(&told).unwrap()).await?;
            Ok(Stop::EndTurn)
        }
    });
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    let mut client = Client::new("editor", "1").protocol(Protocol::V1);
    if editor.reads {
        client = client.read_files();
    }
    if editor.writes {
        client = client.write_files();
    }
    let (reader, writer) = tokio::io::split(near);
    let connection = client.connect(reader, writer).await.unwrap();
    let session = connection.session(project).open().await.unwrap();
    let mut turn = session.prompt(serde_json::to_string(calls).unwrap()).await.unwrap();
    let mut answer = String::new();
    let short =
        |path: &str| path.strip_prefix(project.to_str().unwrap()).unwrap_or(path).trim_start_matches('/').to_owned();
    while let Some(event) = turn.next().await.unwrap() {
        match event {
            Event::Update(attache::model::update::SessionUpdate::AgentMessageChunk(chunk)) => {
                answer.push_str(chunk.content.as_text().unwrap());
            }
            Event::ReadTextFile(call) => {
                let path = call.request().path.clone();
                editor.asked.push(format!("read {}", short(&path)));
                let content = editor.buffers.get(&path).cloned().or_else(|| fs::read_to_string(&path).ok());
                let reply = match content {
                    _ if editor.refuses => {
                        let details = RawJson::new(r#"{"details":"not this file"}"#).unwrap();
                        Err(ErrorObject::internal("Internal error").data(details))
                    }
                    Some(content) => Ok(ReadTextFileResponse::new(content)),
                    None => Err(ErrorObject::not_found("no such file")),
                };
                if let Some(typed) = editor.typed.take() {
                    editor.buffers.insert(path, typed);
                }
                call.reply(reply).await.unwrap();
            }
            Event::WriteTextFile(call) => {
                let request = call.request().clone();
                assert!(Path::new(&request.path).parent().unwrap().is_dir(), "an editor may make no directories");
                editor.asked.push(format!("write {}", short(&request.path)));
                editor.buffers.insert(request.path, request.content);
                call.reply(Ok(WriteTextFileResponse::new())).await.unwrap();
            }
            _ => {}
        }
    }
    serde_json::from_str(&answer).unwrap()
}

fn project() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap().join("proj");
    fs::create_dir(&project).unwrap();
    (dir, project)
}

fn edit(path: &str) -> (&'static str, Value) {
    ("edit_file", json!({"path": path, "old_text": "unsaved", "new_text": "changed"}))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "path": path }))
}

#[tokio::test]
async fn unsaved_changes_are_read_and_changed_in_the_editor() {
    let (_dir, project) = project();
    let path = project.join("a.txt");
    fs::write(&path, "on disk\n").unwrap();
    let key = path.to_str().unwrap().to_owned();
    let buffers = BTreeMap::from([(key.clone(), "unsaved\n".to_owned())]);
    let mut editor = Editor { reads: true, writes: true, buffers, ..Editor::default() };
    let write = ("write_file", json!({"path": "new/b.txt", "content": "new\n"}));
    let told = run(&project, &mut editor, &[read("a.txt"), edit("a.txt"), write]).await;
    assert_eq!(
        told,
        [
            "`a.txt`, lines 1-1 (of 1):\n1\tunsaved\n",
            "`a.txt` is edited: replaced line 1",
            "`new/b.txt` is created with 1 lines"
        ]
    );
    assert_eq!(editor.asked, ["read a.txt", "read a.txt", "read a.txt", "write a.txt", "write new/b.txt"]);
    assert_eq!(editor.buffers[&key], "changed\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "on disk\n", "saving is the editor's business");
    assert!(!project.join("new/b.txt").exists());
}

#[tokio::test]
async fn a_client_without_files_is_not_asked() {
    let (_dir, project) = project();
    fs::write(project.join("a.txt"), "unsaved\n").unwrap();
    let mut editor = Editor::default();
    let told = run(&project, &mut editor, &[read("a.txt"), edit("a.txt")]).await;
    assert_eq!(told[1], "`a.txt` is edited: replaced line 1");
    assert!(editor.asked.is_empty(), "{:?}", editor.asked);
    assert_eq!(fs::read_to_string(project.join("a.txt")).unwrap(), "changed\n");
}

#[tokio::test]
async fn each_half_is_used_only_where_it_is_offered() {
    // The editor shows its own line ends, without the mark; what we write has those of the disk.
    let (_dir, project) = project();
    let path = project.join("a.txt");
    fs::write(&path, "\u{feff}on disk\r\nsecond\r\n").unwrap();
    let key = path.to_str().unwrap().to_owned();
    let buffers = BTreeMap::from([(key.clone(), "unsaved\nsecond\n".to_owned())]);
    let mut editor = Editor { reads: true, buffers, ..Editor::default() };
    let told = run(&project, &mut editor, &[read("a.txt"), edit("a.txt")]).await;
    assert_eq!(told[1], "`a.txt` is edited: replaced line 1");
    assert_eq!(fs::read_to_string(&path).unwrap(), "\u{feff}changed\r\nsecond\r\n");
    assert!(editor.asked.iter().all(|asked| asked == "read a.txt"), "{:?}", editor.asked);

    fs::write(&path, "unsaved\n").unwrap();
    let mut editor = Editor { writes: true, ..Editor::default() };
    let told = run(&project, &mut editor, &[read("a.txt"), edit("a.txt")]).await;
    assert_eq!(told[1], "`a.txt` is edited: replaced line 1");
    assert_eq!(editor.asked, ["write a.txt"]);
    assert_eq!(editor.buffers[&key], "changed\n");
}

#[tokio::test]
async fn a_change_in_the_editor_is_noticed() {
    let (_dir, project) = project();
    fs::write(project.join("a.txt"), "unsaved\n").unwrap();
    let typed = Some("unsaved, and typed\n".to_owned());
    let mut editor = Editor { reads: true, writes: true, typed, ..Editor::default() };
    let told = run(&project, &mut editor, &[read("a.txt"), edit("a.txt"), read("a.txt"), edit("a.txt")]).await;
    assert_eq!(told[1], "!`a.txt` has changed since it was read: read it again, then make the change");
    assert_eq!(told[3], "`a.txt` is edited: replaced line 1");
    assert_eq!(editor.buffers.into_values().collect::<Vec<_>>(), ["changed, and typed\n"]);
}

#[tokio::test]
async fn what_the_client_refuses_is_told_and_not_read_behind_its_back() {
    let (dir, project) = project();
    fs::write(project.join("a.txt"), "text\n").unwrap();
    fs::write(project.join("image"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(dir.path().join("beside"), "beside\n").unwrap();
    let mut editor = Editor { reads: true, refuses: true, ..Editor::default() };
    let told = run(&project, &mut editor, &[read("a.txt"), read("image"), read("../beside"), read("none")]).await;
    assert!(
        told[0].starts_with("!the client does not give access to `a.txt`: Internal error: not this file"),
        "{told:?}"
    );
    // The client has no say in what is no text, or is none of the session's directories.
    assert!(told[1].contains("image/png") && told[2].ends_with(":\n1\tbeside\n"), "{told:?}");
    assert_eq!(told[3], "!there is no file `none`");
    assert_eq!(editor.asked, ["read a.txt"]);
}
