//! A minimal MCP client over Streamable HTTP on one persistent connection: what is measured is the
//! server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::env::TestEnv;
use super::mcp::check_error;

/// The timeout of a response or of the server's start, in milliseconds.
const ANSWER_MS: u64 = 60_000;
const ACCEPT: &str = "application/json, text/event-stream";

/// The two eras of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtocolEra {
    /// With a handshake and a session.
    Handshake,
    /// Every request is independent.
    Stateless,
}

impl ProtocolEra {
    const fn revision(self) -> &'static str {
        match self {
            Self::Handshake => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

/// A daemon in the foreground that serves HTTP without tokens; ended when dropped.
#[derive(Debug)]
pub(crate) struct HttpServer {
    child: Child,
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
}

impl HttpServer {
    /// Starts it and waits until it has printed its address.
    pub(crate) fn start(env: &TestEnv) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let port = address.port().to_string();
        let mut command = env.ostler(&["serve", "--no-token", "--port", &port]);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().context("ostler serve")?;
        let mut banner = String::new();
        let stdout = child.stdout.take().context("no standard output")?;
        // The banner is one write; its first line comes when everything listens.
        BufReader::new(stdout).read_line(&mut banner)?;
        if banner.is_empty() {
            bail!("ostler serve ended: {:?}", child.wait()?);
        }
        Ok(Self { child, address })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have exited already; it is a child, so the pid is still valid.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// One client on one connection.
#[derive(Debug)]
pub(crate) struct HttpMcpClient {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    era: ProtocolEra,
    session: Option<String>,
    next: u64,
}

impl HttpMcpClient {
    /// Connects, and performs the handshake if the era has one.
    pub(crate) fn open(address: SocketAddr, era: ProtocolEra) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
        let mut client = Self {
            stream: BufReader::new(stream),
            address,
            era,
            session: None,
            next: 0,
        };
        if era == ProtocolEra::Handshake {
            let hello = json!({"protocolVersion": era.revision(), "capabilities": {},
                "clientInfo": {"name": "xtask", "version": "0"}});
            client.request("initialize", hello)?;
            client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        }
        Ok(client)
    }

    /// Makes `calls` calls of one tool, one after the other; returns the duration of each.
    pub(crate) fn one_by_one(&mut self, call: &Value, calls: usize) -> Result<Vec<Duration>> {
        let once = |_| {
            let begin = Instant::now();
            self.request("tools/call", call.clone())?;
            Ok(begin.elapsed())
        };
        (0..calls).map(once).collect()
    }

    /// Sends one request; returns its result.
    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> Result<Value> {
        self.next += 1;
        if let (ProtocolEra::Stateless, Some(params)) = (self.era, params.as_object_mut()) {
            params.insert("_meta".to_owned(), Value::Object(meta()));
        }
        let id = self.next;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let body = self.post(&message)?;
        let answer = find_response(&body, id)
            .with_context(|| format!("no answer to {method} in {body:?}"))?;
        check_error(&answer)?;
        Ok(answer["result"].clone())
    }

    fn post(&mut self, message: &Value) -> Result<String> {
        let body = message.to_string();
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: {ACCEPT}\r\nContent-Length: {}\r\n\
             MCP-Protocol-Version: {}\r\n",
            self.address,
            body.len(),
            self.era.revision()
        );
        if let Some(session) = &self.session {
            head.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        }
        if self.era == ProtocolEra::Stateless {
            let method = message["method"].as_str().unwrap_or_default();
            head.push_str(&format!("Mcp-Method: {method}\r\n"));
            if let Some(name) = message["params"]["name"].as_str() {
                head.push_str(&format!("Mcp-Name: {name}\r\n"));
            }
        }
        let raw = format!("{head}\r\n{body}");
        self.stream.get_mut().write_all(raw.as_bytes())?;
        self.read_response()
    }

    /// Reads the body of the next response; the connection stays open.
    fn read_response(&mut self) -> Result<String> {
        let mut status = String::new();
        self.stream.read_line(&mut status)?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse()?,
                "transfer-encoding" => chunked = value.trim() == "chunked",
                "mcp-session-id" => self.session = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let body = if chunked {
            self.chunks()?
        } else {
            self.read_exactly(length)?
        };
        if !status.contains(" 20") {
            bail!("{} {body}", status.trim());
        }
        Ok(body)
    }

    fn chunks(&mut self) -> Result<String> {
        let mut body = String::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).context(line)?;
            body.push_str(&self.read_exactly(size)?);
            self.read_exactly(2)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn read_exactly(&mut self, size: usize) -> Result<String> {
        let mut bytes = vec![0; size];
        self.stream.read_exact(&mut bytes)?;
        Ok(String::from_utf8(bytes)?)
    }
}

fn meta() -> Map<String, Value> {
    let pairs = [
        ("protocolVersion", json!(ProtocolEra::Stateless.revision())),
        ("clientCapabilities", json!({})),
        ("clientInfo", json!({"name": "xtask", "version": "0"})),
    ];
    let named = pairs.map(|(name, value)| (format!("io.modelcontextprotocol/{name}"), value));
    named.into_iter().collect()
}

/// The message with this id, in a JSON body or in the events of a stream.
fn find_response(body: &str, id: u64) -> Option<Value> {
    let lines = body.lines();
    let messages = lines.map(|line| line.strip_prefix("data:").unwrap_or(line));
    let mut parsed = messages.filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok());
    parsed.find(|message| message["id"] == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_in_both_kinds_of_body() {
        let plain = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
        assert_eq!(
            find_response(plain, 3).map(|it| it["id"].clone()),
            Some(json!(3))
        );
        let events = format!("id: 0\nretry: 3000\ndata:\n\nevent: message\ndata: {plain}\n\n");
        assert!(find_response(&events, 3).is_some());
        assert!(find_response(&events, 4).is_none());
    }
}
