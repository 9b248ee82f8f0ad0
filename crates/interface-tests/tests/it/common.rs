//! An engine on this machine without a zygote, and clients that speak raw JSON.
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{Engine, Settings};
use ostler_interface::project_access::ProjectAccess;
use ostler_mcp::{
    ClientContext, ConnectedClient as Remote, McpOptions, McpState, ServeError, ToolGroup, ToolSet,
    serve,
};
use ostler_model::owner::{Owner, Principal};
use ostler_model::{ByteString, Caller, Scope, SessionName};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Timeout of every wait in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The capacity of an ordinary client's pipes, in bytes.
const PIPE_BYTES: usize = 1 << 20;

pub(crate) struct ServerFixture {
    pub(crate) engine: Engine,
    pub(crate) mcp_state: McpState,
    pub(crate) state: TempDir,
    pub(crate) work: TempDir,
}

impl ServerFixture {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with_state(tempfile::tempdir().unwrap(), change).await
    }

    /// Opens an engine over what an earlier one left in `state`.
    pub(crate) async fn with_state(state: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let work = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(state.path());
        change(&mut settings);
        let place = LocalBackend::open(state.path(), ZygoteConfig::InProcess)
            .await
            .unwrap();
        let engine = Engine::open(settings, Arc::new(place)).await.unwrap();
        Self {
            mcp_state: McpState::new(engine.clone(), McpOptions::default()),
            engine,
            state,
            work,
        }
    }

    pub(crate) fn directory(&self) -> String {
        self.work.path().to_str().unwrap().to_owned()
    }

    pub(crate) fn caller(&self, session: Option<&str>) -> Caller {
        Caller {
            owner: Owner {
                principal: Principal::unix(0),
                project: None,
                session: session.map(|name| SessionName(name.to_owned())),
                task: None,
                channel: ostler_model::RequestChannel::Local,
            },
            scope: if session.is_some() {
                Scope::Session
            } else {
                Scope::Principal
            },
            projects: ostler_model::ProjectView::default(),
        }
    }

    /// A client after its handshake.
    pub(crate) async fn client(&self, session: &str) -> McpTestClient {
        self.client_with(session, ToolSet::from_groups(&[ToolGroup::Command]))
            .await
    }

    /// A client after its handshake that is offered these tools.
    pub(crate) async fn client_with(&self, session: &str, tools: ToolSet) -> McpTestClient {
        self.raw_client_with(session, tools).handshake().await
    }

    /// A client after its handshake, over pipes of this capacity.
    pub(crate) async fn client_with_pipe(&self, session: &str, pipe_bytes: usize) -> McpTestClient {
        let tools = ToolSet::from_groups(&[ToolGroup::Command]);
        self.connect(session, tools, pipe_bytes).handshake().await
    }

    /// A client before its handshake.
    pub(crate) fn raw_client(&self, session: &str) -> McpTestClient {
        self.raw_client_with(session, ToolSet::from_groups(&[ToolGroup::Command]))
    }

    pub(crate) fn raw_client_with(&self, session: &str, tools: ToolSet) -> McpTestClient {
        self.connect(session, tools, PIPE_BYTES)
    }

    fn connect(&self, session: &str, tools: ToolSet, pipe_bytes: usize) -> McpTestClient {
        let (ours, theirs) = tokio::io::duplex(pipe_bytes);
        let (reader, writer) = tokio::io::split(theirs);
        let front = ClientContext {
            cwd: ByteString::from(self.work.path()),
            env: vec![(ByteString::from("PATH"), ByteString::from("/usr/bin:/bin"))],
            tools,
            ..ClientContext::default()
        };
        let mut server = JoinSet::new();
        let caller = self.caller(Some(session));
        let shared_state = self.mcp_state.clone();
        server.spawn(serve(
            shared_state,
            Remote {
                caller,
                access: ProjectAccess::default(),
                context: front,
            },
            reader,
            writer,
        ));
        let (reader, writer) = tokio::io::split(ours);
        McpTestClient {
            lines: BufReader::new(reader).lines(),
            writer,
            server,
            next_id: 1,
            inbox: VecDeque::new(),
            hello: Value::Null,
            directory: self.directory(),
        }
    }
}

pub(crate) struct McpTestClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    server: JoinSet<Result<(), ServeError>>,
    next_id: u64,
    /// Notifications received while waiting for an answer.
    inbox: VecDeque<Value>,
    pub(crate) hello: Value,
    directory: String,
}

impl McpTestClient {
    async fn handshake(mut self) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}
        });
        self.hello = self.request("initialize", params).await["result"].take();
        self.notify("notifications/initialized", json!({})).await;
        self
    }

    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&message).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(&message).await;
    }

    async fn write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    /// The answer to the request with this id; other answers are dropped.
    pub(crate) async fn wait_response(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().await;
            if message["id"] == id {
                return message;
            }
            if message.get("id").is_none() {
                self.inbox.push_back(message);
            }
        }
    }

    /// The next unread notification of this kind; answers are dropped.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        let known = self.inbox.iter().position(|it| it["method"] == method);
        if let Some(mut message) = known.and_then(|place| self.inbox.remove(place)) {
            return message["params"].take();
        }
        loop {
            let mut message = self.message().await;
            if message["method"] == method {
                return message["params"].take();
            }
            self.inbox.push_back(message);
        }
    }

    /// The number of unread notifications of this kind: all that were sent before the answer to a
    /// request.
    pub(crate) async fn count_notifications(&mut self, method: &str) -> usize {
        self.request("no/such", json!({})).await;
        let waiting = self.inbox.iter().filter(|it| it["method"] == method);
        waiting.count()
    }

    async fn message(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line
            .expect("a message in time")
            .unwrap()
            .expect("an open stream");
        serde_json::from_str(&line).unwrap()
    }

    /// The results of several calls, each with its tag, in the order they come.
    pub(crate) async fn wait_responses<T>(&mut self, mut calls: Vec<(T, u64)>) -> Vec<(T, Value)> {
        let mut answers = Vec::new();
        while !calls.is_empty() {
            let mut message = self.message().await;
            let Some(place) = calls.iter().position(|(_, id)| message["id"] == *id) else {
                continue;
            };
            let (requested, _) = calls.swap_remove(place);
            answers.push((requested, message["result"].take()));
        }
        answers
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.wait_response(id).await
    }

    /// A tool's result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut answer = self.request("tools/call", params).await;
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].take()
    }

    /// Runs a shell script, spelled out as a program with arguments.
    pub(crate) async fn execute(&mut self, script: &str, more: Value) -> Value {
        let arguments = self.script(script, more);
        self.call("command_execute", arguments).await
    }

    /// Starts a shell script in the background; its pid.
    pub(crate) async fn start(&mut self, script: &str, more: Value) -> String {
        let mut arguments = self.script(script, more);
        if arguments.get("description").is_none() {
            arguments["description"] = "a test".into();
        }
        let result = self.call("command_bg_start", arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"]["pid"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) fn script(&self, script: &str, more: Value) -> Value {
        let mut arguments = json!({
            "command": "sh", "args": ["-c", script], "directory": self.directory
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        arguments
    }

    /// Waits until the process has ended, and gives its logs' footer.
    pub(crate) async fn wait_end(&mut self, pid: &str) {
        let arguments = json!({"pid": pid, "follow_seconds": 45});
        let result = self.call("command_ps_logs", arguments).await;
        assert_ne!(
            result["_meta"]["ostler/result"]["status"], "running",
            "{result}"
        );
    }

    /// Closes the stream and waits until the server is done.
    pub(crate) async fn close(mut self) {
        self.writer.shutdown().await.unwrap();
        let ended = timeout(PATIENCE, self.server.join_next()).await;
        ended.expect("an end in time").unwrap().unwrap().unwrap();
    }
}

/// All text of a result.
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    let texts: Vec<&str> = blocks.iter().filter_map(|b| b["text"].as_str()).collect();
    texts.join("\n-----\n")
}

/// A result with varying values replaced.
pub(crate) fn normalize(result: &Value) -> Value {
    let mut result = result.clone();
    normalize_value(&mut result);
    result
}

fn normalize_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = normalize_text(text),
        Value::Array(items) => items.iter_mut().for_each(normalize_value),
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "id" | "pid" | "uuid" if value.is_string() => *value = "[id]".into(),
                    "os_pid" if value.is_number() => *value = "[os pid]".into(),
                    "execution_time" | "duration" => *value = "[seconds]".into(),
                    "cursor" => *value = "[cursor]".into(),
                    "usage" | "isolation" => *value = "[host]".into(),
                    "directory" => *value = "[directory]".into(),
                    "principal" if value.is_string() => *value = "[principal]".into(),
                    _ => normalize_value(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Text with times, ids, cursors and temporary paths replaced.
pub(crate) fn normalize_text(text: &str) -> String {
    if let Ok(mut value @ Value::Object(_)) = serde_json::from_str(text) {
        normalize_value(&mut value);
        return value.to_string();
    }
    let rules = [
        (
            r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d+)?Z?",
            "[time]",
        ),
        (r"execution_time: [0-9.]+ s", "execution_time: [seconds] s"),
        (r"after [0-9.]+ s", "after [seconds] s"),
        (r#"since=?"? ?"\d+\.\d+""#, "since=[cursor]"),
        (r"pid [0-9a-z]{8}", "pid [id]"),
        (r#"[^\s'"]*/\.tmp\w+"#, "[directory]"),
        (r"\nnote: isolation [^\n]*", ""),
    ];
    let mut text = text.to_owned();
    for (rule, by) in rules {
        text = regex::Regex::new(rule)
            .unwrap()
            .replace_all(&text, by)
            .into_owned();
    }
    text
}
