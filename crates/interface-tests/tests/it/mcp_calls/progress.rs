//! Progress: at most once a second, increasing, with the last line; it never blocks anything.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::sync::Bell;
use super::wire::{Setup, Wire, text};
use crate::common::ServerFixture;

fn with_token(mut params: Value) -> Value {
    params["_meta"] = json!({"progressToken": "t"});
    params
}

fn progress(wire: &Wire) -> Vec<(Instant, Value)> {
    let response = wire
        .received
        .iter()
        .filter(|(_, message)| message["method"] == "notifications/progress");
    response
        .map(|(at, message)| (*at, message["params"].clone()))
        .collect()
}

#[tokio::test]
async fn progress_is_sent_once_a_second_with_the_last_line() {
    let bench = ServerFixture::new().await;
    for modern in [false, true] {
        let mut wire = match modern {
            true => Setup::new(&bench).modern(json!({})),
            false => Setup::new(&bench).legacy(json!({})).await,
        };
        let script = "for i in 1 2 3 4 5 6 7 8; do printf '\\033[1mline %s\\033[0m\\n\\n' $i; sleep 0.4; done";
        let id = wire
            .send("tools/call", with_token(wire.execute(script)))
            .await;
        let answer = wire.answer(id).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        // Nothing follows the answer.
        wire.request("tools/list", json!({})).await;
        let response = progress(&wire);
        assert!((1..=3).contains(&response.len()), "{response:?}");
        for (_, params) in &response {
            assert_eq!(params["progressToken"], "t");
            let message = params["message"].as_str().unwrap();
            assert!(message.starts_with("line "), "{message}");
        }
        for pair in response.windows(2) {
            let apart = pair[1].0 - pair[0].0;
            assert!(apart > Duration::from_millis(900), "{apart:?}");
            let values = [&pair[0].1, &pair[1].1].map(|it| it["progress"].as_f64().unwrap());
            assert!(values[0] < values[1], "{values:?}");
        }
    }
}

#[tokio::test]
async fn a_silent_command_has_a_heartbeat() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).modern(json!({}));
    let id = wire
        .send("tools/call", with_token(wire.execute("sleep 6.5")))
        .await;
    wire.answer(id).await;
    let response = progress(&wire);
    assert_eq!(response.len(), 1, "{response:?}");
    assert!(response[0].1["progress"].as_f64().unwrap() >= 5.0);
    assert_eq!(response[0].1["message"], Value::Null);
}

#[tokio::test]
async fn without_a_token_there_is_none() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).modern(json!({}));
    let id = wire
        .send("tools/call", wire.execute("echo a; sleep 2.2; echo b"))
        .await;
    wire.answer(id).await;
    assert_eq!(progress(&wire), []);
}

/// A client that does not read gets as much as the buffer holds, and everything else continues.
#[tokio::test]
async fn a_client_that_does_not_read_slows_no_other() {
    let bench = ServerFixture::new().await;
    let mut bell = Bell::new(bench.work.path());
    let narrow = Setup {
        room: 700,
        ..Setup::new(&bench)
    };
    let mut deaf = narrow.modern(json!({}));
    let line = "x".repeat(190);
    let script =
        format!("for i in 1 2 3 4 5 6 7; do echo {line}; sleep 0.7; done; echo over > bell");
    let params = with_token(deaf.execute(&script));
    let started = Instant::now();
    let id = deaf.send("tools/call", params).await;
    let mut other = Setup::new(&bench).modern(json!({}));
    let answer = other
        .call(
            "command_execute",
            other.execute("echo hi")["arguments"].clone(),
        )
        .await;
    assert!(text(&answer).contains("hi"));
    assert_eq!(bell.line().await, "over");
    assert!(started.elapsed() < Duration::from_secs(20));
    deaf.answer(id).await;
    let response = progress(&deaf);
    assert!(response.len() <= 5, "{}", response.len());
}
