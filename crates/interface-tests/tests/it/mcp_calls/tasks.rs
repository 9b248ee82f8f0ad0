//! The tasks extension: a long call becomes a task that is its execution.

use std::sync::Arc;

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{Engine, Settings};
use serde_json::{Value, json};

use super::sync::{Bell, fifo};
use super::wire::{Setup, Wire, mcp_state, text};
use crate::common::{ServerFixture, normalize};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn knows_tasks() -> Value {
    json!({"extensions": {TASKS: {}}})
}

fn client(bench: &ServerFixture, engine: &Engine, session: &'static str) -> Wire {
    let setup = Setup {
        mcp_state: mcp_state(engine, 150),
        session,
        ..Setup::new(bench)
    };
    setup.modern(knows_tasks())
}

async fn get(wire: &mut Wire, task: &Value) -> Value {
    wire.result("tasks/get", json!({"taskId": task})).await
}

/// Waits for the end without polling.
async fn ended(wire: &mut Wire, task: &Value) {
    let logs = json!({"pid": task, "follow_seconds": 40});
    wire.call("command_ps_logs", logs).await;
}

#[tokio::test]
async fn a_long_call_becomes_a_task_and_its_result_is_the_tools_answer() {
    let bench = ServerFixture::new().await;
    let mut wire = client(&bench, &bench.engine, "alpha");
    let mut bell = Bell::new(bench.work.path());
    let go = fifo(bench.work.path(), "go");
    let script = "echo working; echo > bell; read line < go; echo done >&2; exit 3";
    let created = wire.result("tools/call", wire.execute(script)).await;
    assert_eq!(created["resultType"], "task", "{created}");
    assert_eq!(created["status"], "working");
    assert_eq!(created["ttlMs"], Value::Null);
    assert_eq!(created["pollIntervalMs"], 1_000);
    let task = created["taskId"].clone();
    bell.line().await;
    let seen = get(&mut wire, &task).await;
    assert_eq!(seen["status"], "working", "{seen}");
    assert_eq!(seen["statusMessage"], "working");
    assert!(seen.get("result").is_none());
    std::fs::write(go, "on\n").unwrap();
    ended(&mut wire, &task).await;
    let seen = get(&mut wire, &task).await;
    assert_eq!(seen["status"], "completed", "{seen}");
    // The same as the answer of a call that waits.
    let mut patient = Setup::new(&bench).modern(json!({}));
    let direct = patient.execute("echo working; echo done >&2; exit 3");
    let direct = patient.result("tools/call", direct).await;
    assert_eq!(normalize(&seen["result"]), normalize(&direct));
    // A task's result can be requested more than once.
    assert_eq!(get(&mut wire, &task).await["result"], seen["result"]);
}

#[tokio::test]
async fn only_long_calls_of_clients_that_know_tasks_become_tasks() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).modern(knows_tasks());
    let short = wire.result("tools/call", wire.execute("echo hi")).await;
    assert_eq!(short["resultType"], "complete", "{short}");
    let background = wire.result("tools/call", wire.start("sleep 0.5")).await;
    assert_eq!(background["resultType"], "complete", "{background}");
    let unknowing = Setup {
        mcp_state: mcp_state(&bench.engine, 150),
        ..Setup::new(&bench)
    };
    let mut unknowing = unknowing.modern(json!({}));
    let result = unknowing.result("tools/call", unknowing.execute("sleep 0.5; echo hi"));
    assert!(text(&result.await).contains("hi"));
    let refused = unknowing
        .request("tasks/get", json!({"taskId": "abcdefgh"}))
        .await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let legacy = Setup {
        mcp_state: mcp_state(&bench.engine, 150),
        ..Setup::new(&bench)
    };
    let mut legacy = legacy.legacy(knows_tasks()).await;
    let result = legacy.result("tools/call", legacy.execute("sleep 0.5; echo hi"));
    assert!(text(&result.await).contains("hi"));
}

#[tokio::test]
async fn cancelling_a_task_ends_its_tree() {
    let bench = ServerFixture::new().await;
    let mut wire = client(&bench, &bench.engine, "alpha");
    let mut bell = Bell::new(bench.work.path());
    let script = "sleep 1000 & echo $$ > bell; echo $! > bell; wait";
    let created = wire.result("tools/call", wire.execute(script)).await;
    let task = created["taskId"].clone();
    let tree = [bell.process().await, bell.process().await];
    let ack = wire.result("tasks/cancel", json!({"taskId": task})).await;
    assert_eq!(ack, json!({"resultType": "complete"}));
    for process in tree {
        process.gone().await;
    }
    ended(&mut wire, &task).await;
    assert_eq!(get(&mut wire, &task).await["status"], "cancelled");
    // A second cancellation changes nothing.
    wire.result("tasks/cancel", json!({"taskId": task})).await;
    // Another kind of stop is a result.
    let created = wire.result("tools/call", wire.execute("sleep 1000")).await;
    let task = created["taskId"].clone();
    wire.call("command_ps_stop", json!({"pid": task, "reason": "enough"}))
        .await;
    let seen = get(&mut wire, &task).await;
    assert_eq!(seen["status"], "completed", "{seen}");
    assert!(text(&seen["result"]).contains("enough"), "{seen}");
}

#[tokio::test]
async fn unknown_and_foreign_tasks_are_reported_alike() {
    let bench = ServerFixture::new().await;
    let mut mine = client(&bench, &bench.engine, "alpha");
    let mut other = client(&bench, &bench.engine, "beta");
    let created = mine.result("tools/call", mine.execute("sleep 1000")).await;
    let task = created["taskId"].as_str().unwrap().to_owned();
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = |id: &str| json!({"taskId": id, "inputResponses": {}});
        let foreign = other.request(method, params(&task)).await;
        let unknown = other.request(method, params("zzzzzzzz")).await;
        assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
        let response =
            |answer: &Value, id: &str| answer["error"]["message"].as_str().unwrap().replace(id, "");
        assert_eq!(response(&foreign, &task), response(&unknown, "zzzzzzzz"));
    }
    assert_eq!(get(&mut mine, &task.into()).await["status"], "working");
    bench.engine.shutdown().await;
}

/// A disconnect cancels no task, and another engine knows its result.
#[tokio::test]
async fn a_task_survives_its_client_and_its_engine() {
    let bench = ServerFixture::new().await;
    let mut wire = client(&bench, &bench.engine, "alpha");
    let go = fifo(bench.work.path(), "go");
    let script = "echo working; read line < go; echo done";
    let created = wire.result("tools/call", wire.execute(script)).await;
    let task = created["taskId"].clone();
    wire.finish().await;
    std::fs::write(go, "on\n").unwrap();
    let mut wire = client(&bench, &bench.engine, "alpha");
    ended(&mut wire, &task).await;
    let before = get(&mut wire, &task).await;
    wire.finish().await;
    bench.engine.shutdown().await;
    let place = LocalBackend::open(bench.state.path(), ZygoteConfig::InProcess)
        .await
        .unwrap();
    let settings = Settings::new(bench.state.path());
    let engine = Engine::open(settings, Arc::new(place)).await.unwrap();
    let mut wire = client(&bench, &engine, "alpha");
    let after = get(&mut wire, &task).await;
    assert_eq!(after["status"], "completed", "{after}");
    assert!(text(&after["result"]).contains("done"), "{after}");
    assert_eq!(after["result"], before["result"]);
    assert_eq!(after["createdAt"], before["createdAt"]);
}
