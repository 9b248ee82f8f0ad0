//! Input to commands, and their reactions.

use super::*;

#[tokio::test]
async fn a_conversation_with_an_interpreter() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let started = client
        .call(
            "exec",
            json!({"command": ["bc", "-q"], "input": "open", "wait_ms": 0}),
        )
        .await;
    let id = id(&started);
    let mut at = cursor(&started);
    for (text, answer) in [("6*7", "42"), ("2^64\n", "18446744073709551616")] {
        let more = json!({"ids": [id], "text": text});
        control_ok(&mut client, "write", more).await;
        let more = json!({"ids": [id], "pattern": "^\\d+$", "cursor": at});
        let result = process(&mut client, "wait", more).await;
        assert_eq!(output(&result), [answer], "{result}");
        at = cursor(&result);
    }
    assert_eq!(
        control_ok(&mut client, "close_input", json!({"ids": [id]})).await["result"],
        "input closed"
    );
    let result = process(&mut client, "wait", json!({"ids": [id], "cursor": at})).await;
    assert!(text(&result).contains(" exit 0, "), "{result}");
}

#[tokio::test]
async fn a_conversation_in_one_call_per_turn() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let command = json!({"command": ["bc", "-q"], "input": "open"});
    let started = client.call("exec", command).await;
    assert_eq!(fields(&started)["why"], "prompt", "{started}");
    let id = id(&started);
    for (text, answer) in [("6*7", "42"), ("last+1", "43")] {
        let more = json!({"ids": [id], "text": text, "wait_ms": 10_000});
        let result = control(&mut client, "write", more).await;
        assert_eq!(output(&result), [answer], "{result}");
        assert_eq!(fields(&result)["why"], "prompt", "{result}");
    }
    let more = json!({"ids": [id], "text": "quit", "wait_ms": 10_000});
    let result = control(&mut client, "write", more).await;
    assert!(text(&result).contains(" exit 0, "), "{result}");
}

#[tokio::test]
async fn python_answers_as_if_typed_at() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let command = json!({"command": ["python3", "-i", "-q", "-u"], "input": "open"});
    let started = client.call("exec", command).await;
    let id = id(&started);
    let more = json!({"ids": [id], "text": "print(6*7)", "wait_ms": 10_000});
    let result = control(&mut client, "write", more).await;
    assert!(output(&result).contains(&"42".to_owned()), "{result}");
    let more = json!({"ids": [id], "text": "raise SystemExit(3)", "wait_ms": 10_000});
    let result = control(&mut client, "write", more).await;
    assert!(text(&result).contains(" exit 3, "), "{result}");
}

#[tokio::test]
async fn a_command_that_silently_went_on_waits_for_no_input() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "bash -c 'printf \"Continue? [y/N] \"; read -r -t 2 answer; exec sleep 300'";
    let result = exec(
        &mut client,
        script,
        json!({"input": "open", "until": "prompt"}),
    )
    .await;
    assert_eq!(fields(&result)["prompt"]["secret"], false, "{result}");
    loop {
        let listed = process(&mut client, "list", json!({})).await;
        let listed = &listed["structuredContent"]["processes"][0];
        if listed["waiting_for_input"].is_null() {
            assert_eq!(listed["status"], "running", "{listed}");
            return;
        }
        let briefly = json!({"ids": [id(&result)], "wait_ms": 200});
        process(&mut client, "wait", briefly).await;
    }
}

#[tokio::test]
async fn a_prompt_comes_back_with_how_to_answer() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "printf 'Continue? [y/N] '; read -r answer; echo got $answer";
    let result = exec(
        &mut client,
        script,
        json!({"input": "open", "until": "prompt"}),
    )
    .await;
    insta::assert_snapshot!(plain(&result));
    assert_eq!(fields(&result)["prompt"]["secret"], false, "{result}");
    let id = id(&result);
    let listed = process(&mut client, "list", json!({})).await;
    let listed = &listed["structuredContent"]["processes"][0];
    assert_eq!(listed["waiting_for_input"], "Continue? [y/N] ", "{listed}");
    control_ok(&mut client, "write", json!({"ids": [id], "text": "y"})).await;
    let more = json!({"ids": [id], "cursor": cursor(&result)});
    let result = process(&mut client, "wait", more).await;
    assert!(text(&result).contains("got y"), "{result}");
    let result = exec(&mut client, script, json!({"until": "prompt"})).await;
    assert_eq!(
        fields(&result)["why"],
        "exit",
        "at end of file nothing is asked: {result}"
    );
}

#[tokio::test]
async fn what_has_no_input_says_how_to_get_one() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let id = start(&mut client, "exec sleep 300", json!({})).await;
    let result = control(&mut client, "write", json!({"ids": [id], "text": "a"})).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("input \"open\""), "{result}");
    control_ok(&mut client, "stop", json!({"ids": [id], "force": true})).await;
    let result = control(&mut client, "write", json!({"ids": [id], "text": "a"})).await;
    assert!(text(&result).contains("the process has ended"), "{result}");
}
