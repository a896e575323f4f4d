//! A client made with Attaché.

use attache::client::Session;
use attache::{Connection, Event, Protocol};
use attache_http::{ConnectRemote, Remote};

use crate::Error;
use crate::peer::{Client, Way};
use crate::serve::TOKEN;

pub struct Ours(Connection);

impl Client for Ours {
    type Session = Session;

    async fn connect(way: Way) -> Result<Self, Error> {
        let client = attache::Client::new("bench", "1.0").protocol(Protocol::V1);
        let connection = match way {
            Way::Pipes(output, input) => client.connect(output, input).await?,
            Way::Url { url, is_http2 } => {
                let remote = Remote::new(&url)?.token(TOKEN);
                client.connect_remote(if is_http2 { remote.http2() } else { remote }).await?
            }
        };
        Ok(Ours(connection))
    }

    async fn open(&self) -> Result<Session, Error> {
        Ok(self.0.session("/tmp").open().await?)
    }

    async fn prompt(&self, session: &Session, text: &str) -> Result<usize, Error> {
        let mut turn = session.prompt(text).await?;
        let mut count = 0;
        while let Some(event) = turn.next().await? {
            match event {
                Event::Update(_) => count += 1,
                other => other.decline().await?,
            }
        }
        Ok(count)
    }
}
