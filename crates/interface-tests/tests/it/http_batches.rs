//! JSON-RPC batches over Streamable HTTP, by a client that speaks raw HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::text;
use crate::web::{HttpFixture, HttpTestClient, HttpTestResponse, PidPipe};
use serde_json::{Value, json};

const REVISION: &str = "2025-03-26";
/// Members that a batch may have.
const MEMBERS: usize = 256;

fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

fn execute(agent: &HttpTestClient, id: &str, script: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
           "params": {"name": "command_execute", "arguments": agent.script(script)}})
}

fn cancel(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// The answers of the stream to its end, by their ids as JSON.
async fn answers(mut answer: HttpTestResponse) -> BTreeMap<String, Vec<Value>> {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let mut answers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    while let Some(message) = answer.message().await {
        let id = message["id"].to_string();
        answers.entry(id).or_default().push(message);
    }
    answers
}

/// The code of the one error that answers this id.
fn code(answers: &BTreeMap<String, Vec<Value>>, id: &Value) -> i64 {
    let [answer] = &answers[&id.to_string()][..] else {
        panic!("{answers:?}");
    };
    answer["error"]["code"].as_i64().unwrap()
}

#[tokio::test]
async fn each_member_is_answered_in_one_stream() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize_with(REVISION).await;
    let mixed = json!([
        ping("a"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        execute(&agent, "b", "echo hi"),
        {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {}},
        {"jsonrpc": "2.0", "id": "d", "method": "no/such"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        {"jsonrpc": "2.0", "id": "e", "method": "initialize", "params": {
            "protocolVersion": REVISION, "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"}}},
        {"jsonrpc": "2.0", "id": "e2", "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}},
        5,
        [],
    ]);
    let found = answers(agent.post(&mixed).await).await;
    assert_eq!(found[r#""a""#][0]["result"], json!({}), "{found:?}");
    assert!(
        text(&found[r#""b""#][0]["result"]).contains("hi"),
        "{found:?}"
    );
    assert_eq!(code(&found, &json!("c")), -32602);
    assert_eq!(code(&found, &json!("d")), -32601);
    assert_eq!(code(&found, &json!("e")), -32600);
    assert_eq!(code(&found, &json!("e2")), -32600);
    assert_eq!(found["null"].len(), 2, "{found:?}");
    assert_eq!(found.len(), 7, "{found:?}");
    // The session continues.
    assert_eq!(agent.post(&ping(1)).await.result().await, json!({}));
    web.close().await;
}

#[tokio::test]
async fn notifications_and_responses_are_accepted_without_an_answer() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize_with(REVISION).await;
    let silent = json!([cancel("x"), {"jsonrpc": "2.0", "id": 4, "result": {}}, {"jsonrpc": "1.0", "method": "x"}]);
    let accepted = agent.post(&silent).await;
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.text().await, "");
    let refused = agent.post(&json!([cancel("x"), 7])).await;
    assert_eq!(refused.status, 200);
    let errors = refused.json().await;
    assert_eq!(
        (&errors[0]["error"]["code"], &errors[0]["id"]),
        (&json!(-32600), &Value::Null)
    );
    let nothing = agent.post(&json!([7, 8])).await;
    assert_eq!(nothing.status, 400);
    assert_eq!(nothing.json().await.as_array().unwrap().len(), 2);
    web.close().await;
}

#[tokio::test]
async fn what_is_no_batch_of_this_revision_is_refused_as_a_whole() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let old = agent.initialize_with(REVISION).await;
    let new = agent.initialize().await;
    let many: Vec<Value> = (0..=MEMBERS).map(ping).collect();
    for (agent, batch) in [
        (&old, json!([])),
        (&old, json!(many)),
        (
            &old.with("mcp-protocol-version", "2025-06-18"),
            json!([ping(1)]),
        ),
        (&new, json!([ping(1)])),
        (
            &agent.with("mcp-protocol-version", "2026-07-28"),
            json!([ping(1)]),
        ),
        (&agent, json!([ping(1)])),
    ] {
        let refused = agent.post(&batch).await;
        assert_eq!(refused.status, 400, "{batch}");
        let error = refused.json().await;
        assert_eq!(
            (&error["error"]["code"], &error["id"]),
            (&json!(-32600), &Value::Null),
            "{error}"
        );
    }
    let most = json!(many[1..]);
    let found = answers(old.post(&most).await).await;
    assert_eq!(found.len(), MEMBERS);
    let gone = old.with("mcp-session-id", "no-such-session");
    assert_eq!(gone.post(&json!([ping(1)])).await.status, 404);
    web.close().await;
}

#[tokio::test]
async fn an_id_that_is_used_twice_is_refused_and_not_run() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize_with(REVISION).await;
    let twice = json!([
        execute(&agent, "same", "echo ran >> twice"),
        execute(&agent, "same", "echo ran >> twice"),
        ping("other")
    ]);
    let found = answers(agent.post(&twice).await).await;
    assert_eq!(found[r#""same""#].len(), 2, "{found:?}");
    for answer in &found[r#""same""#] {
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    assert_eq!(found[r#""other""#][0]["result"], json!({}));
    assert!(!web.bench.work.path().join("twice").exists());

    // A second request with the id of one in flight is refused, in a batch and alone.
    let tell = PidPipe::new(web.bench.work.path(), "tell");
    let long = agent.post(&execute(&agent, "long", &tell.script())).await;
    let process = tell.process().await;
    let again = json!([execute(&agent, "long", "echo no"), ping("b")]);
    let found = answers(agent.post(&again).await).await;
    assert_eq!(code(&found, &json!("long")), -32600);
    assert_eq!(found[r#""b""#][0]["result"], json!({}));
    let mut alone = agent.post(&execute(&agent, "long", "echo no")).await;
    let refused = alone.message().await.unwrap();
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("in flight"),
        "{refused}"
    );
    assert!(process.is_alive());
    drop(long);
    web.close().await;
}

#[tokio::test]
async fn two_clients_use_the_same_ids_at_the_same_time() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let ask = async |name: &str| {
        let agent = agent.initialize_with(REVISION).await;
        let batch = json!([execute(&agent, "1", &format!("echo {name}")), ping("2")]);
        let found = answers(agent.post(&batch).await).await;
        assert_eq!(found.len(), 2, "{found:?}");
        text(&found[r#""1""#][0]["result"])
    };
    let (ann, bob) = tokio::join!(ask("ann"), ask("bob"));
    assert!(ann.contains("ann") && !ann.contains("bob"), "{ann}");
    assert!(bob.contains("bob") && !bob.contains("ann"), "{bob}");
    web.close().await;
}

#[tokio::test]
async fn answers_come_as_they_are_ready_and_a_cancelled_member_has_none() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize_with(REVISION).await;
    let tell = PidPipe::new(web.bench.work.path(), "tell");
    let batch = json!([execute(&agent, "long", &tell.script()), ping("short")]);
    let mut answer = agent.post(&batch).await;
    let first = answer.message().await.unwrap();
    assert_eq!(first["id"], "short", "{first}");
    let process = tell.process().await;
    assert_eq!(agent.post(&cancel("long")).await.status, 202);
    assert_eq!(answer.message().await, None, "the stream ends");
    process.wait_exit().await;
    // The id is free again.
    let again = json!([execute(&agent, "long", "echo again")]);
    let found = answers(agent.post(&again).await).await;
    assert!(
        text(&found[r#""long""#][0]["result"]).contains("again"),
        "{found:?}"
    );
    web.close().await;
}

#[tokio::test]
async fn members_are_answered_when_their_session_ends() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize_with(REVISION).await;
    let one = PidPipe::new(web.bench.work.path(), "one");
    let two = PidPipe::new(web.bench.work.path(), "two");
    let batch = json!([
        execute(&agent, "one", &one.script()),
        ping("short"),
        execute(&agent, "two", &two.script())
    ]);
    let requested = agent.post(&batch).await;
    let (one, two) = (one.process().await, two.process().await);
    let alone = agent.post(&execute(&agent, "alone", "sleep 100")).await;
    assert!(agent.delete().await.status.is_success());
    let found = answers(requested).await;
    assert_eq!(found.len(), 3, "{found:?}");
    for id in ["one", "two"] {
        assert_eq!(code(&found, &json!(id)), -32_000);
    }
    assert_eq!(code(&answers(alone).await, &json!("alone")), -32_000);
    one.wait_exit().await;
    two.wait_exit().await;
    web.close().await;
}

#[tokio::test]
async fn a_batch_whose_client_leaves_stops_its_commands() {
    let web =
        HttpFixture::with(|change| change.mcp_options.resume = Duration::from_millis(100)).await;
    let agent = web.agent(&web.token).initialize_with(REVISION).await;
    let one = PidPipe::new(web.bench.work.path(), "one");
    let two = PidPipe::new(web.bench.work.path(), "two");
    let batch = json!([
        execute(&agent, "one", &one.script()),
        execute(&agent, "two", &two.script())
    ]);
    let requested = agent.post(&batch).await;
    let (one, two) = (one.process().await, two.process().await);
    drop(requested);
    one.wait_exit().await;
    two.wait_exit().await;
    web.close().await;
}
