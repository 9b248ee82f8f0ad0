//! Behaviour shared by all tools: both protocol eras, bad input, cancellation, shutdown.

use std::path::Path;
use std::time::{Duration, Instant};

use ostler_engine::ListFilter;
use ostler_model::error_code::ERROR_CODES;
use serde_json::{Value, json};

use crate::common::{PATIENCE, ServerFixture, normalize_text, text};

#[tokio::test]
async fn every_revision_shakes_hands() {
    let bench = ServerFixture::new().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = bench.raw_client("s");
        let params = json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}
        });
        let answer = client.request("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.notify("notifications/initialized", json!({})).await;
        let result = client.execute("echo hi", json!({})).await;
        assert!(result.get("resultType").is_none(), "{result}");
        assert!(text(&result).starts_with("hi\n"));
        client.close().await;
    }
}

#[tokio::test]
async fn the_newest_revision_needs_no_handshake() {
    let bench = ServerFixture::new().await;
    let mut client = bench.raw_client("s");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}
    });
    let found = client
        .request("server/discover", json!({"_meta": meta}))
        .await;
    assert!(
        found["result"].to_string().contains("2026-07-28"),
        "{found}"
    );
    let listed = client.request("tools/list", json!({"_meta": meta})).await;
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        7,
        "{listed}"
    );
    let arguments = client.script("echo hi", json!({}));
    let params = json!({"name": "command_execute", "arguments": arguments, "_meta": meta});
    let answer = client.request("tools/call", params).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    client.close().await;
}

#[tokio::test]
async fn an_unknown_tool_is_the_only_protocol_error() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let params = json!({"name": "command_run", "arguments": {}});
    let answer = client.request("tools/call", params).await;
    insta::assert_json_snapshot!(answer["error"]);
    for params in [
        json!({"name": "command_ps_list", "arguments": [1]}),
        json!({"name": 7}),
    ] {
        let answer = client.request("tools/call", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

/// Tools with invalid arguments.
const BAD_CALLS: &str = r#"
command_execute {}
command_execute {"command": "", "directory": "{dir}"}
command_execute {"command": "ls", "directory": ""}
command_execute {"command": "ls", "directory": "{dir}", "cwd": "/"}
command_execute {"command": "ls", "directory": "{dir}", "timeout": 0}
command_execute {"command": "ls", "directory": "{dir}", "timeout": 1.5}
command_execute {"command": "ls", "directory": "{dir}", "timeout": "15"}
command_execute {"command": "ls", "directory": "{dir}", "timeout": 1e18}
command_execute {"command": "ls", "directory": "{dir}", "args": "-l"}
command_execute {"command": "ls", "directory": "{dir}", "args": [1]}
command_execute {"command": "ls", "directory": "{dir}", "envs": {"A": true}}
command_execute {"command": "ls", "directory": "{dir}", "limit_lines": -1}
command_execute {"command": "ls", "directory": "{dir}", "isolation": "total"}
command_execute {"command": "ls", "directory": "{dir}", "encoding": "klingon"}
command_execute {"command": "ls", "directory": "missing"}
command_execute {"command": "ls", "directory": "{file}"}
command_execute {"command": "no-such-program", "directory": "{dir}"}
command_execute {"command": "l\u0000s", "directory": "{dir}"}
command_execute {"command": "ls", "directory": "{dir}", "envs": {"A=B": "c"}}
command_execute {"command": "ls", "directory": "{dir}", "args": ["{long}"]}
command_bg_start {"command": "ls", "directory": "{dir}"}
command_bg_start {"command": "no-such-program", "directory": "{dir}", "description": "d"}
command_bg_start {"command": "ls", "directory": "{dir}", "description": "d", "labels": "a"}
command_ps_list {"status": "alive"}
command_ps_list {"labels": {"a": "b"}}
command_ps_stop {"pid": 12}
command_ps_stop {"pid": "zzzzzzzz"}
command_ps_stop {"pid": "zzzzzzzz", "signal": "KILL"}
command_ps_logs {"pid": "not an id"}
command_ps_logs {"pid": "zzzzzzzz", "since": "yesterday"}
command_ps_logs {"pid": "zzzzzzzz", "grep": "a(b"}
command_ps_logs {"pid": "zzzzzzzz", "grep_mode": "word"}
command_ps_logs {"pid": "zzzzzzzz", "time_prefix_format": "%"}
command_ps_logs {"pid": "zzzzzzzz", "with_stdout": false}
command_ps_logs {"pid": "zzzzzzzz", "tail": -1, "follow_seconds": -1}
command_ps_clean {"pids": []}
command_ps_clean {"pids": "zzzzzzzz"}
command_ps_detail {"pid": ""}
command_ps_detail {"pid": null}
"#;

#[tokio::test]
async fn bad_input_says_what_where_and_what_is_allowed() {
    let bench = ServerFixture::new().await;
    std::fs::write(bench.work.path().join("file"), "").unwrap();
    let file = format!("{}/file", bench.directory());
    let mut client = bench.client("s").await;
    let dir = bench.directory();
    let long = "x".repeat(10 * 1024 * 1024);
    let calls = BAD_CALLS.trim().lines();
    let mut response = String::new();
    for (tool, arguments) in calls.filter_map(|line| line.split_once(' ')) {
        let arguments = arguments.replace("{dir}", &dir).replace("{file}", &file);
        let arguments: Value = serde_json::from_str(&arguments.replace("{long}", &long)).unwrap();
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let code = result["_meta"]["code"].as_str().unwrap();
        assert!(text(&result).starts_with(&format!("{code}: ")), "{result}");
        let shown: String = arguments.to_string().chars().take(160).collect();
        let shown = normalize_text(&shown.replace(&dir, "[directory]"));
        let said = normalize_text(&text(&result).replace(&dir, "[directory]"));
        response.push_str(&format!(
            "{tool} {shown}\n  {}\n",
            said.replace('\n', "\n  ")
        ));
    }
    assert!(
        bench
            .engine
            .list(&bench.caller(None), &ListFilter::default())
            .is_empty()
    );
    insta::assert_snapshot!(response);
}

#[tokio::test]
async fn a_catastrophic_pattern_is_stopped_by_its_budget() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client
        .start("head -c 40 /dev/zero | tr '\\0' a; echo", json!({}))
        .await;
    client.wait_end(&pid).await;
    let arguments = json!({"pid": pid, "grep": r"^(?=(a+)+$)(a|aa)+\1$"});
    let result = client.call("command_ps_logs", arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["code"], "value_error", "{result}");
    assert!(text(&result).contains("budget"), "{result}");
}

#[tokio::test]
async fn a_cancelled_call_ends_its_command_and_nothing_else() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let kept = client.start("exec sleep 300", json!({})).await;
    let arguments = client.script("touch begun; exec sleep 300", json!({"timeout": 300}));
    let params = json!({"name": "command_execute", "arguments": arguments});
    let id = client.send("tools/call", params).await;
    appeared(&bench.work.path().join("begun")).await;
    client
        .notify("notifications/cancelled", json!({"requestId": id}))
        .await;
    running(&bench, 1).await;
    let detail = client.call("command_ps_detail", json!({"pid": kept})).await;
    assert_eq!(detail["structuredContent"]["status"], "running");
    client
        .call("command_ps_stop", json!({"pid": kept, "force": true}))
        .await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_call_along() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let kept = client.start("exec sleep 300", json!({})).await;
    let arguments = client.script("touch begun; exec sleep 300", json!({"timeout": 300}));
    let params = json!({"name": "command_execute", "arguments": arguments});
    client.send("tools/call", params).await;
    appeared(&bench.work.path().join("begun")).await;
    client.close().await;
    running(&bench, 1).await;
    let info = bench.engine.info(&bench.caller(None), &kept).unwrap();
    assert!(!info.state.is_finished());
    bench
        .engine
        .end_session(&bench.caller(Some("s")))
        .await
        .unwrap();
    running(&bench, 0).await;
}

#[tokio::test]
async fn calls_do_not_wait_for_each_other() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let mut ids = Vec::new();
    for number in 0..8 {
        let script = format!("touch {number}; until [ -e 7 ]; do :; done; echo {number}");
        let arguments = client.script(&script, json!({}));
        let params = json!({"name": "command_execute", "arguments": arguments});
        ids.push(client.send("tools/call", params).await);
    }
    let last = *ids.last().unwrap();
    let answer = client.wait_response(last).await;
    assert!(text(&answer["result"]).starts_with("7\n"), "{answer}");
}

#[tokio::test]
async fn a_question_that_was_not_put_is_not_declared() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    for method in ["tasks/get", "prompts/get", "resources/subscribe", "no/such"] {
        let params = json!({"taskId": "t", "level": "info", "uri": "x://y"});
        let answer = client.request(method, params).await;
        assert!(answer.get("error").is_some(), "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_session_at_its_quota_is_refused_with_the_holders() {
    let bench = ServerFixture::with(|settings| settings.quotas.finite_per_session = 2).await;
    let mut client = bench.client("s").await;
    let holders = [
        client.start("exec sleep 300", json!({})).await,
        client.start("exec sleep 300", json!({})).await,
    ];
    let result = client.execute("echo", json!({"timeout": 1})).await;
    assert_eq!(result["_meta"]["code"], "quota_exceeded", "{result}");
    assert_eq!(result["_meta"]["retryable"], true);
    for pid in holders {
        assert!(text(&result).contains(&pid), "{result}");
        client
            .call("command_ps_stop", json!({"pid": pid, "force": true}))
            .await;
    }
}

#[test]
fn every_code_is_the_same_on_every_interface() {
    use ostler_api::Problem;
    use ostler_interface::error::ApiError;
    let mut table = String::new();
    for row in ERROR_CODES {
        let failure = ApiError::new(row.code, "what").with_hint("do");
        let fields = Value::Object(failure.fields());
        let expected = json!({"code": row.name, "retryable": row.retryable, "rpc": row.rpc});
        assert_eq!(fields, expected);
        assert_eq!(failure.text(), format!("{}: what\nhint: do", row.name));
        let problem = Problem::from(failure);
        assert_eq!(
            (problem.status, problem.retryable),
            (row.http, row.retryable)
        );
        assert_eq!(&*problem.title, row.class);
        let back: Problem = serde_json::from_value(json!(problem)).unwrap();
        assert_eq!(back, problem);
        table.push_str(&format!(
            "{} {} {} {}\n",
            row.name, row.class, row.rpc, row.http
        ));
    }
    insta::assert_snapshot!(table);
}

/// Waits until as many executions run.
async fn running(bench: &ServerFixture, count: u64) {
    let mut activity = bench.engine.running_count_watch();
    let reached = activity.wait_for(|&running| running == count);
    tokio::time::timeout(PATIENCE, reached)
        .await
        .expect("in time")
        .unwrap();
}

/// Waits until a file is there.
async fn appeared(path: &Path) {
    let started = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    while !path.exists() {
        assert!(
            started.elapsed() < PATIENCE,
            "{} never came",
            path.display()
        );
        ticks.tick().await;
    }
}
