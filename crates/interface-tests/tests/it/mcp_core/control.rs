//! Stops, signals, cancelled calls; visibility.

use super::*;

#[tokio::test]
async fn a_cancelled_call_takes_its_tree_along() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "sleep 300 & echo $! >> pids; setsid sleep 300 & echo $! >> pids; \
                  echo $$ >> pids; mv pids begun; wait";
    let params = json!({"name": "exec", "arguments": {"command": script, "wait_ms": 40_000}});
    let call = client.send("tools/call", params).await;
    let started = bench.work.path().join("begun");
    wait_file(&started).await;
    client
        .notify("notifications/cancelled", json!({"requestId": call}))
        .await;
    wait_running(&bench, 0).await;
    let pids = std::fs::read_to_string(&started).unwrap();
    assert_eq!(pids.lines().count(), 3);
    for pid in pids.lines() {
        assert!(!is_running(pid), "{pid} is still there");
    }
}

#[tokio::test]
async fn a_stubborn_tree_is_stopped_all_the_same() {
    let bench = ServerFixture::with(|settings| settings.grace = Duration::from_millis(300)).await;
    let mut client = client(&bench).await;
    let script = "trap '' TERM INT; (setsid sh -c 'trap \"\" TERM; echo $$ >> pids; \
                  mv pids begun; while :; do sleep 1; done') & echo $$ >> pids; \
                  while :; do sleep 1; done";
    let id = start(&mut client, script, json!({})).await;
    let started = bench.work.path().join("begun");
    wait_file(&started).await;
    let more = json!({"ids": [id], "reason": "enough"});
    let response = control_ok(&mut client, "stop", more).await;
    assert_eq!(response["signal"], "SIGKILL", "{response}");
    assert_eq!(response["status"], "terminated", "{response}");
    assert!(
        response["result"].as_str().unwrap().contains("enough"),
        "{response}"
    );
    assert!(response.get("survivors").is_none(), "{response}");
    for pid in std::fs::read_to_string(&started).unwrap().lines() {
        assert!(!is_running(pid), "{pid} is still there");
    }
    let again = control_ok(&mut client, "stop", json!({"ids": [id]})).await;
    assert!(
        again["result"]
            .as_str()
            .unwrap()
            .starts_with("it had ended"),
        "{again}"
    );
}

#[tokio::test]
async fn ten_at_once() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let mut calls = Vec::new();
    for number in 0..10 {
        let script = format!("touch {number}; until [ -e 9 ]; do :; done; echo {number}");
        let params = json!({"name": "exec", "arguments": {"command": script}});
        calls.push((number, client.send("tools/call", params).await));
    }
    for (number, result) in client.wait_responses(calls).await {
        assert_eq!(output(&result), [number.to_string()], "{result}");
    }
}

#[tokio::test]
async fn one_failure_among_several_ids_is_reported_with_the_others() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let runs = start(&mut client, "exec sleep 300", json!({})).await;
    let over = id(&exec(&mut client, "echo over", json!({})).await);
    let ids = json!({"ids": [runs, "zzzzzzzz", over]});
    let result = control(&mut client, "clean", ids.clone()).await;
    let results = result["structuredContent"]["results"].as_array().unwrap();
    let response: Vec<&str> = results
        .iter()
        .map(|it| it["result"].as_str().unwrap())
        .collect();
    assert_eq!(
        response,
        [
            "failed: it is still running; stop it first",
            "failed: Process not found or access denied",
            "success",
        ]
    );
    assert_eq!(result["isError"], false);
    let same: Value = serde_json::from_str(&text(&result)).unwrap();
    assert_eq!(same, result["structuredContent"]);
    let result = control(&mut client, "stop", json!({"ids": ["zzzzzzzz", over]})).await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["code"], "process_not_found");
    end(&bench).await;
}

#[tokio::test]
async fn signals_input_and_output_are_controlled() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "trap 'echo usr1' USR1; echo on; while :; do read -r line && echo got $line; done";
    let result = exec(
        &mut client,
        script,
        json!({"input": "open", "pattern": "on"}),
    )
    .await;
    let id = id(&result);
    let response = control_ok(
        &mut client,
        "signal",
        json!({"ids": [id], "signal": "usr1"}),
    )
    .await;
    assert_eq!(response["result"], "SIGUSR1 sent");
    let result = process(&mut client, "wait", json!({"ids": [id], "pattern": "usr1"})).await;
    assert_eq!(fields(&result)["why"], "pattern");
    let more = json!({"ids": [id], "text": "a", "enter": false});
    assert_eq!(
        control_ok(&mut client, "write", more).await["result"],
        "1 bytes written"
    );
    control_ok(&mut client, "write", json!({"ids": [id], "text": "b"})).await;
    let result = process(
        &mut client,
        "wait",
        json!({"ids": [id], "pattern": "got ab"}),
    )
    .await;
    assert_eq!(fields(&result)["why"], "pattern", "{result}");
    let response = control_ok(&mut client, "clear_output", json!({"ids": [id]})).await;
    assert!(
        response["result"].as_str().unwrap().ends_with("dropped"),
        "{response}"
    );
    let result = process(&mut client, "output", json!({"ids": [id]})).await;
    assert!(output(&result).is_empty(), "{result}");
    control_ok(&mut client, "stop", json!({"ids": [id], "force": true})).await;
}

#[tokio::test]
async fn what_is_kept_outlives_its_session() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let kept = start(&mut client, "exec sleep 300", json!({"keep": true})).await;
    let ends = start(&mut client, "exec sleep 300", json!({})).await;
    let session = bench.caller(Some("s"));
    bench.engine.end_session(&session).await.unwrap();
    let principal = bench.caller(None);
    assert!(
        !bench
            .engine
            .info(&principal, &kept)
            .unwrap()
            .state
            .is_finished()
    );
    assert!(bench.engine.info(&principal, &ends).is_err());
    let stop = ostler_engine::StopRequest {
        force: true,
        ..Default::default()
    };
    bench.engine.stop(&principal, &kept, stop).await.unwrap();
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let bench = ServerFixture::new().await;
    let mut one = client(&bench).await;
    let mut two = bench.client_with("other", ToolSet::default()).await;
    let id = start(&mut one, "exec sleep 300", json!({})).await;
    for action in ["output", "wait", "detail"] {
        let foreign = process(&mut two, action, json!({"ids": [id]})).await;
        let unknown = process(&mut two, action, json!({"ids": ["zzzzzzzz"]})).await;
        let (foreign, unknown) = (text(&foreign), text(&unknown));
        assert_eq!(
            foreign.replace(&id, "ID"),
            unknown.replace("zzzzzzzz", "ID")
        );
        assert!(
            foreign.contains("Process not found or access denied"),
            "{foreign}"
        );
    }
    for action in ["stop", "clean", "close_input", "clear_output"] {
        let foreign = control(&mut two, action, json!({"ids": [id]})).await;
        assert_eq!(
            foreign["_meta"]["code"], "process_not_found",
            "{action} {foreign}"
        );
    }
    let listed = process(&mut two, "list", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 0);
    end(&bench).await;
}
