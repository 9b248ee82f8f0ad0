//! Waits for readiness, and what they leave running.

use super::{
    MESSAGE, NO_PORT, body, client, end, first_line, free_port, plain, quiet, server, service,
};
use crate::common::{ServerFixture, text};
use ostler_mcp::{ToolGroup, ToolSet};
use serde_json::json;

#[tokio::test]
async fn a_wait_that_is_over_leaves_it_running_and_readiness_is_a_notification() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let gate = bench.work.path().join("gate");
    let fifo = gate.to_str().unwrap();
    let script =
        format!("mkfifo {fifo}; echo waiting; read line < {fifo}; echo all is up; exec sleep 300");
    let more =
        json!({"name": "slow", "command": script, "ready_pattern": "all is up", "timeout": 1});
    let late = service(&mut client, "start", more).await;
    insta::assert_snapshot!(plain(&text(&late), NO_PORT));
    assert_eq!(body(&late)["status"], "starting");
    let waits = service(
        &mut client,
        "status",
        json!({"name": "slow", "wait_ms": 50}),
    )
    .await;
    assert_eq!(body(&waits)["event"], "service_started", "{waits}");

    std::fs::write(&gate, "go\n").unwrap();
    let news = client.notification(MESSAGE).await;
    assert_eq!(news["level"], "info", "{news}");
    assert_eq!(news["data"]["event"], "service_ready");
    assert_eq!(news["data"]["serviceId"], body(&late)["id"]);
    let next = client
        .call("command_ps_list", json!({"labels": ["none"]}))
        .await;
    let line = text(&next);
    assert!(line.contains("[news: service slow ("), "{line}");
    assert!(line.contains(") is ready"), "{line}");
    let next = client
        .call("command_ps_list", json!({"labels": ["none"]}))
        .await;
    assert!(!text(&next).contains("[news"), "{next}");
    end(&bench).await;
}

#[tokio::test]
async fn a_timeout_bounds_the_wait_for_a_server_and_does_not_end_it() {
    let bench = ServerFixture::new().await;
    let tools = ToolSet::from_groups(&[ToolGroup::Core, ToolGroup::Command, ToolGroup::Shell]);
    let mut client = bench.client_with("s", tools).await;
    let directory = bench.directory();
    let call = |port: u16, more: &str| {
        let words = server(port);
        let line = words
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap());
        let line = line.collect::<Vec<_>>();
        match more {
            "exec" => ("exec", json!({"command": words, "timeout": 30})),
            "execute_shell" => (
                "execute_shell",
                json!({"command": line.join(" "), "timeout": 30}),
            ),
            _ => (
                "command_execute",
                json!({"command": line[0], "args": &line[1..], "directory": directory, "timeout": 30}),
            ),
        }
    };
    for tool in ["exec", "execute_shell", "command_execute"] {
        let port = free_port();
        let (name, arguments) = call(port, tool);
        let answer = client.call(name, arguments).await;
        let response = text(&answer);
        assert!(
            response.starts_with("Service started with ID: "),
            "{response}"
        );
        assert!(response.contains("Status: ready"), "{response}");
        assert!(
            response.contains("its timeout of 30 s bounds the wait until it is ready; "),
            "{response}"
        );
        assert!(
            response.contains(" runs it as a plain command."),
            "{response}"
        );
        assert!(first_line(port).contains("200"), "{tool}");
    }
    // One that is not ready by then continues, and the response contains that.
    let dir = std::path::PathBuf::from(bench.directory());
    std::fs::write(dir.join("server.js"), "").unwrap();
    let slow = dir.join("node");
    std::fs::write(&slow, "#!/bin/sh\nexec sleep 300\n").unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&slow, permissions).unwrap();
    let more = json!({"command": [slow, "server.js"], "timeout": 1});
    let late = client.call("exec", more).await;
    let response = text(&late);
    assert!(response.contains("not ready within 1000ms"), "{response}");
    assert!(response.contains("It is still running: ID "), "{response}");
    // With that setting, it is a plain command.
    for (line, code) in [
        (
            "OSTLER_SERVICE=off python3 -m http.server 0",
            "command_timeout",
        ),
        (
            "OSTLER_SERVICE=no timeout 300 python3 -m http.server 0",
            "command_timeout",
        ),
    ] {
        let more = json!({"command": line, "timeout": 1});
        let plain = client.call("execute_shell", more).await;
        assert_eq!(plain["_meta"]["code"], code, "{plain}");
    }
    end(&bench).await;
}

#[tokio::test]
async fn readiness_is_waited_for_where_there_can_be_any() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let more = json!({"command": server(port), "until": "ready"});
    let ready = client.call("exec", more).await;
    assert!(
        text(&ready).starts_with("Service started with ID: "),
        "{ready}"
    );
    let id = ready["_meta"]["ostler/result"]["id"].clone();
    let more = json!({"action": "wait", "ids": [id], "until": "ready"});
    let waited = client.call("process", more).await;
    assert!(text(&waited).contains("[ready]"), "{waited}");

    let plainly = json!({"command": quiet("hello"), "wait_ms": 0});
    let plainly = client.call("exec", plainly).await;
    let id = plainly["_meta"]["ostler/result"]["id"].clone();
    let mut response = String::new();
    for (tool, arguments) in [
        (
            "process",
            json!({"action": "wait", "ids": [id], "until": "ready"}),
        ),
        (
            "exec",
            json!({"command": ["true"], "until": "ready", "mode": "oneshot"}),
        ),
        (
            "exec",
            json!({"command": ["true"], "until": "ready", "timeout": 5}),
        ),
        ("service", json!({"action": "start"})),
        (
            "service",
            json!({"action": "start", "name": "web", "port": 80}),
        ),
        (
            "service",
            json!({"action": "start", "command": ["true"], "ready_when": "soon"}),
        ),
        (
            "service",
            json!({"action": "start", "command": ["true"], "port": 0}),
        ),
        (
            "service",
            json!({"action": "stop", "name": "web", "tail": 3}),
        ),
        ("service", json!({"action": "status", "name": "web"})),
        (
            "service",
            json!({"action": "start", "command": ["true"], "depends_on": ["db:soon"]}),
        ),
    ] {
        let answer = client.call(tool, arguments.clone()).await;
        assert_eq!(answer["isError"], true, "{answer}");
        let id = id.as_str().unwrap();
        let words = text(&answer).replace(id, "[id]");
        let arguments = arguments.to_string().replace(id, "[id]");
        response.push_str(&format!("{tool} {arguments}\n{words}\n\n"));
    }
    insta::assert_snapshot!(response);
    end(&bench).await;
}
