//! A minimal JSON-RPC client over a child's standard streams: what is measured is the server.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::env::TestEnv;

const REVISION: &str = "2025-06-18";

/// A client with its server process.
#[derive(Debug)]
pub(crate) struct McpClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    line: String,
}

impl McpClient {
    /// Starts `ostler mcp` and performs the handshake.
    pub(crate) fn open(env: &TestEnv) -> Result<Self> {
        Self::open_with(env, &["mcp", "--tools", "core,command"])
    }

    /// The same with these arguments.
    pub(crate) fn open_with(env: &TestEnv, arguments: &[&str]) -> Result<Self> {
        Self::spawn(&mut env.ostler(arguments))
    }

    /// Starts any server on standard streams, and performs the handshake.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context(name)?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut mcp = Self {
            child,
            input,
            output,
            next: 0,
            line: String::new(),
        };
        let client = json!({"name": "xtask", "version": "0"});
        let hello = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        let id = mcp.send("initialize", &hello)?;
        mcp.wait_response(id)?;
        mcp.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(mcp)
    }

    /// Sends one request; returns its result.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        self.wait_response(id)
    }

    /// Makes `calls` calls of one tool with `width` of them in flight; returns the duration of
    /// each.
    pub(crate) fn flood(
        &mut self,
        call: &Value,
        calls: usize,
        width: usize,
    ) -> Result<Vec<Duration>> {
        let mut started_at = std::collections::HashMap::new();
        let mut took = Vec::with_capacity(calls);
        let mut sent = 0;
        while took.len() < calls {
            while sent < calls && started_at.len() < width {
                let id = self.send("tools/call", call)?;
                started_at.insert(id, Instant::now());
                sent += 1;
            }
            let (id, answer) = self.read()?;
            check_error(&answer)?;
            let begin = started_at
                .remove(&id)
                .context("an answer nobody asked for")?;
            took.push(begin.elapsed());
        }
        Ok(took)
    }

    /// Sends one request; returns its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.input
            .write_all(line.as_bytes())
            .context("the server does not read")
    }

    fn wait_response(&mut self, request_id: u64) -> Result<Value> {
        loop {
            let (id, message) = self.read()?;
            if id == request_id {
                check_error(&message)?;
                return Ok(message["result"].clone());
            }
        }
    }

    /// Reads the next response.
    fn read(&mut self) -> Result<(u64, Value)> {
        loop {
            let message = self.read_message()?;
            if let Some(answer) = response_of(message) {
                return Ok(answer);
            }
        }
    }

    fn read_message(&mut self) -> Result<Value> {
        self.line.clear();
        if self.output.read_line(&mut self.line)? == 0 {
            bail!("the server closed its output");
        }
        serde_json::from_str(&self.line).context(self.line.clone())
    }

    /// The same with a deadline.
    pub(crate) fn read_until(&mut self, deadline: Instant) -> Result<(u64, Value)> {
        loop {
            if self.output.buffer().is_empty() {
                self.wait_readable(deadline)?;
            }
            let message = self.read_message()?;
            if let Some(answer) = response_of(message) {
                return Ok(answer);
            }
        }
    }

    fn wait_readable(&self, deadline: Instant) -> Result<()> {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()))?;
        let mut fds = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        if poll(&mut fds, Some(&left))? == 0 {
            bail!("no answer in time");
        }
        Ok(())
    }

    /// Closes the session and waits for the exit of the stdio proxy.
    pub(crate) fn close(mut self) -> Result<()> {
        drop(self.input);
        self.child
            .wait()
            .map(drop)
            .context("the front does not end")
    }
}

/// The id of the request that a message answers, if it is a response.
fn response_of(message: Value) -> Option<(u64, Value)> {
    let id = message["id"].as_u64()?;
    message.get("method").is_none().then_some((id, message))
}

/// An error if the response is one.
pub(super) fn check_error(message: &Value) -> Result<()> {
    let failed = message.get("error").is_some() || message["result"]["isError"] == true;
    if failed {
        bail!("the server answered {message}")
    } else {
        Ok(())
    }
}
