//! The same over HTTP: progress and questions on the stream of the request, cancellation by a
//! separate message, tasks by one request each.

use serde_json::{Value, json};

use crate::web::{HttpFixture, HttpTestClient, HttpTestResponse, PidPipe};

/// A request of revision 2026-07-28 from a client with these capabilities, its answer still
/// coming.
async fn modern(
    agent: &HttpTestClient,
    method: &str,
    (mut params, capabilities): (Value, Value),
) -> HttpTestResponse {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    let name = params["name"].as_str().or(params["taskId"].as_str());
    let agent = agent
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", method)
        .with("mcp-name", name.unwrap_or_default());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    agent.post(&message).await
}

fn execute(agent: &HttpTestClient, script: &str) -> Value {
    let mut arguments = agent.script(script);
    arguments["timeout"] = 100.into();
    json!({"name": "command_execute", "arguments": arguments})
}

#[tokio::test]
async fn progress_comes_on_the_stream_of_its_request() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    for handshake in [false, true] {
        let mut params = execute(&agent, "echo begun; sleep 1.6; echo done");
        params["_meta"] = json!({"progressToken": "t"});
        let mut answer = if handshake {
            let agent = agent.initialize().await;
            agent.request("tools/call", params).await
        } else {
            modern(&agent, "tools/call", (params, json!({}))).await
        };
        let response = answer.message().await.unwrap();
        assert_eq!(response["method"], "notifications/progress", "{response}");
        assert_eq!(response["params"]["message"], "begun");
        let result = answer.result().await;
        assert!(crate::common::text(&result).contains("done"), "{result}");
    }
    web.close().await;
}

#[tokio::test]
async fn a_message_cancels_a_call_of_the_handshake_era() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize().await;
    let tell = PidPipe::new(web.bench.work.path(), "bell");
    let params = execute(&agent, &tell.script());
    let call = agent.request("tools/call", params).await;
    let process = tell.process().await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 8}});
    assert_eq!(agent.post(&cancelled).await.status, 202);
    process.wait_exit().await;
    drop(call);
    web.close().await;
}

#[tokio::test]
async fn a_person_gets_the_question_on_the_stream_of_the_call() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).at("/mcp/p/core");
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "0"}
    });
    let hello = agent.request("initialize", params).await;
    let id = hello.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let agent = agent
        .with("mcp-session-id", &id)
        .with("mcp-protocol-version", "2025-11-25");
    let script = "printf 'Proceed? [y/N] '; read a; echo \"got <$a>\"";
    let arguments = json!({"command": script, "input": "open", "on_prompt": "ask"});
    let params = json!({"name": "exec", "arguments": arguments});
    let mut answer = agent.request("tools/call", params).await;
    let requested = loop {
        let message = answer.message().await.unwrap();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let result = json!({"action": "accept", "content": {"answer": "y"}});
    let reply = json!({"jsonrpc": "2.0", "id": requested["id"], "result": result});
    assert_eq!(agent.post(&reply).await.status, 202);
    let result = answer.result().await;
    assert!(crate::common::text(&result).contains("got <y>"), "{result}");
    web.close().await;
}

#[tokio::test]
async fn a_task_is_a_request_at_a_time() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token);
    let knows = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let params = execute(&agent, "echo working; exec sleep 1000");
    let mut created = modern(&agent, "tools/call", (params, knows.clone())).await;
    let created = created.result().await;
    assert_eq!(created["resultType"], "task", "{created}");
    let task = json!({"taskId": created["taskId"]});
    let mut seen = modern(&agent, "tasks/get", (task.clone(), knows.clone())).await;
    assert_eq!(seen.result().await["statusMessage"], "working");
    let mut ack = modern(&agent, "tasks/cancel", (task.clone(), knows.clone())).await;
    assert_eq!(ack.result().await, json!({"resultType": "complete"}));
    let mut seen = modern(&agent, "tasks/get", (task, knows)).await;
    assert_eq!(seen.result().await["status"], "cancelled");
    web.close().await;
}
