//! A cancelled request or a closed stream ends executions whose id was not published, and no
//! others.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;

use super::sync::Bell;
use super::wire::{Setup, Wire, text};
use crate::common::ServerFixture;

/// Reports the ids of a process and of its child, and keeps running.
const TREE: &str = "sleep 1000 & echo $$ > bell; echo $! > bell; wait";

#[tokio::test]
async fn a_cancelled_call_takes_its_command_with_it() {
    let bench = ServerFixture::new().await;
    let mut bell = Bell::new(bench.work.path());
    for modern in [false, true] {
        for token in [false, true] {
            let mut wire = match modern {
                true => Setup::new(&bench).modern(json!({})),
                false => Setup::new(&bench).legacy(json!({})).await,
            };
            let mut params = wire.execute(TREE);
            if token {
                params["_meta"] = json!({"progressToken": 1});
            }
            let id = wire.send("tools/call", params).await;
            let tree = [bell.process().await, bell.process().await];
            wire.cancel(id).await;
            for process in tree {
                process.gone().await;
            }
            // The stream continues, and the request is never answered.
            wire.request("tools/list", json!({})).await;
            assert!(
                wire.received
                    .iter()
                    .all(|(_, received)| received["id"] != id)
            );
        }
    }
}

#[tokio::test]
async fn a_closed_stream_takes_calls_under_way_with_it() {
    let bench = ServerFixture::new().await;
    let mut bell = Bell::new(bench.work.path());
    let mut wire = Setup::new(&bench).modern(json!({}));
    wire.send("tools/call", wire.execute(TREE)).await;
    let tree = [bell.process().await, bell.process().await];
    let answers = wire.finish().await;
    assert!(
        answers.iter().all(|answer| answer.get("result").is_none()),
        "{answers:?}"
    );
    for process in tree {
        process.gone().await;
    }
}

#[tokio::test]
async fn what_has_an_id_goes_on() {
    let bench = ServerFixture::new().await;
    let mut bell = Bell::new(bench.work.path());
    let mut wire = Setup::new(&bench).legacy(json!({})).await;
    let started = wire.result("tools/call", wire.start(TREE)).await;
    let pid = started["structuredContent"]["pid"].clone();
    let tree = [bell.process().await, bell.process().await];
    let logs = json!({"name": "command_ps_logs", "arguments": {"pid": pid, "follow_seconds": 40}});
    let id = wire.send("tools/call", logs).await;
    wire.request("tools/list", json!({})).await;
    wire.cancel(id).await;
    wire.request("tools/list", json!({})).await;
    let info = wire.call("command_ps_detail", json!({"pid": pid})).await;
    assert_eq!(info["structuredContent"]["status"], "running", "{info}");
    wire.finish().await;
    for process in &tree {
        assert!(process.lives());
    }
    let mut wire = Setup::new(&bench).legacy(json!({})).await;
    wire.call("command_ps_stop", json!({"pid": pid, "force": true}))
        .await;
    for process in tree {
        process.gone().await;
    }
}

/// However close a cancellation is to the response: an answered execution runs, another one is
/// ended.
#[tokio::test]
async fn a_race_of_answer_and_cancellation_has_one_winner() {
    const ROUNDS: u32 = 60;
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).legacy(json!({})).await;
    let mut answers = 0;
    for batch in 0..ROUNDS / 10 {
        let mut requested = Vec::new();
        for round in 0..10 {
            // A start answers as soon as it can, a wait when its time is over.
            let (params, time) = if round % 2 == 0 {
                (wire.start("sleep 1000"), batch * round)
            } else {
                let arguments = json!({"command": "sleep 1000", "wait_ms": 30});
                let params = json!({"name": "exec", "arguments": arguments});
                (params, 26 + batch + round)
            };
            let id = wire.send("tools/call", params).await;
            wire.hear(Duration::from_millis(time.into())).await;
            wire.cancel(id).await;
            requested.push(id);
        }
        // Every answer that comes is received before this one.
        wire.request("tools/list", json!({})).await;
        let answered = answered(&mut wire, &requested);
        answers += answered.len();
        normalize_value(&mut wire, answered).await;
    }
    println!("{answers} of {ROUNDS} were answered");
}

fn answered(wire: &mut Wire, requested: &[u64]) -> HashSet<String> {
    let received = std::mem::take(&mut wire.received);
    let answers = received
        .iter()
        .map(|(_, message)| message)
        .filter(|message| requested.iter().any(|id| message["id"] == *id));
    let started = answers.map(|answer| {
        let result = &answer["result"];
        let pid = &result["structuredContent"]["pid"];
        let pid = pid
            .as_str()
            .or(result["_meta"]["ostler/result"]["id"].as_str());
        pid.unwrap_or_else(|| panic!("{answer}")).to_owned()
    });
    started.collect()
}

/// Everything answered runs, everything else ends; then nothing is left.
async fn normalize_value(wire: &mut Wire, answered: HashSet<String>) {
    let list = wire
        .call("command_ps_list", json!({"status": "running"}))
        .await;
    let running = list["structuredContent"]["processes"].as_array().unwrap();
    let running: HashSet<String> = running
        .iter()
        .map(|listed| listed["pid"].as_str().unwrap().to_owned())
        .collect();
    assert!(answered.is_subset(&running), "{answered:?} {running:?}");
    for pid in running.difference(&answered) {
        let logs = json!({"pid": pid, "follow_seconds": 40});
        let ended = wire.call("command_ps_logs", logs).await;
        assert_ne!(
            ended["_meta"]["ostler/result"]["status"], "running",
            "{ended}"
        );
    }
    for pid in &answered {
        let stopped = wire
            .call("command_ps_stop", json!({"pid": pid, "force": true}))
            .await;
        assert_eq!(
            stopped["structuredContent"]["was_running"], true,
            "{stopped}"
        );
    }
}

/// `printf requests | ostler mcp`: every request before the end of input is answered. Few of them: a
/// slow machine carries them out within the second that is left then.
#[tokio::test]
async fn requests_in_one_go_are_all_answered() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).modern(json!({}));
    let mut requests = String::new();
    let mut ids = HashSet::new();
    for i in 0..3 {
        let script = format!("echo done {i}");
        let params = wire.execute(&script);
        let (id, spelled) = wire.spelled("tools/call", params);
        requests.push_str(&spelled);
        ids.insert(id);
    }
    wire.write(&requests).await;
    for answer in wire.finish().await {
        assert!(ids.remove(&answer["id"].as_u64().unwrap()), "{answer}");
        assert!(text(&answer["result"]).contains("done"), "{answer}");
    }
    assert!(ids.is_empty(), "{ids:?}");
}
