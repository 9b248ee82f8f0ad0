//! Unsolicited notifications over HTTP in both eras.

use crate::web::{HttpFixture, HttpTestResponse};
use ostler_engine::StopRequest;
use ostler_model::{Caller, Scope};
use serde_json::{Value, json};

/// The next notification of this kind on a stream.
async fn notification(stream: &mut HttpTestResponse, method: &str) -> Value {
    loop {
        let mut message = stream.message().await.expect("an open stream");
        if message["method"] == method {
            return message["params"].take();
        }
    }
}

fn pid(result: &Value) -> &str {
    let pid = result["structuredContent"]["pid"].as_str();
    pid.unwrap_or_else(|| panic!("{result}"))
}

#[tokio::test]
async fn a_session_of_the_handshake_era_is_notified_on_its_stream() {
    let web = HttpFixture::new().await;
    let agent = web
        .agent(&web.token)
        .with("ostler-session", "s")
        .initialize()
        .await;
    let mut stream = agent.get().await;
    assert_eq!(stream.status, 200);
    let started = agent
        .call_initialized("command_bg_start", agent.background("exec sleep 300"))
        .await;
    let uri = format!("proc://{}", pid(&started));
    agent
        .request("resources/subscribe", json!({"uri": uri}))
        .await
        .text()
        .await;
    // Another client stops it.
    let request = StopRequest {
        force: true,
        ..StopRequest::default()
    };
    let person = Caller {
        scope: Scope::Principal,
        ..web.bench.caller(Some("s"))
    };
    let engine = &web.bench.engine;
    engine.stop(&person, pid(&started), request).await.unwrap();
    // The two arrive on separate streams.
    let (mut updated, mut said) = (None, None);
    while updated.is_none() || said.is_none() {
        let mut message = stream.message().await.expect("an open stream");
        match message["method"].as_str() {
            Some("notifications/resources/updated") => updated = Some(message["params"].take()),
            Some("notifications/message") => said = Some(message["params"].take()),
            _ => {}
        }
    }
    assert_eq!(updated.unwrap()["uri"], uri.as_str());
    let said = said.unwrap();
    assert!(said["data"].as_str().unwrap().contains("SIGKILL"), "{said}");
    drop(stream);
    web.close().await;
}

#[tokio::test]
async fn a_subscriber_over_http_is_notified_until_it_closes_its_stream() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).with("ostler-session", "s");
    let filter = json!({"resourceSubscriptions": ["proc://news"], "resourcesListChanged": true});
    let listen = json!({"notifications": filter});
    let mut stream = agent.modern("subscriptions/listen", listen).await;
    assert_eq!(stream.status, 200);
    notification(&mut stream, "notifications/subscriptions/acknowledged").await;
    let started = agent
        .call("command_bg_start", agent.background("exit 3"))
        .await;
    notification(&mut stream, "notifications/resources/list_changed").await;
    let update = notification(&mut stream, "notifications/resources/updated").await;
    assert_eq!(update["uri"], "proc://news");
    let named = agent.with("mcp-name", "proc://news");
    let read = named
        .request_modern("resources/read", json!({"uri": "proc://news"}))
        .await;
    assert!(read.to_string().contains(pid(&started)), "{read}");
    drop(stream);
    web.close().await;
}
