//! Clients of both eras that speak raw JSON and keep every message they receive.

use std::time::Duration;

use ostler_engine::Engine;
use ostler_interface::project_access::ProjectAccess;
use ostler_mcp::{
    ClientContext, ConnectedClient as Remote, McpOptions, McpState, ServeError, ToolSet, serve,
};
use ostler_model::ByteString;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::common::{PATIENCE, ServerFixture};

/// Capacity of the pipe in each direction, in bytes.
const ROOM_BYTES: usize = 1 << 20;

/// Parameters of a client.
pub(crate) struct Setup<'a> {
    pub(crate) bench: &'a ServerFixture,
    pub(crate) mcp_state: McpState,
    pub(crate) session: &'a str,
    pub(crate) tools: &'a str,
    pub(crate) room: usize,
}

/// An MCP state whose calls become tasks after this many milliseconds.
pub(crate) fn mcp_state(engine: &Engine, task_after_ms: u64) -> McpState {
    let options = McpOptions {
        task_after: Some(Duration::from_millis(task_after_ms)),
        ..McpOptions::default()
    };
    McpState::new(engine.clone(), options)
}

impl<'a> Setup<'a> {
    pub(crate) fn new(bench: &'a ServerFixture) -> Self {
        Self {
            bench,
            mcp_state: McpState::new(bench.engine.clone(), McpOptions::default()),
            session: "alpha",
            tools: "core,command",
            room: ROOM_BYTES,
        }
    }

    /// A client of revision 2026-07-28.
    pub(crate) fn modern(self, capabilities: Value) -> Wire {
        let mut wire = self.connect();
        wire.meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        wire
    }

    /// A client after its handshake.
    pub(crate) async fn legacy(self, capabilities: Value) -> Wire {
        let mut wire = self.connect();
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "0"}
        });
        wire.request("initialize", params).await;
        wire.notify("notifications/initialized", json!({})).await;
        wire
    }

    fn connect(self) -> Wire {
        let (ours, theirs) = tokio::io::duplex(self.room);
        let (reader, writer) = tokio::io::split(theirs);
        let front = ClientContext {
            cwd: ByteString::from(self.bench.work.path()),
            env: vec![(ByteString::from("PATH"), ByteString::from("/usr/bin:/bin"))],
            tools: self.tools.parse::<ToolSet>().unwrap(),
            ..ClientContext::default()
        };
        let caller = self.bench.caller(Some(self.session));
        let mut server = JoinSet::new();
        server.spawn(serve(
            self.mcp_state,
            Remote {
                caller,
                access: ProjectAccess::default(),
                context: front,
            },
            reader,
            writer,
        ));
        let (reader, writer) = tokio::io::split(ours);
        Wire {
            lines: BufReader::new(reader).lines(),
            writer: Some(writer),
            server,
            next_id: 1,
            meta: json!({}),
            directory: self.bench.directory(),
            received: Vec::new(),
        }
    }
}

/// A connected client.
pub(crate) struct Wire {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: Option<WriteHalf<DuplexStream>>,
    server: JoinSet<Result<(), ServeError>>,
    next_id: u64,
    meta: Value,
    directory: String,
    /// Every message that was not an awaited answer, with its time.
    pub(crate) received: Vec<(Instant, Value)>,
}

impl Wire {
    /// Sends a request; its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        let (id, message) = self.spelled(method, params);
        self.write(&message).await;
        id
    }

    /// A request as it is sent.
    pub(crate) fn spelled(&mut self, method: &str, mut params: Value) -> (u64, String) {
        let id = self.next_id;
        self.next_id += 1;
        for (name, value) in self.meta.as_object().unwrap() {
            params["_meta"][name] = value.clone();
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (id, format!("{message}\n"))
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(&format!("{message}\n")).await;
    }

    pub(crate) async fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({"requestId": id}))
            .await;
    }

    /// Answers a request of the server.
    pub(crate) async fn respond(&mut self, id: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.write(&format!("{message}\n")).await;
    }

    pub(crate) async fn write(&mut self, text: &str) {
        let writer = self.writer.as_mut().expect("an open stream");
        writer.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next message; none when the server closed the stream.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("a message in time").unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The first unread message that `wanted` accepts; the others are kept.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self
            .received
            .iter()
            .position(|(_, received)| wanted(received))
        {
            return self.received.remove(place).1;
        }
        loop {
            let message = self.message().await.expect("an open stream");
            if wanted(&message) {
                return message;
            }
            self.received.push((Instant::now(), message));
        }
    }

    /// The answer to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// A tool's result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.result("tools/call", params).await;
        assert_ne!(result["isError"], true, "{result}");
        result
    }

    /// Receives the messages of that time.
    pub(crate) async fn hear(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(line) = timeout_at(end, self.lines.next_line()).await {
            let line = line.unwrap().expect("an open stream");
            let message = serde_json::from_str(&line).unwrap();
            self.received.push((Instant::now(), message));
        }
    }

    /// The result of a request.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params).await;
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].take()
    }

    /// The params of a call that runs a shell script.
    pub(crate) fn execute(&self, script: &str) -> Value {
        let arguments = json!({
            "command": "sh", "args": ["-c", script], "directory": self.directory, "timeout": 100
        });
        json!({"name": "command_execute", "arguments": arguments})
    }

    /// The params of a call that starts a shell script in the background.
    pub(crate) fn start(&self, script: &str) -> Value {
        let mut params = self.execute(script);
        params["name"] = "command_bg_start".into();
        params["arguments"]["description"] = "a test".into();
        params
    }

    /// Closes the input, and receives everything until the server is done.
    pub(crate) async fn finish(mut self) -> Vec<Value> {
        let mut writer = self.writer.take().expect("an open stream");
        writer.shutdown().await.unwrap();
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        let ended = timeout(PATIENCE, self.server.join_next()).await;
        ended.expect("an end in time").unwrap().unwrap().unwrap();
        messages
    }
}

/// All text of a result.
pub(crate) fn text(result: &Value) -> String {
    crate::common::text(result)
}
