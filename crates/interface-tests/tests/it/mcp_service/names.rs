//! Services by name: definitions, and the workspace that names belong to.

use super::{body, client, end, free_port, server, service};
use crate::common::{ServerFixture, text};
use ostler_mcp::ToolSet;
use serde_json::{Value, json};

#[tokio::test]
async fn what_is_defined_starts_by_its_name() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let define = json!({"name": "web", "command": server(port)});
    let defined = service(&mut client, "define", define).await;
    assert_eq!(body(&defined)["name"], "web");
    let listed = service(&mut client, "list", json!({})).await;
    assert_eq!(
        body(&listed)["services"][0]["status"],
        "stopped",
        "{listed}"
    );
    let upped = service(&mut client, "up", json!({"name": "web"})).await;
    assert_eq!(body(&upped)["event"], "service_ready", "{upped}");
    assert_eq!(body(&upped)["reused"], false);
    let again = service(&mut client, "start", json!({"name": "web"})).await;
    assert_eq!(body(&again)["reused"], true, "{again}");
    service(&mut client, "stop", json!({"name": "web"})).await;
    let forgotten = service(&mut client, "forget", json!({"name": "web"})).await;
    assert_eq!(body(&forgotten)["name"], "web");
    let unknown = service(&mut client, "up", json!({"name": "web"})).await;
    assert_eq!(unknown["isError"], true, "{unknown}");
    end(&bench).await;
}

#[tokio::test]
async fn names_hold_within_the_workspace_of_the_session() {
    let bench = ServerFixture::new().await;
    let root = std::path::PathBuf::from(bench.directory());
    let other = root.join("other");
    std::fs::create_dir(&other).unwrap();
    let toml = "[services.web]\ncommand = \"exec sleep 300\"\n\
                [services.api]\ncommand = \"exec sleep 300\"\n\
                depends_on = { migrate = \"completed\" }\n\
                [services.migrate]\ncommand = \"echo migrated\"\n";
    std::fs::write(other.join("ostler.toml"), toml).unwrap();
    let mut neighbour = bench.client_with("t", ToolSet::default()).await;
    let mut client = client(&bench).await;
    let up = service(&mut client, "up", json!({"cwd": other, "wait_ms": 30_000})).await;
    assert!(text(&up).contains("migrate completed: exit code 0"), "{up}");
    let all = body(&up)["services"].as_array().unwrap();
    let response = |it: &Value| (it["name"].clone(), it["event"].clone());
    let migrated = (json!("migrate"), json!("service_completed"));
    assert!(all.iter().any(|it| response(it) == migrated), "{up}");

    let listed = service(&mut client, "list", json!({})).await;
    assert_eq!(body(&listed)["total"], 0, "{listed}");
    let more = body(&listed)["elsewhere"].as_str().unwrap();
    assert!(
        more.starts_with("2 more live in other workspaces"),
        "{listed}"
    );
    let listed = service(&mut client, "list", json!({"all_workspaces": true})).await;
    assert_eq!(body(&listed)["living"], 2, "{listed}");
    // Services that this session started itself are found by name from its directory.
    let stopped = service(&mut client, "stop", json!({"name": "web"})).await;
    assert_eq!(body(&stopped)["status"], "stopped", "{stopped}");
    let stopped = service(&mut neighbour, "stop", json!({"name": "api"})).await;
    assert_eq!(stopped["isError"], true, "{stopped}");
    end(&bench).await;
    neighbour.close().await;
    client.close().await;
}
