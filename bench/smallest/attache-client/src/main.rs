//! A small client: runs one prompt on any agent, shows what it says, and allows what it asks, once.

use attache::model::fs::ReadTextFileResponse;
use attache::model::update::SessionUpdate;
use attache::{Client, Error, Event};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let prompt = args.next().unwrap_or_default();
    let command: Vec<String> = args.collect();
    eprintln!("{}", option_env!("BENCH_EDIT").unwrap_or("small client"));
    let agent = Client::new("small", "1.0").read_files().launch(command).await?;
    let session = agent.session("/tmp").open().await?;
    let mut turn = session.prompt(prompt).await?;
    while let Some(event) = turn.next().await? {
        match event {
            Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                print!("{}", chunk.content.as_text().unwrap_or_default());
            }
            Event::Update(SessionUpdate::ToolCallUpdate(call)) => {
                println!("\ntool call: {:?}", call.title);
            }
            Event::Update(other) => println!("\n{other:?}"),
            Event::Permission(ask) => ask.allow_once().await?,
            Event::ReadTextFile(call) => {
                let text = std::fs::read_to_string(&call.path).unwrap_or_default();
                call.reply(Ok(ReadTextFileResponse::new(text))).await?;
            }
            other => other.decline().await?,
        }
    }
    println!("\nended: {:?}", turn.stop());
    agent.shutdown().await;
    Ok(())
}
