//! The network face over real TCP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod web;

use std::time::Duration;

use common::{Bench, PATIENCE, text};
use http::Method;
use ostler_engine::ListFilter;
use ostler_server::http::tokens::{SCOPES, TokenScope};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use web::{Agent, Tell, Web};

/// The ids a client sees.
async fn listed(agent: &Agent) -> Vec<String> {
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

async fn started(agent: &Agent, script: &str) -> String {
    pid(&agent
        .call("command_bg_start", agent.background(script))
        .await)
}

#[tokio::test]
async fn the_revision_of_2026_07_28_is_spoken() {
    let web = Web::new().await;
    let agent = web.agent(&web.token);
    let found = agent.asked("server/discover", json!({})).await;
    let versions = found["supportedVersions"].to_string();
    assert!(
        versions.contains("2026-07-28") && versions.contains("2024-11-05"),
        "{found}"
    );
    let tools = agent.asked("tools/list", json!({})).await;
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
    let web = Web::new().await;
    let agent = web.agent(&web.token).initialized().await;
    let tools = agent.request("tools/list", json!({})).await.result().await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7);
    let tell = Tell::new(web.bench.work.path(), "a");
    let started = agent
        .called("command_bg_start", agent.background(&tell.script()))
        .await;
    let id = pid(&started);
    let process = tell.process().await;
    let listing = agent.called("command_ps_list", json!({})).await;
    assert_eq!(ids(&listing), [id]);

    let deleted = agent.delete().await;
    assert!(deleted.status.is_success(), "{}", deleted.status);
    process.goes().await;
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
    let web = Web::with(|change| {
        change.options.hosts = vec!["box.example".to_owned()];
        change.options.origins = vec!["https://ui.example".to_owned()];
    })
    .await;
    let stranger = Agent {
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
async fn without_a_token_nobody_comes_in() {
    let web = Web::new().await;
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
async fn a_body_over_the_limit_is_refused() {
    let web = Web::new().await;
    let agent = web.agent(&web.token);
    let large = vec![b' '; ostler_server::http::BODY_BYTES + 1];
    for path in ["/mcp", "/api/v1/executions"] {
        let answer = agent.at(path).send(Method::POST, large.clone()).await;
        assert_eq!(answer.status, 413, "{path}");
    }
    // Without a length it is cut off where it is too large.
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
    let fits = vec![b' '; ostler_server::http::BODY_BYTES];
    let answer = agent
        .at("/api/v1/executions")
        .send(Method::POST, fits)
        .await;
    assert_eq!(answer.status, 422);
    web.close().await;
}

#[tokio::test]
async fn principals_see_only_their_own() {
    let web = Web::new().await;
    let one = web.agent(&web.token);
    let two = web.agent(&web.secret("two", "token:two", &[]));
    let id = started(&one, "sleep 120").await;
    assert_eq!(listed(&one).await, std::slice::from_ref(&id));
    assert!(listed(&two).await.is_empty());
    let foreign = two.call("command_ps_detail", json!({"pid": id})).await;
    let unknown = two
        .call("command_ps_detail", json!({"pid": "zzzzzzzz"}))
        .await;
    assert_eq!(foreign["isError"], true);
    assert_eq!(text(&foreign), text(&unknown));
    let rest = two.at(&format!("/api/process/{id}")).get().await;
    assert_eq!(rest.status, 404);
    // The same names are not the same sessions.
    let named = started(&one.at("/mcp/s/x"), "sleep 120").await;
    assert_eq!(listed(&one.at("/mcp/s/x")).await, [named]);
    assert!(listed(&two.at("/mcp/s/x")).await.is_empty());
    web.close().await;
}

#[tokio::test]
async fn sessions_of_one_principal_see_only_their_own() {
    let web = Web::new().await;
    let agent = web.agent(&web.token);
    let (a, b) = (agent.at("/mcp/s/a"), agent.with("ostler-session", "b"));
    let (c, d) = (agent.initialized().await, agent.initialized().await);
    let in_a = started(&a, "sleep 120").await;
    let in_b = started(&b, "sleep 120").await;
    let in_c = pid(&c
        .called("command_bg_start", c.background("sleep 120"))
        .await);
    let in_d = pid(&d
        .called("command_bg_start", d.background("sleep 120"))
        .await);
    let shared = started(&agent, "sleep 120").await;
    assert_eq!(listed(&a).await, std::slice::from_ref(&in_a));
    assert_eq!(listed(&b).await, std::slice::from_ref(&in_b));
    assert_eq!(ids(&c.called("command_ps_list", json!({})).await), [in_c]);
    assert_eq!(ids(&d.called("command_ps_list", json!({})).await), [in_d]);
    assert_eq!(listed(&agent).await, std::slice::from_ref(&shared));
    // The same name by path and by header, in both eras, is the same session.
    assert_eq!(
        listed(&agent.with("ostler-session", "a")).await,
        std::slice::from_ref(&in_a)
    );
    let old = agent.at("/mcp/s/a").initialized().await;
    assert_eq!(
        ids(&old.called("command_ps_list", json!({})).await),
        std::slice::from_ref(&in_a)
    );
    let foreign = a.call("command_ps_stop", json!({"pid": in_b})).await;
    assert_eq!(foreign["isError"], true);

    // REST sees one session, or with the scope all of them.
    let rest = agent.at("/api/v1/executions");
    let count = |body: Value| body["executions"].as_array().unwrap().len();
    assert_eq!(count(rest.get().await.json().await), 1);
    assert_eq!(
        count(rest.with("ostler-session", "a").get().await.json().await),
        1
    );
    let all = web.agent(&web.secret("all", "uid:0", &[TokenScope::SessionsAll]));
    assert_eq!(
        count(all.at("/api/v1/executions").get().await.json().await),
        5
    );
    assert_eq!(listed(&all).await.len(), 5);

    // The end of a named session ends what runs there, and nothing else.
    assert_eq!(a.delete().await.status, 204);
    assert!(listed(&a).await.is_empty());
    assert_eq!(listed(&b).await, [in_b]);
    assert_eq!(listed(&agent).await, [shared]);
    web.close().await;
}

#[tokio::test]
async fn an_mcp_session_is_bound_to_who_began_it() {
    let web = Web::new().await;
    let one = web.agent(&web.token).initialized().await;
    let two = web.secret("two", "token:two", &[]);
    let foreign = one.with("authorization", &format!("Bearer {two}"));
    let unknown = foreign.with("mcp-session-id", "00000000-0000-4000-8000-000000000000");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let mut told = Vec::new();
    for agent in [&foreign, &unknown] {
        for answer in [
            agent.post(&list).await,
            agent.get().await,
            agent.delete().await,
        ] {
            assert_eq!(answer.status, 404);
            told.push(answer.json().await);
        }
    }
    assert!(told.iter().all(|problem| *problem == told[0]), "{told:?}");
    // Saying that it is of the newer revision opens nothing.
    let modern = foreign.with("mcp-protocol-version", "2026-07-28");
    assert!(modern.post(&list).await.status.is_client_error());
    assert!(modern.delete().await.status.is_client_error());
    assert_eq!(one.request("tools/list", json!({})).await.status, 200);
    // Another name within it is refused, and another profile is fine.
    let answer = one
        .at("/mcp/s/other")
        .request("tools/list", json!({}))
        .await;
    assert_eq!(answer.status, 409);
    let answer = one
        .at("/mcp/p/command")
        .request("tools/list", json!({}))
        .await;
    assert_eq!(answer.status, 200);
    web.close().await;
}

#[tokio::test]
async fn idle_sessions_end_and_used_ones_do_not() {
    let web = Web::with(|change| change.options.session_idle = Duration::from_millis(300)).await;
    let agent = web.agent(&web.token);
    let unnamed = agent.initialized().await;
    let kept = agent.initialized().await;
    // An open stream is use.
    let stream = kept.get().await;
    assert_eq!(stream.status, 200);
    let (one, two) = (
        Tell::new(web.bench.work.path(), "a"),
        Tell::new(web.bench.work.path(), "b"),
    );
    let three = Tell::new(web.bench.work.path(), "c");
    unnamed
        .called("command_bg_start", unnamed.background(&one.script()))
        .await;
    kept.called("command_bg_start", kept.background(&two.script()))
        .await;
    let named = agent.at("/mcp/s/n");
    started(&named, &three.script()).await;
    let (one, two, three) = (
        one.process().await,
        two.process().await,
        three.process().await,
    );
    one.goes().await;
    three.goes().await;
    assert_eq!(unnamed.request("tools/list", json!({})).await.status, 404);
    let cleaned = async { while !listed(&named).await.is_empty() {} };
    timeout(PATIENCE, cleaned)
        .await
        .expect("what ended is cleaned");
    assert!(two.lives());
    assert_eq!(kept.request("tools/list", json!({})).await.status, 200);
    drop(stream);
    two.goes().await;
    web.close().await;
}

#[tokio::test]
async fn a_stream_closed_early_stops_its_command_and_nothing_else() {
    let web = Web::with(|change| change.options.resume = Duration::from_millis(100)).await;
    let agent = web.agent(&web.token);
    let other = Tell::new(web.bench.work.path(), "other");
    started(&agent, &other.script()).await;
    let other = other.process().await;
    for handshake in [false, true] {
        let tell = Tell::new(web.bench.work.path(), &format!("{handshake}"));
        let mut arguments = agent.script(&tell.script());
        arguments["timeout"] = 1000.into();
        let params = json!({"name": "command_execute", "arguments": arguments});
        let agent = if handshake {
            agent.initialized().await
        } else {
            agent.clone()
        };
        let asking = async {
            if handshake {
                let answer = agent.request("tools/call", params).await;
                assert_eq!(answer.status, 200);
                std::future::pending::<()>().await;
            } else {
                agent.modern("tools/call", params).await;
            }
        };
        // Dropped with its connection as soon as the command runs.
        let process = tokio::select! {
            () = asking => panic!("the command does not end"),
            process = tell.process() => process,
        };
        process.goes().await;
        assert!(other.lives());
    }
    web.close().await;
}

#[tokio::test]
async fn a_lost_stream_of_the_handshake_era_can_be_taken_up_again() {
    let web = Web::new().await;
    let agent = web.agent(&web.token).initialized().await;
    let gate = Tell::new(web.bench.work.path(), "gate");
    let wait = format!(
        "read line < {}; echo got $line",
        web.bench.work.path().join("gate").display()
    );
    let arguments = agent.script(&wait);
    let params = json!({"name": "command_execute", "arguments": arguments});
    let mut answer = agent.request("tools/call", params).await;
    let first = answer.event().await.unwrap();
    let id = first
        .lines()
        .find_map(|line| line.strip_prefix("id:"))
        .unwrap()
        .trim()
        .to_owned();
    drop(answer);
    let mut again = agent.with("last-event-id", &id).get().await;
    assert_eq!(again.status, 200);
    let path = web.bench.work.path().join("gate");
    tokio::task::spawn_blocking(move || std::fs::write(path, "it\n"))
        .await
        .unwrap()
        .unwrap();
    let result = again.result().await;
    assert!(text(&result).contains("got it"), "{result}");
    drop(gate);
    web.close().await;
}

#[tokio::test]
async fn paths_name_tools_and_sessions() {
    let web = Web::new().await;
    let agent = web.agent(&web.token);
    let count = |result: Value| result["tools"].as_array().unwrap().len();
    for path in ["/mcp", "/mcp/p/command", "/mcp/s/x", "/mcp/s/x/p/command"] {
        let tools = agent.at(path).asked("tools/list", json!({})).await;
        assert_eq!(count(tools), 7, "{path}");
    }
    let answer = agent
        .at("/mcp/p/commands")
        .modern("tools/list", json!({}))
        .await;
    assert_eq!(answer.status, 404);
    let problem = answer.json().await;
    let message = problem["message"].as_str().unwrap();
    assert!(
        message.contains("commands") && message.contains("core, command"),
        "{message}"
    );
    let long = "x".repeat(129);
    for name in ["mcp-1", "front-1-1", "sse-x", "a%20b", long.as_str()] {
        let answer = agent
            .at(&format!("/mcp/s/{name}"))
            .modern("tools/list", json!({}))
            .await;
        assert_eq!(answer.status, 422, "{name}");
    }
    let both = agent.at("/mcp/s/a").with("ostler-session", "b");
    assert_eq!(both.modern("tools/list", json!({})).await.status, 409);
    assert_eq!(agent.at("/sse").get().await.status, 404);
    web.close().await;
}

#[tokio::test]
async fn everything_can_lie_under_a_prefix() {
    let web = Web::with(|change| change.options.url_prefix = "/a/b".to_owned()).await;
    let agent = web.agent(&web.token);
    let tools = agent
        .at("/a/b/mcp/s/x")
        .asked("tools/list", json!({}))
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
    let web = Web::new().await;
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

#[tokio::test]
async fn a_shutdown_closes_streams_at_once() {
    let web = Web::new().await;
    let agent = web.agent(&web.token).initialized().await;
    let mut idle = agent.get().await;
    let params = json!({"name": "command_execute", "arguments": agent.script("sleep 120")});
    let mut busy = agent.request("tools/call", params).await;
    web.shutdown.cancel();
    while idle.event().await.is_some() {}
    while busy.event().await.is_some() {}
    web.close().await;
}

#[tokio::test]
async fn who_does_not_finish_a_head_is_cut_off() {
    let web = Web::with(|change| *change.head = Duration::from_millis(200)).await;
    let mut stream = TcpStream::connect(web.address).await.unwrap();
    stream
        .write_all(b"GET /mcp HTTP/1.1\r\nhost: ")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    drop(read.expect("the connection ends"));
    assert_eq!(
        web.agent(&web.token)
            .at("/api/v1/health")
            .get()
            .await
            .status,
        200
    );
    web.close().await;
}

#[tokio::test]
async fn sessions_go_on_with_the_next_daemon() {
    let bench = Bench::new().await;
    let file = bench.state.path().join("http-sessions.json");
    let web = Web::on(bench, |change| {
        change.options.sessions_file = Some(file.clone());
    })
    .await;
    let agent = web.agent(&web.token);
    let (unnamed, left) = (
        agent.initialized().await,
        Tell::new(web.bench.work.path(), "left"),
    );
    let id = pid(&unnamed
        .called("command_bg_start", unnamed.background("sleep 120"))
        .await);
    started(&agent.at("/mcp/s/left"), &left.script()).await;
    let left = left.process().await;
    let token = web.token.clone();
    let bench = web.leave().await;
    assert!(left.lives(), "what is durable goes on");

    let web = Web::on(bench, |change| {
        change.options.sessions_file = Some(file.clone());
        change.options.session_idle = Duration::from_secs(1);
    })
    .await;
    let same = Agent {
        address: web.address,
        ..unnamed.with("authorization", &format!("Bearer {token}"))
    };
    // The MCP session is known again without another handshake, and so is what it started.
    let stream = same.get().await;
    assert_eq!(stream.status, 200);
    assert_eq!(ids(&same.called("command_ps_list", json!({})).await), [id]);
    // Nobody comes back to the other one.
    left.goes().await;
    assert_eq!(same.request("tools/list", json!({})).await.status, 200);
    drop(stream);
    web.close().await;
}
