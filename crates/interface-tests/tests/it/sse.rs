//! The HTTP+SSE transport of 2024-11-05.

use crate::common::{PATIENCE, text};
use crate::web::{HttpFixture, HttpTestClient, HttpTestResponse, PidPipe};
use http::Method;
use ostler_engine::ListFilter;
use serde_json::{Value, json};
use tokio::time::timeout;

/// The most clients of one principal.
const CLIENTS_PER_PRINCIPAL: usize = 64;

/// A connected client: its stream, and where its messages go.
struct Connected {
    stream: HttpTestResponse,
    messages: HttpTestClient,
    next: u64,
}

impl Connected {
    async fn to(agent: &HttpTestClient) -> Self {
        let mut stream = agent.get().await;
        assert_eq!(stream.status, 200);
        let first = stream.event().await.unwrap();
        let mut lines = first.lines();
        assert_eq!(lines.next(), Some("event: endpoint"));
        let endpoint = lines
            .next()
            .unwrap()
            .strip_prefix("data: ")
            .unwrap()
            .to_owned();
        let messages = agent.at(&endpoint);
        let next = 1;
        Self {
            stream,
            messages,
            next,
        }
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        assert_eq!(self.messages.post(&message).await.status, 202);
        id
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        loop {
            let mut message = self.stream.message().await.expect("an open stream");
            if message["id"] == id {
                assert!(message.get("result").is_some(), "{message}");
                return message["result"].take();
            }
        }
    }

    async fn greet(&mut self) {
        let params = json!({
            "protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}
        });
        let result = self.ask("initialize", params).await;
        assert_eq!(result["protocolVersion"], "2024-11-05");
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.messages.post(&done).await.status, 202);
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }
}

async fn web() -> HttpFixture {
    HttpFixture::with(|change| change.mcp_options.legacy_sse = true).await
}

#[tokio::test]
async fn a_client_of_2024_11_05_is_served() {
    let web = web().await;
    let agent = web.agent(&web.token).at("/sse");
    let mut client = Connected::to(&agent).await;
    client.greet().await;
    let tools = client.ask("tools/list", json!({})).await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7);
    let arguments = agent.script("echo hi");
    let said = client.call("command_execute", arguments).await;
    assert!(text(&said).contains("hi"), "{said}");
    // An invalid message is refused at once, and has no other effect.
    for broken in ["{", "[]", "{\"id\":1}"] {
        let answer = client.messages.send(Method::POST, broken).await;
        assert_eq!(answer.status, 400, "{broken}");
        assert!(answer.text().await.contains("JSON-RPC"));
    }
    client.ask("tools/list", json!({})).await;
    web.close().await;
}

#[tokio::test]
async fn a_client_of_2026_07_28_is_served_on_the_same_stream() {
    let web = web().await;
    let mut client = Connected::to(&web.agent(&web.token).at("/sse/p/command")).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.ask("server/discover", json!({"_meta": meta})).await;
    assert!(
        found["supportedVersions"]
            .to_string()
            .contains("2026-07-28"),
        "{found}"
    );
    let tools = client.ask("tools/list", json!({"_meta": meta})).await;
    assert_eq!(tools["resultType"], "complete", "{tools}");
    web.close().await;
}

#[tokio::test]
async fn a_connection_is_bound_to_who_opened_it_and_guarded_like_everything() {
    let web = web().await;
    let agent = web.agent(&web.token).at("/sse");
    let client = Connected::to(&agent).await;
    let two = web.secret("two", "token:two", &[]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let foreign = client
        .messages
        .with("authorization", &format!("Bearer {two}"));
    let unknown = foreign.at("/messages?sessionId=0");
    let (foreign, unknown) = (foreign.post(&list).await, unknown.post(&list).await);
    assert_eq!(
        (foreign.status.as_u16(), unknown.status.as_u16()),
        (404, 404)
    );
    assert_eq!(foreign.json().await, unknown.json().await);
    assert_eq!(agent.at("/messages").post(&list).await.status, 400);
    for path in ["/sse", "/messages?sessionId=0"] {
        let path = agent.at(path);
        assert_eq!(
            path.with("origin", "http://evil.example")
                .get()
                .await
                .status,
            403
        );
        assert_eq!(
            path.with("authorization", "Bearer x").get().await.status,
            401
        );
    }
    assert_eq!(agent.at("/sse/p/none").get().await.status, 404);
    let large = vec![b' '; ostler_interface::http::BODY_BYTES + 1];
    assert_eq!(client.messages.send(Method::POST, large).await.status, 413);
    web.close().await;
}

#[tokio::test]
async fn sessions_are_apart_and_end_with_their_stream_unless_they_have_a_name() {
    let web = web().await;
    let agent = web.agent(&web.token).at("/sse");
    let (mut one, mut named) = (
        Connected::to(&agent).await,
        Connected::to(&agent.at("/sse/s/kept")).await,
    );
    one.greet().await;
    named.greet().await;
    let (a, b) = (
        PidPipe::new(web.bench.work.path(), "a"),
        PidPipe::new(web.bench.work.path(), "b"),
    );
    one.call("command_bg_start", agent.background(&a.script()))
        .await;
    named
        .call("command_bg_start", agent.background(&b.script()))
        .await;
    let (a, b) = (a.process().await, b.process().await);
    for client in [&mut one, &mut named] {
        let listing = client.call("command_ps_list", json!({})).await;
        let processes = listing["structuredContent"]["processes"]
            .as_array()
            .unwrap();
        assert_eq!(processes.len(), 1, "{listing}");
    }
    let messages = one.messages.clone();
    drop(one);
    a.wait_exit().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(messages.post(&list).await.status, 404);
    drop(named);
    let again = agent
        .at("/mcp/s/kept")
        .call("command_ps_list", json!({}))
        .await;
    assert_eq!(
        again["structuredContent"]["processes"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(b.is_alive());
    web.close().await;
}

#[tokio::test]
async fn a_stream_closed_early_stops_its_command() {
    let web = web().await;
    let agent = web.agent(&web.token).at("/sse/s/kept");
    let mut client = Connected::to(&agent).await;
    client.greet().await;
    let (going, kept) = (
        PidPipe::new(web.bench.work.path(), "a"),
        PidPipe::new(web.bench.work.path(), "b"),
    );
    client
        .call("command_bg_start", agent.background(&kept.script()))
        .await;
    let kept = kept.process().await;
    let mut arguments = agent.script(&going.script());
    arguments["timeout"] = 1000.into();
    client
        .send(
            "tools/call",
            json!({"name": "command_execute", "arguments": arguments}),
        )
        .await;
    let going = going.process().await;
    drop(client);
    going.wait_exit().await;
    assert!(kept.is_alive());
    web.close().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_stalls_only_itself() {
    let web = web().await;
    let agent = web.agent(&web.token).at("/sse");
    let mut slow = Connected::to(&agent).await;
    slow.greet().await;
    let said = slow
        .call(
            "command_bg_start",
            agent.background("seq -f %0250.0f 1 100"),
        )
        .await;
    let pid = said["structuredContent"]["pid"].clone();
    // The client keeps sending requests without reading, until its messages are refused.
    let logs = json!({"name": "command_ps_logs", "arguments": {"pid": pid, "tail": 100}});
    let asking = async {
        loop {
            slow.next += 1;
            let message = json!({"jsonrpc": "2.0", "id": slow.next, "method": "tools/call",
                                 "params": logs});
            let answer = slow.messages.post(&message).await;
            if answer.status != 202 {
                return answer.status;
            }
        }
    };
    let status = timeout(PATIENCE, asking)
        .await
        .expect("an end of its patience");
    assert_eq!(status, 429);
    // Others are served meanwhile.
    let mut other = Connected::to(&agent).await;
    other.greet().await;
    let said = other.call("command_execute", agent.script("echo hi")).await;
    assert!(text(&said).contains("hi"), "{said}");
    // The client disconnects, and its session ends with it.
    drop(slow);
    let all = web.bench.caller(None);
    let left = async {
        loop {
            let rows = web.bench.engine.list(&all, &ListFilter::default());
            if rows.len() <= 1 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, left)
        .await
        .expect("the session of a client that is gone ends");
    web.close().await;
}

#[tokio::test]
async fn one_principal_has_a_share_of_the_clients() {
    let web = web().await;
    let one = web.agent(&web.token).at("/sse/s/x");
    let mut clients = Vec::new();
    for _ in 0..CLIENTS_PER_PRINCIPAL {
        clients.push(Connected::to(&one).await);
    }
    let refused = one.get().await;
    assert_eq!(refused.status, 429);
    let problem = refused.json().await.to_string();
    assert!(problem.contains("64 clients of this token"), "{problem}");
    let two = web.secret("two", "token:two", &[]);
    let mut other = Connected::to(&web.agent(&two).at("/sse")).await;
    other.greet().await;
    clients.pop();
    // The server notices the end of the stream.
    let room = async { while one.get().await.status != 200 {} };
    timeout(PATIENCE, room).await.expect("room again");
    drop((clients, other));
    web.close().await;
}
