//! Resources: lists, templates, completion, reading, and subscriptions of both eras.

mod subscriptions;

use std::time::Duration;

use crate::common::{McpTestClient, PATIENCE, ServerFixture};
use ostler_engine::{StartRequest, StopRequest};
use ostler_model::ByteString;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The metadata every request of revision 2026-07-28 carries.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}
    })
}

async fn read(client: &mut McpTestClient, uri: &str) -> Value {
    client.request("resources/read", json!({"uri": uri})).await
}

/// The text of the one content.
fn body(answer: &Value) -> &str {
    let contents = answer["result"]["contents"].as_array();
    let contents = contents.unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(contents.len(), 1, "{answer}");
    contents[0]["text"].as_str().unwrap()
}

fn document(answer: &Value) -> Value {
    serde_json::from_str(body(answer)).unwrap()
}

async fn listen(client: &mut McpTestClient, filter: Value) -> u64 {
    let params = json!({"notifications": filter, "_meta": meta()});
    let id = client.send("subscriptions/listen", params).await;
    client.notification(ACKNOWLEDGED).await;
    id
}

#[tokio::test]
async fn only_what_is_served_is_declared() {
    let bench = ServerFixture::new().await;
    let client = bench.client("s").await;
    let declared = &client.hello["capabilities"];
    let expected = json!({
        "tools": {}, "resources": {"subscribe": true, "listChanged": true},
        "completions": {}, "logging": {}
    });
    assert_eq!(declared, &expected);
    let mut client = bench.raw_client("s");
    let found = client
        .request("server/discover", json!({"_meta": meta()}))
        .await;
    let declared = &found["result"]["capabilities"];
    assert!(declared.get("logging").is_none(), "{found}");
    assert_eq!(declared["resources"], expected["resources"]);
}

#[tokio::test]
async fn a_process_is_listed_described_and_read() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client.start("echo out; echo err >&2", json!({})).await;
    client.wait_end(&pid).await;

    let listed = client.request("resources/list", json!({})).await;
    let resources = listed["result"]["resources"].as_array().unwrap();
    let uris: Vec<&str> = resources
        .iter()
        .map(|it| it["uri"].as_str().unwrap())
        .collect();
    let (one, log) = (format!("proc://{pid}"), format!("proc://{pid}/log"));
    assert_eq!(uris, ["proc://", "proc://news", &one, &log]);
    assert_eq!(resources[3]["size"], 8);

    let all = document(&read(&mut client, "proc://").await);
    assert_eq!(all["processes"][0]["pid"], pid.as_str());
    assert_eq!(all["processes"][0]["exit_code"], 0);
    assert_eq!(all["omitted"], 0);

    let detail = document(&read(&mut client, &one).await);
    assert_eq!(detail["pid"], pid.as_str());
    assert_eq!(detail["status"], "completed");

    let answer = read(&mut client, &log).await;
    let text = body(&answer);
    assert!(text.contains("out\n") && text.contains("err\n"), "{text}");
    assert!(text.ends_with("[status: completed, exit code 0]"), "{text}");
    let fields = &answer["result"]["contents"][0]["_meta"]["ostler/result"];
    assert_eq!(fields["id"], pid.as_str());
    assert!(fields.get("omitted").is_none());

    let only = read(&mut client, &format!("{log}?stream=stderr")).await;
    assert!(body(&only).starts_with("err\n["), "{only}");

    let events = document(&read(&mut client, &format!("{one}/events")).await);
    let names: Vec<&str> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"created"));
    assert_eq!(names.last(), Some(&"finished"));
}

#[tokio::test]
async fn what_may_be_cached_says_how_long_in_the_newest_revision() {
    let bench = ServerFixture::new().await;
    let mut client = bench.raw_client("s");
    let started = |script: &str| {
        let directory = bench.directory();
        json!({"name": "command_bg_start", "_meta": meta(), "arguments": {
            "command": "sh", "args": ["-c", script], "directory": directory, "description": "d"
        }})
    };
    let mut pids = Vec::new();
    for script in ["true", "exec sleep 300"] {
        let answer = client.request("tools/call", started(script)).await;
        let pid = answer["result"]["structuredContent"]["pid"].as_str();
        pids.push(pid.unwrap_or_else(|| panic!("{answer}")).to_owned());
    }
    let until = ostler_engine::WaitFor::Exit;
    let caller = bench.caller(Some("s"));
    bench
        .engine
        .wait(&caller, &pids[0], &until, None)
        .await
        .unwrap();
    for (pid, ttl_ms) in [(&pids[0], 3_600_000), (&pids[1], 0)] {
        for uri in [format!("proc://{pid}"), format!("proc://{pid}/log")] {
            let params = json!({"uri": uri, "_meta": meta()});
            let answer = client.request("resources/read", params).await;
            assert_eq!(answer["result"]["ttlMs"], ttl_ms, "{uri}");
            assert_eq!(answer["result"]["cacheScope"], "private");
        }
    }
    stop(&bench, "s", &pids[1]).await;
}

async fn stop(bench: &ServerFixture, session: &str, pid: &str) {
    let request = StopRequest {
        force: true,
        ..StopRequest::default()
    };
    let caller = bench.caller(Some(session));
    bench.engine.stop(&caller, pid, request).await.unwrap();
}

#[tokio::test]
async fn lists_come_in_pages_newest_first() {
    let bench = ServerFixture::with(|settings| settings.quotas.finite_per_session = 100).await;
    let caller = bench.caller(Some("s"));
    let mut started = Vec::new();
    for _ in 0..60 {
        let request = StartRequest::argv(["true"], ByteString::from(bench.work.path()));
        let info = bench.engine.start(&caller, request).await.unwrap();
        started.push(info.id.short());
    }
    let mut client = bench.client("s").await;
    let (mut found, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() {
            json!({})
        } else {
            json!({"cursor": cursor})
        };
        let mut answer = client.request("resources/list", params).await;
        let resources = answer["result"]["resources"].as_array().unwrap();
        assert!(resources.len() <= 52);
        let details = resources
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned());
        found.extend(details.filter(|name| name.len() == 8));
        pages += 1;
        cursor = answer["result"]["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    started.reverse();
    assert_eq!(found, started);
    assert_eq!(pages, 3);
    let answer = client
        .request("resources/list", json!({"cursor": "x"}))
        .await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");

    let complete = |value: &str| {
        json!({
            "ref": {"type": "ref/resource", "uri": "proc://{id}"},
            "argument": {"name": "id", "value": value}
        })
    };
    let answer = client.request("completion/complete", complete("")).await;
    let completion = &answer["result"]["completion"];
    assert_eq!(completion["values"], json!(started));
    assert_eq!(completion["total"], 60);
    assert_eq!(completion["hasMore"], false);
    let start_response = started[30][..7].to_uppercase();
    let answer = client
        .request("completion/complete", complete(&start_response))
        .await;
    let values = answer["result"]["completion"]["values"].as_array().unwrap();
    assert!(values.contains(&json!(started[30])), "{answer}");
    assert!(values.len() < 3, "{answer}");
}

#[tokio::test]
async fn templates_have_titles_and_their_variables_complete() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let answer = client.request("resources/templates/list", json!({})).await;
    let templates = answer["result"]["resourceTemplates"].as_array().unwrap();
    let uris: Vec<&Value> = templates.iter().map(|it| &it["uriTemplate"]).collect();
    let log = "proc://{id}/log{?stream,tail,cursor,limit}";
    let (events, screen) = ("proc://{id}/events", "proc://{id}/screen");
    assert_eq!(uris, ["proc://{id}", log, events, screen]);
    assert!(templates.iter().all(|it| it["title"].is_string()));
    for (uri, name, value, expected) in [
        (log, "stream", "", json!(["stdout", "stderr", "pty"])),
        (log, "stream", "std", json!(["stdout", "stderr"])),
        (log, "tail", "", json!([])),
        ("proc://{id}", "stream", "", json!([])),
        ("file:///{path}", "path", "", json!([])),
    ] {
        let params = json!({
            "ref": {"type": "ref/resource", "uri": uri},
            "argument": {"name": name, "value": value}
        });
        let answer = client.request("completion/complete", params).await;
        assert_eq!(
            answer["result"]["completion"]["values"], expected,
            "{answer}"
        );
    }
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}
    });
    let answer = client.request("completion/complete", params).await;
    assert_eq!(answer["result"]["completion"]["values"], json!([]));
}

#[tokio::test]
async fn a_long_log_stays_in_budget_and_reads_on_without_loss() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client.start("seq 1 20000", json!({})).await;
    client.wait_end(&pid).await;
    let log = format!("proc://{pid}/log");
    let answer = read(&mut client, &log).await;
    let text = body(&answer);
    assert!(text.chars().count() <= 20_000);
    assert!(text.starts_with("1\n2\n"));
    assert!(text.contains("\n20000\n[status: completed"), "{text}");
    let omitted = &answer["result"]["contents"][0]["_meta"]["ostler/result"]["omitted"];
    let shown = text
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .count();
    assert_eq!(omitted["lines"], 20_000 - shown);
    let cursor = omitted["cursor"].as_str().unwrap();
    assert!(
        text.contains(&format!("left out here: {log}?cursor={cursor}]")),
        "{text}"
    );

    let mut lines = Vec::new();
    let mut next = Some("0".to_owned());
    while let Some(cursor) = next {
        let answer = read(&mut client, &format!("{log}?cursor={cursor}")).await;
        let text = body(&answer);
        assert!(text.chars().count() <= 20_000);
        lines.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        let fields = &answer["result"]["contents"][0]["_meta"]["ostler/result"];
        next = fields["omitted"]["cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(lines, (1..=20_000).collect::<Vec<_>>());

    let tail = read(&mut client, &format!("{log}?tail=3")).await;
    assert!(body(&tail).starts_with("19998\n19999\n20000\n["), "{tail}");
    let head = read(&mut client, &format!("{log}?limit=2")).await;
    assert!(body(&head).starts_with("1\n2\n["), "{head}");
    assert!(body(&head).contains("left out here"), "{head}");
}

#[tokio::test]
async fn unknown_and_foreign_are_reported_alike_in_both_eras() {
    let bench = ServerFixture::new().await;
    let mut mine = bench.client("mine").await;
    let foreign = mine.start("true", json!({})).await;
    let mut modern = bench.raw_client("theirs");
    let mut legacy = bench.client("theirs").await;
    for rest in ["", "/log", "/events"] {
        let mut response = Vec::new();
        for id in [foreign.as_str(), "zzzzzzzz", "no id"] {
            let uri = format!("proc://{id}{rest}");
            let mut answer = read(&mut legacy, &uri).await;
            assert_eq!(answer["error"]["code"], -32002, "{answer}");
            assert_eq!(answer["error"]["data"]["uri"].take(), uri.as_str());
            response.push(answer["error"].take());
            let params = json!({"uri": uri, "_meta": meta()});
            let answer = modern.request("resources/read", params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            let params = json!({"uri": uri});
            let answer = legacy.request("resources/subscribe", params).await;
            assert_eq!(answer["error"]["code"], -32002, "{answer}");
            let filter = json!({"resourceSubscriptions": [uri]});
            let request = listen(&mut modern, filter).await;
            let answer = modern.wait_response(request).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        response.dedup();
        assert_eq!(response.len(), 1, "{response:?}");
    }
    let listed = legacy.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 2);
    let all = document(&read(&mut legacy, "proc://").await);
    assert_eq!(all["processes"], json!([]));
}

#[tokio::test]
async fn a_bad_query_says_what_is_allowed() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let answer = read(&mut client, "proc://k3v9x0qa/log?stream=all").await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("stderr"), "{message}");
}
