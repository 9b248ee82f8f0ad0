//! `ostler serve` and `ostler token`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::test_env::{CliEnv, CommandOutput, LineChild, to_output};

/// A daemon in the foreground, and its output.
struct Served {
    lines: LineChild,
    said: String,
}

impl Served {
    fn start(cli: &CliEnv, flags: &[&str]) -> Self {
        let mut command = cli.command(&[&["serve"], flags].concat());
        let log = std::fs::File::create(cli.path().join("serve.log")).unwrap();
        command.stderr(log);
        let mut lines = LineChild::start(command);
        let mut said = String::new();
        loop {
            let line = lines.next();
            assert!(!lines.is_finished, "serve ended; it said {said}");
            said.push_str(&line);
            said.push('\n');
            if line.starts_with("Ctrl-C") {
                return Self { lines, said };
            }
        }
    }

    /// The client configurations that it prints: standard streams, then HTTP.
    fn configurations(&self) -> [Value; 2] {
        let starts = self.said.match_indices("\n{\n").map(|(at, _)| at + 1);
        let read = |at: usize| {
            let mut stream = serde_json::Deserializer::from_str(&self.said[at..]).into_iter();
            let value: Value = stream.next().unwrap().unwrap();
            value["mcpServers"]["ostler"].clone()
        };
        let found: Vec<Value> = starts.map(read).collect();
        found.try_into().unwrap()
    }

    fn http(&self) -> Http {
        let [_, client] = self.configurations();
        let url = client["url"].as_str().unwrap();
        let (address, path) = url
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        let token = client["headers"]["Authorization"].as_str();
        Http {
            address: address.to_owned(),
            path: format!("/{path}"),
            authorization: token.map(ToOwned::to_owned),
        }
    }

    fn end(mut self) {
        self.lines.send(Signal::TERM);
        assert_eq!(self.lines.end(), 0);
    }
}

/// A client made from a printed configuration.
#[derive(Clone)]
struct Http {
    address: String,
    path: String,
    authorization: Option<String>,
}

impl Http {
    fn with(&self, token: &str) -> Self {
        Self {
            authorization: Some(format!("Bearer {token}")),
            ..self.clone()
        }
    }

    /// Posts a message of protocol version 2026-07-28; returns the whole response.
    fn post(&self, method: &str, mut params: Value) -> String {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().map(ToOwned::to_owned);
        let name = name.map_or_else(String::new, |name| format!("mcp-name: {name}\r\n"));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let head = format!(
            "mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        );
        self.send("POST", &head, &body.to_string())
    }

    fn send(&self, verb: &str, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let authorization = self.authorization.as_ref();
        let authorization =
            authorization.map_or_else(String::new, |given| format!("authorization: {given}\r\n"));
        let (path, host, length) = (&self.path, &self.address, body.len());
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {host}\r\n{authorization}{head}\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn status(&self) -> u16 {
        let answer = self.post("tools/list", json!({}));
        answer["HTTP/1.1 ".len()..][..3].parse().unwrap()
    }
}

fn refused(ran: &CommandOutput, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{ran:?}");
    for word in words {
        assert!(ran.err.contains(word), "'{word}' is not in {}", ran.err);
    }
}

#[test]
fn what_serve_prints_is_what_a_client_needs() {
    let cli = CliEnv::new();
    let flags = [
        "--legacy-sse",
        "--url-prefix",
        "/deep/er/",
        "--set",
        "log=trace",
    ];
    let served = Served::start(&cli, &flags);
    let [stdio, client] = served.configurations();
    assert_eq!(stdio["args"], json!(["mcp"]));
    assert!(stdio["command"].as_str().unwrap().ends_with("ostler"));
    assert!(
        client["url"].as_str().unwrap().ends_with("/deep/er/mcp"),
        "{client}"
    );
    assert!(
        served.said.contains("/deep/er/sse (MCP 2024-11-05)"),
        "{}",
        served.said
    );
    let http = served.http();
    let token = http.authorization.clone().unwrap();
    let token = token.strip_prefix("Bearer ").unwrap();
    assert!(
        served.said.contains(&format!("  token    {token}\n")),
        "{}",
        served.said
    );
    assert_eq!(http.status(), 200);
    assert_eq!(http.with("wrong").status(), 401);

    // The user sees what an agent runs over HTTP: it is the same principal.
    let start = json!({"name": "exec", "arguments": {
        "command": ["sh", "-c", "pwd; exec sleep 1000"], "cwd": ".", "wait_ms": 0,
        "description": "an agent's"}});
    let answer = http.post("tools/call", start);
    assert!(answer.contains("\"isError\":false"), "{answer}");
    let id = cli.find_execution("sleep 1000");
    let mut follower = LineChild::start(cli.command(&["logs", "-f", "--no-time", &id]));
    // Commands start in the directory where the daemon was started.
    assert_eq!(follower.next(), cli.path().display().to_string());
    cli.stdout_of(&["stop", "--force", &id]);
    // Ended before the daemon is: it would start the next one.
    follower.end();

    served.end();
    let log = std::fs::read_to_string(cli.path().join("serve.log")).unwrap();
    assert!(
        log.contains("rmcp") && !log.contains(token),
        "the log knows the token"
    );
    let again = Served::start(&cli, &[]);
    assert!(
        !again.said.contains(token) && again.said.contains("made earlier"),
        "{}",
        again.said
    );
    assert_eq!(
        again.configurations()[1]["headers"]["Authorization"],
        "Bearer TOKEN"
    );
    assert_eq!(again.http().with(token).status(), 200);
    again.end();
    let log = std::fs::read_to_string(cli.path().join("serve.log")).unwrap();
    assert!(!log.contains("rmcp"), "every request is logged: {log}");
    let kept = std::fs::read_to_string(cli.state().join("tokens.json")).unwrap();
    assert!(!kept.contains(token));
}

#[test]
fn tokens_are_made_listed_and_taken_away() {
    let cli = CliEnv::new();
    let made = cli.ostler(&[
        "token",
        "new",
        "ci",
        "--principal",
        "ci",
        "--scope",
        "sessions:all",
    ]);
    assert_eq!(made.code, 0, "{made:?}");
    let secret = made.out.trim();
    assert!(
        secret.starts_with("ostler_") && secret.len() == 50,
        "{secret}"
    );
    let plain = cli.json(&["token", "new", "--json", "plain"]);
    let listed = cli.json(&["token", "list", "--json"]);
    assert_eq!(listed[0]["name"], "ci");
    assert_eq!(listed[0]["principal"], "token:ci");
    assert_eq!(listed[0]["scopes"], json!(["sessions:all"]));
    assert_eq!(listed[1]["principal"], plain["principal"]);
    let table = cli.stdout_of(&["token", "list"]);
    assert!(
        !table.contains(secret) && table.contains("just now"),
        "{table}"
    );

    let served = Served::start(&cli, &[]);
    assert!(served.said.contains("made earlier"), "{}", served.said);
    let http = served.http();
    assert_eq!(http.with(secret).status(), 200);
    assert_eq!(http.with(plain["token"].as_str().unwrap()).status(), 200);
    cli.stdout_of(&["token", "revoke", "ci"]);
    assert_eq!(http.with(secret).status(), 401);
    served.end();

    refused(
        &cli.ostler(&["token", "new", "plain"]),
        64,
        &["'plain' already", "revoke"],
    );
    refused(
        &cli.ostler(&["token", "revoke", "none"]),
        64,
        &["no token 'none'", "token list"],
    );
    refused(
        &cli.ostler(&["token", "new", "a b"]),
        64,
        &["cannot name a token"],
    );
    refused(
        &cli.ostler(&["token", "new", "x", "--scope", "all"]),
        64,
        &["sessions:all"],
    );
    refused(
        &cli.ostler(&["token", "new", "x", "--principal", "a:b"]),
        64,
        &["allowed"],
    );
}

#[test]
fn without_tokens_only_the_loopback_is_served_and_it_is_said() {
    let cli = CliEnv::new();
    let open = cli.ostler(&["serve", "--no-token", "--host", "0.0.0.0"]);
    let words = [
        "http.tokens = off (flag --no-token)",
        "http.host = 0.0.0.0",
        "run commands as you",
    ];
    refused(&open, 78, &words);
    let served = Served::start(&cli, &["--no-token", "--port", "0"]);
    assert!(
        served.said.contains("NONE NEEDED: every user"),
        "{}",
        served.said
    );
    let http = served.http();
    assert_eq!(http.authorization, None);
    assert_eq!(http.status(), 200);
    served.end();
    assert!(!cli.state().join("tokens.json").exists());
}

#[test]
fn an_address_that_cannot_be_is_refused_with_the_reason() {
    let cli = CliEnv::new();
    for (flag, value, key) in [
        ("--port", "-1", "http.port"),
        ("--port", "70000", "http.port"),
        ("--port", "http", "http.port"),
        ("--host", "box.example", "http.host"),
        ("--url-prefix", "deep", "http.url_prefix"),
        ("--url-prefix", "/a//b", "http.url_prefix"),
    ] {
        let message = format!("{key} = \"{value}\" (flag {flag}) is not allowed");
        refused(
            &cli.ostler(&["serve", flag, value]),
            78,
            &[&message, "allowed: "],
        );
    }
    let set = |value: &str| cli.ostler(&["serve", "--set", value]);
    for value in [
        "http.tokens=maybe",
        "http.origins=ui.example",
        "http.hosts=a b",
        "http.legacy_sse=2",
        "mcp.structured=yes",
        "mcp.tasks=on",
        "http.directory=here",
    ] {
        refused(
            &set(value),
            78,
            &["(flag --set) is not allowed", "allowed: "],
        );
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let busy = cli.ostler(&["serve", "--port", &port]);
    refused(
        &busy,
        69,
        &[&format!("127.0.0.1:{port} (flag --port)"), "in use"],
    );
    assert!(cli.daemon().is_none());
}

#[test]
fn a_daemon_started_on_demand_serves_http_where_the_configuration_names_a_port() {
    let cli = CliEnv::new();
    cli.stdout_of(&["run", "true"]);
    assert!(!cli.state().join("http-sessions.json").exists());
    cli.stdout_of(&["shutdown"]);

    let secret = cli.stdout_of(&["token", "new", "a"]);
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut command = cli.command(&["run", "true"]);
    command.env("OSTLER_HTTP_PORT", port.to_string());
    assert_eq!(to_output(command.output().unwrap()).code, 0);
    let http = Http {
        address: format!("127.0.0.1:{port}"),
        path: "/mcp".to_owned(),
        authorization: Some(format!("Bearer {secret}")),
    };
    assert_eq!(http.status(), 200);
    cli.stdout_of(&["shutdown"]);

    // With the port in use, a client that needs a daemon still gets one.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = cli.command(&["run", "true"]);
    command.env(
        "OSTLER_HTTP_PORT",
        listener.local_addr().unwrap().port().to_string(),
    );
    assert_eq!(to_output(command.output().unwrap()).code, 0);
    let log = std::fs::read_to_string(cli.state().join("daemon.log")).unwrap();
    assert!(
        log.contains("HTTP is not served") && !log.contains(&secret),
        "{log}"
    );
}
