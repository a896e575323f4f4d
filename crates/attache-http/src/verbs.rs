//! The transport as verbs of the library: an agent serves, a client connects.

use std::future::Future;
use std::io;

use attache::agent::{Agent, Server};
use attache::{Client, Connection, Error};

use crate::client::{Remote, RemoteError};
use crate::server::{HttpServer, Listener};

/// An agent that is served over HTTP and WebSocket.
pub trait ServeHttp {
    /// Serves every client that connects, until the listener fails. All connections share the agent.
    ///
    /// ```no_run
    /// use attache::{Prompt, Stop, Turn};
    /// use attache_http::{HttpServer, Listener, Principal, ServeHttp, TokenDigest, Tokens};
    ///
    /// # async fn example(token: &str) -> std::io::Result<()> {
    /// let listener = Listener::tcp(tokio::net::TcpListener::bind("127.0.0.1:7316").await?);
    /// let server = HttpServer::new(Tokens::new([(Principal::new("me"), TokenDigest::of(token))]));
    /// attache::serve(attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
    ///     turn.text(prompt.text()).await?;
    ///     Ok(Stop::EndTurn)
    /// }))
    /// .http(server, listener)
    /// .await
    /// # }
    /// ```
    fn http(self, server: HttpServer, listener: Listener) -> impl Future<Output = io::Result<()>> + Send;
}

impl<A: Agent> ServeHttp for Server<A> {
    async fn http(self, server: HttpServer, listener: Listener) -> io::Result<()> {
        let agent = self.shared();
        let accept = move |client: crate::Accepted| {
            let agent = agent.clone();
            async move {
                // How a connection ended is its client's affair.
                let _ = agent.over(client.transport).await;
            }
        };
        server.serve(listener, accept).await
    }
}

/// A client that connects to agents on other machines.
pub trait ConnectRemote {
    /// Connects to a remote agent and greets it.
    ///
    /// ```no_run
    /// # async fn example(token: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// use attache_http::{ConnectRemote, Remote};
    ///
    /// let remote = Remote::new("https://build.example.com")?.token(token);
    /// let agent = attache::Client::new("my-editor", "1.0").connect_remote(remote).await?;
    /// let session = agent.session("/home/me/project").open().await?;
    /// # Ok(())
    /// # }
    /// ```
    fn connect_remote(self, remote: Remote) -> impl Future<Output = Result<Connection, ConnectError>> + Send;
}

/// Why a client could not connect to a remote agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server cannot be reached, or does not let us in.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The agent cannot be greeted.
    #[error(transparent)]
    Agent(#[from] Error),
}

impl ConnectRemote for Client {
    async fn connect_remote(self, remote: Remote) -> Result<Connection, ConnectError> {
        let connected = remote.connect().await?;
        match self.over(connected.transport).await {
            Ok(connection) => Ok(connection),
            // Why the server refused says more than that the connection broke.
            Err(error) => {
                Err(connected.failure.get().cloned().map_or(ConnectError::Agent(error), ConnectError::Remote))
            }
        }
    }
}
