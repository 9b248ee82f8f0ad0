//! The network interface on a random port of this machine, and a client that speaks raw HTTP.
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ostler_engine::{ListFilter, StopRequest, project_of};
use ostler_http::listen::{HEAD_MS, listen_tcp};
use ostler_http::rest::{RestState, router};
use ostler_http::tokens::{NewToken, TokenScope, TokenStore};
use ostler_http::{AppParts, HttpAccess, HttpOptions, app};
use ostler_mcp::{
    ClientContext, McpHttpOptions, McpHttpParts, McpOptions, McpState, ToolGroup, ToolSet,
    http_routes,
};
use ostler_model::ByteString;
use ostler_model::owner::Principal;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::common::{PATIENCE, ServerFixture};

/// A server.
pub(crate) struct HttpFixture {
    pub(crate) bench: ServerFixture,
    pub(crate) address: SocketAddr,
    pub(crate) tokens: TokenStore,
    /// The secret of a token of principal `uid:0`.
    pub(crate) token: String,
    pub(crate) shutdown: CancellationToken,
    tasks: TaskTracker,
    server: JoinSet<()>,
}

/// Parameters of a server.
pub(crate) struct HttpFixtureSetup<'a> {
    pub(crate) options: &'a mut HttpOptions,
    pub(crate) mcp_options: &'a mut McpHttpOptions,
    pub(crate) head: &'a mut Duration,
}

impl HttpFixture {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(HttpFixtureSetup<'_>)) -> Self {
        Self::with_fixture(ServerFixture::new().await, change).await
    }

    pub(crate) async fn with_fixture(
        bench: ServerFixture,
        change: impl FnOnce(HttpFixtureSetup<'_>),
    ) -> Self {
        let tokens = TokenStore::new(bench.state.path().join("tokens.json"));
        let client_context = ClientContext {
            cwd: ByteString::from(bench.work.path()),
            env: vec![(ByteString::from("PATH"), ByteString::from("/usr/bin:/bin"))],
            tools: ToolSet::from_groups(&[ToolGroup::Command]),
            ..ClientContext::default()
        };
        let project = project_of(client_context.cwd.as_path(), None);
        let mut options = HttpOptions::new(HttpAccess::Tokens(tokens.clone()), Some(project));
        let mut mcp_options = McpHttpOptions::new(client_context);
        let mut head = Duration::from_millis(HEAD_MS);
        change(HttpFixtureSetup {
            options: &mut options,
            mcp_options: &mut mcp_options,
            head: &mut head,
        });
        mcp_options.url_prefix.clone_from(&options.url_prefix);
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let mcp = http_routes(McpHttpParts {
            state: McpState::new(bench.engine.clone(), McpOptions::default()),
            options: mcp_options,
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
        });
        let router = app(AppParts {
            mcp: mcp.routes,
            sessions: mcp.sessions,
            rest: router(RestState::new(bench.engine.clone(), shutdown.clone())),
            engine: bench.engine.clone(),
            options,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = JoinSet::new();
        let stop = shutdown.clone();
        server.spawn(async move { listen_tcp(listener, head, router, stop).await.unwrap() });
        let mut web = Self {
            bench,
            address,
            tokens,
            token: String::new(),
            shutdown,
            tasks,
            server,
        };
        web.token = web.secret("first", "uid:0", &[]);
        web
    }

    /// A new token's secret.
    pub(crate) fn secret(&self, name: &str, principal: &str, scopes: &[TokenScope]) -> String {
        let new = NewToken {
            name: name.to_owned(),
            principal: Principal(principal.to_owned()),
            scopes: scopes.to_vec(),
            expires: None,
        };
        match self.tokens.create(new) {
            Ok(secret) => secret.reveal().to_owned(),
            Err(_) => self.token.clone(),
        }
    }

    /// Shuts the server down, and stops everything it started.
    pub(crate) async fn close(self) {
        let bench = self.close_keeping_state().await;
        for principal in ["uid:0", "token:two"] {
            let mut all = bench.caller(None);
            all.owner.principal = Principal(principal.to_owned());
            for info in bench.engine.list(&all, &ListFilter::default()) {
                let force = StopRequest {
                    force: true,
                    ..StopRequest::default()
                };
                drop(bench.engine.stop(&all, &info.id.to_string(), force).await);
            }
        }
        bench.engine.shutdown().await;
    }

    /// Shuts the server down; what it started continues.
    pub(crate) async fn close_keeping_state(mut self) -> ServerFixture {
        self.shutdown.cancel();
        let served = timeout(PATIENCE, self.server.join_next()).await;
        served.expect("a drained server").unwrap().unwrap();
        self.tasks.close();
        timeout(PATIENCE, self.tasks.wait())
            .await
            .expect("no tasks left");
        self.bench
    }

    /// A client with this token.
    pub(crate) fn agent(&self, token: &str) -> HttpTestClient {
        HttpTestClient {
            address: self.address,
            path: "/mcp".to_owned(),
            headers: vec![("authorization".to_owned(), format!("Bearer {token}"))],
            directory: self.bench.directory(),
        }
    }
}

/// A client: a path and headers.
#[derive(Clone)]
pub(crate) struct HttpTestClient {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) directory: String,
}

/// A response whose body is still being received. Dropping it closes its connection.
pub(crate) struct HttpTestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    seen: String,
    _connection: JoinSet<()>,
}

impl HttpTestClient {
    pub(crate) fn at(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut agent = self.clone();
        agent.headers.retain(|(held, _)| held != name);
        agent.headers.push((name.to_owned(), value.to_owned()));
        agent
    }

    pub(crate) async fn send(&self, method: Method, body: impl Into<Bytes>) -> HttpTestResponse {
        let mut request = Request::builder().method(method).uri(&self.path);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(body.into()))
            .unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut connection = JoinSet::new();
        connection.spawn(async move { drop(driver.await) });
        let response = timeout(PATIENCE, sender.send_request(request)).await;
        let (parts, body) = response.expect("an answer in time").unwrap().into_parts();
        HttpTestResponse {
            status: parts.status,
            headers: parts.headers,
            body,
            seen: String::new(),
            _connection: connection,
        }
    }

    pub(crate) async fn get(&self) -> HttpTestResponse {
        self.send(Method::GET, Bytes::new()).await
    }

    pub(crate) async fn delete(&self) -> HttpTestResponse {
        self.send(Method::DELETE, Bytes::new()).await
    }

    /// Sends one message as it is.
    pub(crate) async fn post(&self, message: &Value) -> HttpTestResponse {
        self.send(Method::POST, message.to_string()).await
    }

    /// A request of 2026-07-28, its answer still coming.
    pub(crate) async fn modern(&self, method: &str, mut params: Value) -> HttpTestResponse {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().map(ToOwned::to_owned);
        let mut agent = self
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", method);
        if let Some(name) = name {
            agent = agent.with("mcp-name", &name);
        }
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        agent.post(&message).await
    }

    /// A request of 2026-07-28 and its result.
    pub(crate) async fn request_modern(&self, method: &str, params: Value) -> Value {
        let mut answer = self.modern(method, params).await;
        answer.result().await
    }

    /// A tool's result (2026-07-28).
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.request_modern("tools/call", params).await
    }

    /// The handshake of 2025-11-25; the same client, in its session.
    pub(crate) async fn initialize(&self) -> Self {
        let agent = self.initialize_with("2025-11-25").await;
        agent.with("mcp-protocol-version", "2025-11-25")
    }

    /// The handshake of a revision; the same client, in its session.
    pub(crate) async fn initialize_with(&self, revision: &str) -> Self {
        let agent = self.try_initialize_with(revision).await;
        agent.unwrap_or_else(|status| panic!("status {status}"))
    }

    /// As [`initialize_with`](Self::initialize_with); the status of the answer where it is refused.
    pub(crate) async fn try_initialize_with(&self, revision: &str) -> Result<Self, u16> {
        let params = json!({
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let mut answer = self.post(&message).await;
        if answer.status != 200 {
            return Err(answer.status.as_u16());
        }
        let id = answer.headers["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let result = answer.result().await;
        assert_eq!(result["serverInfo"]["name"], "ostler", "{result}");
        let agent = self.with("mcp-session-id", &id);
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(agent.post(&done).await.status, 202);
        Ok(agent)
    }

    /// A request of the handshake era, its answer still coming.
    pub(crate) async fn request(&self, method: &str, params: Value) -> HttpTestResponse {
        self.post(&json!({"jsonrpc": "2.0", "id": 8, "method": method, "params": params}))
            .await
    }

    /// A tool's result (handshake era).
    pub(crate) async fn call_initialized(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", params).await.result().await
    }

    /// Arguments that run a shell script to its end.
    pub(crate) fn script(&self, script: &str) -> Value {
        json!({"command": "sh", "args": ["-c", script], "directory": self.directory})
    }

    /// Arguments that start a shell script.
    pub(crate) fn background(&self, script: &str) -> Value {
        let mut arguments = self.script(script);
        arguments["description"] = "a test".into();
        arguments
    }
}

impl HttpTestResponse {
    /// The whole body.
    pub(crate) async fn text(mut self) -> String {
        let body = timeout(PATIENCE, (&mut self.body).collect()).await;
        let rest = body.expect("the body in time").unwrap().to_bytes();
        self.seen.push_str(&String::from_utf8_lossy(&rest));
        std::mem::take(&mut self.seen)
    }

    pub(crate) async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The next event: its fields, one a line; none at the end.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.seen.find("\n\n") {
                let event = self.seen[..end].to_owned();
                self.seen.drain(..end + 2);
                if !event.starts_with(':') {
                    return Some(event);
                }
                continue;
            }
            let frame = timeout(PATIENCE, self.body.frame())
                .await
                .expect("an event in time")?;
            let data = frame.ok()?.into_data().ok()?;
            self.seen.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// The next message of the stream.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            let data = event.lines().find_map(|line| line.strip_prefix("data:"));
            if let Some(data) = data.map(str::trim).filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The result in the stream, or in a body that is no stream.
    pub(crate) async fn result(&mut self) -> Value {
        loop {
            let mut message = self.message().await.expect("an answer");
            if message.get("id").is_some() {
                assert!(message.get("result").is_some(), "{message}");
                return message["result"].take();
            }
        }
    }
}

/// A named pipe by which a command reports its process id.
pub(crate) struct PidPipe(std::path::PathBuf);

impl PidPipe {
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        Self(path)
    }

    /// A script that reports its process id and runs longer than any test.
    pub(crate) fn script(&self) -> String {
        format!("echo $$ > {}; exec sleep 120", self.0.display())
    }

    /// The reported process.
    pub(crate) async fn process(&self) -> PidFd {
        let path = self.0.clone();
        let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path));
        let text = timeout(PATIENCE, read).await.unwrap().unwrap().unwrap();
        let pid = Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        PidFd(pidfd_open(pid, PidfdFlags::empty()).unwrap())
    }
}

/// A process, by its pidfd.
pub(crate) struct PidFd(std::os::fd::OwnedFd);

impl PidFd {
    pub(crate) async fn wait_exit(self) {
        let ended = timeout(PATIENCE, ostler_sys::pidfd::wait(self.0)).await;
        ended.expect("the end of the process in time").unwrap();
    }

    pub(crate) fn is_alive(&self) -> bool {
        rustix::process::pidfd_send_signal(&self.0, rustix::process::Signal::CONT).is_ok()
    }
}
