//! Terminals in profile `core`.

use super::*;

#[tokio::test]
async fn a_conversation_in_a_terminal() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let given = json!({"command": ["python3", "-q", "-E"], "input": "tty", "wait_ms": 40_000});
    let started = client.call("exec", given).await;
    assert!(text(&started).contains(">>>"), "{started}");
    let id = fields(&started)["session"].as_str().unwrap().to_owned();
    let more = json!({"ids": id, "text": "6*7", "wait_ms": 40_000});
    let result = control(&mut client, "write", more).await;
    assert!(text(&result).contains("\n42\n"), "{result}");
    let screen = process(&mut client, "screen", json!({"ids": id})).await;
    assert!(text(&screen).contains(">>> 6*7\n42"), "{screen}");
    let more = json!({"ids": id, "keys": ["ctrl-d"], "wait_ms": 40_000});
    let result = control(&mut client, "write", more).await;
    assert!(text(&result).contains("exited 0"), "{result}");
    for answer in [started, result, screen] {
        assert!(!text(&answer).contains("pty_"), "{answer}");
    }
}

#[tokio::test]
async fn the_end_of_a_command_in_a_terminal_is_reported_with_its_output() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "tty >/dev/null && echo in a terminal; exit 3";
    let more = json!({"input": "tty", "wait_ms": 40_000});
    let result = exec(&mut client, script, more).await;
    assert!(text(&result).contains("exited 3"), "{result}");
    assert!(text(&result).contains("in a terminal"), "{result}");
    assert_eq!(fields(&result)["exit_code"], 3, "{result}");
}

#[tokio::test]
async fn what_is_waited_for_holds_in_a_terminal_as_well() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let script = "read -r line; echo got $line; exec sleep 300";
    let more = json!({"input": "tty", "until": "prompt", "wait_ms": 40_000});
    let started = exec(&mut client, script, more).await;
    assert_eq!(fields(&started)["why"], "prompt", "{started}");
    let id = fields(&started)["session"].as_str().unwrap().to_owned();
    control_ok(&mut client, "write", json!({"ids": id, "text": "it"})).await;
    let more = json!({"ids": id, "pattern": "got it", "wait_ms": 40_000});
    let result = process(&mut client, "wait", more).await;
    assert_eq!(fields(&result)["why"], "pattern", "{result}");
    end(&bench).await;
}

#[tokio::test]
async fn what_has_no_terminal_says_how_to_get_one() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let id = start(&mut client, "exec cat", json!({"input": "open"})).await;
    let screen = process(&mut client, "screen", json!({"ids": id})).await;
    assert_eq!(screen["isError"], true, "{screen}");
    assert!(text(&screen).contains("input \"tty\""), "{screen}");
    let more = json!({"ids": id, "keys": ["ctrl-c"]});
    let refused = control(&mut client, "write", more).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("input \"tty\""), "{refused}");
    end(&bench).await;
}
