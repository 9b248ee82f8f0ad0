//! Sessions and principals: visibility and lifetime.

use super::*;

#[tokio::test]
async fn principals_see_only_their_own() {
    let web = HttpFixture::new().await;
    let one = web.agent(&web.token);
    let two = web.agent(&web.secret("two", "token:two", &[]));
    let id = start_script(&one, "sleep 120").await;
    assert_eq!(list_ids(&one).await, std::slice::from_ref(&id));
    assert!(list_ids(&two).await.is_empty());
    let foreign = two.call("command_ps_detail", json!({"pid": id})).await;
    let unknown = two
        .call("command_ps_detail", json!({"pid": "zzzzzzzz"}))
        .await;
    assert_eq!(foreign["isError"], true);
    assert_eq!(text(&foreign), text(&unknown));
    let rest = two.at(&format!("/api/process/{id}")).get().await;
    assert_eq!(rest.status, 404);
    // The same names are not the same sessions.
    let named = start_script(&one.at("/mcp/s/x"), "sleep 120").await;
    assert_eq!(list_ids(&one.at("/mcp/s/x")).await, [named]);
    assert!(list_ids(&two.at("/mcp/s/x")).await.is_empty());
    web.close().await;
}

#[tokio::test]
async fn sessions_of_one_principal_see_only_their_own() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let (a, b) = (agent.at("/mcp/s/a"), agent.with("ostler-session", "b"));
    let (c, d) = (agent.initialize().await, agent.initialize().await);
    let in_a = start_script(&a, "sleep 120").await;
    let in_b = start_script(&b, "sleep 120").await;
    let in_c = pid(&c
        .call_initialized("command_bg_start", c.background("sleep 120"))
        .await);
    let in_d = pid(&d
        .call_initialized("command_bg_start", d.background("sleep 120"))
        .await);
    let shared = start_script(&agent, "sleep 120").await;
    assert_eq!(list_ids(&a).await, std::slice::from_ref(&in_a));
    assert_eq!(list_ids(&b).await, std::slice::from_ref(&in_b));
    assert_eq!(
        ids(&c.call_initialized("command_ps_list", json!({})).await),
        [in_c]
    );
    assert_eq!(
        ids(&d.call_initialized("command_ps_list", json!({})).await),
        [in_d]
    );
    assert_eq!(list_ids(&agent).await, std::slice::from_ref(&shared));
    // The same name by path and by header, in both eras, is the same session.
    assert_eq!(
        list_ids(&agent.with("ostler-session", "a")).await,
        std::slice::from_ref(&in_a)
    );
    let old = agent.at("/mcp/s/a").initialize().await;
    assert_eq!(
        ids(&old.call_initialized("command_ps_list", json!({})).await),
        std::slice::from_ref(&in_a)
    );
    let foreign = a.call("command_ps_stop", json!({"pid": in_b})).await;
    assert_eq!(foreign["isError"], true);

    // Agents of another token have another session.
    let other = web.agent(&web.secret("two", "uid:0", &[]));
    assert!(list_ids(&other).await.is_empty());

    // REST sees the session that it names, or with the scope all of them.
    let rest = agent.at("/api/v1/executions");
    let count = |body: Value| body["executions"].as_array().unwrap().len();
    assert_eq!(count(rest.get().await.json().await), 0);
    for name in ["a", "http-first"] {
        let named = rest.with("ostler-session", name);
        assert_eq!(count(named.get().await.json().await), 1, "{name}");
    }
    let all = web.agent(&web.secret("all", "uid:0", &[TokenScope::SessionsAll]));
    assert_eq!(
        count(all.at("/api/v1/executions").get().await.json().await),
        5
    );
    assert_eq!(list_ids(&all).await.len(), 5);

    // The end of a named session ends what runs there, and nothing else.
    assert_eq!(a.delete().await.status, 204);
    assert!(list_ids(&a).await.is_empty());
    assert_eq!(list_ids(&b).await, [in_b]);
    assert_eq!(list_ids(&agent).await, [shared]);
    web.close().await;
}

#[tokio::test]
async fn an_mcp_session_is_bound_to_who_began_it() {
    let web = HttpFixture::new().await;
    let one = web.agent(&web.token).initialize().await;
    let two = web.secret("two", "token:two", &[]);
    let foreign = one.with("authorization", &format!("Bearer {two}"));
    let unknown = foreign.with("mcp-session-id", "00000000-0000-4000-8000-000000000000");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let mut response = Vec::new();
    for agent in [&foreign, &unknown] {
        for answer in [
            agent.post(&list).await,
            agent.get().await,
            agent.delete().await,
        ] {
            assert_eq!(answer.status, 404);
            response.push(answer.json().await);
        }
    }
    assert!(
        response.iter().all(|problem| *problem == response[0]),
        "{response:?}"
    );
    // Claiming the newer revision grants no access.
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
    let web =
        HttpFixture::with(|change| change.mcp_options.session_idle = Duration::from_millis(300))
            .await;
    let agent = web.agent(&web.token);
    let unnamed = agent.initialize().await;
    let kept = agent.initialize().await;
    // An open stream is use.
    let stream = kept.get().await;
    assert_eq!(stream.status, 200);
    let (one, two) = (
        PidPipe::new(web.bench.work.path(), "a"),
        PidPipe::new(web.bench.work.path(), "b"),
    );
    let three = PidPipe::new(web.bench.work.path(), "c");
    unnamed
        .call_initialized("command_bg_start", unnamed.background(&one.script()))
        .await;
    kept.call_initialized("command_bg_start", kept.background(&two.script()))
        .await;
    let named = agent.at("/mcp/s/n");
    start_script(&named, &three.script()).await;
    let (one, two, three) = (
        one.process().await,
        two.process().await,
        three.process().await,
    );
    one.wait_exit().await;
    three.wait_exit().await;
    assert_eq!(unnamed.request("tools/list", json!({})).await.status, 404);
    let cleaned = async { while !list_ids(&named).await.is_empty() {} };
    timeout(PATIENCE, cleaned)
        .await
        .expect("what ended is cleaned");
    assert!(two.is_alive());
    assert_eq!(kept.request("tools/list", json!({})).await.status, 200);
    drop(stream);
    two.wait_exit().await;
    web.close().await;
}

/// Clients that begin a session each and end none.
#[tokio::test]
async fn an_idle_session_makes_way_for_a_new_one() {
    // An idle session makes way after a thirtieth of this.
    let web =
        HttpFixture::with(|change| change.mcp_options.session_idle = Duration::from_secs(90)).await;
    let agent = web.agent(&web.token);
    let mut sessions = Vec::new();
    for _ in 0..256 {
        sessions.push(agent.initialize().await);
    }
    let running = pid(&sessions[0]
        .call_initialized("command_bg_start", sessions[0].background("sleep 120"))
        .await);
    let stream = sessions[1].get().await;
    assert_eq!(stream.status, 200);
    let newer = async {
        loop {
            match agent.try_initialize_with("2025-11-25").await {
                Ok(newer) => return newer,
                Err(status) => assert_eq!(status, 429),
            }
        }
    };
    let newer = timeout(PATIENCE, newer).await.expect("room");
    assert_eq!(newer.request("tools/list", json!({})).await.status, 200);
    // The longest idle one, in which nothing runs and to which no client listens.
    let statuses = [0, 1, 2, 3].map(|index| sessions[index].request("tools/list", json!({})));
    let statuses: Vec<u16> = futures_util::future::join_all(statuses)
        .await
        .iter()
        .map(|answer| answer.status.as_u16())
        .collect();
    assert_eq!(statuses, [200, 200, 404, 200]);
    assert_eq!(
        ids(&sessions[0]
            .call_initialized("command_ps_list", json!({}))
            .await),
        [running]
    );
    drop(stream);
    web.close().await;
}

#[tokio::test]
async fn paths_name_tools_and_sessions() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let count = |result: Value| result["tools"].as_array().unwrap().len();
    for path in ["/mcp", "/mcp/p/command", "/mcp/s/x", "/mcp/s/x/p/command"] {
        let tools = agent.at(path).request_modern("tools/list", json!({})).await;
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
async fn sessions_go_on_with_the_next_daemon() {
    let bench = ServerFixture::new().await;
    let file = bench.state.path().join("http-sessions.json");
    let web = HttpFixture::with_fixture(bench, |change| {
        change.mcp_options.sessions_file = Some(file.clone());
    })
    .await;
    let agent = web.agent(&web.token);
    let (unnamed, left) = (
        agent.initialize().await,
        PidPipe::new(web.bench.work.path(), "left"),
    );
    let id = pid(&unnamed
        .call_initialized("command_bg_start", unnamed.background("sleep 120"))
        .await);
    start_script(&agent.at("/mcp/s/left"), &left.script()).await;
    let left = left.process().await;
    let token = web.token.clone();
    let bench = web.close_keeping_state().await;
    assert!(left.is_alive(), "what is durable goes on");

    let web = HttpFixture::with_fixture(bench, |change| {
        change.mcp_options.sessions_file = Some(file.clone());
        change.mcp_options.session_idle = Duration::from_secs(1);
    })
    .await;
    let same = HttpTestClient {
        address: web.address,
        ..unnamed.with("authorization", &format!("Bearer {token}"))
    };
    // The MCP session and its executions are known again without another handshake.
    let stream = same.get().await;
    assert_eq!(stream.status, 200);
    assert_eq!(
        ids(&same.call_initialized("command_ps_list", json!({})).await),
        [id]
    );
    // The other session is not used again.
    left.wait_exit().await;
    assert_eq!(same.request("tools/list", json!({})).await.status, 200);
    drop(stream);
    web.close().await;
}
