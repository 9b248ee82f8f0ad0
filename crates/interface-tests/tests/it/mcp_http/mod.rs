//! The network interface over real TCP.

mod project_scopes;
mod rest_sessions;
mod sessions;
mod streams;

use std::time::Duration;

use crate::common::{PATIENCE, ServerFixture, text};
use crate::web::{HttpFixture, HttpTestClient, PidPipe};
use http::Method;
use ostler_engine::ListFilter;
use ostler_http::REQUESTS_PER_PRINCIPAL;
use ostler_http::tokens::{SCOPES, TokenScope};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The ids a client sees.
async fn list_ids(agent: &HttpTestClient) -> Vec<String> {
    let result = agent.call("command_ps_list", json!({})).await;
    ids(&result)
}

fn ids(result: &Value) -> Vec<String> {
    let processes = result["structuredContent"]["processes"].as_array();
    let rows = processes.unwrap_or_else(|| panic!("{result}"));
    rows.iter()
        .map(|row| row["pid"].as_str().unwrap().to_owned())
        .collect()
}

fn pid(result: &Value) -> String {
    let pid = &result["structuredContent"]["pid"];
    pid.as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}

async fn start_script(agent: &HttpTestClient, script: &str) -> String {
    pid(&agent
        .call("command_bg_start", agent.background(script))
        .await)
}

#[tokio::test]
async fn the_revision_of_2026_07_28_is_spoken() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let found = agent.request_modern("server/discover", json!({})).await;
    let versions = found["supportedVersions"].to_string();
    assert!(
        versions.contains("2026-07-28") && versions.contains("2024-11-05"),
        "{found}"
    );
    let tools = agent.request_modern("tools/list", json!({})).await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7, "{tools}");
    let said = agent.call("command_execute", agent.script("echo hi")).await;
    assert!(text(&said).contains("hi"), "{said}");
    // Headers that contradict the body are refused.
    let wrong = agent
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "tools/list");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "command_ps_list", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let answer = wrong.post(&message).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json().await["error"]["code"], -32020);
    web.close().await;
}

#[tokio::test]
async fn the_handshake_era_is_spoken_and_its_session_ends_by_delete() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize().await;
    let tools = agent.request("tools/list", json!({})).await.result().await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7);
    let tell = PidPipe::new(web.bench.work.path(), "a");
    let started = agent
        .call_initialized("command_bg_start", agent.background(&tell.script()))
        .await;
    let id = pid(&started);
    let process = tell.process().await;
    let listing = agent.call_initialized("command_ps_list", json!({})).await;
    assert_eq!(ids(&listing), [id]);

    let deleted = agent.delete().await;
    assert!(deleted.status.is_success(), "{}", deleted.status);
    process.wait_exit().await;
    let everything = web
        .bench
        .engine
        .list(&web.bench.caller(None), &ListFilter::default());
    assert!(everything.is_empty(), "{everything:?}");
    let after = agent.request("tools/list", json!({})).await;
    assert_eq!(after.status, 404);
    assert_eq!(agent.delete().await.status, 404);
    web.close().await;
}

#[tokio::test]
async fn wrong_hosts_and_origins_are_refused_before_anything_else() {
    let web = HttpFixture::with(|change| {
        change.options.hosts = vec!["box.example".to_owned()];
        change.options.origins = vec!["https://ui.example".to_owned()];
    })
    .await;
    let stranger = HttpTestClient {
        headers: Vec::new(),
        ..web.agent("")
    };
    for path in [
        "/mcp",
        "/mcp/p/shell",
        "/api/processes",
        "/api/v1/health",
        "/nowhere",
    ] {
        for (header, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
            let answer = stranger.at(path).with(header, value).get().await;
            assert_eq!(answer.status, 403, "{path} {header}");
            let problem = answer.json().await;
            assert_eq!(problem["code"], "security_error", "{problem}");
            assert!(
                problem["message"]
                    .as_str()
                    .unwrap()
                    .contains("evil.example")
            );
        }
        for (header, value) in [("host", "box.example:1"), ("origin", "https://ui.example")] {
            let answer = stranger.at(path).with(header, value).get().await;
            assert_eq!(answer.status, 401, "{path} {header}");
        }
    }
    web.close().await;
}

#[tokio::test]
async fn requests_without_a_token_are_refused() {
    let web = HttpFixture::new().await;
    for path in [
        "/mcp",
        "/mcp/s/a",
        "/api/processes",
        "/api/v1/executions",
        "/nowhere",
    ] {
        for given in ["", "Bearer", "Bearer ostler_wrong", "Basic eDp5", "Bearer "] {
            let mut agent = web.agent("").at(path).with("authorization", given);
            agent.headers.retain(|(_, value)| !value.is_empty());
            let answer = agent.get().await;
            assert_eq!(answer.status, 401, "{path} '{given}'");
            let challenge = answer.headers["www-authenticate"]
                .to_str()
                .unwrap()
                .to_owned();
            assert!(challenge.starts_with("Bearer realm="), "{challenge}");
            let problem = answer.json().await;
            assert!(
                problem["hint"]
                    .as_str()
                    .unwrap()
                    .contains("ostler token new"),
                "{problem}"
            );
            assert!(!problem.to_string().contains("ostler_wrong"), "{problem}");
        }
    }
    let agent = web.agent(&web.token).at("/api/v1/health");
    assert_eq!(agent.get().await.status, 200);
    web.tokens.revoke("first").unwrap();
    let answer = agent.get().await;
    assert_eq!(answer.status, 401);
    assert!(
        answer.headers["www-authenticate"]
            .to_str()
            .unwrap()
            .contains("invalid_token")
    );
    web.close().await;
}

#[tokio::test]
async fn a_body_that_holds_no_message_is_a_json_rpc_error() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let cases: [(&[u8], i32, Value); 5] = [
        (br#"{"jsonrpc":"2.0","id":7,"method":"to"#, -32700, json!(7)),
        (b"hello", -32700, Value::Null),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"\xff\"}",
            -32700,
            json!(8),
        ),
        (br#"{"id":9,"method":"ping"}"#, -32600, json!(9)),
        (b"[]", -32600, Value::Null),
    ];
    for (body, code, id) in cases {
        let answer = agent.send(Method::POST, body.to_vec()).await;
        assert_eq!(answer.status, 400, "{code}");
        let error = answer.json().await;
        assert_eq!(
            (&error["error"]["code"], &error["id"]),
            (&json!(code), &id),
            "{error}"
        );
    }
    web.close().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let large = vec![b' '; ostler_interface::http::BODY_BYTES + 1];
    for path in ["/mcp", "/api/v1/executions"] {
        let answer = agent.at(path).send(Method::POST, large.clone()).await;
        assert_eq!(answer.status, 413, "{path}");
    }
    // A body without a length is cut off at the limit.
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             transfer-encoding: chunked\r\n\r\n{:x}\r\n",
            web.token,
            large.len()
        )
    };
    for path in ["/mcp", "/api/v1/executions"] {
        let mut stream = TcpStream::connect(web.address).await.unwrap();
        stream.write_all(head(path).as_bytes()).await.unwrap();
        stream.write_all(&large).await.unwrap();
        stream.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        let mut start = [0; 12];
        let read = timeout(PATIENCE, stream.read_exact(&mut start)).await;
        read.unwrap().unwrap();
        assert_eq!(&start, b"HTTP/1.1 413", "{path}");
    }
    let fits = vec![b' '; ostler_interface::http::BODY_BYTES];
    let answer = agent
        .at("/api/v1/executions")
        .send(Method::POST, fits)
        .await;
    assert_eq!(answer.status, 422);
    web.close().await;
}

#[tokio::test]
async fn everything_can_lie_under_a_prefix() {
    let web = HttpFixture::with(|change| change.options.url_prefix = "/a/b".to_owned()).await;
    let agent = web.agent(&web.token);
    let tools = agent
        .at("/a/b/mcp/s/x")
        .request_modern("tools/list", json!({}))
        .await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7);
    assert_eq!(agent.at("/a/b/api/processes").get().await.status, 200);
    assert_eq!(
        agent
            .at("/a/b/api/v1/shutdown")
            .send(Method::POST, "")
            .await
            .status,
        403
    );
    assert_eq!(agent.at("/mcp").get().await.status, 404);
    web.close().await;
}

#[tokio::test]
async fn ending_the_daemon_takes_a_scope() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).at("/api/v1/shutdown");
    let answer = agent.send(Method::POST, "").await;
    assert_eq!(answer.status, 403);
    assert!(answer.text().await.contains("daemon:stop"));
    assert!(!web.shutdown.is_cancelled());
    let may = web
        .agent(&web.secret("may", "uid:0", &SCOPES))
        .at("/api/v1/shutdown");
    assert_eq!(may.send(Method::POST, "").await.status, 202);
    assert!(web.shutdown.is_cancelled());
    web.close().await;
}
