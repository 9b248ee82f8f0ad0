//! The tools of profile `core`, each through whole conversations.

mod control;
mod input;
mod lists;
mod output;
mod repl;
mod run;
mod terminal;
mod waits;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{McpTestClient, PATIENCE, ServerFixture, normalize_text, text};
use ostler_mcp::{GROUPS, ToolSet};
use serde_json::{Value, json};

/// The most bytes the answer to `tools/list` has in the default profile.
const TOOLS_LIST_BYTES: usize = 10_000;

async fn client(bench: &ServerFixture) -> McpTestClient {
    bench.client_with("s", ToolSet::default()).await
}

async fn exec(client: &mut McpTestClient, script: &str, more: Value) -> Value {
    client
        .call("exec", with(json!({"command": script}), more))
        .await
}

/// Starts a script and returns its id at once.
async fn start(client: &mut McpTestClient, script: &str, more: Value) -> String {
    let result = exec(client, script, with(json!({"wait_ms": 0}), more)).await;
    assert_eq!(result["isError"], false, "{result}");
    id(&result)
}

async fn process(client: &mut McpTestClient, action: &str, more: Value) -> Value {
    client
        .call("process", with(json!({"action": action}), more))
        .await
}

async fn control(client: &mut McpTestClient, action: &str, more: Value) -> Value {
    let arguments = with(json!({"action": action}), more);
    client.call("process_control", arguments).await
}

/// The first result of a control.
async fn control_ok(client: &mut McpTestClient, action: &str, more: Value) -> Value {
    let at_once = match action {
        "write" | "close_input" => json!({"wait_ms": 0}),
        _ => json!({}),
    };
    let result = control(client, action, with(at_once, more)).await;
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["results"][0].clone()
}

fn with(mut arguments: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

fn fields(result: &Value) -> &Value {
    &result["_meta"]["ostler/result"]
}

fn id(result: &Value) -> String {
    let id = fields(result)["id"].as_str();
    id.unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn cursor(result: &Value) -> String {
    fields(result)["cursor"].as_str().unwrap().to_owned()
}

/// The lines between the header and the notes after the output.
fn output(result: &Value) -> Vec<String> {
    let text = text(result);
    let lines = text.lines();
    let lines = lines.filter(|line| !line.starts_with('[') && !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// An answer with varying values replaced.
fn plain(result: &Value) -> String {
    let mut text = normalize_text(&text(result));
    for (rule, by) in [
        (r"(?m)^\[[0-9a-z]{8} ", "[ID "),
        (r#""ids":\["[0-9a-z]{8}"\]"#, r#""ids":["ID"]"#),
        (r"process [0-9a-z]{8} ", "process ID "),
        (r"\d+\.\d+s\b", "TIME"),
        (r"cursor \d+\.\d+", "cursor CURSOR"),
        (r#""cursor":"\d+\.\d+""#, r#""cursor":"CURSOR""#),
    ] {
        text = regex::Regex::new(rule)
            .unwrap()
            .replace_all(&text, by)
            .into_owned();
    }
    text
}

#[tokio::test]
async fn the_default_list_of_tools_stays_small() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let answer = client.request("tools/list", json!({})).await;
    insta::assert_json_snapshot!(answer["result"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}
    });
    let mut modern = bench.raw_client_with("s", ToolSet::default());
    let listed = modern.request("tools/list", json!({"_meta": meta})).await;
    for answer in [answer, listed] {
        let bytes = answer["result"].to_string().len();
        assert!(bytes <= TOOLS_LIST_BYTES, "{bytes} bytes");
        for tool in answer["result"]["tools"].as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
            for (name, parameter) in tool["inputSchema"]["properties"].as_object().unwrap() {
                let about = parameter["description"].as_str().unwrap_or_default();
                assert!(!about.is_empty(), "{}: {name} says nothing", tool["name"]);
            }
        }
    }
}

#[tokio::test]
async fn the_hello_explains_the_tools_it_offers() {
    let bench = ServerFixture::new().await;
    for tools in [ToolSet::default(), ToolSet::from_groups(&GROUPS)] {
        let client = bench.client_with("s", tools).await;
        let instructions = client.hello["instructions"].as_str().unwrap();
        insta::assert_snapshot!(normalize_text(instructions));
        client.close().await;
    }
}

#[tokio::test]
async fn answers_read_alike() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let mut response = String::new();
    for arguments in [
        json!({"command": ["echo", "a  b", "$HOME", "*"]}),
        json!({"command": ["true"]}),
        json!({"command": "echo out; echo err >&2; exit 3"}),
        json!({"command": "kill -SEGV $$"}),
        json!({"command": "echo ${BASH_VERSION:+bash}", "shell": "bash"}),
        json!({"command": "echo out; exec sleep 300", "wait_ms": 400}),
        json!({"command": "exec sleep 300", "wait_ms": 0}),
        json!({"command": "echo out; exec sleep 300", "timeout": 1}),
        json!({"command": "sleep 300 & echo started"}),
        json!({"command": "echo ready on 80; exec sleep 300", "pattern": "ready on \\d+"}),
        json!({"command": "echo quiet; exec sleep 300", "idle_ms": 100}),
    ] {
        let requested = arguments.to_string();
        let result = client.call("exec", arguments).await;
        let is_error = result["isError"] == true;
        response.push_str(&format!("{requested} {is_error}\n{}\n\n", plain(&result)));
    }
    insta::assert_snapshot!(response);
    end(&bench).await;
}

#[tokio::test]
async fn programs_read_fields() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let result = exec(&mut client, "echo out; exit 3", json!({})).await;
    insta::assert_json_snapshot!(fields(&crate::common::normalize(&result)));
    assert!(result.get("structuredContent").is_none(), "{result}");
    let result = exec(&mut client, "exec sleep 300", json!({"wait_ms": 100})).await;
    insta::assert_json_snapshot!(fields(&crate::common::normalize(&result)));
    end(&bench).await;
}

#[tokio::test]
async fn a_command_gets_what_it_was_given() {
    let bench = ServerFixture::new().await;
    std::fs::create_dir(bench.work.path().join("sub")).unwrap();
    let mut client = client(&bench).await;
    let script = "cat; echo $MINE; pwd; printf '\\304\\343\\n'";
    let more = json!({
        "stdin": "given\n", "env": {"MINE": "set"}, "cwd": "sub", "encoding": "gbk"
    });
    let result = exec(&mut client, script, more).await;
    let directory = format!("{}/sub", bench.directory());
    assert_eq!(output(&result), ["given", "set", &directory, "你"]);
    let result = exec(&mut client, "pwd; cat", json!({})).await;
    assert_eq!(output(&result), [bench.directory()]);
}

/// Tools with invalid arguments.
const BAD_CALLS: &str = r#"
exec {}
exec {"command": ["ls"], "script": "ls"}
exec {"command": 7}
exec {"command": {"program": "ls"}}
exec {"command": "ls", "options": {"shel": "zsh"}}
exec {"command": "ls", "options": {"mode": "daemon"}}
exec {"command": "ls", "options": {"mode": "oneshot"}, "mode": "oneshot"}
exec {"command": "ls", "options": "keep"}
exec {"command": []}
exec {"command": [""]}
exec {"command": ["ls", 7]}
exec {"command": ["no-such-program"]}
exec {"command": ["ls -l"]}
exec {"command": ["ls"], "shell": "bash"}
exec {"command": "ls", "shell": "no-such-shell"}
exec {"command": "ls", "cwd": ""}
exec {"command": "ls", "cwd": "missing"}
exec {"command": "ls", "directory": "/"}
exec {"command": "ls", "stdin": "a", "input": "open"}
exec {"command": "ls", "input": "closed"}
exec {"command": "ls", "wait_ms": -1}
exec {"command": "ls", "wait_ms": "10"}
exec {"command": "ls", "timeout": 0}
exec {"command": "ls", "until": "soon"}
exec {"command": "ls", "until": "pattern"}
exec {"command": "ls", "until": "exit", "pattern": "a"}
exec {"command": "ls", "until": "pattern", "pattern": "a", "idle_ms": 5}
exec {"command": "ls", "pattern": "a(b"}
exec {"command": "ls", "notify": "["}
exec {"command": "ls", "network": ["a.example"]}
exec {"command": "ls", "isolation": "high", "network": ["https://a.example"]}
exec {"command": "ls", "isolation": "high", "network": 7}
exec {"command": "ls", "workspace": "overlay"}
exec {"command": "ls", "allow_degraded": ["moat"]}
exec {"command": "ls", "secrets": ["NOBODY_HAS_IT"]}
exec {"command": "ls", "limits": {"ram": "1G", "memory": "much"}}
exec {"command": "ls", "limits": {"pids": [1]}}
exec {"command": "ls", "isolation": "container"}
exec {"command": "ls", "isolation": "total"}
exec {"command": "ls", "encoding": "klingon"}
exec {"command": "ls", "max_chars": 100}
exec {"command": "ls", "on_prompt": "guess"}
exec {"command": "ls", "env": {"A=B": "c"}}
process {}
process {"action": "kill"}
process {"action": "list", "ids": ["zzzzzzzz"]}
process {"action": "output"}
process {"action": "output", "ids": []}
process {"action": "output", "ids": "zzzzzzzz"}
process {"action": "output", "id": "zzzzzzzz"}
process {"action": "screen", "ids": ["zzzzzzzz", "yyyyyyyy"]}
process {"action": "output", "ids": ["zzzzzzzz"]}
process {"action": "output", "ids": ["not an id"]}
process {"action": "output", "ids": ["zzzzzzzz", "yyyyyyyy"], "cursor": "0"}
process {"action": "output", "ids": ["zzzzzzzz"], "cursor": "end"}
process {"action": "output", "ids": ["zzzzzzzz"], "since": "yesterday"}
process {"action": "output", "ids": ["zzzzzzzz"], "raw": true, "tail": 3}
process {"action": "output", "ids": ["zzzzzzzz"], "wait_ms": 3}
process {"action": "wait", "ids": ["zzzzzzzz"], "until": "soon"}
process {"action": "detail", "ids": ["zzzzzzzz"], "tail": 3}
process_control {"action": "write", "ids": ["zzzzzzzz"]}
process_control {"action": "write", "ids": ["zzzzzzzz"], "text": "a"}
process_control {"action": "write", "ids": ["zzzzzzzz"], "keys": ["enter", "hyper-x"]}
process_control {"action": "signal", "ids": ["zzzzzzzz"], "signal": "LOUD"}
process_control {"action": "stop"}
process_control {"action": "stop", "ids": ["zzzzzzzz"], "signal": "KILL"}
process_control {"action": "notify", "ids": ["zzzzzzzz"], "pattern": "("}
"#;

#[tokio::test]
async fn bad_input_says_what_where_and_what_is_allowed() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let mut response = String::new();
    let calls = BAD_CALLS.trim().lines();
    for (tool, arguments) in calls.filter_map(|line| line.split_once(' ')) {
        let given: Value = serde_json::from_str(arguments).unwrap();
        let result = client.call(tool, given).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let code = result["_meta"]["code"].as_str().unwrap();
        assert!(text(&result).starts_with(&format!("{code}: ")), "{result}");
        let said = normalize_text(&text(&result).replace(&bench.directory(), "[directory]"));
        response.push_str(&format!(
            "{tool} {arguments}\n  {}\n",
            said.replace('\n', "\n  ")
        ));
    }
    let filter = ostler_engine::ListFilter::default();
    assert!(bench.engine.list(&bench.caller(None), &filter).is_empty());
    insta::assert_snapshot!(response);
}

/// The text around the output of an answer.
fn other_text(result: &Value) -> String {
    let text = text(result);
    let news = text.lines().filter(|line| line.starts_with("[news: "));
    news.map(|line| format!("{line}\n")).collect()
}

/// The resources an answer points at.
fn links(result: &Value) -> Vec<String> {
    let blocks = result["content"].as_array().unwrap().iter();
    let links = blocks.filter(|block| block["type"] == "resource_link");
    links
        .map(|link| link["uri"].as_str().unwrap().to_owned())
        .collect()
}

/// Ends what a test leaves running.
async fn end(bench: &ServerFixture) {
    let session = bench.caller(Some("s"));
    bench.engine.end_session(&session).await.unwrap();
}

/// Waits until as many executions run.
async fn wait_running(bench: &ServerFixture, count: u64) {
    let mut activity = bench.engine.running_count_watch();
    let reached = activity.wait_for(|&running| running == count);
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    reached.expect("in time").unwrap();
}

/// Waits until a file is there.
async fn wait_file(path: &Path) {
    let start_response = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    while !path.exists() {
        assert!(
            start_response.elapsed() < PATIENCE,
            "{} never came",
            path.display()
        );
        ticks.tick().await;
    }
}

/// Whether a process is there and no zombie.
fn is_running(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
