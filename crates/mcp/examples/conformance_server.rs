//! The server for the MCP conformance suites: the HTTP app with the suites' own tools, prompts and
//! resources. For tests only.
//!
//! Prints the address of its MCP endpoint, and serves it until its standard input closes.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{Engine, Settings, project_of};
use ostler_http::listen::{HEAD_MS, listen_tcp};
use ostler_http::rest::{RestState, router};
use ostler_http::{AppParts, HttpAccess, HttpOptions, app};
use ostler_mcp::{
    ClientContext, McpHttpOptions, McpHttpParts, McpOptions, McpState, conformance_routes,
};
use ostler_model::ByteString;
use ostler_model::owner::Principal;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let state = tempfile::tempdir()?;
    let place = LocalBackend::open(state.path(), ZygoteConfig::InProcess).await?;
    let engine = Engine::open(Settings::new(state.path()), Arc::new(place)).await?;
    let shutdown = CancellationToken::new();
    let tasks = TaskTracker::new();
    let principal = Principal::unix(rustix::process::geteuid().as_raw());
    let client_context = ClientContext {
        cwd: ByteString::from(state.path()),
        ..ClientContext::default()
    };
    let project = project_of(client_context.cwd.as_path(), None);
    let mcp = conformance_routes(McpHttpParts {
        state: McpState::new(engine.clone(), McpOptions::default()),
        options: McpHttpOptions::new(client_context),
        shutdown: shutdown.clone(),
        tasks: tasks.clone(),
    });
    let router = app(AppParts {
        mcp: mcp.routes,
        sessions: mcp.sessions,
        rest: router(RestState::new(engine.clone(), shutdown.clone())),
        engine,
        options: HttpOptions::new(HttpAccess::Open(principal), Some(project)),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    writeln!(io::stdout(), "http://{address}/mcp")?;
    let end = shutdown.clone();
    let closed = until_closed();
    tasks.spawn(async move {
        let _closed = closed.await;
        end.cancel();
    });
    listen_tcp(listener, Duration::from_millis(HEAD_MS), router, shutdown).await?;
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Completes when standard input closes; reads on a thread, so that it does not delay shutdown.
fn until_closed() -> oneshot::Receiver<()> {
    let (sender, closed) = oneshot::channel();
    std::thread::spawn(move || {
        let _read = io::copy(&mut io::stdin(), &mut io::sink());
        sender.send(())
    });
    closed
}
