//! The agents under test: those of the benchmark over pipes, behind a server.

use std::os::fd::{FromRawFd, OwnedFd};

use agent_client_protocol::ByteStreams;
use agent_client_protocol_http::AcpHttpServer;
use attache_http::{HttpServer, Listener, Principal, ServeHttp, ServerLimits, TokenDigest, Tokens};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::Error;

/// Our server wants one, theirs takes no notice of it.
pub const TOKEN: &str = "a-token-for-benchmarks";

/// Serves on a port of this machine, which is told on stdout, until stdin ends.
pub async fn tcp(agent: &str) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let served = async {
        match agent {
            "attache" => {
                let tokens = Tokens::new([(Principal::new("bench"), TokenDigest::of(TOKEN))]);
                // All clients of the benchmark are one principal.
                let limits = ServerLimits { connections_each: 4096, ..ServerLimits::default() };
                let server = HttpServer::new(tokens).limits(limits);
                agent_attache::server().http(server, Listener::tcp(listener)).await?;
            }
            "official" => axum::serve(listener, AcpHttpServer::new(agent_rust_sdk::agent).into_router()).await?,
            other => return Err(format!("there is no agent `{other}`").into()),
        }
        Ok(())
    };
    let mut nothing = [0];
    let mut input = tokio::io::stdin();
    tokio::select! {
        served = served => served,
        _ = input.read(&mut nothing) => std::process::exit(0),
    }
}

/// Serves on stdin and stdout.
pub async fn stdio(agent: &str) -> Result<(), Error> {
    match agent {
        "attache" => agent_attache::server().stdio().await?,
        // The best case of the SDK: pipes that do not block.
        "official" => {
            // SAFETY: descriptors 0 and 1 are open and nothing else here uses them.
            let (input, output) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
            let (input, output) = (pipe::Receiver::from_owned_fd(input)?, pipe::Sender::from_owned_fd(output)?);
            agent_rust_sdk::serve(ByteStreams::new(output.compat_write(), input.compat())).await?;
        }
        other => return Err(format!("there is no agent `{other}`").into()),
    }
    Ok(())
}
