//! Errors for bad input name the value, its position and what is allowed; nothing is started,
//! nothing typed.

use serde_json::json;

use super::agent::{agent, did, failed, fields, plain, start, with};
use crate::common::ServerFixture;

#[tokio::test]
async fn bad_input_says_what_where_and_what_is_allowed() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let (id, _) = start(&mut client, json!({"command": ["cat"]})).await;
    let mut response = String::new();
    for (tool, arguments) in [
        ("pty_start", json!({"command": ["true"], "shell": "bash"})),
        ("pty_start", json!({"command": []})),
        ("pty_start", json!({"command": "python3 -q"})),
        ("pty_start", json!({"shell": "tcsh"})),
        ("pty_start", json!({"cols": 0, "rows": 5000, "cwd": 7})),
        ("pty_start", json!({"cwd": ""})),
        ("pty_start", json!({"cwd": "/no/such/place"})),
        ("pty_start", json!({"command": ["no-such-program-here"]})),
        ("pty_run", json!({"session": id})),
        ("pty_run", json!({"session": id, "script": " \n"})),
        (
            "pty_run",
            json!({"session": id, "script": "true", "offset": 1}),
        ),
        ("pty_run", json!({"session": id, "script": "true"})),
        ("pty_write", json!({"session": id})),
        ("pty_write", json!({"session": id, "keys": ["hyper-x"]})),
        ("pty_write", json!({"session": id, "base64": "?"})),
        (
            "pty_write",
            json!({"session": id, "text": "a", "until": "pattern"}),
        ),
        (
            "pty_write",
            json!({"session": id, "text": "a", "until": "exit", "pattern": "x"}),
        ),
        (
            "pty_write",
            json!({"session": id, "text": "a", "pattern": "("}),
        ),
        ("pty_read", json!({"session": id, "view": "html"})),
        ("pty_read", json!({"session": id, "limit": 10})),
        (
            "pty_read",
            json!({"session": id, "view": "raw", "offset": -1}),
        ),
        ("pty_resize", json!({"session": id, "cols": 80})),
        ("pty_close", json!({"sessions": []})),
        ("pty_close", json!({"sessions": [id], "signal": "NOPE"})),
        ("pty_list", json!({"status": "dead"})),
    ] {
        let result = failed(&mut client, tool, arguments.clone()).await;
        let arguments = arguments.to_string().replace(&id, "ID");
        response.push_str(&format!("{tool} {arguments}\n{}\n\n", plain(&result)));
    }
    insta::assert_snapshot!(response);
    let known = did(&mut client, "pty_list", json!({})).await;
    let known = &known["structuredContent"]["sessions"];
    let sessions = known.as_array().unwrap().iter();
    let sessions: Vec<_> = sessions.filter(|it| it["pid"].is_number()).collect();
    assert_eq!(sessions.len(), 1, "{known}");
    assert_eq!(sessions[0]["output_length"], 0, "{known}");
}

#[tokio::test]
async fn a_non_session_gets_the_same_error_from_every_tool() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let mut other = bench
        .client_with(
            "other",
            ostler_mcp::ToolSet::from_groups(&ostler_mcp::GROUPS),
        )
        .await;
    let (foreign, _) = start(&mut other, json!({"command": ["cat"]})).await;
    let exec = did(&mut client, "exec", json!({"command": ["true"]})).await;
    let pipes = fields(&exec)["id"].as_str().unwrap().to_owned();
    let calls = [
        ("pty_run", json!({"script": "true"})),
        ("pty_write", json!({"text": "a"})),
        ("pty_read", json!({})),
        ("pty_resize", json!({"cols": 80, "rows": 24})),
        ("pty_close", json!({})),
    ];
    let mut response = String::new();
    for (tool, more) in calls {
        for id in ["zzzzzzzz", foreign.as_str(), "no id", pipes.as_str(), ""] {
            let names = match tool {
                "pty_close" => json!({"sessions": [id]}),
                _ => json!({"session": id}),
            };
            let result = failed(&mut client, tool, with(names, more.clone())).await;
            let missing = id != pipes && !id.is_empty();
            if missing {
                assert_eq!(result["_meta"]["code"], "session_not_found", "{tool}");
                assert_eq!(fields(&result)["error_code"], "SESSION_NOT_FOUND", "{tool}");
            } else {
                assert_eq!(result["_meta"]["code"], "value_error", "{tool}: {result}");
            }
            if tool == "pty_write" {
                response.push_str(&format!("{}\n\n", plain(&result)));
            }
        }
    }
    insta::assert_snapshot!(response);
}

#[tokio::test]
async fn an_ended_session_says_that_it_ended_and_how() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let command = json!(["sh", "-c", "echo last words; exit 4"]);
    let (id, first) = start(&mut client, json!({"command": command})).await;
    assert_eq!(fields(&first)["status"], "exited", "{first}");
    for (tool, more) in [
        ("pty_run", json!({"script": "true"})),
        ("pty_write", json!({"text": "a"})),
        ("pty_resize", json!({"cols": 80, "rows": 24})),
    ] {
        let arguments = with(json!({"session": id}), more);
        let result = failed(&mut client, tool, arguments).await;
        assert_eq!(result["_meta"]["code"], "process_control_error", "{tool}");
        let response = plain(&result);
        assert!(
            response.contains("has ended (exit code 4)"),
            "{tool}: {response}"
        );
    }
    let result = did(&mut client, "pty_read", json!({"session": id})).await;
    insta::assert_snapshot!(plain(&result));
}
