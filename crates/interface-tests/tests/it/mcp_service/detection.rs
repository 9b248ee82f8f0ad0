//! Commands that are recognised as servers.

use super::{client, end, free_port, plain, server};
use crate::common::{ServerFixture, text};
use ostler_engine::AutoServices;
use ostler_mcp::{ToolGroup, ToolSet};
use serde_json::json;

#[tokio::test]
async fn a_server_is_detected_unless_switched_off() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let started = client.call("exec", json!({"command": server(port)})).await;
    insta::assert_snapshot!(plain(&text(&started), port));
    let fields = &started["_meta"]["ostler/result"];
    assert_eq!(fields["service"]["event"], "service_ready", "{started}");
    assert_eq!(
        (&fields["status"], &fields["yielded"]),
        (&json!("running"), &json!(true))
    );

    let port = free_port();
    let more = json!({"command": server(port), "mode": "oneshot", "wait_ms": 200});
    let plainly = client.call("exec", more).await;
    assert!(
        plainly["_meta"]["ostler/result"].get("service").is_none(),
        "{plainly}"
    );
    let port = free_port();
    let more = json!({"command": server(port), "mode": "oneshot", "timeout": 1});
    let bounded = client.call("exec", more).await;
    assert_eq!(bounded["_meta"]["code"], "command_timeout", "{bounded}");
    end(&bench).await;
}

#[tokio::test]
async fn the_tools_of_the_documents_recognise_servers_too() {
    let bench = ServerFixture::new().await;
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Command]))
        .await;
    let port = free_port();
    let directory = bench.directory();
    let mut words = server(port).as_array().unwrap().clone();
    let command = words.remove(0);
    let executed = json!({"command": command, "args": words, "directory": directory});
    let answer = client.call("command_execute", executed).await;
    insta::assert_snapshot!(plain(&text(&answer), port));

    let port = free_port();
    let line = format!("python3 -u -m http.server --bind 127.0.0.1 {port}");
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Shell]))
        .await;
    let answer = client.call("execute_shell", json!({"command": line})).await;
    let response = text(&answer);
    assert!(
        response.starts_with("Service started with ID: "),
        "{response}"
    );
    assert!(
        response.contains("poll_process with process_id"),
        "{response}"
    );

    let port = free_port();
    let line = format!("python3 -u -m http.server --bind 127.0.0.1 {port}");
    let more = json!({"command": line, "run_mode": "background"});
    let answer = client.call("execute_shell", more).await;
    let response = text(&answer);
    assert!(
        response.starts_with("Process started in background."),
        "{response}"
    );
    assert!(response.contains("Recognised as a service ("), "{response}");

    let port = free_port();
    let mut words = server(port).as_array().unwrap().clone();
    let command = words.remove(0);
    let more =
        json!({"command": command, "args": words, "directory": directory, "description": "web"});
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Command]))
        .await;
    let answer = client.call("command_bg_start", more).await;
    let response = &answer["structuredContent"];
    assert!(
        response["note"]
            .as_str()
            .unwrap()
            .starts_with("Recognised as a service ("),
        "{response}"
    );
    assert_eq!(response["service"]["id"], response["pid"]);
    end(&bench).await;
}

#[tokio::test]
async fn nothing_is_recognised_where_that_is_switched_off() {
    let bench =
        ServerFixture::with(|settings| settings.services.automatic = AutoServices::Off).await;
    let mut client = client(&bench).await;
    let port = free_port();
    let more = json!({"command": server(port), "wait_ms": 200});
    let answer = client.call("exec", more).await;
    assert!(
        answer["_meta"]["ostler/result"].get("service").is_none(),
        "{answer}"
    );
    let port = free_port();
    let more = json!({"command": server(port), "mode": "service"});
    let answer = client.call("exec", more).await;
    assert!(
        text(&answer).starts_with("Service started with ID: "),
        "{answer}"
    );
    assert!(!text(&answer).contains("Recognised"), "{answer}");
    end(&bench).await;
}
