//! Terminals over REST and WebSocket: real programs behind a real server.

use std::collections::HashSet;

use crate::common::normalize;
use crate::socket::TestWebSocket;
use crate::web::{HttpFixture, HttpTestClient};
use http::Method;
use serde_json::{Value, json};

const API: &str = "/api/v1/executions";

struct TerminalFixture {
    web: HttpFixture,
    agent: HttpTestClient,
}

impl TerminalFixture {
    async fn new() -> Self {
        let web = HttpFixture::new().await;
        let agent = web.agent(&web.token);
        Self { web, agent }
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let body = if method == Method::GET {
            String::new()
        } else {
            body.to_string()
        };
        let answer = self.agent.at(path).send(method, body).await;
        let status = answer.status.as_u16();
        let text = answer.text().await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(Method::POST, path, body).await
    }

    /// Starts a script in a terminal; its id.
    async fn start(&self, script: &str) -> String {
        let body = json!({
            "command": {"argv": {"program": "sh", "args": ["-c", script]}},
            "cwd": self.web.bench.directory(), "pty": {"cols": 80, "rows": 24}
        });
        let (status, info) = self.post(API, body).await;
        assert_eq!(status, 201, "{info}");
        info["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the output matches.
    async fn printed(&self, id: &str, pattern: &str) {
        let body = json!({"until": "pattern", "pattern": pattern, "at_most_ms": 110_000});
        let (_, waited) = self.post(&format!("{API}/{id}/wait"), body).await;
        let screen = self.get(&format!("{API}/{id}/screen")).await;
        assert_eq!(waited["why"], "pattern", "{waited}: {screen}");
    }

    async fn ended(&self, id: &str) {
        let (_, waited) = self.post(&format!("{API}/{id}/wait"), json!({})).await;
        assert_eq!(waited["why"], "exit", "{waited}");
    }

    async fn attach(&self, id: &str, query: &str) -> TestWebSocket {
        self.try_attach(id, query, &[]).await.unwrap()
    }

    async fn try_attach(
        &self,
        id: &str,
        query: &str,
        more: &[(&'static str, &str)],
    ) -> Result<TestWebSocket, crate::socket::HandshakeRefusal> {
        let bearer = format!("Bearer {}", self.web.token);
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend_from_slice(more);
        let path = format!("{API}/{id}/terminal{query}");
        TestWebSocket::tcp(self.web.address, &path, &headers).await
    }

    async fn close(self) {
        self.web.close().await;
    }
}

#[tokio::test]
async fn a_screen_is_read_typed_into_and_resized() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start("stty -echo; printf '\\033]2;a title\\007'; echo ready; cat")
        .await;
    let path = format!("{API}/{id}");
    fixture.printed(&id, "^ready").await;
    let keys = json!({"pieces": [
        {"text": "one"}, {"key": "enter"}, {"base64": "dHdvCg=="}, {"key": "ctrl-d"}]});
    let (status, typed) = fixture.post(&format!("{path}/keys"), keys).await;
    assert_eq!((status, typed), (200, json!({"bytes": 9, "taken": 9})));
    fixture.ended(&id).await;
    let screen = fixture.get(&format!("{path}/screen")).await;
    insta::assert_json_snapshot!("screen", screen);

    let output = fixture.get(&format!("{path}/terminal/output")).await;
    let data = "\u{1b}]2;a title\u{7}ready\r\none\r\ntwo\r\n";
    let end = data.len();
    let whole = json!({"data": data, "offset": 0, "next_offset": end, "start_offset": 0,
        "end_offset": end, "truncated": false});
    assert_eq!(output, whole);
    let part = fixture
        .get(&format!("{path}/terminal/output?offset=19&limit=3"))
        .await;
    assert_eq!(
        (&part["data"], &part["next_offset"]),
        (&json!("one"), &json!(22))
    );
    let beyond = fixture
        .get(&format!("{path}/terminal/output?offset=999"))
        .await;
    assert_eq!(
        (&beyond["data"], &beyond["next_offset"]),
        (&json!(""), &json!(end))
    );
    fixture.close().await;
}

#[tokio::test]
async fn sizes_are_given_and_reach_the_program() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start("echo ready; read x; stty size; read x").await;
    fixture.printed(&id, "ready").await;
    let path = format!("{API}/{id}");
    let (status, _) = fixture
        .post(&format!("{path}/resize"), json!({"cols": 120, "rows": 40}))
        .await;
    assert_eq!(status, 204);
    fixture
        .post(
            &format!("{path}/keys"),
            json!({"pieces": [{"key": "enter"}]}),
        )
        .await;
    fixture.printed(&id, "40 120").await;
    let screen = fixture.get(&format!("{path}/screen")).await;
    assert_eq!(screen["size"], json!({"cols": 120, "rows": 40}));
    assert_eq!(screen["rows"].as_array().unwrap().len(), 40);
    fixture.close().await;
}

/// The target (a terminal, pipes, none), the path, and the body.
const WRONG: &[(&str, &str, &str)] = &[
    ("terminal", "keys", r#"{"pieces":[{"key":"nope"}]}"#),
    ("terminal", "keys", r#"{"pieces":[{"base64":"?"}]}"#),
    ("terminal", "keys", r#"{"pieces":[{"shout":"x"}]}"#),
    ("terminal", "keys", r#"{"keys":[]}"#),
    ("terminal", "resize", r#"{"cols":0,"rows":5}"#),
    ("terminal", "resize", r#"{"cols":5}"#),
    ("terminal", "shell/run", r#"{"script":"true"}"#),
    ("pipes", "keys", r#"{"pieces":[]}"#),
    ("pipes", "resize", r#"{"cols":5,"rows":5}"#),
    ("nonsense", "keys", r#"{"pieces":[]}"#),
    ("nonsense", "resize", r#"{"cols":5,"rows":5}"#),
    ("nonsense", "shell/run", r#"{"script":"true"}"#),
];

#[tokio::test]
async fn invalid_options_are_reported() {
    let fixture = TerminalFixture::new().await;
    let terminal = fixture.start("cat").await;
    let body = json!({"command": {"argv": {"program": "cat", "args": []}},
        "cwd": fixture.web.bench.directory(), "stdin": "open"});
    let (_, info) = fixture.post(API, body).await;
    let pipes = info["id"].as_str().unwrap().to_owned();
    let mut response = Vec::new();
    for (whom, what, body) in WRONG {
        let (id, status, code) = match *whom {
            "terminal" => (terminal.as_str(), 422, "value_error"),
            "pipes" => (pipes.as_str(), 422, "value_error"),
            nobody => (nobody, 404, "session_not_found"),
        };
        let requested = serde_json::from_str(body).unwrap();
        let (got, problem) = fixture.post(&format!("{API}/{id}/{what}"), requested).await;
        assert_eq!(
            (got, &problem["code"]),
            (status, &json!(code)),
            "{what}: {problem}"
        );
        let message = problem["message"].as_str().unwrap();
        response.push(format!("{what} {body}: {}", message.replace(id, "[id]")));
    }
    insta::assert_snapshot!("refusals", response.join("\n"));
    for (id, status) in [(pipes.as_str(), 422), ("nonsense", 404)] {
        let (got, problem) = fixture.try_attach(id, "", &[]).await.err().unwrap();
        assert_eq!(got, status, "{problem}");
    }
    let path = format!("{API}/{terminal}/terminal");
    let (status, problem) = fixture.ask(Method::GET, &path, Value::Null).await;
    assert_eq!((status, &problem["code"]), (426, &json!("value_error")));
    fixture.close().await;
}

#[tokio::test]
async fn a_socket_shows_types_and_tells_the_end() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start("printf 'hello'; stty -echo; read x; echo got $x; exit 3")
        .await;
    fixture.printed(&id, "hello").await;
    let mut socket = fixture.attach(&id, "").await;
    let hello = socket.wait_message("hello").await;
    let wanted = json!({"type": "hello", "id": id, "size": {"cols": 80, "rows": 24}, "offset": 5,
        "alternate": false, "title": "", "holder": null});
    assert_eq!(hello, wanted);
    socket.wait_output("hello").await;
    socket.type_in("no\r").await;
    let refused = socket.wait_message("refused").await;
    assert_eq!(refused["code"], "process_control_error", "{refused}");
    socket.take_lease("a test").await;
    socket.type_in("it\r").await;
    socket.wait_output("got it\r\n").await;
    let mut exit = socket.wait_message("exit").await;
    assert_eq!(
        (&exit["exit_code"], &exit["status"]),
        (&json!(3), &json!("failed"))
    );
    exit["command"] = "[command]".into();
    exit["argv"] = "[argv]".into();
    for time in ["created_at", "start_time", "end_time"] {
        exit[time] = "[time]".into();
    }
    insta::assert_json_snapshot!("exit", normalize(&exit));
    socket.end().await;
    assert_eq!(u16::from(socket.closed.unwrap().code), 1000);
    fixture.close().await;
}

#[tokio::test]
async fn one_types_at_a_time_and_takes_over() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start("stty -echo; while read x; do echo \"[$x]\"; done")
        .await;
    let (mut first, mut second) = (fixture.attach(&id, "").await, fixture.attach(&id, "").await);
    first.take_lease("first").await;
    let lease = second.wait_message("lease").await;
    assert_eq!(
        lease,
        json!({"type": "lease", "holder": "first", "yours": false})
    );
    second.send(json!({"type": "take", "name": "second"})).await;
    let refused = second.wait_message("refused").await;
    assert!(
        refused["message"].as_str().unwrap().contains("first"),
        "{refused}"
    );
    // Other clients cannot write by another route either.
    let keys = json!({"pieces": [{"text": "x"}]});
    let (status, problem) = fixture.post(&format!("{API}/{id}/keys"), keys).await;
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("process_control_error"))
    );

    second
        .send(json!({"type": "take", "take_over": true, "name": "second"}))
        .await;
    assert_eq!(second.wait_message("lease").await["yours"], true);
    let lost = first.wait_message("lease").await;
    assert_eq!(
        lost,
        json!({"type": "lease", "holder": "second", "yours": false})
    );
    first.type_in("first\r").await;
    first.wait_message("refused").await;
    second.type_in("second\r").await;
    second.wait_output("[second]").await;
    first.wait_output("[second]").await;

    second.send(json!({"type": "hand_back"})).await;
    assert_eq!(first.wait_message("lease").await["holder"], Value::Null);
    first.take_lease("first").await;
    first.type_in("again\r").await;
    first.wait_output("[again]").await;
    first.close().await;
    // The lease ended with its connection.
    let free = json!({"type": "lease", "holder": null, "yours": false});
    while second.wait_message("lease").await != free {}
    second.close().await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_request_is_answered_before_any_change_of_holder() {
    let fixture = TerminalFixture::new().await;
    let script = "stty -echo; read x; yes xxxxxxxxx | head -c 20000000; echo 'the end'; \
                  read x; echo \"[$x]\"";
    let id = fixture.start(script).await;
    let (mut first, mut second) = (fixture.attach(&id, "").await, fixture.attach(&id, "").await);
    first.wait_message("hello").await;
    let keys = json!({"pieces": [{"key": "enter"}]});
    fixture.post(&format!("{API}/{id}/keys"), keys).await;
    fixture.printed(&id, "the end").await;
    // More output than the connection can buffer, so the daemon has other messages to send first.
    first.send(json!({"type": "take", "name": "first"})).await;
    let lease = second.wait_message("lease").await;
    assert_eq!(lease["holder"], "first", "{lease}");
    let answer = json!({"type": "lease", "holder": "first", "yours": true});
    assert_eq!(first.wait_message("lease").await, answer);

    // Every lease request has its own answer, also that of the holder.
    let take = json!({"type": "take", "name": "again"});
    first.send(take.clone()).await;
    assert_eq!(first.wait_message("lease").await, answer);
    second.send(take).await;
    assert_eq!(second.wait_message("refused").await["take"], true);
    second.send(json!({"type": "repaint"})).await;
    second.type_in("x").await;
    assert_eq!(second.wait_message("refused").await["take"], Value::Null);
    first.type_in("mine\r").await;
    first.wait_output("[mine]").await;
    fixture.close().await;
}

#[tokio::test]
async fn a_size_lasts_as_long_as_its_connection() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start("cat").await;
    let mut watcher = fixture.attach(&id, "").await;
    watcher.wait_message("hello").await;
    watcher
        .send(json!({"type": "resize", "cols": 10, "rows": 10}))
        .await;
    watcher.wait_message("refused").await;
    let mut writer = fixture.attach(&id, "").await;
    writer.take_lease("writer").await;
    for cols in [100, 110] {
        writer
            .send(json!({"type": "resize", "cols": cols, "rows": 30}))
            .await;
        let resized = watcher.wait_message("resized").await;
        assert_eq!(resized["size"], json!({"cols": cols, "rows": 30}));
    }
    writer.close().await;
    let resized = watcher.wait_message("resized").await;
    assert_eq!(resized["size"], json!({"cols": 80, "rows": 24}));
    watcher.close().await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_gets_the_screen_later_and_slows_no_other() {
    let fixture = TerminalFixture::new().await;
    let script =
        "read x; yes xxxxxxxxx | head -c 20000000; printf '\\033[2J\\033[Hthe end'; read x";
    let id = fixture.start(script).await;
    let mut slow = fixture.attach(&id, "").await;
    slow.wait_message("hello").await;
    let keys = json!({"pieces": [{"key": "enter"}]});
    fixture
        .post(&format!("{API}/{id}/keys"), keys.clone())
        .await;
    // The client reads nothing meanwhile, and the command still ends.
    fixture.printed(&id, "the end").await;
    slow.wait_output("the end").await;
    let gap = slow.wait_message("gap").await;
    assert!(
        gap["to"].as_u64().unwrap() > gap["from"].as_u64().unwrap(),
        "{gap}"
    );
    slow.wait_message("paint").await;
    assert!(slow.shown.len() < 11_000_000, "{}", slow.shown.len());

    // A client that requests everything gets everything that is kept.
    let mut whole = fixture.attach(&id, "?whole=true&offset=0").await;
    fixture.post(&format!("{API}/{id}/keys"), keys).await;
    let said = whole.end().await;
    assert_eq!(said.last().unwrap()["type"], "exit");
    assert!(!said.iter().any(|message| message["type"] == "gap"));
    assert_eq!(
        whole.shown.iter().filter(|&&byte| byte == b'x').count(),
        18_000_000
    );
    fixture.close().await;
}

#[tokio::test]
async fn output_continues_at_the_requested_offset() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start("printf 'one two'; read x").await;
    fixture.printed(&id, "two").await;
    let mut socket = fixture.attach(&id, "?offset=4").await;
    assert_eq!(socket.wait_message("hello").await["offset"], 4);
    socket.wait_output("two").await;
    assert_eq!(socket.shown, b"two");
    socket.send(json!({"type": "repaint"})).await;
    assert_eq!(socket.wait_message("paint").await["offset"], 7);
    socket.wait_output("one two").await;
    socket.send(json!({"type": "shout"})).await;
    assert_eq!(socket.wait_message("refused").await["code"], "value_error");
    socket.close().await;
    fixture.close().await;
}

#[tokio::test]
async fn a_repaint_replaces_no_output_that_was_not_sent() {
    let fixture = TerminalFixture::new().await;
    let script = "read x; seq 1 20000; printf 'the end'; read x";
    let id = fixture.start(script).await;
    let mut socket = fixture.attach(&id, "").await;
    socket.wait_message("hello").await;
    socket.take_lease("me").await;
    socket.type_in("\r").await;
    // While output is under way.
    for _ in 0..20 {
        socket.send(json!({"type": "repaint"})).await;
        socket.wait_message("paint").await;
    }
    socket.wait_output("the end").await;
    let shown = String::from_utf8_lossy(&socket.shown).into_owned();
    let lines: HashSet<&str> = shown.split("\r\n").collect();
    let missing: Vec<u32> = (2..=20_000)
        .filter(|it| !lines.contains(it.to_string().as_str()))
        .collect();
    // A screen may be painted in the middle of a line.
    let has_run = missing.windows(2).any(|it| it[0] + 1 == it[1]);
    assert!(!has_run && missing.len() <= 20, "{missing:?}");
    socket.close().await;
    fixture.close().await;
}

#[tokio::test]
async fn unauthenticated_and_foreign_clients_are_refused() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start("cat").await;
    let path = format!("{API}/{id}/terminal");
    let at = fixture.web.address;
    let (status, _) = TestWebSocket::tcp(at, &path, &[]).await.err().unwrap();
    assert_eq!(status, 401);
    let evil = [("origin", "https://evil.example")];
    let (status, _) = fixture.try_attach(&id, "", &evil).await.err().unwrap();
    assert_eq!(status, 403);
    let rebound = [("host", "evil.example")];
    let (status, _) = fixture.try_attach(&id, "", &rebound).await.err().unwrap();
    assert_eq!(status, 403);
    // A foreign session is unknown.
    let other = fixture.web.secret("second", "token:two", &[]);
    let bearer = format!("Bearer {other}");
    let theirs = [("authorization", bearer.as_str())];
    let (status, _) = TestWebSocket::tcp(at, &path, &theirs).await.err().unwrap();
    assert_eq!(status, 404);
    let elsewhere = [("ostler-session", "elsewhere")];
    let (status, _) = fixture.try_attach(&id, "", &elsewhere).await.err().unwrap();
    assert_eq!(status, 404);
    // A browser with a page served by this server is accepted.
    let own = format!("http://{at}");
    let mut page = fixture
        .try_attach(&id, "", &[("origin", &own), ("host", &at.to_string())])
        .await;
    page.as_mut().unwrap().wait_message("hello").await;
    fixture.close().await;
}

#[tokio::test]
async fn too_long_a_message_closes_the_connection() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start("cat").await;
    let mut socket = fixture.attach(&id, "").await;
    socket.take_lease("a test").await;
    socket.type_in(&"x".repeat(70_000)).await;
    socket.end().await;
    let mut next = fixture.attach(&id, "").await;
    next.take_lease("another").await;
    fixture.close().await;
}

#[tokio::test]
async fn a_server_that_leaves_says_so() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start("cat").await;
    let mut socket = fixture.attach(&id, "").await;
    socket.wait_message("hello").await;
    let bench = fixture.web.close_keeping_state().await;
    assert!(
        socket
            .end()
            .await
            .iter()
            .all(|message| message["type"] != "exit")
    );
    assert_eq!(u16::from(socket.closed.unwrap().code), 1001);
    bench.engine.shutdown().await;
}

#[tokio::test]
async fn a_shell_runs_commands() {
    let fixture = TerminalFixture::new().await;
    let body = json!({"kind": "bash", "cwd": fixture.web.bench.directory(),
        "base_env": [["PATH", "/usr/bin:/bin"], ["HOME", fixture.web.bench.directory()]]});
    let (status, info) = fixture.post("/api/v1/shells", body).await;
    assert_eq!(status, 201, "{info}");
    let id = info["id"].as_str().unwrap().to_owned();
    let run = json!({"script": "cd /; echo out; false", "at_most_ms": 30_000});
    let (status, ran) = fixture.post(&format!("{API}/{id}/shell/run"), run).await;
    assert_eq!(status, 200, "{ran}");
    assert_eq!(
        ran["end"],
        json!({"why": "finished", "status": 1, "cwd": "/"}),
        "{ran}"
    );
    let limit = ran["to"].as_u64().unwrap() - ran["from"].as_u64().unwrap();
    let path = format!(
        "{API}/{id}/terminal/output?offset={}&limit={limit}",
        ran["from"]
    );
    assert_eq!(fixture.get(&path).await["data"], "out\r\n");
    let run = json!({"script": "sleep 60", "at_most_ms": 300});
    let (_, ran) = fixture.post(&format!("{API}/{id}/shell/run"), run).await;
    assert_eq!(ran["end"], json!({"why": "at_most"}), "{ran}");
    fixture.close().await;
}
