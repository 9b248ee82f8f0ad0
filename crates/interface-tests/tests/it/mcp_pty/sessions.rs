//! Lists, ends, notifications, leases.

use serde_json::{Value, json};

use super::agent::{agent, did, failed, fields, plain, read, run, shell, start, write};
use crate::common::{McpTestClient, ServerFixture, text};

async fn list(client: &mut McpTestClient, more: Value) -> Vec<Value> {
    let result = did(client, "pty_list", more).await;
    let sessions = result["structuredContent"]["sessions"].as_array();
    sessions.unwrap().clone()
}

async fn close(client: &mut McpTestClient, arguments: Value) -> Vec<Value> {
    let result = did(client, "pty_close", arguments).await;
    result["structuredContent"]["results"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn sessions_are_listed_with_what_is_known_of_them() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    assert_eq!(list(&mut client, json!({})).await, Vec::<Value>::new());
    let script = r"printf '\033]0;a title\007'; exec sleep 1000";
    let arguments = json!({
        "command": ["sh", "-c", script], "cols": 90, "rows": 30,
        "description": "sleeper", "labels": ["night"]
    });
    let (running, _) = start(&mut client, arguments).await;
    let (ended, _) = start(&mut client, json!({"command": ["sh", "-c", "exit 4"]})).await;
    let (killed, _) = start(&mut client, json!({"command": ["sleep", "1000"]})).await;
    close(&mut client, json!({"sessions": [killed]})).await;
    // What has no terminal is no session.
    did(&mut client, "exec", json!({"command": ["true"]})).await;

    let all = list(&mut client, json!({})).await;
    let ids: Vec<&str> = all
        .iter()
        .map(|it| it["session"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [killed.as_str(), &ended, &running]);
    let sleeper = &all[2];
    for (field, value) in [
        ("status", json!("running")),
        ("description", json!("sleeper")),
        ("labels", json!(["night"])),
        ("cols", json!(90)),
        ("rows", json!(30)),
        ("title", json!("a title")),
        ("exit_code", json!(null)),
        ("end_time", json!(null)),
        ("output_length", json!(12)),
    ] {
        assert_eq!(sleeper[field], value, "{field}: {sleeper}");
    }
    assert!(sleeper["pid"].is_number() && sleeper["start_time"].is_string());
    assert_eq!(all[1]["status"], "exited");
    assert_eq!(all[1]["exit_code"], 4);
    assert!(all[1]["end_time"].is_string());
    assert_eq!(all[0]["status"], "killed");
    for (status, id) in [("running", running), ("exited", ended), ("killed", killed)] {
        let some = list(&mut client, json!({"status": status})).await;
        assert_eq!(some.len(), 1, "{status}");
        assert_eq!(some[0]["session"], id, "{status}");
    }
}

#[tokio::test]
async fn sessions_end_by_any_signal_and_are_forgotten_on_request() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let shell = shell(&mut client).await;
    let (sleeper, _) = start(&mut client, json!({"command": ["sleep", "1000"]})).await;
    let results = close(
        &mut client,
        json!({"sessions": [shell, sleeper, "zzzzzzzz"]}),
    )
    .await;
    assert_eq!(results[0]["session"], shell, "{results:?}");
    assert_eq!(results[0]["status"], "killed", "{results:?}");
    assert_eq!(results[1]["status"], "killed", "{results:?}");
    assert_eq!(results[2]["error"], "session_not_found", "{results:?}");
    assert_eq!(results[2]["error_code"], "SESSION_NOT_FOUND");

    let script = "trap 'echo got it' USR1; echo ready; while :; do sleep 0.05; done";
    let (stubborn, _) = start(&mut client, json!({"command": ["bash", "-c", script]})).await;
    read(&mut client, &stubborn, json!({"pattern": "ready"})).await;
    let arguments = json!({"sessions": [stubborn], "signal": "USR1", "forget": true});
    let results = close(&mut client, arguments).await;
    assert_eq!(results[0]["result"], "SIGUSR1 sent; it still runs");
    assert_eq!(results[0]["forgotten"], false);
    read(&mut client, &stubborn, json!({"pattern": "got it"})).await;
    let arguments = json!({"sessions": [stubborn], "signal": "INT"});
    let results = close(&mut client, arguments).await;
    assert_eq!(results[0]["signal"], "SIGINT", "{results:?}");

    let arguments = json!({"sessions": [stubborn, shell], "signal": "KILL", "forget": true});
    let results = close(&mut client, arguments).await;
    let response = results[1]["result"].as_str().unwrap();
    assert!(response.starts_with("it had ended before: "), "{response}");
    assert_eq!(results[1]["forgotten"], true);
    failed(&mut client, "pty_read", json!({"session": shell})).await;
    assert_eq!(list(&mut client, json!({})).await.len(), 1);
}

#[tokio::test]
async fn an_end_without_a_waiter_reaches_the_next_response() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let other = shell(&mut client).await;
    let script = json!({"session": id, "script": "sleep 0.3; exit 9", "wait_ms": 0});
    did(&mut client, "pty_run", script).await;
    let caller = bench.caller(Some("s"));
    let exit = ostler_engine::WaitFor::Exit;
    bench.engine.wait(&caller, &id, &exit, None).await.unwrap();
    let result = run(&mut client, &other, "echo here").await;
    let news = text(&result);
    assert!(news.contains("[news: "), "{news}");
    assert!(news.contains("exited 9"), "{news}");
}

#[tokio::test]
async fn a_start_without_a_published_id_ends_with_its_request() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let arguments = json!({"command": ["sleep", "1000"], "wait_ms": 40_000});
    let params = json!({"name": "pty_start", "arguments": arguments});
    let call = client.send("tools/call", params).await;
    while list(&mut client, json!({"status": "running"}))
        .await
        .is_empty()
    {}
    let params = json!({"requestId": call});
    client.notify("notifications/cancelled", params).await;
    while !list(&mut client, json!({"status": "running"}))
        .await
        .is_empty()
    {}
}

#[tokio::test]
async fn only_the_lease_holder_types() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let person = bench.caller(None);
    let lease = bench
        .engine
        .acquire_lease(&person, &id, "ostler attach on pts/3", false);
    let lease = lease.await.unwrap();
    let typing = json!({"session": id, "text": "mine"});
    let refused = failed(&mut client, "pty_write", typing).await;
    assert_eq!(refused["_meta"]["code"], "process_control_error");
    insta::assert_snapshot!(plain(&refused));
    for (tool, more) in [
        ("pty_run", json!({"script": "true"})),
        ("pty_resize", json!({"cols": 100, "rows": 30})),
    ] {
        let arguments = super::agent::with(json!({"session": id}), more);
        let refused = text(&failed(&mut client, tool, arguments).await);
        assert!(
            refused.contains("ostler attach on pts/3"),
            "{tool}: {refused}"
        );
    }
    let looked = read(&mut client, &id, json!({})).await;
    assert_eq!(fields(&looked)["holder"]["name"], "ostler attach on pts/3");
    assert!(
        text(&looked).contains("until it is handed back"),
        "{}",
        text(&looked)
    );
    let listed = list(&mut client, json!({})).await;
    assert_eq!(listed[0]["holder"]["name"], "ostler attach on pts/3");
    drop(lease);
    write(&mut client, &id, json!({"text": "true"})).await;
}
