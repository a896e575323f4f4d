//! What carries the messages: a pipe in memory, Streamable HTTP or a WebSocket, with the server and the client of either library.

use agent_client_protocol_http::{AcpHttpServer, HttpClient};
use attache::{Client, Connection, Error, Protocol};
use attache_http::{HttpServer, Listener, Principal, Remote, TokenDigest, Tokens};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::our_client::{self, OurClient};
use crate::play::Side;
use crate::their_client::{self, TheirClient};
use crate::version::{One, Two};
use crate::{our_agent, their_agent};

/// Our server wants one, theirs takes no notice of it.
const TOKEN: &str = "a-token-for-tests";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Pipe,
    Http,
    WebSocket,
}

impl Wire {
    pub(crate) const ALL: [Wire; 3] = [Wire::Pipe, Wire::Http, Wire::WebSocket];

    /// Serves an agent, until the tasks are dropped; returns the way to it.
    pub(crate) async fn serve(self, version: u16, agent: Side) -> (Way, JoinSet<()>) {
        let mut tasks = JoinSet::new();
        let scheme = match self {
            Wire::Pipe => {
                let (near, far) = tokio::io::duplex(64 * 1024);
                tasks.spawn(serve_pipe(version, agent, far));
                return (Way::Pipe(near), tasks);
            }
            Wire::Http => "http",
            Wire::WebSocket => "ws",
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        tasks.spawn(serve_http(version, agent, listener));
        (Way::Url(url), tasks)
    }
}

/// How a test ends, the agents need not say: it is aborted.
async fn serve_pipe(version: u16, agent: Side, far: DuplexStream) {
    match (agent, version) {
        (Side::Ours, _) => {
            let (reader, writer) = tokio::io::split(far);
            drop(our_agent::server().connect(reader, writer).await);
        }
        (Side::Theirs, 1) => drop(their_agent::serve_v1(far).await),
        (Side::Theirs, _) => drop(their_agent::serve_v2(far).await),
    }
}

async fn serve_http(version: u16, agent: Side, listener: TcpListener) {
    let router = match (agent, version) {
        (Side::Ours, _) => {
            let server = HttpServer::new(Tokens::new([(Principal::new("tests"), TokenDigest::of(TOKEN))]));
            let accept = async |client: attache_http::Accepted| drop(our_agent::server().over(client.transport).await);
            return server.serve(Listener::tcp(listener), accept).await.unwrap();
        }
        (Side::Theirs, 1) => AcpHttpServer::new(their_agent::agent_v1).into_router(),
        (Side::Theirs, _) => AcpHttpServer::new(their_agent::agent_v2).into_router(),
    };
    axum::serve(listener, router).await.unwrap();
}

/// The way to an agent that is served.
pub(crate) enum Way {
    Pipe(DuplexStream),
    Url(String),
}

impl Way {
    pub(crate) async fn our_client(self, protocol: Protocol) -> OurClient {
        OurClient::new(self.greet(our_client::client(protocol)).await.expect("connected"))
    }

    /// Greets the agent with a client of ours.
    pub(crate) async fn greet(self, client: Client) -> Result<Connection, Error> {
        match self {
            Way::Pipe(pipe) => {
                let (reader, writer) = tokio::io::split(pipe);
                client.connect(reader, writer).await
            }
            Way::Url(url) => {
                let remote = Remote::new(&url).unwrap().token(TOKEN).connect().await.unwrap();
                client.over(remote.transport).await
            }
        }
    }

    pub(crate) async fn their_client_v1(self) -> TheirClient<One> {
        let client = match self {
            Way::Pipe(pipe) => their_client::connect_v1(pipe).await,
            Way::Url(url) => their_client::connect_v1_over(their_transport(&url)).await,
        };
        client.expect("connected")
    }

    pub(crate) async fn their_client_v2(self) -> TheirClient<Two> {
        let client = match self {
            Way::Pipe(pipe) => their_client::connect_v2(pipe).await,
            Way::Url(url) => their_client::connect_v2_over(their_transport(&url)).await,
        };
        client.expect("connected")
    }
}

fn their_transport(url: &str) -> HttpClient {
    let bearer = HeaderValue::from_str(&format!("Bearer {TOKEN}")).unwrap();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
    HttpClient::builder(url).configure_http(|http| http.no_proxy().default_headers(headers)).build().unwrap()
}
