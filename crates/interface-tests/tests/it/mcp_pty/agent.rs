//! An agent that uses a terminal.

use ostler_mcp::{ToolGroup, ToolSet};
use serde_json::{Value, json};

use crate::common::{McpTestClient, ServerFixture, text};

/// A client that is offered the tools of terminals, and those of `core`.
pub(crate) async fn agent(bench: &ServerFixture) -> McpTestClient {
    let tools = ToolSet::from_groups(&[ToolGroup::Core, ToolGroup::Pty]);
    bench.client_with("s", tools).await
}

/// Arguments with more of them.
pub(crate) fn with(mut arguments: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

/// A call that succeeds.
pub(crate) async fn did(client: &mut McpTestClient, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result
}

/// A call that fails: its result.
pub(crate) async fn failed(client: &mut McpTestClient, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    result
}

/// Starts a session: its id, and the answer.
pub(crate) async fn start(client: &mut McpTestClient, arguments: Value) -> (String, Value) {
    let result = did(client, "pty_start", arguments).await;
    let id = fields(&result)["session"].as_str();
    let id = id.unwrap_or_else(|| panic!("{result}")).to_owned();
    (id, result)
}

/// A bash without user settings.
pub(crate) async fn shell(client: &mut McpTestClient) -> String {
    start(client, json!({"env": {"HOME": "/nonexistent"}}))
        .await
        .0
}

pub(crate) async fn run(client: &mut McpTestClient, id: &str, script: &str) -> Value {
    did(client, "pty_run", json!({"session": id, "script": script})).await
}

pub(crate) async fn write(client: &mut McpTestClient, id: &str, more: Value) -> Value {
    did(client, "pty_write", with(json!({"session": id}), more)).await
}

pub(crate) async fn read(client: &mut McpTestClient, id: &str, more: Value) -> Value {
    did(client, "pty_read", with(json!({"session": id}), more)).await
}

/// The machine-readable fields.
pub(crate) fn fields(result: &Value) -> &Value {
    &result["_meta"]["ostler/result"]
}

/// The text between the first line and those in brackets at the end.
pub(crate) fn body(result: &Value) -> String {
    let text = text(result);
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    while lines
        .last()
        .is_some_and(|line| line.starts_with('[') && line.ends_with(']') && !line.starts_with("[…"))
    {
        lines.pop();
    }
    lines.join("\n")
}

/// The rows of the screen an answer shows.
pub(crate) fn rows(result: &Value) -> Vec<String> {
    let rows = fields(result)["screen"]["rows"].as_array();
    let rows = rows.unwrap_or_else(|| panic!("no screen: {result}")).iter();
    rows.map(|row| row.as_str().unwrap().to_owned()).collect()
}

/// The text of a result, with varying values replaced.
pub(crate) fn plain(result: &Value) -> String {
    let mut text = text(result);
    for (rule, by) in [
        (
            r"[0-9a-z]{8} (?<what>running|exit|exited|still|the|paused|killed)\b",
            "ID $what",
        ),
        (r#""session":"[0-9a-z]{8}""#, r#""session":"ID""#),
        (
            r"(?<what>session|process|attach) '?[0-9a-z]{8}\b'?",
            "$what ID",
        ),
        (r"\d+(\.\d+)? s\b", "TIME"),
        (r"output \d+ to \d+", "output A to B"),
        (r#""offset":\d+"#, r#""offset":N"#),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "MOMENT"),
        (r"/[^\s'\]]*/\.tmp\w+", "DIRECTORY"),
        (r"\[note: isolation [^\n]*\n?", ""),
    ] {
        let rule = regex::Regex::new(rule).unwrap();
        text = rule.replace_all(&text, by).into_owned();
    }
    text
}
