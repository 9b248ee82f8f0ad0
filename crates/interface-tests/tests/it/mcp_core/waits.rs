//! Waits for output, ends and patterns.

use super::*;

#[tokio::test]
async fn waiting_for_nothing_answers_at_once() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let started = Instant::now();
    let id = start(&mut client, "exec sleep 300", json!({})).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    let result = process(&mut client, "detail", json!({"ids": [id]})).await;
    assert_eq!(
        result["structuredContent"]["processes"][0]["status"],
        "running"
    );
    end(&bench).await;
}

#[tokio::test]
async fn an_answer_comes_with_the_first_of_several() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let mut ids = Vec::new();
    for name in ["one", "two", "three"] {
        let script = format!("read -r line; echo {name} $line");
        ids.push(start(&mut client, &script, json!({"input": "open"})).await);
    }
    control_ok(
        &mut client,
        "write",
        json!({"ids": [ids[1]], "text": "now"}),
    )
    .await;
    let result = process(&mut client, "wait", json!({"ids": ids})).await;
    assert_eq!(output(&result), ["two now"], "{result}");
    let states: Vec<&Value> = fields(&result)["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["status"])
        .collect();
    assert_eq!(states, ["running", "completed", "running"]);

    let result = process(
        &mut client,
        "wait",
        json!({"ids": ids, "all": true, "wait_ms": 50}),
    )
    .await;
    assert_eq!(output(&result), ["two now"], "{result}");
    let more = json!({"ids": [ids[0], ids[2]], "text": "all"});
    control(&mut client, "write", more).await;
    let result = process(&mut client, "wait", json!({"ids": ids, "all": true})).await;
    let shown: Vec<String> = output(&result)
        .into_iter()
        .filter(|l| !l.is_empty())
        .collect();
    assert_eq!(shown, ["one all", "two now", "three all"], "{result}");
    assert!(text(&result).matches(" exit 0, ").count() == 3, "{result}");
}

#[tokio::test]
async fn a_wait_for_a_pattern_sees_what_comes_later() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "while read -r line; do echo did $line; done";
    let more = json!({"input": "open", "wait_ms": 0});
    let started = exec(&mut client, script, more).await;
    let id = id(&started);
    let params = json!({"name": "process", "arguments": {
        "action": "wait", "ids": [id], "pattern": "^did second$", "wait_ms": 40_000
    }});
    let waiting = client.send("tools/call", params).await;
    for line in ["first", "second"] {
        let arguments = json!({"action": "write", "ids": [id], "text": line});
        let params = json!({"name": "process_control", "arguments": arguments});
        client.send("tools/call", params).await;
    }
    let answer = client.wait_response(waiting).await;
    let result = &answer["result"];
    assert_eq!(fields(result)["why"], "pattern", "{result}");
    assert!(
        text(result).contains("[pattern matched: did second]"),
        "{result}"
    );

    let more = json!({
        "ids": [id], "pattern": "^did second$", "cursor": cursor(result), "wait_ms": 100
    });
    let result = process(&mut client, "wait", more).await;
    assert_eq!(
        fields(&result)["why"],
        "time",
        "only what came after the cursor counts: {result}"
    );
    end(&bench).await;
}

#[tokio::test]
async fn an_awaited_line_comes_with_a_later_response() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "while read -r line; do echo did $line; done";
    let more = json!({"input": "open", "wait_ms": 0, "notify": "^did it$"});
    let id = id(&exec(&mut client, script, more).await);
    let response = control_ok(
        &mut client,
        "notify",
        json!({"ids": [id], "pattern": "^did that$"}),
    )
    .await;
    assert_eq!(response["result"], "you will be told when a line matches");
    let mut news = String::new();
    for line in ["this", "it", "that"] {
        let result = control(&mut client, "write", json!({"ids": [id], "text": line})).await;
        news.push_str(&other_text(&result));
    }
    let started = Instant::now();
    while !(news.contains("did it") && news.contains("did that")) {
        assert!(started.elapsed() < PATIENCE, "{news}");
        let result = process(&mut client, "list", json!({})).await;
        news.push_str(&other_text(&result));
    }
    assert_eq!(
        news.matches("[news: ").count(),
        news.lines().count(),
        "{news}"
    );
    end(&bench).await;
}
