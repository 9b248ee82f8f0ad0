//! Notifications: what ended, crashed or printed is reported to the agent that started it, once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{McpTestClient, PATIENCE, ServerFixture, text};
use ostler_engine::{StartRequest, StopRequest, WaitFor};
use ostler_mcp::{ToolGroup, ToolSet};
use ostler_model::ByteString;
use serde_json::{Value, json};

const MESSAGE: &str = "notifications/message";
const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}
    })
}

/// The notification lines of a result, with varying values replaced.
fn notification_lines(result: &Value) -> Vec<String> {
    let text = text(result);
    let lines = text.lines().filter(|line| line.starts_with("[news: "));
    lines.map(without_seconds).collect()
}

fn without_seconds(line: &str) -> String {
    let seconds = regex::Regex::new(r"after [0-9.]+ s").unwrap();
    seconds.replace_all(line, "after N s").into_owned()
}

/// A call that is about no execution.
async fn look(client: &mut McpTestClient) -> Vec<String> {
    let missing = json!({"labels": ["there is none"]});
    notification_lines(&client.call("command_ps_list", missing).await)
}

/// A command that waits on a FIFO and then runs `then`.
async fn waits(bench: &ServerFixture, client: &mut McpTestClient, then: &str) -> (String, PathBuf) {
    static GATES: AtomicU32 = AtomicU32::new(0);
    let gate = format!("gate{}", GATES.fetch_add(1, Ordering::Relaxed));
    let gate = bench.work.path().join(gate);
    let fifo = gate.to_str().unwrap();
    client.execute(&format!("mkfifo {fifo}"), json!({})).await;
    let pid = client
        .start(&format!("read line < {fifo}; {then}"), json!({}))
        .await;
    (pid, gate)
}

fn open(gate: &Path) {
    std::fs::write(gate, "go\n").unwrap();
}

#[tokio::test]
async fn an_end_is_reported_at_once_and_on_the_next_answer_and_then_no_more() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let (pid, gate) = waits(
        &bench,
        &mut client,
        "echo warming up; echo boom >&2; exit 3",
    )
    .await;
    assert_eq!(look(&mut client).await, Vec::<String>::new());
    open(&gate);
    let message = client.notification(MESSAGE).await;
    assert_eq!(message["level"], "warning");
    assert_eq!(message["logger"], "ostler");
    let response = format!("{pid} (a test) exited 3 after N s: boom");
    assert_eq!(without_seconds(message["data"].as_str().unwrap()), response);
    assert_eq!(look(&mut client).await, [format!("[news: {response}]")]);
    assert_eq!(look(&mut client).await, Vec::<String>::new());
    assert_eq!(client.count_notifications(MESSAGE).await, 0);
}

#[tokio::test]
async fn success_is_a_notification_without_an_alarm() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let (pid, gate) = waits(&bench, &mut client, "echo done").await;
    open(&gate);
    let message = client.notification(MESSAGE).await;
    assert_eq!(message["level"], "info");
    let response = format!("[news: {pid} (a test) exited 0 after N s]");
    assert_eq!(look(&mut client).await, [response]);
}

#[tokio::test]
async fn what_a_response_contains_is_no_notification() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client.execute("exit 3", json!({})).await;
    assert_eq!(notification_lines(&result), Vec::<String>::new());

    let waited = client.start("exec sleep 0.1", json!({})).await;
    let arguments = json!({"pid": waited, "follow_seconds": 40});
    let result = client.call("command_ps_logs", arguments).await;
    assert_eq!(notification_lines(&result), Vec::<String>::new());

    let stopped = client.start("exec sleep 300", json!({})).await;
    let arguments = json!({"pid": stopped, "force": true});
    let result = client.call("command_ps_stop", arguments).await;
    assert_eq!(notification_lines(&result), Vec::<String>::new());

    assert_eq!(look(&mut client).await, Vec::<String>::new());
    assert_eq!(client.count_notifications(MESSAGE).await, 0);
}

/// Another client stops it.
async fn stop(bench: &ServerFixture, pid: &str) {
    let request = StopRequest {
        force: true,
        reason: Some("too loud".to_owned()),
        ..StopRequest::default()
    };
    let person = bench.caller(None);
    bench.engine.stop(&person, pid, request).await.unwrap();
}

#[tokio::test]
async fn a_stop_by_another_client_is_a_notification() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client.start("exec sleep 300", json!({})).await;
    stop(&bench, &pid).await;
    client.notification(MESSAGE).await;
    let response = format!("[news: {pid} (a test) stopped (too loud), ended by SIGKILL after N s]");
    assert_eq!(look(&mut client).await, [response]);
}

#[tokio::test]
async fn every_client_of_the_session_is_notified_and_no_other() {
    let bench = ServerFixture::new().await;
    let mut one = bench.client("s").await;
    let mut two = bench.client("s").await;
    let mut other = bench.client("other").await;
    let (_, gate) = waits(&bench, &mut one, "exit 1").await;
    open(&gate);
    one.notification(MESSAGE).await;
    two.notification(MESSAGE).await;
    assert_eq!(other.count_notifications(MESSAGE).await, 0);
    assert_eq!(look(&mut other).await, Vec::<String>::new());
    assert_eq!(look(&mut two).await.len(), 1);
    assert_eq!(look(&mut one).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_level_that_was_set_is_kept_to() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let answer = client
        .request("logging/setLevel", json!({"level": "warning"}))
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    let (_, gate) = waits(&bench, &mut client, "exit 0").await;
    open(&gate);
    let (_, gate) = waits(&bench, &mut client, "exit 1").await;
    open(&gate);
    let message = client.notification(MESSAGE).await;
    assert_eq!(message["level"], "warning", "{message}");
    assert_eq!(client.count_notifications(MESSAGE).await, 0);
    let answer = client
        .request("logging/setLevel", json!({"level": "loud"}))
        .await;
    assert!(answer.get("error").is_some(), "{answer}");

    let mut modern = bench.raw_client("s");
    let params = json!({"level": "info", "_meta": meta()});
    let answer = modern.request("logging/setLevel", params).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[tokio::test]
async fn a_subscriber_is_notified_by_resource_and_reads_it_once() {
    let bench = ServerFixture::new().await;
    let mut client = bench.raw_client("s");
    let filter = json!({"resourceSubscriptions": ["proc://news"]});
    let params = json!({"notifications": filter, "_meta": meta()});
    client.send("subscriptions/listen", params).await;
    client.notification(ACKNOWLEDGED).await;
    let mut agent = bench.client("s").await;
    let (pid, gate) = waits(&bench, &mut agent, "echo oh no; exit 4").await;
    open(&gate);
    assert_eq!(client.notification(UPDATED).await["uri"], "proc://news");
    for _ in 0..2 {
        let params = json!({"uri": "proc://news", "_meta": meta()});
        let answer = client.request("resources/read", params).await;
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        let document: Value = serde_json::from_str(text).unwrap();
        let item = &document["news"][0];
        assert_eq!(item["pid"], pid.as_str());
        assert_eq!(item["failed"], true);
        assert!(
            item["text"].as_str().unwrap().ends_with(": oh no"),
            "{item}"
        );
    }
    assert_eq!(look(&mut agent).await, Vec::<String>::new());
}

/// An execution ended before its response was sent: the response may have said `running`, so the
/// end is reported, by the line on a later response or by a message.
#[tokio::test]
async fn the_end_of_a_short_background_command_is_a_notification_too() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let (mut pids, mut lines) = (Vec::new(), String::new());
    for _ in 0..10 {
        let arguments = client.script("exit 1", json!({"description": "d"}));
        let started = client.call("command_bg_start", arguments).await;
        let started_as = &started["structuredContent"];
        if started_as["status"] == "running" {
            pids.push(started_as["pid"].as_str().unwrap().to_owned());
        }
        lines.extend(notification_lines(&started));
    }
    while !pids.iter().all(|pid| lines.contains(pid)) {
        let message = client.notification(MESSAGE).await;
        lines.push_str(message["data"].as_str().unwrap());
    }
}

#[tokio::test]
async fn a_flood_is_one_line_that_counts_the_rest() {
    let bench = ServerFixture::with(|settings| settings.quotas.finite_per_session = 100).await;
    let mut client = bench.client("s").await;
    let caller = bench.caller(Some("s"));
    for _ in 0..40 {
        let request = StartRequest::argv(["false"], ByteString::from(bench.work.path()));
        let info = bench.engine.start(&caller, request).await.unwrap();
        let id = info.id.short();
        let ended = bench
            .engine
            .wait(&caller, &id, &WaitFor::Exit, Some(PATIENCE))
            .await;
        ended.unwrap();
    }
    for _ in 0..40 {
        client.notification(MESSAGE).await;
    }
    let lines = look(&mut client).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].chars().count() < 1_000, "{lines:?}");
    let more = regex::Regex::new(r"; and (\d+) more\]$").unwrap();
    let more: usize = more.captures(&lines[0]).unwrap()[1].parse().unwrap();
    assert_eq!(more + lines[0].matches("exited 1").count(), 40, "{lines:?}");
    assert_eq!(look(&mut client).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_end_of_a_session_is_no_notification_to_a_later_one() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    client.start("exec sleep 300", json!({})).await;
    let ended = client.start("exit 1", json!({})).await;
    client.notification(MESSAGE).await;
    client.close().await;
    let caller = bench.caller(Some("s"));
    bench.mcp_state.end_session(&caller).await.unwrap();
    assert!(bench.engine.info(&caller, &ended).is_err());
    let mut client = bench.client("s").await;
    assert_eq!(look(&mut client).await, Vec::<String>::new());
    assert_eq!(client.count_notifications(MESSAGE).await, 0);
}

#[tokio::test]
async fn words_that_break_lines_stay_in_theirs() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let script = r"printf 'a\033[31m red\rb\tc\n\n' >&2; exit 1";
    let pid = client
        .start(script, json!({"description": "two\nlines"}))
        .await;
    client.notification(MESSAGE).await;
    let response = format!("[news: {pid} (two lines) exited 1 after N s: b c red]");
    let lines = look(&mut client).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with(&response[..response.len() - 10]),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_watched_line_is_a_notification() {
    let bench = ServerFixture::new().await;
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Core]))
        .await;
    let gate = bench.work.path().join("gate");
    let script = "mkfifo gate; echo up; read line < gate; echo 'ready in 300 ms'; exec sleep 300";
    let arguments = json!({
        "command": script, "cwd": bench.directory(), "description": "a server",
        "wait_ms": 0, "notify": "ready in"
    });
    let started = client.call("exec", arguments).await;
    let pid = started["_meta"]["ostler/result"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(client.count_notifications(MESSAGE).await, 0);
    let caller = bench.caller(Some("s"));
    let until = WaitFor::Pattern(ostler_journal::Pattern::new("^up$").unwrap());
    bench
        .engine
        .wait(&caller, &pid, &until, Some(PATIENCE))
        .await
        .unwrap();
    open(&gate);
    let message = client.notification(MESSAGE).await;
    assert_eq!(message["level"], "info");
    let response = format!("{pid} (a server) printed \"ready in 300 ms\"");
    assert_eq!(message["data"], response.as_str());
    let listed = client.call("process", json!({})).await;
    assert_eq!(notification_lines(&listed), [format!("[news: {response}]")]);
    stop(&bench, &pid).await;
}

#[tokio::test]
async fn a_session_watches_for_so_many_patterns_and_no_more() {
    let bench = ServerFixture::with(|settings| settings.quotas.finite_per_session = 100).await;
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Core]))
        .await;
    for number in 1..=17 {
        let arguments = json!({"command": ["sleep", "300"], "wait_ms": 0, "notify": "never"});
        let started = client.call("exec", arguments).await;
        let refused = text(&started).contains("allowed: 16");
        assert_eq!(refused, number > 16, "{number}: {started}");
    }
    client.close().await;
    bench.mcp_state.close().await;
    bench
        .mcp_state
        .end_session(&bench.caller(Some("s")))
        .await
        .unwrap();
}

/// Executions running when an engine was killed: their ends are reported to the session that comes
/// back, once, and not again after the next restart.
#[tokio::test]
async fn ends_without_a_daemon_are_notified_when_the_session_returns() {
    let before = ServerFixture::new().await;
    let mut client = before.client("s").await;
    let response = client.start("exit 7", json!({})).await;
    client.notification(MESSAGE).await;
    let pid = client.start("exec sleep 300", json!({})).await;
    // The state as a killed engine would leave it.
    let state = tempfile::tempdir().unwrap();
    let copied = std::process::Command::new("cp")
        .args(["-a", &format!("{}/.", before.state.path().display())])
        .arg(state.path())
        .status();
    assert!(copied.unwrap().success());
    let caller = before.caller(Some("s"));
    before.mcp_state.end_session(&caller).await.unwrap();

    let after = ServerFixture::with_state(state, |_| {}).await;
    let mut other = after.client("other").await;
    let mut client = after.client("s").await;
    eprintln!(
        "{:?}",
        after
            .engine
            .list(&caller, &ostler_engine::ListFilter::default())
    );
    let message = client.notification(MESSAGE).await;
    assert_eq!(message["level"], "warning");
    let lines = look(&mut client).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains(&pid) && lines[0].contains("lost"),
        "{lines:?}"
    );
    assert!(!lines[0].contains(&response), "{lines:?}");
    assert_eq!(look(&mut client).await, Vec::<String>::new());
    assert_eq!(look(&mut other).await, Vec::<String>::new());
    client.close().await;
    other.close().await;
    let ServerFixture { engine, state, .. } = after;
    engine.shutdown().await;
    drop(engine);

    let again = ServerFixture::with_state(state, |_| {}).await;
    let mut client = again.client("s").await;
    assert_eq!(look(&mut client).await, Vec::<String>::new());
}

/// The feed may lose events under load; it then reads the list.
#[tokio::test]
async fn nothing_is_missed_when_the_feed_falls_behind() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let (pid, gate) = waits(&bench, &mut client, "exit 1").await;
    let caller = bench.caller(Some("other"));
    let noisy = {
        let mut request = StartRequest::argv(["cat"], ByteString::from(bench.work.path()));
        request.stdin = ostler_engine::StdinRequest::Open;
        let info = bench.engine.start(&caller, request).await.unwrap();
        info.id.short()
    };
    open(&gate);
    let ended = WaitFor::Exit;
    let caller_s = bench.caller(Some("s"));
    bench
        .engine
        .wait(&caller_s, &pid, &ended, Some(PATIENCE))
        .await
        .unwrap();
    for _ in 0..3_000 {
        bench
            .engine
            .write(&caller, &noisy, b"x\n".to_vec())
            .await
            .unwrap();
    }
    client.notification(MESSAGE).await;
    let lines = look(&mut client).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(&pid), "{lines:?}");
}
