//! The client of the benchmark, written with Attaché as its documentation shows.

use attache::model::fs::ReadTextFileResponse;
use attache::{Client, Error, Event, Protocol};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let agent = Client::new("bench", "1.0").protocol(Protocol::V1).read_files().launch(command).await?;
    let session = agent.session("/tmp").open().await?;
    let mut turn = session.prompt(std::env::var("BENCH_PROMPT").unwrap_or_default()).await?;
    if std::env::var_os("BENCH_STALL").is_some() {
        std::future::pending::<()>().await;
    }
    let mut count = 0;
    while let Some(event) = turn.next().await? {
        match event {
            Event::Update(_) => count += 1,
            Event::ReadTextFile(call) => call.reply(Ok(ReadTextFileResponse::new("x"))).await?,
            other => other.decline().await?,
        }
    }
    println!("count {count}");
    agent.shutdown().await;
    Ok(())
}
