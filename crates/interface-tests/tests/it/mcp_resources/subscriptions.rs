//! Updates for subscribers, in both eras.

use super::*;

/// A command that prints a line for each line it is given.
async fn parrot(bench: &ServerFixture, session: &str) -> String {
    let mut request = StartRequest::argv(["cat"], ByteString::from(bench.work.path()));
    request.stdin = ostler_engine::StdinRequest::Open;
    let caller = bench.caller(Some(session));
    let info = bench.engine.start(&caller, request).await.unwrap();
    info.id.short()
}

async fn say(bench: &ServerFixture, session: &str, pid: &str, text: &str) {
    let caller = bench.caller(Some(session));
    let bytes = format!("{text}\n").into_bytes();
    bench.engine.write(&caller, pid, bytes).await.unwrap();
    let pattern = ostler_journal::Pattern::new(&format!("^{text}$")).unwrap();
    let until = ostler_engine::WaitFor::Pattern(pattern);
    let said = bench
        .engine
        .wait(&caller, pid, &until, Some(PATIENCE))
        .await;
    said.unwrap();
}

async fn hang_up(bench: &ServerFixture, session: &str, pid: &str) {
    let caller = bench.caller(Some(session));
    bench.engine.close_input(&caller, pid).await.unwrap();
}

#[tokio::test]
async fn a_subscriber_of_the_handshake_era_receives_output_and_the_end() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = parrot(&bench, "s").await;
    let uri = format!("proc://{pid}/log");
    for _ in 0..2 {
        let answer = client
            .request("resources/subscribe", json!({"uri": uri}))
            .await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    say(&bench, "s", &pid, "one").await;
    assert_eq!(client.notification(UPDATED).await["uri"], uri.as_str());
    assert!(body(&read(&mut client, &uri).await).starts_with("one\n"));
    hang_up(&bench, "s", &pid).await;
    // The end may come in two steps, the output's and the command's.
    loop {
        client.notification(UPDATED).await;
        if body(&read(&mut client, &uri).await).contains("exit code 0") {
            break;
        }
    }
}

#[tokio::test]
async fn an_unsubscribed_client_receives_nothing_more() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = parrot(&bench, "s").await;
    let (uri, other) = (format!("proc://{pid}"), format!("proc://{pid}/log"));
    for uri in [&uri, &other] {
        client
            .request("resources/subscribe", json!({"uri": uri}))
            .await;
    }
    let answer = client
        .request("resources/unsubscribe", json!({"uri": uri}))
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    hang_up(&bench, "s", &pid).await;
    for _ in 0..1 {
        assert_eq!(client.notification(UPDATED).await["uri"], other.as_str());
    }
    let answer = client
        .request("resources/unsubscribe", json!({"uri": "x"}))
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

#[tokio::test]
async fn a_subscriber_receives_what_it_requested() {
    let bench = ServerFixture::new().await;
    let mut client = bench.raw_client("s");
    let pid = parrot(&bench, "s").await;
    let uri = format!("proc://{pid}");
    let filter = json!({
        "resourceSubscriptions": [uri, "proc://", "other://x"],
        "resourcesListChanged": true, "toolsListChanged": true
    });
    let params = json!({"notifications": filter, "_meta": meta()});
    let request = client.send("subscriptions/listen", params).await;
    let acknowledged = client.notification(ACKNOWLEDGED).await;
    let expected = json!({
        "resourceSubscriptions": [uri, "proc://"], "resourcesListChanged": true
    });
    assert_eq!(acknowledged["notifications"], expected, "{acknowledged}");
    say(&bench, "s", &pid, "one").await;
    let update = client.notification(UPDATED).await;
    assert_eq!(update["uri"], uri.as_str());
    let subscription = &update["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(subscription, &json!(request), "{update}");
    hang_up(&bench, "s", &pid).await;
    client.notification(LIST_CHANGED).await;
    let mut received = Vec::new();
    while !received.contains(&json!("proc://")) {
        received.push(client.notification(UPDATED).await["uri"].take());
    }
    client.close().await;
}

#[tokio::test]
async fn the_stream_ends_at_once_despite_a_subscriber() {
    let bench = ServerFixture::new().await;
    let mut client = bench.raw_client("s");
    listen(
        &mut client,
        json!({"resourceSubscriptions": ["proc://news"]}),
    )
    .await;
    let started = Instant::now();
    client.close().await;
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_cancelled_subscriber_receives_nothing_more() {
    let bench = ServerFixture::new().await;
    let mut client = bench.raw_client("s");
    let filter = json!({"resourceSubscriptions": ["proc://"]});
    let first = listen(&mut client, filter.clone()).await;
    let second = listen(&mut client, filter).await;
    let params = json!({"requestId": first, "_meta": meta()});
    client.notify("notifications/cancelled", params).await;
    // The answer to a request after the cancellation shows that the cancellation was handled.
    client
        .request("resources/list", json!({"_meta": meta()}))
        .await;
    parrot(&bench, "s").await;
    let update = client.notification(UPDATED).await;
    let subscription = &update["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(subscription, &json!(second), "{update}");
    assert_eq!(client.count_notifications(UPDATED).await, 0);
}

/// The rule of one update a second, over a burst of three: the first at once, the last state
/// never missed.
#[tokio::test]
async fn bursts_are_one_update_a_second_and_a_last_one() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = parrot(&bench, "s").await;
    let uri = format!("proc://{pid}/log");
    client
        .request("resources/subscribe", json!({"uri": uri}))
        .await;
    let started = Instant::now();
    let caller = bench.caller(Some("s"));
    let burst = Duration::from_millis(2_200);
    let (mut printed, mut received) = (0_u32, Vec::new());
    while started.elapsed() < burst {
        printed += 1;
        let bytes = format!("{printed}\n").into_bytes();
        bench.engine.write(&caller, &pid, bytes).await.unwrap();
        let waiting = client.notification(UPDATED);
        if timeout(Duration::from_millis(1), waiting).await.is_ok() {
            received.push(started.elapsed());
        }
    }
    assert!(printed > 10, "{printed}");
    hang_up(&bench, "s", &pid).await;
    loop {
        client.notification(UPDATED).await;
        received.push(started.elapsed());
        let answer = read(&mut client, &format!("{uri}?tail=1")).await;
        if body(&answer).contains("exit code 0") {
            assert!(
                body(&answer).starts_with(&format!("{printed}\n")),
                "{answer}"
            );
            break;
        }
    }
    // On a busy machine one arrives late, and the next one soon after it.
    assert!(received[0] < burst, "{received:?}");
    let most = started.elapsed().as_secs() + 3;
    assert!(received.len() as u64 <= most, "{received:?}");
}

#[tokio::test]
async fn starts_and_ends_change_the_list_once_a_second() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let mut other = bench.client("other").await;
    let begin = Instant::now();
    for _ in 0..20 {
        client.execute("true", json!({})).await;
    }
    client.notification(LIST_CHANGED).await;
    let more = client.count_notifications(LIST_CHANGED).await;
    let seconds = begin.elapsed().as_secs();
    assert!(more as u64 <= seconds + 2, "{more} in {seconds} s");
    client.notification(LIST_CHANGED).await;
    assert_eq!(other.count_notifications(LIST_CHANGED).await, 0);
}

#[tokio::test]
async fn a_session_has_so_many_subscriptions_and_no_more() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = parrot(&bench, "s").await;
    for number in 1..=256 {
        let uri = format!("proc://{pid}/log?tail={number}");
        let answer = client
            .request("resources/subscribe", json!({"uri": uri}))
            .await;
        assert_eq!(answer["result"], json!({}), "{number}: {answer}");
    }
    let one_more = json!({"uri": format!("proc://{pid}")});
    let answer = client
        .request("resources/subscribe", one_more.clone())
        .await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("256"), "{message}");
    assert_eq!(answer["error"]["data"]["code"], "quota_exceeded");
    let uri = format!("proc://{pid}/log?tail=7");
    client
        .request("resources/unsubscribe", json!({"uri": uri}))
        .await;
    let answer = client
        .request("resources/subscribe", one_more.clone())
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    client.close().await;

    let mut client = bench.client("s").await;
    let answer = client.request("resources/subscribe", one_more).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    // Ended executions use no slot.
    for number in 0..4 {
        let pid = client.start("true", json!({})).await;
        client.wait_end(&pid).await;
        let uri = format!("proc://{pid}");
        let answer = client
            .request("resources/subscribe", json!({"uri": uri}))
            .await;
        assert_eq!(answer["result"], json!({}), "{number}: {answer}");
    }
}

/// A client that subscribes to everything and then reads nothing.
#[tokio::test]
async fn a_client_that_does_not_read_slows_no_other() {
    let bench = ServerFixture::new().await;
    let mut deaf = bench.client_with_pipe("s", 512).await;
    let pid = parrot(&bench, "s").await;
    for uri in [
        "proc://".to_owned(),
        "proc://news".to_owned(),
        format!("proc://{pid}/log"),
    ] {
        deaf.request("resources/subscribe", json!({"uri": uri}))
            .await;
    }
    let mut client = bench.client("s").await;
    let uri = format!("proc://{pid}/log");
    client
        .request("resources/subscribe", json!({"uri": uri}))
        .await;
    for round in 0..3 {
        for _ in 0..20 {
            let ended = client.start("exit 3", json!({})).await;
            client.wait_end(&ended).await;
        }
        say(&bench, "s", &pid, &format!("round{round}")).await;
        assert_eq!(client.notification(UPDATED).await["uri"], uri.as_str());
    }
    drop(deaf);
}

#[tokio::test]
async fn a_prompt_that_waits_is_an_update_of_the_process() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let script = "printf 'Overwrite it? [y/N] '; read answer; echo got $answer; exec sleep 300";
    let words = ["sh", "-c", script];
    let mut request = StartRequest::argv(words, ByteString::from(bench.work.path()));
    request.stdin = ostler_engine::StdinRequest::Open;
    let caller = bench.caller(Some("s"));
    let pid = bench
        .engine
        .start(&caller, request)
        .await
        .unwrap()
        .id
        .short();
    let uri = format!("proc://{pid}");
    client
        .request("resources/subscribe", json!({"uri": uri}))
        .await;
    let mut detail = document(&read(&mut client, &uri).await);
    while detail["prompt"].is_null() {
        client.notification(UPDATED).await;
        detail = document(&read(&mut client, &uri).await);
    }
    assert_eq!(detail["prompt"], "Overwrite it? [y/N] ");
    bench
        .engine
        .write(&caller, &pid, b"y\n".to_vec())
        .await
        .unwrap();
    while !detail["prompt"].is_null() {
        client.notification(UPDATED).await;
        detail = document(&read(&mut client, &uri).await);
    }
    stop(&bench, "s", &pid).await;
}
